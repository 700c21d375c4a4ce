//! `not-enough-data`: there is one moment only, and no rate can be made of it.

use super::evidence::{finding, host_subject};
use super::finding::{Advice, Explain, Finding, Severity};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "not-enough-data",
    explain: Explain {
        means: "Counters since boot say what was, not what is: without a second reading there are no rates.",
        kernel: "The kernel's counters only grow. A rate is the difference of two readings over the time between them.",
        evidence: "One snapshot, or two of the same moment.",
        change: "Take a second reading a few seconds later: `quell capture` does.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let nothing = scene.rates.seconds.is_err() || scene.leaf_disks().next().is_none();
    let reason =
        if scene.rates.seconds.is_err() { "there is one reading only" } else { "no disk was there at both readings" };
    let found = nothing.then(|| Finding {
        severity: Severity::Info,
        confidence: 1.0,
        summary: format!("nothing can be said about speed: {reason}"),
        advice: vec![Advice::text("give two moments: `quell capture DIR`, then `quell doctor --root DIR`")],
        ..finding(RULE.id, host_subject())
    });
    found.into_iter().collect()
}
