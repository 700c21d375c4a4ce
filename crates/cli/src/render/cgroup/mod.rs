//! `quell cgroup` for people.

mod show;
mod tree;

pub use show::page as show;
pub use tree::page as tree;

use quell_units::count;

use super::number::{bytes, pct, three, usec};
use crate::doc::cgroup::{Cgroup, IoLatency, IoMax, Share};

/// The limits and targets that a cgroup sets itself, a line each.
fn limits(cgroup: &Cgroup) -> Vec<String> {
    let mut out: Vec<String> = cgroup.io_max.iter().map(ceiling).collect();
    out.extend(cgroup.io_latency.iter().map(target));
    let memory = [("memory.max", cgroup.memory_max_bytes), ("memory.high", cgroup.memory_high_bytes)];
    out.extend(memory.into_iter().filter_map(|(file, limit)| Some(format!("{file} {}", bytes(count(limit?))))));
    out
}

/// A cgroup's path as the file system below the mount has it.
fn rooted(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// What the cgroup gets of each disk where its weight is heeded; and a weight that somebody set, or that `all` asks for,
/// where none is.
fn weights(cgroup: &Cgroup, all: bool) -> Vec<String> {
    let gets = |share: &Share| {
        let Share { device, heeds, weight, share_ratio, .. } = share;
        format!("{heeds} {weight}: {} of {device} while all want it", pct(share_ratio * 100.0))
    };
    let mut out: Vec<String> = cgroup.shares.iter().map(gets).collect();
    let files = [
        ("io.weight", cgroup.io_weight, "no disk has iocost on"),
        ("io.bfq.weight", cgroup.io_bfq_weight, "no disk runs bfq"),
    ];
    for (file, weight, without) in files {
        let is_heeded = cgroup.shares.iter().any(|share| share.heeds == file);
        // 100 is what everybody has who was given nothing.
        if let Some(weight) = weight.filter(|&weight| !is_heeded && (all || weight != 100)) {
            out.push(format!("{file} {weight}: does nothing, {without}"));
        }
    }
    out
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
