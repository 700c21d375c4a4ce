//! `media-without-plp`: a flash disk whose every flush costs what power-loss protection would save.

use super::evidence::{disk_subject, evidence, finding, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, DiskClass, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "media-without-plp",
    explain: Explain {
        means: "A flash drive has a volatile cache and no capacitors behind it: a flush has to reach the cells. Drives with \
            power-loss protection answer a flush at once, because their cache survives.",
        kernel: "queue/write_cache says `write back` and a flush takes a millisecond or more: the time to program flash, and \
            now and then to erase a block. With protection the drive says `write through`, or answers in microseconds.",
        evidence: "A drive of flash with write_cache `write back`, flushes of a mean of at least 1 ms, at least 2 a second and \
            20 in all.",
        change: "For databases and etcd: drives with power-loss protection (the data sheet's PLP), or a log device that has it.",
        undo: "Nothing is changed.",
    },
    find,
};

/// A flush that reaches flash takes about this long at least: the time to program a page of TLC.
const FLUSH_USEC: f64 = 1000.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(without).collect()
}

fn without(disk: &Disk) -> Option<Finding> {
    let is_flash = matches!(disk.class, DiskClass::Nvme | DiskClass::Ssd);
    let cache = disk.queue()?.write_cache.as_ref().ok()?;
    let flush = disk.rates?.flush.filter(|flush| flush.ios_per_sec >= 2.0 && flush.ios >= 20)?;
    let took = flush.await_usec.filter(|usec| is_flash && cache == "write back" && *usec >= FLUSH_USEC)?;
    let source = format!("/sys/block/{}/queue/write_cache", disk.name);
    Some(Finding {
        severity: Severity::Info,
        confidence: 0.7,
        summary: format!("a flush of {} takes {}: flash without power-loss protection", disk.name, usec(took)),
        evidence: vec![
            evidence(Aspect::Device, "write cache", Value::Word(cache.clone()), source),
            evidence(Aspect::Device, "flushes", Value::PerSec(flush.ios_per_sec), "/proc/diskstats"),
            evidence(Aspect::Device, "flush await", Value::Usec(took), "/proc/diskstats"),
        ],
        advice: vec![Advice::text("a drive with power-loss protection makes each sync many times cheaper")],
        ..finding(RULE.id, disk_subject(disk))
    })
}

#[cfg(test)]
mod tests {
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    fn nvme(cache: &str, flush_ms: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { writes: 40, write_bytes: 160_000, write_usec: 100, util_pct: 10, ..Did::default() };
        host.disk(0, "nvme0n1", "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1", did);
        host.change("nvme0n1", |device| {
            device.queue.as_mut().unwrap().write_cache = Ok(cache.into());
            let flush = device.counters.flush.get_or_insert_default();
            (flush.ios, flush.ticks_ms) = (5 * SECONDS, Millis(5 * SECONDS * flush_ms));
        });
        host.window.t0.devices[0].counters.flush = Some(quell_kfile::diskstats::Flushes::default());
        host.ids()
    }

    #[test]
    fn a_flush_that_reaches_flash_is_told_from_one_that_does_not() {
        assert!(nvme("write back", 2).contains(&"media-without-plp"));
        assert!(!nvme("write through", 2).contains(&"media-without-plp"));
        assert!(!nvme("write back", 0).contains(&"media-without-plp"));
    }
}
