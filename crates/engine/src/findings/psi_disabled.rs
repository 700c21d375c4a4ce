//! `psi-disabled`: the kernel does not say how long tasks wait.

use quell_paste::Statement;
use quell_units::Gap;

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "psi-disabled",
    explain: Explain {
        means: "Pressure is switched off: neither the host nor a container tells how long its tasks waited. What is found \
            rests on the disks' counters and on tasks that were seen waiting.",
        kernel: "Pressure stall information needs CONFIG_PSI, and where that was built with CONFIG_PSI_DEFAULT_DISABLED the \
            kernel's command line must say psi=1. Until then the files answer EOPNOTSUPP or are not there.",
        evidence: "Reading /proc/pressure/io gave EOPNOTSUPP; in a paste a program's own message of that.",
        change: "Add psi=1 to the kernel's command line and reboot. It costs next to nothing.",
        undo: "Take it out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let off = scene.window.t1.system.io_pressure == Err(Gap::Disabled);
    let pasted = scene.window.pasted.as_ref();
    let said = pasted.is_some_and(|pasted| pasted.statements.contains(&Statement::PressureRefused));
    let found = (off || said).then(|| Finding {
        // Who pastes the message asks about it; on a live host it only takes something from what can be said.
        severity: if said { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: "pressure is switched off in this kernel: nothing tells how long tasks wait".to_owned(),
        evidence: vec![evidence(
            Aspect::Tasks,
            "pressure",
            Value::Word("EOPNOTSUPP".into()),
            if said { "the message" } else { "/proc/pressure/io" },
        )],
        advice: vec![Advice::text("add psi=1 to the kernel's command line and reboot")],
        ..finding(RULE.id, host_subject())
    });
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Statement};
    use quell_units::Gap;

    use crate::findings::Severity;
    use crate::findings::written::{Did, Written};

    fn host() -> Written {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", Did::default());
        host
    }

    #[test]
    fn pressure_that_is_switched_off_is_information_on_a_host_and_an_answer_to_who_asks() {
        let mut live = host();
        live.window.t1.system.io_pressure = Err(Gap::Disabled);
        assert_eq!(live.ids(), ["healthy", "psi-disabled"]);
        let mut pasted = host();
        let statements = vec![Statement::PressureRefused];
        pasted.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
        let first = &pasted.findings()[0];
        assert_eq!((first.id, first.severity), ("psi-disabled", Severity::Warning));
    }

    #[test]
    fn pressure_that_works_is_not_called_off() {
        assert_eq!(host().ids(), ["healthy"]);
    }
}
