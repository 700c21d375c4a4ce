//! `counter-broken`: a disk's counters say what cannot be.

use quell_units::{Gap, count};

use super::evidence::{disk_subject, evidence, finding};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "counter-broken",
    explain: Explain {
        means: "A counter of this disk is wrong: busy for longer than the time that passed, fewer than none in flight, or \
            less done in all than before. What tools make of it is wrong as well.",
        kernel: "Drivers and kernels have leaked the in-flight count on error paths, let it go below zero (it then prints as \
            a number near 2^32 or 2^64), and added one stretch of busy time twice. Everything that iostat shows is made \
            from these counters.",
        evidence: "In flight at 2^31 and more; busy time over 120 % of the time that passed, with some slack for short \
            windows; or a counter that went back on a disk that is still the same by its diskseq.",
        change: "Nothing; do not alert on that counter, and look for a newer kernel or driver.",
        undo: "Nothing is changed.",
    },
    find,
};

/// A count below zero, as the kernel prints it, is above this; no queue is.
const IN_FLIGHT: u64 = 1 << 31;
/// iostat itself shows a little over 100, for the counters and the clock are not read at once.
const BUSY_PCT: f64 = 120.0;
/// Shorter windows make the two readings' own time count.
const SECONDS: f64 = 0.9;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter_map(|disk| broken(scene, disk)).collect()
}

fn broken(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let said = in_flight(disk).or_else(|| busy(disk)).or_else(|| went_back(scene, disk))?;
    Some(Finding {
        confidence: 0.9,
        summary: format!("{}'s counters cannot be true: {}", disk.name, said.0),
        evidence: vec![said.1],
        advice: vec![Advice::text("do not alert on this counter; look for a newer kernel or driver")],
        ..finding(RULE.id, disk_subject(disk))
    })
}

fn in_flight(disk: &Disk) -> Option<(String, Evidence)> {
    let in_flight = disk.device.counters.in_flight;
    let said = evidence(Aspect::Device, "in flight", Value::Number(count(in_flight)), "/proc/diskstats");
    (in_flight >= IN_FLIGHT).then(|| ("fewer than none in flight".to_owned(), said))
}

fn busy(disk: &Disk) -> Option<(String, Evidence)> {
    let rates = disk.rates.filter(|rates| rates.seconds >= SECONDS)?;
    let said = evidence(Aspect::Device, "util", Value::Pct(rates.util_pct), "/proc/diskstats");
    (rates.util_pct >= BUSY_PCT).then(|| (format!("busy for {:.0} % of the time", rates.util_pct), said))
}

fn went_back(scene: &Scene, disk: &Disk) -> Option<(String, Evidence)> {
    let was = scene.window.t0.device(disk.dev)?;
    let same = was.name == disk.name && matches!((was.diskseq, disk.device.diskseq), (Ok(a), Ok(b)) if a == b);
    let reset = scene.rates.device(disk.dev)?.rates == Err(Gap::CounterReset);
    let said = evidence(Aspect::Device, "counters", Value::Word("went back".into()), "/proc/diskstats");
    (same && reset).then(|| ("one went back on the same disk".to_owned(), said))
}

#[cfg(test)]
mod tests {
    use quell_units::Millis;

    use crate::findings::written::{Did, SECONDS, Written};

    fn disk() -> Written {
        let mut host = Written::new();
        let did = Did { reads: 100, read_bytes: 100 * 4096, read_usec: 900, util_pct: 9, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", did);
        host
    }

    #[test]
    fn fewer_than_none_in_flight_is_no_queue() {
        let mut host = disk();
        host.window.t1.devices[0].counters.in_flight = 4_294_967_295;
        assert!(host.ids().contains(&"counter-broken"));
        host.window.t1.devices[0].counters.in_flight = 4096;
        assert!(!host.ids().contains(&"counter-broken"));
    }

    #[test]
    fn busy_time_cannot_exceed_the_time() {
        let mut host = disk();
        host.window.t1.devices[0].counters.busy_ms = Millis(2 * SECONDS * 1000);
        assert!(host.ids().contains(&"counter-broken"));
        host.window.t1.devices[0].counters.busy_ms = Millis(SECONDS * 1010);
        assert!(!host.ids().contains(&"counter-broken"));
    }

    #[test]
    fn a_counter_that_went_back_is_told_from_another_disk_of_the_name() {
        let mut host = disk();
        host.window.t0.devices[0].counters.read.ios = 1 << 40;
        assert!(!host.ids().contains(&"counter-broken"), "nothing says that it is the same disk");
        host.change("sda", |device| device.diskseq = Ok(4));
        assert!(host.ids().contains(&"counter-broken"));
    }
}
