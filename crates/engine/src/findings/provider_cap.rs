//! `provider-cap`: a volume gives exactly what it was sold with, and no more.

use quell_paste::Benchmark;

use super::evidence::{disk_subject, evidence, finding, host_subject, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, Step, spread};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "provider-cap",
    explain: Explain {
        means: "The volume has reached the operations or bytes a second that it was bought with. It is not slow and not \
            broken: whatever is asked beyond that waits.",
        kernel: "The provider meters requests on its side of the virtual disk, mostly by a token bucket. The guest sees a rate \
            that stays at one value and an await that grows with the queue: aqu-sz over the rate.",
        evidence: "A volume or an unknown disk whose requests queue, now more and now fewer of them by two fifths and more, while \
            its rate stays within 6 % of itself over at least 2 s and within 1.5 % of a ceiling that providers sell; no \
            limit of the host's own. With the same queue all the time any full disk is as steady. Of benchmarks: three patterns \
            that end within 5 % of one rate though their median latencies differ.",
        change: "Raise the volume's own limit or its size, spread the load over volumes, or cap who asks for most so that \
            the others do not wait behind it.",
        undo: "Nothing is changed.",
    },
    find,
};

/// Operations a second that clouds sell volumes with: AWS gp2 and gp3 (3000, 16000, 64000), Azure's disk tiers (120 to
/// 20000), and the round thousands that provisioned volumes are ordered in.
const IOS_PER_SEC: [f64; 22] = [
    120.0, 240.0, 500.0, 1000.0, 1100.0, 2000.0, 2300.0, 3000.0, 4000.0, 5000.0, 6000.0, 7500.0, 8000.0, 10_000.0,
    12_000.0, 15_000.0, 16_000.0, 20_000.0, 30_000.0, 40_000.0, 64_000.0, 80_000.0,
];
/// Megabytes a second, likewise; each is tried as MB and as MiB.
const MEGABYTES_PER_SEC: [f64; 12] =
    [25.0, 50.0, 60.0, 100.0, 125.0, 150.0, 200.0, 250.0, 500.0, 750.0, 1000.0, 1200.0];
/// A meter holds its value closer than this; what the disk's own speed gives by chance does not.
const SPREAD: f64 = 0.06;
/// How much the requests in flight vary at the least, by [`spread`]: one queue all the time gives one rate on any disk.
const ASKED_SPREAD: f64 = 0.4;
/// How near to a ceiling the mean must be.
const NEAR: f64 = 0.015;

fn find(scene: &Scene) -> Vec<Finding> {
    let disks: Vec<Finding> = scene.leaf_disks().filter_map(|disk| capped(scene, disk)).collect();
    if disks.is_empty() { benchmarks(scene).into_iter().collect() } else { disks }
}

