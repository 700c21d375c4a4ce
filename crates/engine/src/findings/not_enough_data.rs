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
    nothing.then(|| not_enough(scene)).into_iter().collect()
}

fn not_enough(scene: &Scene) -> Finding {
    let one_reading = scene.rates.seconds.is_err();
    let (reason, advice) = match &scene.window.pasted {
        Some(pasted) if !pasted.tables.is_empty() => {
            ("the table has no waiting times", "paste the extended one: `iostat -x 1 10`")
        }
        Some(_) if one_reading => (
            "what was pasted is one reading, or none, of counters",
            "paste `iostat -x 1 10`, or the same file twice, some seconds apart",
        ),
        Some(_) => {
            ("no disk's counters were pasted twice", "paste `iostat -x 1 10`, or /proc/diskstats twice, beside it")
        }
        None if one_reading => {
            ("there is one reading only", "give two moments: `quell capture DIR`, then `quell doctor --root DIR`")
        }
        None => (
            "no disk was there at both readings",
            "give two moments: `quell capture DIR`, then `quell doctor --root DIR`",
        ),
    };
    Finding {
        severity: Severity::Info,
        confidence: 1.0,
        summary: format!("nothing can be said about speed: {reason}"),
        advice: vec![Advice::text(advice)],
        ..finding(RULE.id, host_subject())
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};
    use quell_paste::{Pasted, Table};

    #[test]
    fn a_table_without_waiting_times_is_said_to_be_that() {
        let mut host = Written::new();
        host.disk(0, "sda", "", Did::default());
        host.window.t1.clock = host.window.t0.clock;
        let advice = |host: &Written| host.findings()[0].advice[0].text.clone();
        assert!(advice(&host).contains("quell capture"));
        host.window.pasted = Some(Box::new(Pasted { tables: vec![Table::default()], ..Pasted::default() }));
        assert!(advice(&host).contains("iostat -x"));
    }
}
