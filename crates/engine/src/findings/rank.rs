//! From all that the rules found to what is said, worst first.

use std::cmp::Reverse;

use super::finding::{Aspect, Evidence, Finding, Severity, Value};
use super::hot;
use super::program;
use super::scene::Scene;
use super::table::{Over, RULES, rule};

/// What is wrong, worst first.
///
/// A finding that another one explains becomes its evidence. The rest is ordered by severity, then by the share of the
/// time that somebody waits, then by the table; for one victim on one disk only the first is kept, and the others
/// become its evidence as well. A warning is as severe as what it explains, where nothing else on the page is. `healthy` is said where nothing of [`Severity::Warning`] or above is left. Evidence of a
/// pasted table names the table and not the kernel's file that it was made from.
#[must_use]
pub fn find(scene: &Scene) -> Vec<Finding> {
    let mut all: Vec<Finding> = RULES.iter().flat_map(|line| (line.rule.find)(scene)).collect();
    fold(&mut all, |winner, loser| explains(scene, winner, loser));
    all.sort_by(|a, b| {
        let key = |finding: &Finding| (Reverse(finding.severity), Reverse(stall_step(finding)), place(finding.id));
        key(a).cmp(&key(b)).then(b.stall_ratio.total_cmp(&a.stall_ratio)).then(a.subject.name.cmp(&b.subject.name))
    });
    fold_ordered(&mut all);
    if all.iter().any(|finding| finding.severity > Severity::Info) {
        // A paste of an error has no rates, and nobody who got its answer misses them.
        let answered = scene.window.pasted.is_some();
        all.retain(|finding| finding.id != "healthy" && !(answered && finding.id == "not-enough-data"));
    }
    for finding in &mut all {
        program::add_hints(scene, finding);
        hot::add_hot_files(scene, finding);
        name_the_table(scene, finding);
    }
    all
}

/// Puts the pasted table in the place of `/proc/diskstats`, which nobody pasted.
fn name_the_table(scene: &Scene, finding: &mut Finding) {
    const DISKSTATS: &str = "/proc/diskstats";
    let Some(pasted) = scene.window.pasted.as_deref() else { return };
    if pasted.files.iter().any(|file| file.path == "proc/diskstats") {
        return;
    }
    let source = if pasted.tables.is_empty() { "the benchmark" } else { "the table" };
    for evidence in finding.evidence.iter_mut().filter(|evidence| evidence.source == DISKSTATS) {
        source.clone_into(&mut evidence.source);
    }
}

/// A finding's place in the table.
fn place(id: &str) -> usize {
    RULES.iter().position(|line| line.rule.id == id).unwrap_or(RULES.len())
}

/// The stall in steps of a quarter: 62 % and 67 % are the same to a person, and then the table decides.
fn stall_step(finding: &Finding) -> u8 {
    [0.25, 0.5, 0.75].iter().map(|step| u8::from(finding.stall_ratio >= *step)).sum()
}

/// Moves every finding that another one explains into that one's evidence.
fn fold(all: &mut Vec<Finding>, explains: impl Fn(&Finding, &Finding) -> bool) {
    let winner_of = |loser: usize| {
        let loser = all.get(loser)?;
        // The first in the table that explains it and is not explained itself by something else; chains end there.
        (0..all.len()).find(|&at| all.get(at).is_some_and(|winner| explains(winner, loser)))
    };
    let winners: Vec<Option<usize>> = (0..all.len()).map(winner_of).collect();
    let root = |mut at: usize| {
        for _ in 0..RULES.len() {
            match winners.get(at).copied().flatten() {
                Some(winner) => at = winner,
                None => break,
            }
        }
        at
    };
    let roots: Vec<usize> = (0..all.len()).map(root).collect();
    let losers: Vec<Finding> = all.clone();
    let stays = roots.iter().enumerate().filter(|(at, root)| at == *root).filter_map(|(at, _)| all.get(at));
    let worst = stays.map(|finding| finding.severity).max().unwrap_or(Severity::Info);
    for (loser, (winner, finding)) in roots.iter().zip(losers).enumerate() {
        if let Some(winner) = all.get_mut(*winner).filter(|_| *winner != loser) {
            winner.evidence.push(note(&finding));
            // Else the page would be less severe for knowing the cause; what works as it was set up stays information.
            if winner.severity > Severity::Info && finding.severity > worst {
                winner.severity = finding.severity;
            }
        }
    }
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        roots.get(at - 1) == Some(&(at - 1))
    });
}

/// Keeps the first finding for each victim on each disk.
fn fold_ordered(all: &mut Vec<Finding>) {
    let mut kept: Vec<Finding> = Vec::with_capacity(all.len());
    for finding in all.drain(..) {
        let of_disk = finding.subject.device.is_some() && finding.subject.cgroup.is_some();
        match kept.iter_mut().find(|first| of_disk && first.subject == finding.subject) {
            Some(first) => first.evidence.push(note(&finding)),
            None => kept.push(finding),
        }
    }
    *all = kept;
}

/// Whether one finding explains another.
fn explains(scene: &Scene, winner: &Finding, loser: &Finding) -> bool {
    let table = rule(winner.id).map_or(&[][..], |line| line.explains);
    table.iter().filter(|(id, _)| *id == loser.id).any(|(_, over)| match over {
        Over::SameDisk => same_disk(scene, winner, loser),
        Over::SameVictim => victim(winner).is_some() && victim(winner) == victim(loser),
        Over::VictimOrCulprit => {
            victim(loser).is_some() && (victim(loser) == victim(winner) || victim(loser) == culprit(winner))
        }
        Over::Blamed => victim(winner).is_some() && culprit(loser).or(victim(loser)) == victim(winner),
    })
}

fn victim(finding: &Finding) -> Option<&quell_units::CgroupPath> {
    finding.subject.cgroup.as_ref()
}

fn culprit(finding: &Finding) -> Option<&quell_units::CgroupPath> {
    finding.culprit.as_ref()?.cgroup.as_ref()
}

/// Whether both are about one disk: the same, or one above the other.
fn same_disk(scene: &Scene, a: &Finding, b: &Finding) -> bool {
    let leaves = |finding: &Finding| {
        let name = finding.subject.device?;
        let disk = scene.disks.iter().find(|disk| disk.name == name)?;
        Some(scene.window.t1.leaves(disk.dev))
    };
    match (leaves(a), leaves(b)) {
        (Some(a), Some(b)) => a.iter().any(|dev| b.contains(dev)),
        _ => false,
    }
}

/// What is left of a finding that another one explains.
fn note(finding: &Finding) -> Evidence {
    Evidence {
        aspect: Aspect::Explains,
        what: finding.id.to_owned(),
        value: Value::Word(finding.summary.clone()),
        source: String::new(),
    }
}
