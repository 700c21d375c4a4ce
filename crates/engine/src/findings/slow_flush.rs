//! `slow-flush`: the disk's time goes into flushes of its volatile cache.

use quell_paste::Statement;

use super::evidence::{disk_subject, evidence, finding, host_subject, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "slow-flush",
    explain: Explain {
        means: "Each flush of the disk's cache takes long, and much of the time goes into flushes: whoever syncs waits for \
            them.",
        kernel: "An fsync ends in a flush (and a write with FUA, or a second flush where the disk has none): the disk must \
            put its volatile cache on the medium. A flush has its own two columns in /proc/diskstats since 5.5 and is in \
            none of the write columns. Requests that come meanwhile may wait as well.",
        evidence: "f_await of at least three times what a small request of the disk's class needs and no shorter than \
            w_await, flushes in at least 15 % of the time and 15 % of all requests' time, no deep queue. In a paste also a \
            program's own log of a slow sync, or fio's sync latency.",
        change: "Sync less often (group commit, larger batches), or put the log on a disk whose cache survives a power \
            failure: there a flush costs nothing. Do not turn flushes off: that loses data.",
        undo: "Nothing is changed.",
    },
    find,
};

/// Times the class's usual time for a small request.
const TIMES: f64 = 3.0;
/// The least part of the time, and of all requests' time, that flushes take.
const SHARE: f64 = 0.15;
/// Fewer than this are too few for a mean.
const FLUSHES: u64 = 10;
/// A sync that a program's log calls slow: etcd and others ask for 10 ms; ten times that no healthy disk takes.
const SLOW_SYNC_USEC: f64 = 100_000.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let disks: Vec<Finding> = scene.leaf_disks().filter_map(|disk| slow_flush(scene, disk)).collect();
    if disks.is_empty() { pasted(scene).into_iter().collect() } else { disks }
}

fn slow_flush(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let rates = disk.rates?;
    let flush = rates.flush?;
    let await_usec = flush.await_usec?;
    // 1.0 is one flush in progress all the time; more is possible where they wait for each other.
    let of_time = flush.ios_per_sec * await_usec / 1e6;
    let of_requests = of_time / rates.ticks_ratio.max(of_time);
    let fast = await_usec < TIMES * disk.class.fast_usec(0.0);
    let waits_as_all = rates.write.await_usec.is_some_and(|write| await_usec < write) || disk.is_queueing();
    if flush.ios < FLUSHES || fast || waits_as_all || of_time < SHARE || of_requests < SHARE {
        return None;
    }
    let user = who_syncs(scene, disk);
    let mut out = vec![
        evidence(Aspect::Device, "flushes", Value::PerSec(flush.ios_per_sec), "/proc/diskstats"),
        evidence(Aspect::Device, "flush await", Value::Usec(await_usec), "/proc/diskstats"),
        evidence(Aspect::Device, "flushing", Value::Pct(100.0 * of_time.min(1.0)), "/proc/diskstats"),
    ];
    if let Some(Ok(cache)) = disk.queue().map(|queue| &queue.write_cache) {
        let source = format!("/sys/block/{}/queue/write_cache", disk.name);
        out.push(evidence(Aspect::Device, "write cache", Value::Word(cache.clone()), source));
    }
    if let Some(workload) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    out.extend(of_disk(disk));
    Some(Finding {
        confidence: if disk.class == DiskClass::Unknown { 0.7 } else { 0.85 },
        summary: format!(
            "{} takes {} for a flush, {:.0} times a second: who syncs waits for that",
            disk.name,
            usec(await_usec),
            flush.ios_per_sec
        ),
        evidence: out,
        advice: vec![advice()],
        stall_ratio: user.map_or(of_time.min(1.0), |workload| workload.stall_ratio().max(of_time.min(1.0))),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |workload| subject(workload, Some(disk.name))))
    })
}

/// Who waits for the journal, else the largest writer.
fn who_syncs<'s>(scene: &'s Scene, disk: &'s Disk) -> Option<&'s Workload> {
    let users = || scene.users(disk).map(|(workload, _)| workload).filter(|workload| !workload.is_kernel());
    users().find(|workload| workload.waits_for_journal()).or_else(|| users().next())
}

