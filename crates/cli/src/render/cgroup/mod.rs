//! `quell cgroup` for people.

mod show;
mod tree;

pub use show::page as show;
pub use tree::page as tree;

use quell_units::count;

use super::number::{bytes, three, usec};
use crate::doc::cgroup::{Cgroup, IoLatency, IoMax, WeightEngine};

/// The limits and targets that a cgroup sets itself, a line each.
fn limits(cgroup: &Cgroup, engines: &[WeightEngine]) -> Vec<String> {
    let mut out: Vec<String> = cgroup.io_max.iter().map(ceiling).collect();
    out.extend(cgroup.io_latency.iter().map(target));
    // 100 is what everybody has who was given nothing.
    out.extend(weights(cgroup, engines, |weight| weight != 100));
    let memory = [("memory.max", cgroup.memory_max_bytes), ("memory.high", cgroup.memory_high_bytes)];
    out.extend(memory.into_iter().filter_map(|(file, limit)| Some(format!("{file} {}", bytes(count(limit?))))));
    out
}

/// A cgroup's path as the file system below the mount has it.
fn rooted(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// The weights that `told` asks for, each with the disks on which it does anything.
fn weights(cgroup: &Cgroup, engines: &[WeightEngine], told: impl Fn(u32) -> bool) -> Vec<String> {
    let files = [
        ("io.weight", cgroup.io_weight, "no disk has iocost on"),
        ("io.bfq.weight", cgroup.io_bfq_weight, "no disk runs bfq"),
    ];
    let line = |(file, weight, without): (&str, Option<u32>, &str)| {
        let weight = weight.filter(|&weight| told(weight))?;
        let disks: Vec<&str> =
            engines.iter().filter(|engine| engine.heeds == file).map(|engine| &*engine.device).collect();
        Some(match disks.as_slice() {
            [] => format!("{file} {weight}: does nothing, {without}"),
            disks => format!("{file} {weight} on {}", disks.join(", ")),
        })
    };
    files.into_iter().filter_map(line).collect()
}

fn ceiling(row: &IoMax) -> String {
    let bytes_of = |word: &str, limit: Option<u64>| limit.map(|n| format!("{word} {}/s", bytes(count(n))));
    let ios_of = |word: &str, limit: Option<u64>| limit.map(|n| format!("{word} {} IO/s", three(count(n))));
    let limits = [
        bytes_of("read", row.read_bytes_per_sec),
        bytes_of("write", row.write_bytes_per_sec),
        ios_of("read", row.read_ios_per_sec),
        ios_of("write", row.write_ios_per_sec),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    format!("io.max {} {}: {}", row.device, row.dev, limits.join(", "))
}

fn target(row: &IoLatency) -> String {
    format!("io.latency {} {}: {}", row.device, row.dev, usec(count(row.target_usec)))
}
