//! `counter-broken`: a disk's counter says what cannot be.

use super::evidence::{disk_subject, evidence, finding};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;
use quell_units::{Gap, count};

pub(super) const RULE: Rule = Rule {
    id: "counter-broken",
    explain: Explain {
        means: "A counter of the disk holds a number that cannot be: more requests in flight than any queue has, or one that \
            went back while the disk stayed the same. What is made of it is worth nothing.",
        kernel: "in_flight is kept per processor and summed; a lost decrement, or a driver that ends a request twice, leaves it \
            off for good, and a negative sum prints as a huge number. Counters only grow: one that went back without a new \
            diskseq was reset by its driver.",
        evidence: "in flight above 65,536 in /proc/diskstats (nr_requests ends there), or a counter that went back between two \
            readings of one disk.",
        change: "Believe the requests' own times (await) and no %util of this disk; a reboot sets the count right. Report it with \
            the driver's name.",
        undo: "Nothing is changed.",
    },
    find,
};

/// More requests than any queue of the kernel's holds (`nr_requests` times hardware queues stays far below).
const IN_FLIGHT_MAX: u64 = 65_536;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter_map(|disk| broken(scene, disk)).collect()
}

fn broken(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let in_flight = disk.device.counters.in_flight;
    let was = scene.window.t0.device(disk.dev);
    let same =
        was.is_some_and(|was| was.name == disk.name && was.diskseq.is_ok() && was.diskseq == disk.device.diskseq);
    let went_back = same && scene.rates.device(disk.dev).is_some_and(|device| device.rates == Err(Gap::CounterReset));
    let (what, value) = if in_flight > IN_FLIGHT_MAX {
        ("in flight", Value::Number(count(in_flight)))
    } else if went_back {
        ("counters", Value::Word("went back".into()))
    } else {
        return None;
    };
    let shown = if went_back { "its counters went back".to_owned() } else { format!("{in_flight} requests in flight") };
    Some(Finding {
        confidence: 0.9,
        summary: format!("{}'s counters cannot be believed: {shown}", disk.name),
        evidence: vec![evidence(Aspect::Device, what, value, "/proc/diskstats")],
        advice: vec![Advice::text("judge this disk by its requests' own times, or by a load generator's")],
        stall_ratio: 0.1,
        ..finding(RULE.id, disk_subject(disk))
    })
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    #[test]
    fn what_no_queue_holds_is_no_count() {
        let of = |in_flight: u64| {
            let mut host = Written::new();
            host.disk(
                0,
                "vda",
                VIRTIO,
                Did { reads: 50, read_bytes: 204_800, read_usec: 300, util_pct: 2, ..Did::default() },
            );
            host.change("vda", |device| device.counters.in_flight = in_flight);
            host.ids().contains(&"counter-broken")
        };
        assert!(of(u64::from(u32::MAX)) && !of(1024));
    }
}
