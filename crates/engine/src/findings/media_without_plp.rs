//! `media-without-plp`: flash whose flush costs the writing of its cache, for want of a capacitor.

use super::evidence::{disk_subject, evidence, finding, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, DiskClass, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "media-without-plp",
    explain: Explain {
        means: "This flash disk has no power-loss protection, or none that it trusts: each flush waits for the medium, which \
            for a program that syncs is most of its time.",
        kernel: "A disk whose cache survives a power failure answers a flush at once, or says `write through` and gets \
            none. One without must program the cached pages, at times erase a block first: 1 to 20 ms.",
        evidence: "A local NVMe or SATA flash disk that says `write back`, at least 50 flushes of 1 ms and more on the \
            average, and no queue that they would have waited in. Information: the disk is what it is.",
        change: "For logs and databases that sync take a disk with power-loss protection. Do not tell the kernel that the \
            cache is `write through`: that loses data at a power failure.",
        undo: "Nothing is changed.",
    },
    find,
};

/// A flush that costs nothing is answered in the time of a command, some 20 to 100 us; programming a page of flash takes
/// a good half of a millisecond at the least.
const FLUSH_USEC: f64 = 1000.0;
/// Fewer flushes could be those of a disk that woke up.
const FLUSHES: u64 = 50;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(unprotected).collect()
}

fn unprotected(disk: &Disk) -> Option<Finding> {
    let flush = disk.rates?.flush?;
    let await_usec = flush.await_usec?;
    let cache = disk.queue()?.write_cache.as_deref().ok()?;
    let flash = matches!(disk.class, DiskClass::Nvme | DiskClass::Ssd);
    let waited = disk.queue_length_avg() >= 4.0 || disk.is_queueing();
    if !flash || waited || cache != "write back" || flush.ios < FLUSHES || await_usec < FLUSH_USEC {
        return None;
    }
    let source = format!("/sys/block/{}/queue/write_cache", disk.name);
    Some(Finding {
        severity: Severity::Info,
        confidence: 0.7,
        summary: format!("{} takes {} for a flush: it has no power-loss protection", disk.name, usec(await_usec)),
        evidence: vec![
            evidence(Aspect::Device, "flush await", Value::Usec(await_usec), "/proc/diskstats"),
            evidence(Aspect::Device, "flushes", Value::PerSec(flush.ios_per_sec), "/proc/diskstats"),
            evidence(Aspect::Device, "write cache", Value::Word(cache.to_owned()), source),
        ],
        advice: vec![Advice::text("for a log or a database that syncs take a disk with power-loss protection")],
        ..finding(RULE.id, disk_subject(disk))
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::diskstats::Flushes;
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    fn drive(flush_usec: u64, cache: &str) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { writes: 50, write_bytes: 50 * 4096, write_usec: 50, util_pct: 1, ..Did::default() };
        host.disk(0, "nvme0n1", "/sys/devices/pci0000:00/nvme/nvme0/nvme0n1", did);
        host.change("nvme0n1", |device| {
            device.counters.flush = Some(Flushes::default());
            device.queue.as_mut().unwrap().write_cache = Ok(cache.into());
        });
        let ticks_ms = Millis(20 * flush_usec * SECONDS / 1000);
        host.window.t1.devices[0].counters.flush = Some(Flushes { ios: 20 * SECONDS, ticks_ms });
        host.ids()
    }

    #[test]
    fn milliseconds_for_a_flush_on_flash_are_the_mediums() {
        assert!(drive(3000, "write back").contains(&"media-without-plp"));
    }

    #[test]
    fn a_flush_that_costs_nothing_or_is_not_sent_says_that_the_cache_is_safe() {
        assert!(!drive(50, "write back").contains(&"media-without-plp"));
        assert!(!drive(3000, "write through").contains(&"media-without-plp"));
    }
}
