//! `psi-disabled`: the kernel could tell who waits, and does not.

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;
use quell_paste::Statement;
use quell_units::Gap;

pub(super) const RULE: Rule = Rule {
    id: "psi-disabled",
    explain: Explain {
        means: "Pressure stall information is built into this kernel and switched off: who waits for how long is known from what \
            tasks are seen doing alone.",
        kernel: "With CONFIG_PSI_DEFAULT_DISABLED, or psi=0, the files in /proc/pressure answer EOPNOTSUPP, and cgroups have no \
            io.pressure.",
        evidence: "/proc/pressure/io answers EOPNOTSUPP; in a paste, a program that says so. Information on a host, since quell \
            looks at tasks as well; a warning in a paste, where it is what was asked about.",
        change: "Boot with psi=1.",
        undo: "Take the option out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let refused = scene.statements().any(|statement| *statement == Statement::PressureRefused);
    if !refused && scene.window.t1.system.io_pressure != Err(Gap::Disabled) {
        return Vec::new();
    }
    vec![Finding {
        severity: if refused { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: "this kernel's pressure stall information is switched off: it does not tell who waits".into(),
        evidence: vec![evidence(
            Aspect::Tasks,
            "/proc/pressure",
            Value::Word("EOPNOTSUPP".into()),
            "/proc/pressure/io",
        )],
        advice: vec![
            Advice::text("boot with psi=1 on the kernel's command line").risk("a few cycles at each switch of a task"),
        ],
        ..finding(RULE.id, host_subject())
    }]
}

#[cfg(test)]
mod tests {
    use crate::findings::written::Written;
    use quell_units::Gap;

    #[test]
    fn files_that_are_switched_off_are_told_from_files_that_are_not_there() {
        for (gap, found) in [(Gap::Disabled, true), (Gap::NotInKernel, false)] {
            let mut host = Written::new();
            host.window.t1.system.io_pressure = Err(gap);
            assert_eq!(host.ids().contains(&"psi-disabled"), found);
        }
    }
}