fn advice() -> Advice {
    Advice::text(
        "sync less often (group commit, larger batches), or keep the log on a disk with power-loss protection, where a \
         flush costs nothing",
    )
}

/// What programs say of their syncs, where no disk's counters do.
fn pasted(scene: &Scene) -> Option<Finding> {
    let pasted = scene.window.pasted.as_ref()?;
    let said = pasted.statements.iter().filter_map(|statement| match statement {
        Statement::SlowSync { by, usec } => Some((by.as_str(), *usec)),
        _ => None,
    });
    let logged = said.filter(|(_, usec)| *usec >= SLOW_SYNC_USEC).max_by(|a, b| a.1.total_cmp(&b.1));
    let least = TIMES * DiskClass::Unknown.fast_usec(0.0);
    let synced = pasted.benchmarks.iter().filter(|run| run.writes_per_sync.is_some_and(|writes| writes <= 1.0));
    let measured = synced.filter_map(|run| Some((run.name.as_str(), run.sync.await_usec?)));
    let measured = measured.filter(|(_, usec)| *usec >= least).max_by(|a, b| a.1.total_cmp(&b.1));
    let (by, took_usec, source) = match (logged, measured) {
        (Some((by, usec)), _) => (by, usec, "the program's log"),
        (None, Some((by, usec))) => (by, usec, "fio"),
        (None, None) => return None,
    };
    let by = if by.is_empty() { "a program".to_owned() } else { quell_units::escape(by.as_bytes()).to_string() };
    let took: Evidence = evidence(Aspect::Victim, "to be on the disk took", Value::Usec(took_usec), source);
    Some(Finding {
        // A neighbour that fills the disk would make a sync as slow: the log does not tell the two apart.
        confidence: 0.5,
        summary: format!("{by} waited {} for its data to be on the disk", usec(took_usec)),
        evidence: vec![took],
        advice: vec![
            advice(),
            Advice::text("watch the disk at such a moment: `quell doctor` on the host, or `iostat -x 1`"),
        ],
        stall_ratio: 0.5,
        ..finding(RULE.id, host_subject())
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::diskstats::Flushes;
    use quell_paste::{Pasted, Statement};
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    const SATA: &str = "/sys/devices/pci0000:00/ata1/block/sda";

    /// An SSD with 40 writes a second and so many flushes of so long.
    fn disk(flushes: u64, flush_usec: u64, writes: u64, write_usec: u64) -> Written {
        let mut host = Written::new();
        let util_pct = (flushes * flush_usec / 10_000).min(95);
        let did = Did { writes, write_bytes: writes * 8192, write_usec, util_pct, ..Did::default() };
        host.disk(0, "sda", SATA, did).change("sda", |device| device.counters.flush = Some(Flushes::default()));
        let device = &mut host.window.t1.devices[0];
        let ticks_ms = Millis(flushes * flush_usec * SECONDS / 1000);
        device.counters.flush = Some(Flushes { ios: flushes * SECONDS, ticks_ms });
        host
    }

    #[test]
    fn flushes_that_take_the_disks_time_are_named() {
        let findings = disk(20, 41_000, 30, 30_000).findings();
        assert!(findings.iter().any(|finding| finding.id == "slow-flush"), "{findings:?}");
    }

    #[test]
    fn quick_or_rare_flushes_are_not() {
        assert!(!disk(200, 300, 200, 500).ids().contains(&"slow-flush"));
        assert!(!disk(2, 20_000, 30, 500).ids().contains(&"slow-flush"), "4 % of the time");
    }

    #[test]
    fn a_flush_that_waits_no_longer_than_a_write_is_not_slow_by_itself() {
        assert!(!disk(20, 41_000, 300, 60_000).ids().contains(&"slow-flush"));
    }

    #[test]
    fn a_log_of_a_sync_that_took_seconds_is_believed_and_one_of_milliseconds_is_not() {
        let logged = |usec: f64| {
            let mut host = Written::new();
            let statements = vec![Statement::SlowSync { by: "etcd".into(), usec }];
            host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
            host.ids()
        };
        assert!(logged(2_880_000.0).contains(&"slow-flush"));
        assert!(!logged(12_000.0).contains(&"slow-flush"));
    }
}
