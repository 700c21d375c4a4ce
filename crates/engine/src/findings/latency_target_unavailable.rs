//! `latency-target-unavailable`: a latency target was asked for, and this kernel has no io.latency.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "latency-target-unavailable",
    explain: Explain {
        means: "A target in io.latency was asked for, and the kernel was built without it: Debian's are, and others.",
        kernel: "io.latency exists with CONFIG_BLK_CGROUP_IOLATENCY only, never in the root cgroup, and never under version 1. \
            Without the file systemd drops IODeviceLatencyTargetSec= with a message in its log.",
        evidence: "A write to io.latency that found no file or was not supported, or a program that says so.",
        change: "Cap the neighbours with io.max, or give the one to protect a larger weight under iocost or bfq.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.statements().iter().find_map(unavailable).into_iter().collect()
}

fn unavailable(said: &Statement) -> Option<Finding> {
    let (by, what) = match said {
        Statement::Refused { by, file, refusal: Refusal::NoFile | Refusal::NotSupported, .. }
            if file == "io.latency" =>
        {
            (by, file)
        }
        Statement::KnobMissing { by, knob } if knob.contains("latency") => (by, knob),
        _ => return None,
    };
    Some(Finding {
        confidence: 0.85,
        summary: "a latency target was asked for, and this kernel has no io.latency".into(),
        evidence: vec![evidence(Aspect::Limit, "not found", Value::Word(safe(what)), PASTE)],
        advice: vec![
            Advice::text(
                "cap what gets in its way with io.max, which every kernel has that has the io controller's limits",
            ),
            Advice::text("or weigh it: bfq on the disk with io.bfq.weight, or iocost with a measured model"),
        ],
        ..finding(RULE.id, asker(by))
    })
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};

    use crate::findings::written::Written;

    #[test]
    fn only_a_missing_io_latency_is_a_missing_target() {
        let says = |file: &str, refusal| {
            let mut host = Written::new();
            let (by, file) = ("systemd".into(), file.into());
            let refused = Statement::Refused { by, file, path: None, dev: None, value: None, refusal };
            host.window.pasted = Some(Box::new(Pasted { statements: vec![refused], ..Pasted::default() }));
            host.ids().contains(&"latency-target-unavailable")
        };
        assert!(says("io.latency", Refusal::NoFile));
        assert!(!says("io.latency", Refusal::NoDevice));
        assert!(!says("io.max", Refusal::NoFile));
    }
}
