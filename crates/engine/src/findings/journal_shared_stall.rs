//! `journal-shared-stall`: a file system's journal stands still because of somebody else's held writes.

use super::advise;
use super::evidence::{evidence, finding, of_stall, of_wait, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Severity, Value};
use super::scene::{Cap, Disk, Scene, Wait, WaitKind, Workload};
use super::table::Rule;
use crate::snapshot::Filesystem;

pub(super) const RULE: Rule = Rule {
    id: "journal-shared-stall",
    explain: Explain {
        means: "Every fsync on this file system waits for one journal, and the journal waits for the held writes of another \
            workload. The disk is nearly idle meanwhile.",
        kernel: "ext4 has one journal for all. With the default dioread_nolock, held and unfinished writes keep reserved \
            journal credits: others wait in add_transaction_credits while jbd2 itself is idle; a larger journal cures \
            that. With dioread_lock, in the default data=ordered mode, jbd2 waits for the held pages before it can \
            commit, whatever the journal's size. Journal waits are plain sleeps: io.pressure of the victim shows nothing.",
        evidence: "A task in journal waits at every look, at most 10 commits a second in /proc/fs/jbd2/*/info, the disk below \
            30 % busy, and a neighbour on the same disk that is at its limit, or paused for its dirty pages, with page \
            cache to write.",
        change: "A file system of its own for each tenant. A larger journal helps in the first case: \
            with the file system unmounted, `tune2fs -O ^has_journal` and then `tune2fs -J size=MB`. No I/O knob helps but lifting the neighbour's limit.",
        undo: "Write the neighbour's limit back.",
    },
    find,
};

/// Fewer commits than this, with a task in a journal wait throughout and the disk idle, and the journal is what waits: a
/// commit takes such a disk a few milliseconds (4 a second, the disk idle, was reported: 50 fsyncs in 11.9 s).
const COMMITS_PER_SEC_MAX: f64 = 10.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.workloads.iter().filter_map(|victim| stalled(scene, victim)).collect()
}

fn stalled(scene: &Scene, victim: &Workload) -> Option<Finding> {
    let wait = victim.waits.iter().find(|w| w.kind == WaitKind::Journal && w.throughout() && !w.kernel_thread)?;
    scene.window.t1.filesystems.iter().find_map(|fs| {
        let commits_per_sec = scene.commits(fs)?.per_sec;
        let disk = scene.disk(fs.dev)?;
        let idle = scene.leaves(fs.dev).all(|leaf| leaf.util_pct < 30.0);
        if commits_per_sec > COMMITS_PER_SEC_MAX || !idle || !scene.uses(victim, disk) {
            return None;
        }
        let culprit = neighbour(scene, victim, disk)?;
        Some(stall(scene, victim, wait, fs, disk, culprit, commits_per_sec))
    })
}

/// The other workload whose writes are held: at a limit on this disk, or stopped for its dirty pages, with page cache
/// waiting to be written.
fn neighbour<'s>(scene: &'s Scene, victim: &Workload, disk: &Disk) -> Option<&'s Workload> {
    let backlog = |workload: &Workload| scene.backlog(&workload.path).map_or(0.0, |backlog| backlog.bytes());
    let held = |workload: &Workload| {
        let capped = write_cap(scene, workload, disk).is_some_and(Cap::reached);
        let paused = workload.waits.iter().any(|wait| wait.kind == WaitKind::DirtyPause && wait.throughout());
        capped || paused
    };
    scene
        .workloads
        .iter()
        .filter(|other| other.path != victim.path && !other.is_kernel() && scene.uses(other, disk))
        .filter(|other| held(other) && backlog(other) >= 1e6)
        .max_by(|a, b| backlog(a).total_cmp(&backlog(b)))
}

/// The limit for writes that holds a workload on a disk: the one that is reached, else the first.
fn write_cap<'s>(scene: &'s Scene, workload: &Workload, disk: &Disk) -> Option<&'s Cap> {
    let caps = || scene.caps_over(&workload.path, disk.dev).filter(|cap| cap.key.is_write());
    caps().find(|cap| cap.reached()).or_else(|| caps().next())
}

fn stall(
    scene: &Scene,
    victim: &Workload,
    wait: &Wait,
    fs: &Filesystem,
    disk: &Disk,
    culprit: &Workload,
    commits_per_sec: f64,
) -> Finding {
    let mut out = vec![of_wait(wait, Aspect::Victim)];
    if let Some(pct) = victim.pressure_full_pct() {
        let text = format!("{pct:.1} % (journal waits do not show in it)");
        out.push(evidence(
            Aspect::Victim,
            "io.pressure full",
            Value::Word(text),
            scene.cgroup_file(&victim.path, "io.pressure"),
        ));
    }
    out.extend(of_culprit(scene, culprit, disk));
    let info = fs.journal_file.clone().unwrap_or_default();
    let place = format!("{} on {} at {}", fs.fs_type, disk.name, fs.mount_point);
    out.push(evidence(Aspect::Journal, "file system", Value::Word(place), "/proc/self/mountinfo"));
    out.push(evidence(Aspect::Journal, "commits", Value::PerSec(commits_per_sec), info));
    out.push(evidence(Aspect::Device, "util", Value::Pct(disk.util_pct), "/proc/diskstats"));
    Finding {
        severity: Severity::Critical,
        confidence: 0.9,
        culprit: Some(subject(culprit, Some(disk.name))),
        summary: format!(
            "{} waits for {}'s journal, which waits for the held writes of {}; the disk is {:.0} % busy",
            victim.name, fs.mount_point, culprit.name, disk.util_pct
        ),
        evidence: out,
        advice: advice(scene, culprit, disk),
        // It was there at every look: the whole window, as far as anybody looked.
        stall_ratio: 1.0,
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    }
}

fn of_culprit(scene: &Scene, culprit: &Workload, disk: &Disk) -> Vec<Evidence> {
    let mut out = of_stall(scene, culprit, Aspect::Culprit);
    if let Some(backlog) = scene.backlog(&culprit.path) {
        let source = scene.cgroup_file(&culprit.path, "memory.stat");
        out.push(evidence(Aspect::Culprit, "waits to be written", Value::Bytes(backlog.bytes()), source));
    }
    if let Some(cap) = write_cap(scene, culprit, disk) {
        let per_sec = cap.limit_per_sec;
        let limit = if cap.key.is_bytes() { Value::BytesPerSec(per_sec) } else { Value::PerSec(per_sec) };
        out.push(evidence(Aspect::Culprit, cap.key.as_str(), limit, super::evidence::cap_file(scene, cap)));
    }
    out
}

fn advice(scene: &Scene, culprit: &Workload, disk: &Disk) -> Vec<Advice> {
    let now = write_cap(scene, culprit, disk).map(|cap| {
        let text = format!("now: lift the limit of {} so that its held writes drain", culprit.name);
        advise::lift(scene, &cap.cgroup, cap.dev, cap.key, text)
    });
    let text = "for good: give each tenant a file system of its own; no I/O limit or weight cures a shared journal";
    now.into_iter().chain([Advice::text(text)]).collect()
}
