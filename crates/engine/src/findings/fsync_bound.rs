//! `fsync-bound`: a workload's speed is that of the journal's commits, one for each of its fsyncs.

use super::evidence::{evidence, finding, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Commits, Disk, Scene, WaitKind, Workload};
use super::table::Rule;
use crate::snapshot::Filesystem;

pub(super) const RULE: Rule = Rule {
    id: "fsync-bound",
    explain: Explain {
        means: "The workload writes a little, calls fsync, and waits for the journal to commit; its speed is the commits' \
            speed. The disk is not full.",
        kernel: "An fsync on ext4 forces a commit: data, journal blocks, a flush of the disk's cache, a commit record. One \
            writer alone gets one commit for each fsync, and the disk's flush time counts in every one. jbd2 waits are \
            no I/O waits, so io.pressure shows little.",
        evidence: "At least 10 commits a second that take at least half of the time, nine in ten of them asked for, one to \
            three and a half flushes for each where the disk counts flushes, one workload that waits for them, and no \
            queue at the disk.",
        change: "Commit several transactions at once (group commit, larger batches), sync less often where durability \
            allows, or a disk with power-loss protection, whose flush costs nothing.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.window.t1.filesystems.iter().filter_map(|fs| bound(scene, fs)).collect()
}

fn bound(scene: &Scene, fs: &Filesystem) -> Option<Finding> {
    let commits = scene.commits(fs)?;
    let mean_usec = commits.mean_usec?;
    let disk = scene.disk(fs.dev)?;
    let leaf = scene.leaves(fs.dev).next()?;
    let busy = commits.per_sec * mean_usec / 1e6;
    if commits.per_sec < 10.0 || commits.requested_ratio < 0.9 || busy < 0.5 || leaf.is_queueing() {
        return None;
    }
    let flushes = flushes_per_commit(leaf, &commits);
    if flushes.is_some_and(|flushes| !(0.8..=3.5).contains(&flushes)) {
        return None;
    }
    let workload = forcer(scene, disk)?;
    let info = fs.journal_file.clone().unwrap_or_default();
    let mut out = vec![
        evidence(Aspect::Journal, "commits", Value::PerSec(commits.per_sec), info.clone()),
        evidence(Aspect::Journal, "asked for", Value::Pct(100.0 * commits.requested_ratio), info.clone()),
        evidence(Aspect::Journal, "each takes", Value::Usec(mean_usec), info),
    ];
    if let Some(flushes) = flushes {
        out.push(evidence(Aspect::Journal, "flushes for each", Value::Number(flushes), "/proc/diskstats"));
    }
    out.extend(of_stall(scene, workload, Aspect::Victim));
    out.extend(of_disk(leaf));
    Some(Finding {
        confidence: 0.85,
        summary: format!(
            "{} waits for its own fsyncs: {:.0} commits/s of {} each on {}",
            workload.name,
            commits.per_sec,
            usec(mean_usec),
            disk.name
        ),
        evidence: out,
        advice: vec![Advice::text(
            "commit several transactions at once, or sync less often where the data allows; a disk with power-loss \
             protection makes each flush nearly free",
        )],
        stall_ratio: busy.min(1.0),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

/// `None` where the kernel counts no flushes, or the disk has no volatile cache and so gets none.
fn flushes_per_commit(disk: &Disk, commits: &Commits) -> Option<f64> {
    let flush = disk.rates?.flush?;
    (flush.ios > 0).then(|| flush.ios_per_sec / commits.per_sec)
}

/// The one workload that forces the commits: the one seen waiting for them, else the one that writes most of the disk's.
fn forcer<'s>(scene: &'s Scene, disk: &'s Disk) -> Option<&'s Workload> {
    let waits = |workload: &Workload| workload.waits.iter().any(|w| w.kind == WaitKind::Journal && !w.kernel_thread);
    let mut waiting = scene.workloads.iter().filter(|workload| !workload.is_kernel() && waits(workload));
    match (waiting.next(), waiting.next()) {
        (Some(one), None) => Some(one),
        (Some(_), Some(_)) => None,
        (None, _) => scene
            .users(disk)
            .filter(|(workload, _)| !workload.is_kernel())
            .find(|(_, share)| share.io.write.ios_per_sec > share.io.read.ios_per_sec)
            .map(|(workload, _)| workload),
    }
}
