//! `provider-cap`: a volume gives a round number of operations, evenly, whatever is asked of it.

use super::evidence::{disk_subject, evidence, finding, of_disk, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, spread};
use super::table::Rule;
use quell_paste::Benchmark;
use quell_units::count;

pub(super) const RULE: Rule = Rule {
    id: "provider-cap",
    explain: Explain {
        means: "The volume is held at the rate it was bought with: operations per second stand still at a round number while \
            requests queue. The disk behind it could do more.",
        kernel: "Clouds and hypervisors meter a volume with a token bucket: it serves at full speed until the tokens are gone, \
            then at their rate. In the guest that looks like a saturated disk whose rate does not move.",
        evidence: "A disk of a hypervisor or of unknown kind with a queue throughout, at least six stretches of the window whose \
            rates lie within 3 % of each other, and their mean within 2 % of a number that is sold (1, 1.2, 1.5, 1.6, 2, 2.5, 3, \
            4, 5, 6, 8 times a power of ten). In a paste of a load generator: three runs of different patterns within 3 % of \
            one rate.",
        change: "Buy more operations, use a larger or another class of volume, or send fewer and larger requests: merging and \
            caching count one where the meter would count many.",
        undo: "Nothing is changed on the host.",
    },
    find,
};

/// The first digits of rates that are sold.
const SOLD: [f64; 11] = [1.0, 1.2, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];

/// How far rates may lie apart: a queue on a real disk varies by more, from request to request.
const SPREAD_MAX: f64 = 0.03;

fn find(scene: &Scene) -> Vec<Finding> {
    let disks = scene.leaf_disks().filter(|disk| matches!(disk.class, DiskClass::Virtual | DiskClass::Unknown));
    let seen = disks.filter(|disk| disk.is_queueing()).filter_map(|disk| capped(scene, disk));
    seen.chain(same_rate_everywhere(scene)).collect()
}

fn capped(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let paces: Vec<_> = scene.paces(disk).into_iter().filter(|pace| pace.waiting).collect();
    let (mean, spread) = spread(&paces).filter(|_| paces.len() >= 6)?;
    if spread > SPREAD_MAX || !is_sold(mean) {
        return None;
    }
    let mut out = vec![
        evidence(Aspect::Device, "operations", Value::PerSec(mean), "/proc/diskstats"),
        evidence(Aspect::Device, "spread of the rate", Value::Pct(100.0 * spread), "/proc/diskstats"),
    ];
    out.extend(of_disk(disk));
    let user = scene.main_user(disk);
    Some(Finding {
        confidence: 0.7,
        summary: format!(
            "{} gives {mean:.0} operations a second and not one more: a ceiling of the volume's own",
            disk.name
        ),
        evidence: out,
        advice: vec![advice()],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    })
}

/// Whether a rate is one that is sold.
fn is_sold(ios_per_sec: f64) -> bool {
    let magnitude = 10_f64.powf(ios_per_sec.max(1.0).log10().floor());
    let near = |sold: f64| (ios_per_sec / sold - 1.0).abs() <= 0.02;
    ios_per_sec >= 100.0 && SOLD.iter().any(|digits| near(digits * magnitude) || near(digits * magnitude * 10.0))
}

/// Runs of a load generator with different patterns that all end at one rate.
fn same_rate_everywhere(scene: &Scene) -> Option<Finding> {
    let runs = &scene.window.pasted.as_deref()?.benchmarks;
    let rate = |run: &Benchmark| run.read.ios_per_sec.unwrap_or(0.0) + run.write.ios_per_sec.unwrap_or(0.0);
    let rates: Vec<f64> = runs.iter().map(rate).filter(|rate| *rate >= 100.0).collect();
    let (low, high) = (rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?);
    // Reads and writes, whose costs differ on every medium, or several patterns told by name.
    let reads = runs.iter().any(|run| run.read.ios_per_sec.is_some() && run.write.ios_per_sec.is_none());
    let writes = runs.iter().any(|run| run.write.ios_per_sec.is_some() && run.read.ios_per_sec.is_none());
    if rates.len() < 3 || !(reads && writes) || high > (1.0 + SPREAD_MAX) * low {
        return None;
    }
    let n = u64::try_from(rates.len()).unwrap_or(0);
    let mean = rates.iter().sum::<f64>() / count(n).max(1.0);
    let device = runs.iter().find_map(|run| run.device.clone()).unwrap_or_else(|| "the disk".into());
    let disk = scene.disks.iter().find(|disk| disk.name.as_str() == device);
    Some(Finding {
        confidence: 0.7,
        summary: format!(
            "{n} runs of different patterns all end at {mean:.0} operations a second on {device}: a ceiling of the volume's own"
        ),
        evidence: vec![
            evidence(Aspect::Device, "lowest rate", Value::PerSec(low), "fio"),
            evidence(Aspect::Device, "highest rate", Value::PerSec(high), "fio"),
        ],
        advice: vec![advice()],
        stall_ratio: 0.5,
        ..finding(RULE.id, disk.map_or_else(super::evidence::host_subject, disk_subject))
    })
}

fn advice() -> Advice {
    Advice::text("compare the rate with the volume's own limit; buy more, or send fewer and larger requests")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::{Did, Written};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    fn paced(rates: &[u64]) -> Vec<&'static str> {
        let mean = rates.iter().sum::<u64>() / u64::try_from(rates.len()).unwrap();
        let mut host = Written::new();
        let did = Did { reads: mean, read_bytes: mean * 4096, read_usec: 32_000, util_pct: 100, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did);
        host.window.t0.devices[0].counters.in_flight = 16;
        host.change("vda", |device| device.counters.in_flight = 16);
        let mut done = 0;
        for (at, rate) in (1..).zip(&rates[..rates.len() - 1]) {
            done += rate;
            host.look(at * 1000, &[(0, 16, done)], &[]);
        }
        host.ids()
    }

    #[test]
    fn a_flat_rate_at_a_number_that_is_sold_is_a_ceiling() {
        assert_eq!(paced(&[500, 501, 499, 500, 500, 500, 500, 500, 500, 500])[0], "provider-cap");
        assert!(!paced(&[500, 600, 400, 500, 550, 450, 500, 500, 500, 500]).contains(&"provider-cap"), "it varies");
        assert!(!paced(&[452; 10]).contains(&"provider-cap"), "a number that nobody sells");
    }

    #[test]
    fn the_numbers_that_are_sold() {
        assert!([100.0, 500.0, 3000.0, 16_000.0, 7990.0].into_iter().all(is_sold));
        assert!(![90.0, 450.0, 1070.0, 3340.0].into_iter().any(is_sold));
    }
}
