//! `journal-bound`: several workloads sync on one file system, and its journal's commits are everybody's speed.

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Commits, Disk, Scene, Workload};
use super::table::Rule;
use crate::snapshot::Filesystem;

pub(super) const RULE: Rule = Rule {
    id: "journal-bound",
    explain: Explain {
        means: "Several workloads wait for the journal of one file system: its commits come one after the other and take \
            most of the time. The disk itself is not full.",
        kernel: "ext4 has one running transaction and one that commits. An fsync that comes while one commits waits for that \
            and then for its own; each commit writes the others' blocks too, flushes the disk's cache and writes its record. \
            The waits are jbd2's and no I/O waits, so io.pressure shows little.",
        evidence: "At least 10 commits a second, nine in ten asked for, in at least half of the time by the kernel's own \
            mean, and two workloads or more that wait for them or write there; no queue at the disk. In a paste: jbd2's \
            thread is the longest waiter of all tasks.",
        change: "A file system of its own for each that syncs, or an external journal on a fast disk; fewer syncs (group \
            commit, larger batches). A larger journal helps where waits are for room in it.",
        undo: "Nothing is changed.",
    },
    find,
};

/// A healthy host commits every few seconds; at this rate somebody syncs for a living.
const COMMITS_PER_SEC: f64 = 10.0;
/// The least part of the time in which a commit is under way.
const BUSY: f64 = 0.5;
/// Without looks: the least part of the disk that makes a writer one of those who sync.
const SHARE: f64 = 0.1;
/// In a paste: the least part of the time that jbd2's thread waits for I/O.
const PASTED_WAIT_PCT: f64 = 30.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let found: Vec<Finding> = scene.window.t1.filesystems.iter().filter_map(|fs| bound(scene, fs)).collect();
    if found.is_empty() { pasted(scene).into_iter().collect() } else { found }
}

fn bound(scene: &Scene, fs: &Filesystem) -> Option<Finding> {
    let commits = scene.commits(fs)?;
    let mean_usec = commits.mean_usec?;
    let disk = scene.disk(fs.dev)?;
    let leaf = scene.leaves(fs.dev).next()?;
    let busy = commits.per_sec * mean_usec / 1e6;
    let forced = commits.per_sec >= COMMITS_PER_SEC && commits.requested_ratio >= 0.9;
    if !forced || busy < BUSY || leaf.is_queueing() {
        return None;
    }
    let who = who_syncs(scene, disk, &commits);
    let victim = who.iter().copied().max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()))?;
    if who.len() < 2 {
        return None;
    }
    let info = fs.journal_file.clone().unwrap_or_default();
    let mut out = vec![
        evidence(Aspect::Journal, "commits", Value::PerSec(commits.per_sec), info.clone()),
        evidence(Aspect::Journal, "mean commit", Value::Usec(mean_usec), info.clone()),
        evidence(Aspect::Journal, "committing", Value::Pct(100.0 * busy.min(1.0)), info),
    ];
    for workload in who.iter().take(3) {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    out.extend(of_disk(leaf));
    Some(Finding {
        confidence: 0.8,
        summary: format!(
            "{} workloads wait for one journal on {}: {:.0} commits/s of {} each",
            who.len(),
            disk.name,
            commits.per_sec,
            usec(mean_usec)
        ),
        evidence: out,
        advice: vec![advice()],
        stall_ratio: busy.min(1.0),
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    })
}

/// Those that were seen waiting for the journal; where there were no looks, those that write in step with its commits.
fn who_syncs<'s>(scene: &'s Scene, disk: &Disk, commits: &Commits) -> Vec<&'s Workload> {
    let waiting: Vec<&Workload> = scene.journal_waiters(disk).collect();
    if !scene.window.looks.is_empty() || waiting.len() >= 2 {
        return waiting;
    }
    let in_step = scene
        .users(disk)
        .filter(|(_, share)| share.ratio >= SHARE && share.io.write.ios_per_sec >= commits.per_sec / 4.0);
    in_step.map(|(workload, _)| workload).filter(|workload| !workload.is_kernel()).collect()
}

fn advice() -> Advice {
    Advice::text(
        "give each that syncs a file system of its own, or, unmounted, the journal a fast disk (tune2fs -O ^has_journal, then \
         tune2fs -J device=); commit several transactions at once",
    )
}

