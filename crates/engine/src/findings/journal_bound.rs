//! `journal-bound`: one journal commits for several, and each waits for the others' commits.

use super::evidence::{evidence, finding, host_subject, of_disk, of_wait, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Subject, SubjectKind, Value};
use super::scene::{Disk, Scene, WaitKind, Workload};
use super::table::Rule;
use crate::snapshot::Filesystem;

pub(super) const RULE: Rule = Rule {
    id: "journal-bound",
    explain: Explain {
        means: "Several workloads sync on one file system. Its journal commits for one after the other, or for all at once, and \
            each waits for commits that hold the others' data as well.",
        kernel: "jbd2 has one running transaction for a file system. An fsync waits until the transaction that holds its change \
            is on the disk; what comes meanwhile goes into the next one. With data=ordered the commit writes the data of all \
            files in it first.",
        evidence: "jbd2 commits at least 10 times a second and nine tenths of them were asked for, the journal is committing at \
            least half of the time, and tasks of at least two workloads were seen waiting for it. In a paste: the journal's \
            thread waits for I/O for a third of the time or more, more than any other task.",
        change: "A file system of its own for what syncs most; a larger or an external journal; fewer syncs.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let seen = scene.window.t1.filesystems.iter().filter_map(|fs| bound(scene, fs));
    seen.chain(told(scene)).collect()
}

fn bound(scene: &Scene, fs: &Filesystem) -> Option<Finding> {
    let commits = scene.commits(fs)?;
    let mean_usec = commits.mean_usec?;
    let busy = commits.per_sec * mean_usec / 1e6;
    if commits.per_sec < 10.0 || commits.requested_ratio < 0.9 || busy < 0.5 {
        return None;
    }
    let disk = scene.disk(fs.dev)?;
    let mut waiting: Vec<&Workload> = scene.workloads.iter().filter(|workload| waits(workload).is_some()).collect();
    waiting.sort_by(|a, b| b.stall_ratio().total_cmp(&a.stall_ratio()));
    let [first, second, ..] = waiting.as_slice() else { return None };
    let info = fs.journal_file.clone().unwrap_or_default();
    let mut out = vec![
        evidence(Aspect::Journal, "commits", Value::PerSec(commits.per_sec), info.clone()),
        evidence(Aspect::Journal, "asked for", Value::Pct(100.0 * commits.requested_ratio), info.clone()),
        evidence(Aspect::Journal, "each takes", Value::Usec(mean_usec), info),
    ];
    out.extend(
        [first, second].into_iter().filter_map(|workload| waits(workload)).map(|wait| of_wait(wait, Aspect::Tasks)),
    );
    out.extend(scene.leaves(fs.dev).next().into_iter().flat_map(of_disk));
    Some(found(scene, disk, &waiting, commits.per_sec, mean_usec, out))
}

fn found(
    scene: &Scene,
    disk: &Disk,
    waiting: &[&Workload],
    per_sec: f64,
    mean_usec: f64,
    evidence: Vec<super::Evidence>,
) -> Finding {
    let first = waiting.first();
    let summary = format!(
        "{} workloads wait for one journal on {}: {per_sec:.0} commits/s of {} each",
        waiting.len(),
        disk.name,
        usec(mean_usec)
    );
    let stall = first.map_or(0.5, |workload| workload.stall_ratio().max(0.5));
    let subject = first.map_or_else(host_subject, |workload| subject(workload, Some(disk.name)));
    let _ = scene;
    Finding { confidence: 0.8, summary, evidence, advice: advice(), stall_ratio: stall, ..finding(RULE.id, subject) }
}

fn waits(workload: &Workload) -> Option<&super::scene::Wait> {
    workload
        .waits
        .iter()
        .find(|wait| wait.kind == WaitKind::Journal && !wait.kernel_thread)
        .filter(|_| !workload.is_kernel())
}

/// iotop's row of a journal's thread at the top of those that wait.
fn told(scene: &Scene) -> Option<Finding> {
    let tasks = &scene.window.pasted.as_deref()?.tasks;
    let waits = |task: &quell_paste::TaskFact| task.io_wait_pct.unwrap_or(0.0);
    let top = tasks.iter().max_by(|a, b| waits(a).total_cmp(&waits(b)))?;
    let device = top.comm.strip_prefix("jbd2/").filter(|_| waits(top) >= 33.0)?;
    let name = device.rsplit_once('-').map_or(device, |(name, _)| name);
    let mut out = vec![evidence(Aspect::Journal, "waits for I/O", Value::Pct(waits(top)), "iotop")];
    out.extend(
        top.write_bytes_per_sec.map(|bytes| evidence(Aspect::Journal, "writes", Value::BytesPerSec(bytes), "iotop")),
    );
    let disk = quell_units::DevName::new(name.as_bytes());
    let subject = Subject { kind: SubjectKind::Device, name: name.to_owned(), cgroup: None, device: disk };
    Some(Finding {
        confidence: 0.6,
        summary: format!(
            "{name}'s journal waits for I/O {:.0} % of the time, more than any other task: many commits, each with a flush",
            waits(top)
        ),
        evidence: out,
        advice: advice(),
        stall_ratio: (waits(top) / 100.0).min(1.0),
        ..finding(RULE.id, subject)
    })
}

fn advice() -> Vec<Advice> {
    vec![
        Advice::text("give what syncs most a file system of its own: its commits then hold nobody else's data"),
        Advice::text("make the journal larger or external (mke2fs -J size=, -J device=), unmounted and with a backup")
            .risk("an external journal that is lost takes the file system with it"),
    ]
}