fn capped(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let volume = matches!(disk.class, DiskClass::Virtual | DiskClass::Unknown);
    let own_limit = scene.engine(disk).is_some()
        || scene.caps.iter().any(|cap| cap.reached() && scene.window.t1.leaves(cap.dev).contains(&disk.dev));
    if !volume || own_limit || !disk.is_queueing() {
        return None;
    }
    let steps = scene.series(disk);
    let (ceiling, what) = ceiling(&steps)?;
    let user = scene.main_user(disk);
    let mut out: Vec<Evidence> = vec![what];
    out.extend(of_disk(disk));
    if let Some((workload, _)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    Some(Finding {
        confidence: 0.7,
        summary: format!("{} stays at {ceiling} while requests queue: the volume's own limit", disk.name),
        evidence: out,
        advice: vec![advice()],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    })
}

fn advice() -> Advice {
    Advice::text(
        "raise the volume's limit with its provider, or spread the load; io.max on the loudest keeps a share for the rest",
    )
}

/// The ceiling that all steps stay at, in words and as evidence.
fn ceiling(steps: &[Step]) -> Option<(String, Evidence)> {
    let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
    if steps.len() < 3 || seconds < 2.0 || steps.iter().any(|step| step.queue < 2.0) {
        return None;
    }
    spread(steps.iter().map(|step| step.queue)).filter(|asked| *asked >= ASKED_SPREAD)?;
    let flat = |rates: &[f64]| {
        let mean = rates.iter().zip(steps).map(|(rate, step)| rate * step.seconds).sum::<f64>() / seconds;
        spread(rates.iter().copied()).filter(|spread| *spread <= SPREAD).map(|_| mean)
    };
    let near = |mean: f64, ceiling: f64| (mean / ceiling - 1.0).abs() <= NEAR;
    let source = "/proc/diskstats";
    let ios: Vec<f64> = steps.iter().map(|step| step.ios_per_sec).collect();
    if let Some(mean) = flat(&ios).filter(|mean| IOS_PER_SEC.iter().any(|ceiling| near(*mean, *ceiling))) {
        let what = evidence(Aspect::Limit, "stays at", Value::PerSec(mean), source);
        return Some((format!("{mean:.0} requests a second"), what));
    }
    let bytes: Vec<f64> = steps.iter().map(|step| step.bytes_per_sec).collect::<Option<_>>()?;
    let sold = |mean: f64| MEGABYTES_PER_SEC.iter().any(|mb| near(mean, mb * 1e6) || near(mean, mb * 1_048_576.0));
    let mean = flat(&bytes).filter(|mean| sold(*mean))?;
    let what = evidence(Aspect::Limit, "stays at", Value::BytesPerSec(mean), source);
    Some((format!("{:.0} MB/s", mean / 1e6), what))
}

/// Benchmarks of several patterns that end at one rate.
fn benchmarks(scene: &Scene) -> Option<Finding> {
    let runs = &scene.window.pasted.as_ref()?.benchmarks;
    let plain = runs.iter().filter(|run| run.writes_per_sync.is_none() && !run.pattern.is_empty());
    let rates: Vec<(&Benchmark, f64)> = plain.filter_map(|run| Some((run, ios_per_sec(run)?))).collect();
    let patterns: std::collections::BTreeSet<&str> = rates.iter().map(|(run, _)| run.pattern.as_str()).collect();
    let medians: Vec<f64> = rates.iter().filter_map(|(run, _)| median(run)).collect();
    let deeper = spread(rates.iter().filter_map(|(run, _)| run.in_flight_max)).is_some_and(|spread| spread >= 0.5);
    // A disk that is only fast gives each pattern what its latency allows; a meter gives all of them one rate.
    let unlike = deeper || (medians.len() >= 3 && spread(medians.iter().copied()).is_some_and(|s| s >= 0.2));
    let one_rate = spread(rates.iter().map(|(_, rate)| *rate))?;
    if patterns.len() < 3 || one_rate > 0.05 || !unlike {
        return None;
    }
    let evidence_of = |(run, rate): &(&Benchmark, f64)| {
        let what = quell_units::escape(run.pattern.as_bytes()).to_string();
        evidence(Aspect::Limit, &what, Value::PerSec(*rate), "the benchmark")
    };
    let (_, rate) = rates.first()?;
    Some(Finding {
        confidence: 0.7,
        summary: format!(
            "{} patterns all end at about {rate:.0} requests a second: the volume's own limit",
            patterns.len()
        ),
        evidence: rates.iter().map(evidence_of).collect(),
        advice: vec![advice()],
        stall_ratio: 0.5,
        ..finding(RULE.id, host_subject())
    })
}

fn ios_per_sec(run: &Benchmark) -> Option<f64> {
    let ios = run.read.ios_per_sec.unwrap_or(0.0) + run.write.ios_per_sec.unwrap_or(0.0);
    (ios > 0.0).then_some(ios)
}

fn median(run: &Benchmark) -> Option<f64> {
    run.percentiles_usec.iter().find(|(at, _)| (*at - 50.0).abs() < 0.01).map(|(_, usec)| *usec)
}

#[cfg(test)]
mod tests {
    use quell_paste::{Benchmark, Direction, Pasted};

    use crate::findings::written::{Did, Written};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda";

    /// A volume that gives so many reads in each half second, with 16 in flight and from the middle on so many.
    fn volume(halves: &[u64], then_in_flight: u64) -> Written {
        let mut host = Written::new();
        let reads = 2 * halves.iter().sum::<u64>() / u64::try_from(halves.len()).unwrap();
        let read_usec = 16_000_000 / reads;
        let did = Did { reads, read_bytes: reads * 4096, read_usec, util_pct: 100, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did).cgroup("tenants/app", 0.0, &[(0, reads, 0, reads * 4096)]);
        let mut completed = 0;
        for (at, half) in (0_u64..).zip([0].iter().chain(halves)) {
            completed += half;
            let in_flight = if at < 3 { 16 } else { then_in_flight };
            host.look(at * 500, &[(0, in_flight, completed)], &[]);
        }
        host
    }

    #[test]
    fn a_rate_that_stands_still_at_what_is_sold_is_the_volumes_limit() {
        assert_eq!(volume(&[250, 251, 249, 250, 250, 250], 32).ids(), ["provider-cap"]);
    }

    #[test]
    fn a_rate_that_moves_or_is_no_ceiling_is_the_disks_own() {
        assert_eq!(volume(&[250, 210, 280, 260, 240, 260], 32).ids(), ["device-saturated"]);
        assert_eq!(volume(&[350, 351, 349, 350, 350, 350], 32).ids(), ["device-saturated"]);
        assert_eq!(
            volume(&[250, 251, 249, 250, 250, 250], 16).ids(),
            ["device-saturated"],
            "the queue stood still too"
        );
    }

    fn runs(of: &[(&str, f64, f64)]) -> Vec<&'static str> {
        let mut host = Written::new();
        let run = |&(pattern, ios, median): &(&str, f64, f64)| Benchmark {
            pattern: pattern.into(),
            read: Direction { ios_per_sec: Some(ios), ..Direction::default() },
            percentiles_usec: vec![(50.0, median)],
            ..Benchmark::default()
        };
        let benchmarks = of.iter().map(run).collect();
        host.window.pasted = Some(Box::new(Pasted { benchmarks, ..Pasted::default() }));
        host.ids()
    }

    #[test]
    fn patterns_of_unlike_latency_that_end_at_one_rate_are_metered() {
        assert!(
            runs(&[("read", 3302.0, 124.0), ("write", 3350.0, 164.0), ("randread", 3337.0, 254.0)])
                .contains(&"provider-cap")
        );
        assert!(
            !runs(&[("read", 9302.0, 104.0), ("write", 3350.0, 164.0), ("randread", 3337.0, 254.0)])
                .contains(&"provider-cap")
        );
        assert!(
            !runs(&[("read", 3302.0, 300.0), ("write", 3350.0, 298.0), ("randread", 3337.0, 299.0)])
                .contains(&"provider-cap")
        );
    }
}