/// jbd2's thread as the longest waiter of a pasted list of tasks.
fn pasted(scene: &Scene) -> Option<Finding> {
    let tasks = &scene.window.pasted.as_ref()?.tasks;
    let waits = tasks.iter().filter_map(|task| Some((task, task.io_wait_pct?)));
    let (task, wait_pct) = waits.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let on = task.comm.trim_matches(['[', ']']).strip_prefix("jbd2/")?;
    if wait_pct < PASTED_WAIT_PCT {
        return None;
    }
    // `jbd2/md6-8`: the device, and the inode of the journal.
    let name = on.rsplit_once('-').map_or(on, |(name, _)| name);
    let disk = scene.disks.iter().find(|disk| disk.name.as_str() == name);
    let name = quell_units::escape(name.as_bytes()).to_string();
    let mut out = vec![evidence(Aspect::Journal, "jbd2 waits for I/O", Value::Pct(wait_pct), "iotop")];
    if let Some(bytes) = task.write_bytes_per_sec {
        out.push(evidence(Aspect::Journal, "and writes", Value::BytesPerSec(bytes), "iotop"));
    }
    Some(Finding {
        confidence: 0.6,
        summary: format!(
            "the journal of {name} waits for the disk {wait_pct:.0} % of the time: who syncs there waits for it"
        ),
        evidence: out,
        advice: vec![advice()],
        stall_ratio: (wait_pct / 100.0).min(1.0),
        ..finding(RULE.id, disk.map_or(super::evidence::host_subject(), disk_subject))
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::jbd2_info::Jbd2Info;
    use quell_paste::{Pasted, TaskFact};
    use quell_units::Micros;

    use crate::findings::written::{Did, SECONDS, Written, number};
    use crate::snapshot::Filesystem;

    /// 30 commits a second of so long on one disk, forced by so many services.
    fn host(services: u32, commit_usec: u64) -> Vec<&'static str> {
        of(services, commit_usec, 0)
    }

    /// The same, where so many others wait for the journal of another disk.
    fn of(services: u32, commit_usec: u64, elsewhere: u32) -> Vec<&'static str> {
        let mut host = Written::new();
        host.disk(1, "vdb", "/sys/devices/pci0000:00/0000:00:06.0/virtio3/block/vdb", Did::default());
        let did = Did { writes: 160, write_bytes: 160 * 9000, write_usec: 5000, util_pct: 60, ..Did::default() };
        host.disk(0, "vda", "/sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda", did);
        let names: Vec<String> = (0..services + elsewhere).map(|n| format!("tenants/db{n}")).collect();
        for (n, name) in (0..).zip(&names) {
            host.cgroup(name, 0.03, &[(u32::from(n >= services), 0, 18, 18 * 4096)]);
        }
        for ms in 1..9 {
            let waits: Vec<_> = (10..).zip(&names).map(|(tid, name)| (&**name, tid, "jbd2_log_wait_commit")).collect();
            host.look(ms * 1000, &[(0, 1, 190 * ms)], &waits);
        }
        let journal = |n: u64| Jbd2Info {
            transactions: Some(n),
            requested: Some(n),
            commit_usec_avg: Some(Micros(commit_usec)),
            ..Jbd2Info::default()
        };
        for (snapshot, n) in [(&mut host.window.t0, 100), (&mut host.window.t1, 100 + 30 * SECONDS)] {
            snapshot.filesystems.push(Filesystem {
                dev: number(0),
                fs_type: "ext4".into(),
                mount_point: "/data".into(),
                options: String::new(),
                journal: Ok(journal(n)),
                journal_file: Some("/proc/fs/jbd2/vda-8/info".into()),
            });
        }
        host.ids()
    }

    #[test]
    fn several_that_wait_for_one_journal_are_bound_by_it_and_one_is_bound_by_its_syncs() {
        assert_eq!(host(6, 25_000), ["journal-bound"]);
        assert_eq!(host(1, 25_000), ["fsync-bound"]);
    }

    #[test]
    fn who_waits_for_the_journal_of_another_disk_is_not_bound_by_this_one() {
        assert_eq!(of(1, 25_000, 3), ["fsync-bound"]);
        assert_eq!(of(2, 25_000, 3), ["journal-bound"]);
    }

    #[test]
    fn commits_that_leave_most_of_the_time_free_bind_nobody() {
        assert!(!host(6, 5000).contains(&"journal-bound"));
    }

    #[test]
    fn a_journal_that_is_the_longest_waiter_of_a_pasted_list_is_named() {
        let ids = |journal: f64, other: f64| {
            let task = |comm: &str, pct| TaskFact { comm: comm.into(), io_wait_pct: Some(pct), ..TaskFact::default() };
            let tasks = vec![task("jbd2/md6-8", journal), task("mysqld", other)];
            let mut host = Written::new();
            host.window.pasted = Some(Box::new(Pasted { tasks, ..Pasted::default() }));
            host.ids()
        };
        assert!(ids(67.5, 20.0).contains(&"journal-bound"));
        assert!(!ids(10.0, 2.0).contains(&"journal-bound"));
        assert!(!ids(40.0, 90.0).contains(&"journal-bound"));
    }
}
