//! `burst-credit-exhausted`: a volume's rate steps down within the window while as much is asked of it.

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, Step, spread};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "burst-credit-exhausted",
    explain: Explain {
        means: "The volume gave more than it was bought with for as long as it had credit saved up. That is used up, and \
            from one moment to the next it gives its baseline.",
        kernel: "Providers let small volumes burst: AWS gp2, st1 and sc1, Azure's small tiers, a token bucket that fills \
            while the volume rests. The guest sees one level, then a lower one, with the same requests in flight.",
        evidence: "Two levels of a volume's rate in one window, each for at least a second, the higher at least 1.4 times \
            the lower throughout and in bytes as well, the lower one flat within a quarter and lasting to the end, with as \
            many requests in flight as before.",
        change: "Buy the rate that is needed all the time, or move the work to where credit is saved up; no setting of the \
            host brings the credit back.",
        undo: "Nothing is changed.",
    },
    find,
};

/// How much higher the first level is, at the least.
const DROP: f64 = 1.4;
/// How flat the baseline is: a meter's own, with the odd look that came late.
const FLAT: f64 = 0.25;
/// How flat the burst is: there the disk's own speed counts.
const BURST_FLAT: f64 = 0.6;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(|disk| exhausted(scene, disk)).collect()
}

fn exhausted(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let volume = matches!(disk.class, DiskClass::Virtual | DiskClass::Unknown);
    let own_limit = scene.engine(disk).is_some()
        || scene.caps.iter().any(|cap| cap.reached() && scene.window.t1.leaves(cap.dev).contains(&disk.dev));
    if !volume || own_limit || !disk.rate_gate() {
        return None;
    }
    let (before, after) = drop(&scene.series(disk))?;
    let user = scene.main_user(disk);
    let mut out = vec![
        evidence(Aspect::Limit, "first", Value::PerSec(before), "/proc/diskstats"),
        evidence(Aspect::Limit, "then", Value::PerSec(after), "/proc/diskstats"),
    ];
    out.extend(of_disk(disk));
    if let Some((workload, _)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    Some(Finding {
        confidence: 0.75,
        summary: format!(
            "{} went from {before:.0} to {after:.0} requests a second with as many in flight: its burst credit is used up",
            disk.name
        ),
        evidence: out,
        advice: vec![Advice::text("buy the rate that is needed all the time, or spread the load over volumes")],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    })
}

/// The mean rates before and after the one step down, where there is one.
fn drop(steps: &[Step]) -> Option<(f64, f64)> {
    let least_before = running(steps.iter(), f64::min);
    let mut most_after = running(steps.iter().rev(), f64::max);
    most_after.reverse();
    (2..steps.len().saturating_sub(1)).find_map(|at| {
        let before = steps.get(..at)?;
        let least = *least_before.get(at - 1)?;
        // The step that holds the change itself belongs to neither level.
        [at, at + 1].into_iter().find_map(|from| {
            // Told without a look at each step: a night of iostat has tens of thousands.
            let most = *most_after.get(from)?;
            if most > 0.0 && least >= DROP * most { levels(before, steps.get(from..)?) } else { None }
        })
    })
}

/// The extreme of the rates up to each step.
fn running<'a>(steps: impl Iterator<Item = &'a Step>, extreme: fn(f64, f64) -> f64) -> Vec<f64> {
    let extremes = steps.scan(None, |so_far: &mut Option<f64>, step| {
        *so_far = Some(so_far.map_or(step.ios_per_sec, |so_far| extreme(so_far, step.ios_per_sec)));
        *so_far
    });
    extremes.collect()
}

/// The mean rates of two stretches, where the second is a baseline after a burst. The caller has seen that the rate fell.
fn levels(before: &[Step], after: &[Step]) -> Option<(f64, f64)> {
    let long = |steps: &[Step]| steps.len() >= 2 && steps.iter().map(|step| step.seconds).sum::<f64>() >= 1.0;
    let ios = |steps: &[Step]| steps.iter().map(|step| step.ios_per_sec).collect::<Vec<f64>>();
    let fell = |first: Vec<f64>, then: Vec<f64>| {
        let least = first.into_iter().reduce(f64::min)?;
        let most = then.into_iter().reduce(f64::max)?;
        Some(least >= DROP * most)
    };
    let bytes = |steps: &[Step]| steps.iter().map(|step| step.bytes_per_sec).collect::<Option<Vec<f64>>>();
    let queue = |steps: &[Step]| steps.iter().map(|step| step.queue).sum::<f64>() / mean_of(steps);
    let flat = |rates: Vec<f64>, most: f64| spread(rates.into_iter()).is_some_and(|spread| spread <= most);
    // Fewer and larger requests give fewer a second on any disk.
    let in_bytes = bytes(before).zip(bytes(after)).is_none_or(|(was, now)| fell(was, now) == Some(true));
    let holds = long(before)
        && long(after)
        && in_bytes
        && flat(ios(after), FLAT)
        && flat(ios(before), BURST_FLAT)
        && queue(after) >= 2.0
        && queue(after) >= 0.7 * queue(before);
    let mean = |steps: &[Step]| ios(steps).iter().sum::<f64>() / mean_of(steps);
    holds.then(|| (mean(before), mean(after)))
}

fn mean_of(steps: &[Step]) -> f64 {
    steps.iter().map(|_| 1.0).sum()
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda";

    /// A volume that gives so many reads in each half second, with so many in flight.
    fn volume(halves: &[(u64, u64)]) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { reads: 900, read_bytes: 900 * 4096, read_usec: 15_000, util_pct: 100, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did).cgroup("tenants/app", 0.0, &[(0, 900, 0, 900 * 4096)]);
        let mut completed = 0;
        for (at, (half, in_flight)) in (0..).zip([(0, 16)].iter().chain(halves)) {
            completed += half;
            host.look(at * 500, &[(0, *in_flight, completed)], &[]);
        }
        host.ids()
    }

    #[test]
    fn a_step_down_with_as_much_asked_is_the_end_of_the_credit() {
        let halves = [(850, 16), (840, 16), (860, 16), (400, 16), (100, 16), (101, 16), (99, 16)];
        assert_eq!(volume(&halves), ["burst-credit-exhausted"]);
    }

    #[test]
    fn a_load_that_ends_or_comes_and_goes_is_no_step() {
        let ends = [(850, 16), (840, 16), (860, 16), (400, 8), (100, 1), (101, 1), (99, 1)];
        assert!(!volume(&ends).contains(&"burst-credit-exhausted"));
        let waves = [(850, 16), (840, 16), (100, 16), (101, 16), (850, 16), (840, 16), (100, 16)];
        assert!(!volume(&waves).contains(&"burst-credit-exhausted"));
    }
}
