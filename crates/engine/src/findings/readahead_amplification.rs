//! `readahead-amplification`: the disk reads many times what is asked for.

use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Share, Workload};
use super::table::Rule;
use quell_units::{count, ratio};

pub(super) const RULE: Rule = Rule {
    id: "readahead-amplification",
    explain: Explain {
        means: "A workload that reads here and there gets far more from the disk than it asks for: each page it touches brings \
            its neighbours with it, which nobody reads.",
        kernel: "A page fault on a mapped file reads around the page (fault-around, up to read_ahead_kb), and a read that looks \
            sequential reads ahead as much. For random access that is bandwidth and page cache spent on nothing; madvise or \
            fadvise RANDOM turns it off for a file.",
        evidence: "Bytes that the workload's cgroup read from the disk against bytes that its processes' read calls returned \
            plus a page for each major fault: at least four to one, at least 1 MiB/s, with requests of 16 KiB and more.",
        change: "Lower queue/read_ahead_kb of the disk, or have the program say MADV_RANDOM; databases that map their files have \
            a setting for it.",
        undo: "Write the old value back.",
    },
    find,
};

/// How many times what was asked for.
const TIMES: f64 = 4.0;

const PAGE: f64 = super::scene::PAGE_BYTES;

fn find(scene: &Scene) -> Vec<Finding> {
    let pairs =
        scene.leaf_disks().flat_map(|disk| scene.users(disk).map(move |(workload, share)| (disk, workload, share)));
    pairs.filter_map(|(disk, workload, share)| amplified(scene, disk, workload, share)).collect()
}

fn amplified(scene: &Scene, disk: &Disk, workload: &Workload, share: &Share) -> Option<Finding> {
    let read = share.io.read;
    let large = read.size_bytes_avg.is_some_and(|bytes| bytes >= 4.0 * PAGE);
    if workload.is_kernel() || !workload.io_counted || workload.inner || read.bytes_per_sec < 1_048_576.0 || !large {
        return None;
    }
    let faults = workload.memory.and_then(|memory| memory.major_faults_per_sec)?;
    let called = called_read_bytes_per_sec(scene, workload)?;
    let asked = called + faults * PAGE;
    let times = ratio(read.bytes_per_sec, asked);
    // Nothing asked at all: some that ended in the window did.
    if asked <= 0.0 || times < TIMES {
        return None;
    }
    let ahead = disk.queue().and_then(|queue| queue.read_ahead_bytes.ok());
    let files = scene.cgroup_file(&workload.path, "memory.stat");
    let mut out = vec![
        evidence(
            Aspect::Victim,
            "read from the disk",
            Value::BytesPerSec(read.bytes_per_sec),
            scene.cgroup_file(&workload.path, "io.stat"),
        ),
        evidence(Aspect::Victim, "asked for", Value::BytesPerSec(asked), "/proc/PID/io"),
        evidence(Aspect::Victim, "major faults", Value::PerSec(faults), files),
    ];
    out.extend(ahead.map(|bytes| {
        evidence(
            Aspect::Device,
            "read-ahead",
            Value::Bytes(bytes.as_f64()),
            format!("/sys/block/{}/queue/read_ahead_kb", disk.name),
        )
    }));
    out.extend(of_stall(scene, workload, Aspect::Victim));
    out.extend(of_disk(disk));
    let before = ahead.map_or_else(|| "128".to_owned(), |bytes| (bytes.get() / 1024).to_string());
    let text = "read less ahead on this disk; what reads in order will need its own setting";
    Some(Finding {
        confidence: 0.75,
        summary: format!(
            "{} gets {times:.0} times what it asks for from {}: read-ahead of a random reader",
            workload.name, disk.name
        ),
        evidence: out,
        advice: vec![
            super::advise::set_queue(disk, "read_ahead_kb", "16", &before, text).risk("sequential readers get slower"),
        ],
        stall_ratio: workload.stall_ratio().max(0.2),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

/// Bytes that the workload's processes got from read calls, per second; `None` where none of them was seen at both
/// moments.
fn called_read_bytes_per_sec(scene: &Scene, workload: &Workload) -> Option<f64> {
    let span = scene.window.t1.clock.tasks.since(scene.window.t0.clock.tasks)?;
    let called = |tasks: &[crate::snapshot::Task], pid: u32| {
        let task = tasks.iter().find(|task| task.pid == pid && task.tid == pid)?;
        Some(task.io.ok()?.called_read_bytes?.get())
    };
    let own =
        scene.window.t1.tasks.iter().filter(|task| {
            task.tid == task.pid && task.cgroup.as_ref().is_ok_and(|path| path.is_within(&workload.path))
        });
    let grown = own.filter_map(|task| {
        let (was, now) = (called(&scene.window.t0.tasks, task.pid)?, called(&scene.window.t1.tasks, task.pid)?);
        Some(count(now.saturating_sub(was)) / span.seconds())
    });
    grown.fold(None, |sum, one| Some(sum.unwrap_or(0.0) + one))
}
