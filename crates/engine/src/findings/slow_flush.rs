//! `slow-flush`: making the disk's cache durable takes long, and takes much of the disk's time.

use quell_units::ratio;

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "slow-flush",
    explain: Explain {
        means: "Each flush of the disk's volatile cache takes several times what a request should, and flushes are a good \
            part of what the disk does: whoever syncs waits for them.",
        kernel: "fsync, a journal's commit and O_DSYNC end in a flush (REQ_PREFLUSH) where the disk has a volatile cache. \
            The block layer sends one flush at a time and lets others that wait share it, and many disks serve nobody \
            else meanwhile. Flushes are counted apart from writes since 5.5.",
        evidence: "f_await at least three times the class's usual time for a small request, flushes at least 15 % of the time \
            that all requests took and 5 % of the time itself, at least 2 a second and 5 in all.",
        change: "Fewer syncs (group commit), or a disk with power-loss protection, whose flush is nearly free. Where the cache \
            is protected and the disk does not say so: write through in queue/write_cache stops the flushes.",
        undo: "Write `write back` again.",
    },
    find,
};

/// The least share of the requests' time that is the flushes'.
const SHARE: f64 = 0.15;

/// The least share of the time itself: flushes of an idle disk are most of what it does, and nobody minds.
const WALL: f64 = 0.05;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(|disk| slow(scene, disk)).collect()
}

fn slow(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let rates = disk.rates?;
    let flush = rates.flush.filter(|flush| flush.ios_per_sec >= 2.0 && flush.ios >= 5)?;
    let took = flush.await_usec?;
    let flushing = flush.ios_per_sec * took / 1e6;
    let share = ratio(flushing, rates.ticks_ratio);
    if flushing < WALL || took < 3.0 * disk.class.fast_usec(4096.0) || share < SHARE {
        return None;
    }
    let mut out = vec![
        evidence(Aspect::Device, "flushes", Value::PerSec(flush.ios_per_sec), "/proc/diskstats"),
        evidence(Aspect::Device, "flush await", Value::Usec(took), "/proc/diskstats"),
        evidence(Aspect::Device, "share of all requests' time", Value::Pct(100.0 * share), "/proc/diskstats"),
    ];
    out.extend(of_disk(disk));
    let user = scene.main_user(disk);
    out.extend(user.into_iter().flat_map(|(workload, _)| of_stall(scene, workload, Aspect::Victim)));
    Some(Finding {
        confidence: 0.8,
        summary: format!(
            "a flush of {}'s cache takes {}, {:.0} times a second: whoever syncs waits for it",
            disk.name,
            usec(took),
            flush.ios_per_sec
        ),
        evidence: out,
        advice: vec![Advice::text(
            "let more commits share a flush, or give what syncs a disk with power-loss protection, whose flush is nearly free",
        )],
        stall_ratio: user.map_or(0.4, |(workload, _)| workload.stall_ratio().max(0.4)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    })
}

#[cfg(test)]
mod tests {
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    fn flushing(per_sec: u64, ms: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { writes: 40, write_bytes: 160_000, write_usec: 2000, util_pct: 60, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did);
        host.change("vda", |device| {
            let flush = device.counters.flush.get_or_insert_default();
            (flush.ios, flush.ticks_ms) = (per_sec * SECONDS, Millis(per_sec * SECONDS * ms));
        });
        host.window.t0.devices[0].counters.flush = Some(quell_kfile::diskstats::Flushes::default());
        host.ids()
    }

    #[test]
    fn flushes_that_take_the_disks_time_are_told() {
        assert!(flushing(20, 40).contains(&"slow-flush"));
        assert!(!flushing(20, 1).contains(&"slow-flush"), "as fast as a write");
        assert!(!flushing(1, 40).contains(&"slow-flush"), "one a second");
    }
}
