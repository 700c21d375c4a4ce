//! `fragmented-sequential`: large reads reach the disk in small pieces.

use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, Share, Workload};
use super::table::Rule;
use crate::snapshot::Task;
use quell_units::{count, ratio};

pub(super) const RULE: Rule = Rule {
    id: "fragmented-sequential",
    explain: Explain {
        means: "A workload reads in large pieces, and the disk gets small ones that cannot be merged: its file lies in \
            fragments, and each costs a request of its own.",
        kernel: "A read becomes one bio for each contiguous extent. Files that were written at random, or on a nearly full or \
            copy-on-write file system, have extents of a few blocks, so that a megabyte is hundreds of requests.",
        evidence: "Read calls of a mean of 64 KiB or more, as much read from the disk as the calls returned (within a quarter), \
            and requests of a mean of at most 16 KiB of which less than 5 % were merged, 50 a second at least.",
        change: "Defragment the file (e4defrag, xfs_fsr, btrfs filesystem defragment), copy it anew, or have the program \
            preallocate it.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let pairs =
        scene.leaf_disks().flat_map(|disk| scene.users(disk).map(move |(workload, share)| (disk, workload, share)));
    pairs.filter_map(|(disk, workload, share)| fragmented(scene, disk, workload, share)).collect()
}

fn fragmented(scene: &Scene, disk: &Disk, workload: &Workload, share: &Share) -> Option<Finding> {
    let (read, flow) = (share.io.read, disk.rates?.read);
    let small = read.size_bytes_avg.is_some_and(|bytes| bytes <= 16_384.0);
    let unmerged = flow.merged_pct < 5.0 && share.ratio >= 0.6 && read.ios_per_sec >= 50.0;
    if workload.is_kernel() || workload.inner || !small || !unmerged || disk.class == DiskClass::Nvme {
        return None;
    }
    let (bytes_per_sec, calls_per_sec) = calls(scene, workload)?;
    let call_bytes = ratio(bytes_per_sec, calls_per_sec);
    let all_from_disk = (0.75..1.34).contains(&ratio(bytes_per_sec, read.bytes_per_sec));
    if call_bytes < 65_536.0 || !all_from_disk {
        return None;
    }
    let mut out = vec![
        evidence(Aspect::Victim, "bytes of a read call", Value::Bytes(call_bytes), "/proc/PID/io"),
        evidence(
            Aspect::Victim,
            "bytes of a request",
            Value::Bytes(read.size_bytes_avg.unwrap_or(0.0)),
            scene.cgroup_file(&workload.path, "io.stat"),
        ),
        evidence(Aspect::Device, "merged", Value::Pct(flow.merged_pct), "/proc/diskstats"),
    ];
    out.extend(of_stall(scene, workload, Aspect::Victim));
    out.extend(of_disk(disk));
    let pieces = ratio(call_bytes, read.size_bytes_avg.unwrap_or(call_bytes));
    Some(Finding {
        confidence: 0.6,
        summary: format!(
            "{}'s reads reach {} in {pieces:.0} pieces each: its file lies in fragments",
            workload.name, disk.name
        ),
        evidence: out,
        advice: vec![Advice::text("see how the file lies (filefrag), and defragment it or copy it anew")],
        stall_ratio: workload.stall_ratio().max(0.2),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

/// Bytes and calls of the workload's processes' reads, per second.
fn calls(scene: &Scene, workload: &Workload) -> Option<(f64, f64)> {
    let span = scene.window.t1.clock.tasks.since(scene.window.t0.clock.tasks)?;
    let of = |tasks: &[Task], pid: u32| {
        let io = tasks.iter().find(|task| task.pid == pid && task.tid == pid)?.io.ok()?;
        Some((io.called_read_bytes?.get(), io.read_calls?))
    };
    let own =
        scene.window.t1.tasks.iter().filter(|task| {
            task.tid == task.pid && task.cgroup.as_ref().is_ok_and(|path| path.is_within(&workload.path))
        });
    own.filter_map(|task| Some((of(&scene.window.t0.tasks, task.pid)?, of(&scene.window.t1.tasks, task.pid)?)))
        .map(|(was, now)| {
            let per_sec = |was: u64, now: u64| count(now.saturating_sub(was)) / span.seconds();
            (per_sec(was.0, now.0), per_sec(was.1, now.1))
        })
        .reduce(|a, b| (a.0 + b.0, a.1 + b.1))
}
