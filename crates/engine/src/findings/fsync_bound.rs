//! `fsync-bound`: a workload's speed is that of the journal's commits, one for each of its fsyncs.

use super::evidence::{disk_subject, evidence, finding, host_subject, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Commits, Disk, DiskClass, Scene, Trust, Workload};
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
    let seen = scene.window.t1.filesystems.iter().filter_map(|fs| bound(scene, fs));
    // Where no journal is counted (a table, XFS, btrfs) the disk's own flushes tell.
    let uncounted = scene.leaf_disks().filter(|disk| !has_journal(scene, disk));
    seen.chain(benchmarked(scene)).chain(uncounted.filter_map(|disk| flushing(scene, disk))).collect()
}

/// Whether the commits of a file system on the disk are counted.
fn has_journal(scene: &Scene, disk: &Disk) -> bool {
    let filesystems = scene.window.t1.filesystems.iter().filter(|fs| scene.commits(fs).is_some());
    filesystems.flat_map(|fs| scene.leaves(fs.dev)).any(|leaf| leaf.dev == disk.dev)
}

/// A load generator that syncs after each few writes measures its syncs.
fn benchmarked(scene: &Scene) -> Option<Finding> {
    let runs = &scene.window.pasted.as_deref()?.benchmarks;
    // A sync that takes longer than this is slow by itself, and slow-flush says so.
    let quick = |usec: f64| usec < 3.0 * DiskClass::Unknown.fast_usec(0.0);
    let synced = runs.iter().filter(|run| run.writes_per_sync.is_some_and(|writes| writes <= 4.0));
    let run = synced.into_iter().find(|run| run.sync.await_usec.is_none_or(quick))?;
    let writes = run.write.ios_per_sec?;
    let name = run.device.as_deref().unwrap_or("the disk");
    let disk = scene.disks.iter().find(|disk| disk.name.as_str() == name);
    let p99 = run.sync_percentiles_usec.iter().find(|(percent, _)| *percent >= 99.0).map(|(_, usec)| *usec);
    let mut out = vec![evidence(Aspect::Victim, "writes, each with its sync", Value::PerSec(writes), "fio")];
    out.extend(run.sync.await_usec.map(|usec| evidence(Aspect::Victim, "a sync takes", Value::Usec(usec), "fio")));
    out.extend(p99.map(|usec| evidence(Aspect::Victim, "99 % of syncs within", Value::Usec(usec), "fio")));
    // etcd's own rule for a disk: https://etcd.io/docs, hardware: p99 of fdatasync below 10 ms.
    let fine = p99.is_some_and(|usec| usec < 10_000.0);
    let verdict = if fine { "; 10 ms at the 99th percentile is what etcd asks for, and it is within" } else { "" };
    Some(Finding {
        confidence: 0.7,
        summary: format!("the run is as fast as its syncs on {name}: {writes:.0} a second{verdict}"),
        evidence: out,
        advice: vec![Advice::text("sync after more writes, or from several jobs whose syncs share a flush")],
        stall_ratio: 0.4,
        ..finding(RULE.id, disk.map_or_else(host_subject, disk_subject))
    })
}

/// A disk at which each few writes come with a flush, and flushes are much of its time.
fn flushing(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let trusted = disk.trust == Trust::Trusted;
    let rates = disk.rates.filter(|rates| trusted && rates.ios() >= 20 && !disk.is_queueing())?;
    let flush = rates.flush.filter(|flush| flush.ios_per_sec >= 10.0)?;
    let each = rates.write.ios_per_sec / flush.ios_per_sec;
    let flushing = flush.ios_per_sec * flush.await_usec? / 1e6;
    let share = quell_units::ratio(flushing, rates.ticks_ratio);
    let small = rates.write.size_bytes_avg.is_some_and(|bytes| bytes <= 65_536.0);
    if !(0.5..=4.0).contains(&each) || share.min(flushing) < 0.3 || !small || disk.util_pct < 70.0 {
        return None;
    }
    let mut out = vec![
        evidence(Aspect::Device, "flushes", Value::PerSec(flush.ios_per_sec), "/proc/diskstats"),
        evidence(Aspect::Device, "writes for each", Value::Number(each), "/proc/diskstats"),
    ];
    let workload = forcer(scene, disk);
    if let Some(workload) = workload {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    out.extend(of_disk(disk));
    let name = workload.map_or_else(|| format!("what writes to {}", disk.name), |workload| workload.name.clone());
    Some(Finding {
        confidence: 0.7,
        summary: format!(
            "{name} syncs every {each:.1} writes, and waits for {:.0} flushes a second of {}",
            flush.ios_per_sec, disk.name
        ),
        evidence: out,
        advice: vec![Advice::text("sync less often where the data allows, or let several commits share a flush")],
        stall_ratio: 0.5,
        ..finding(RULE.id, workload.map_or(disk_subject(disk), |workload| subject(workload, Some(disk.name))))
    })
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
        evidence(Aspect::Journal, "asked for by an fsync", Value::Pct(100.0 * commits.requested_ratio), info.clone()),
        evidence(Aspect::Journal, "mean commit", Value::Usec(mean_usec), info),
    ];
    if let Some(flushes) = flushes {
        out.push(evidence(Aspect::Journal, "flushes per commit", Value::Number(flushes), "/proc/diskstats"));
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
    let mut waiting = scene.journal_waiters(disk);
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

#[cfg(test)]
mod tests {
    use quell_kfile::diskstats::Flushes;
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    /// 40 small writes a second of so long, each with a flush of so long, on a spinning disk that says it is so busy.
    fn is_bound(write_usec: u64, flush_ms: u64, util_pct: u64) -> bool {
        let mut host = Written::new();
        let did = Did { writes: 40, write_bytes: 40 * 4096, write_usec, util_pct, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", did);
        host.change("sda", |disk| disk.queue.as_mut().unwrap().rotational = Ok(true));
        host.cgroup("db", 0.5, &[(0, 0, 40, 40 * 4096)]);
        for (snapshot, seconds) in [(&mut host.window.t0, 0), (&mut host.window.t1, SECONDS)] {
            let ticks_ms = Millis(40 * flush_ms * seconds);
            snapshot.devices[0].counters.flush = Some(Flushes { ios: 40 * seconds, ticks_ms });
        }
        host.ids().contains(&"fsync-bound")
    }

    #[test]
    fn flushes_bind_who_waits_for_them_much_of_the_time_by_counters_that_can_be_believed() {
        assert!(is_bound(5000, 15, 80));
        // Two fifths of the requests' time, and a quarter of the clock's.
        assert!(!is_bound(9000, 6, 75));
        // The requests were under way for half of the time at the most.
        assert!(!is_bound(5000, 8, 95));
    }
}
