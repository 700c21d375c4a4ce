//! `burst-credit-exhausted`: from one moment to the next a volume gives a fraction of what it gave.

use super::evidence::{disk_subject, evidence, finding, of_disk, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Pace, Scene, spread};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "burst-credit-exhausted",
    explain: Explain {
        means: "The volume served at one steady rate, then at a lower steady rate, while as many requests waited as before: \
            its credit ran out.",
        kernel: "Cloud volumes earn credit while they are idle and spend it above their base rate. At the end of the credit \
            the meter falls to the base rate at once. Flash whose fast cells are full steps down in the same way.",
        evidence: "A disk of a hypervisor or of unknown kind with a queue throughout: at least three stretches at one rate, then \
            at least three at another, each within 12 % of its own mean, the second at most three quarters of the first.",
        change: "A volume with a higher base rate, or one without credit; spread the work so that it stays below the base rate.",
        undo: "Nothing is changed on the host.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let disks = scene.leaf_disks().filter(|disk| matches!(disk.class, DiskClass::Virtual | DiskClass::Unknown));
    disks.filter(|disk| disk.rate_gate()).filter_map(|disk| exhausted(scene, disk)).collect()
}

/// Stretches on either side of the step.
const STRETCHES: usize = 3;

fn exhausted(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let paces = scene.paces(disk);
    if !paces.iter().all(|pace| pace.waiting) {
        return None;
    }
    let (before, after) = step_down(&paces)?;
    let mut out = vec![
        evidence(Aspect::Device, "rate before", Value::PerSec(before), "/proc/diskstats"),
        evidence(Aspect::Device, "rate after", Value::PerSec(after), "/proc/diskstats"),
    ];
    out.extend(of_disk(disk));
    let user = scene.main_user(disk);
    Some(Finding {
        confidence: 0.75,
        summary: format!(
            "{} fell from {before:.0} to {after:.0} operations a second with its queue full: its burst credit is spent",
            disk.name
        ),
        evidence: out,
        advice: vec![Advice::text(
            "look at the volume's credit balance; buy a higher base rate, or stay below the one it has",
        )],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    })
}

/// The two steady rates, where there is one step down between them. The stretch in which it falls may be of both.
fn step_down(paces: &[Pace]) -> Option<(f64, f64)> {
    let steady = |part: &[Pace]| {
        spread(part).filter(|(_, spread)| part.len() >= STRETCHES && *spread <= 0.12).map(|(mean, _)| mean)
    };
    (STRETCHES..paces.len()).find_map(|at| {
        let (before, rest) = paces.split_at_checked(at)?;
        let (before, after) = (steady(before)?, steady(rest).or_else(|| steady(rest.get(1..)?))?);
        (after > 0.0 && after <= 0.75 * before).then_some((before, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paces(rates: &[f64]) -> Vec<Pace> {
        rates.iter().map(|rate| Pace { ios_per_sec: *rate, waiting: true }).collect()
    }

    #[test]
    fn one_step_between_two_steady_rates_is_found() {
        assert_eq!(
            step_down(&paces(&[1000.0, 1010.0, 990.0, 600.0, 200.0, 200.0, 201.0]))
                .map(|(a, b)| (a.round(), b.round())),
            Some((1000.0, 200.0))
        );
        assert_eq!(step_down(&paces(&[1000.0, 900.0, 800.0, 700.0, 600.0, 500.0, 400.0])), None, "a slope");
        assert_eq!(step_down(&paces(&[200.0, 200.0, 200.0, 1000.0, 1000.0, 1000.0])), None, "a step up");
        assert_eq!(step_down(&paces(&[1000.0, 1000.0, 1000.0, 900.0, 900.0, 900.0])), None, "hardly a step");
    }
}
