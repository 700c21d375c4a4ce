//! `limit-value-zero`: 0 was written where `max` is meant, and version 2 refuses it.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-value-zero",
    explain: Explain {
        means: "A limit of 0 was asked for, in the sense of no limit. io.max has the word max for that, and refuses 0; often \
            the container then does not start.",
        kernel: "The files of version 1 took 0 as \"lift the limit\". io.max of version 2 answers 0 with ERANGE (\"Numerical \
            result out of range\") and keeps what was there.",
        evidence: "A write to io.max refused with ERANGE, or a setting of 0 on a host that is not under version 1.",
        change: "Leave the limit out, or write max.",
        undo: "Nothing took effect, so there is nothing to take back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.statements().iter().find_map(|said| zero(scene, said)).into_iter().collect()
}

fn zero(scene: &Scene, said: &Statement) -> Option<Finding> {
    let (by, what, confidence) = match said {
        Statement::Refused { by, file, value, refusal: Refusal::OutOfRange, .. } if !file.starts_with("blkio.") => {
            (by, format!("{file}: {}", value.as_deref().unwrap_or("0")), 0.95)
        }
        Statement::LimitAsked { by, device, key, value: 0 } if scene.cgroup_version() != Some(1) => {
            (by, format!("{key}=0 {device}"), 0.7)
        }
        _ => return None,
    };
    Some(Finding {
        confidence,
        summary: "a limit of 0 was asked for: cgroup version 2 refuses it, no limit is `max`".into(),
        evidence: vec![evidence(Aspect::Limit, "asked for", Value::Word(safe(&what)), PASTE)],
        advice: vec![Advice::text(
            "leave the option out, or write `max`; a runtime that sends 0 is older than its kernel",
        )],
        ..finding(RULE.id, asker(by))
    })
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};

    use crate::findings::written::Written;

    fn says(statements: Vec<Statement>) -> bool {
        let mut host = Written::new();
        host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
        host.ids().contains(&"limit-value-zero")
    }

    fn asked(value: u64) -> Statement {
        Statement::LimitAsked { by: "docker".into(), device: "/dev/sda".into(), key: "rbps".into(), value }
    }

    #[test]
    fn zero_is_refused_by_version_2_and_lifts_a_limit_of_version_1() {
        assert!(says(vec![asked(0)]));
        assert!(!says(vec![asked(1)]));
        assert!(!says(vec![asked(0), Statement::CgroupVersion(1)]));
    }

    #[test]
    fn out_of_range_in_io_max_is_the_zero() {
        let refused = |refusal| {
            let (by, file) = ("runc".into(), "io.max".into());
            Statement::Refused { by, file, path: None, dev: None, value: Some("259:2 rbps=0".into()), refusal }
        };
        assert!(says(vec![refused(Refusal::OutOfRange)]));
        assert!(!says(vec![refused(Refusal::NoDevice)]));
    }
}
