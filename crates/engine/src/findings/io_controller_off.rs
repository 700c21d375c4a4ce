//! `io-controller-off`: cgroups without the io controller: nobody counts their I/O, and nobody can limit it.

use quell_units::{CgroupPath, Gap};

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Subject, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "io-controller-off",
    explain: Explain {
        means: "The io controller is not enabled for these cgroups: they have no io.stat, no io.max and no io.weight, so \
            nobody can say or limit what they do to a disk.",
        kernel: "A controller reaches a cgroup only where every cgroup above it names it in cgroup.subtree_control. systemd \
            enables io for a slice when a unit in it sets an IO property or IOAccounting=yes; container runtimes enable \
            what they are asked for.",
        evidence: "Populated cgroups whose cgroup.controllers lacks io while the kernel has it. A warning where a disk is \
            queueing or the host is stalled on I/O, so that the answer is hidden; else information.",
        change: "Name io in cgroup.subtree_control of the cgroup above, on every level; under systemd IOAccounting=yes.",
        undo: "`-io` into the same file.",
    },
    find,
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    let off: Vec<&CgroupPath> = scene
        .workloads
        .iter()
        .filter(|workload| {
            let cgroup = scene.cgroup(&workload.path);
            cgroup.is_some_and(|cgroup| cgroup.io == Err(Gap::ControllerOff) && cgroup.populated != Ok(false))
        })
        .map(|workload| &workload.path)
        .collect();
    off.first().map(|first| is_off(scene, &off, first)).into_iter().collect()
}

fn is_off(scene: &Scene, off: &[&CgroupPath], first: &CgroupPath) -> Finding {
    let hidden = scene.leaf_disks().find(|disk| disk.is_queueing());
    let stalled = scene.rates.system.io_pressure.is_ok_and(|pressure| pressure.some_pct >= 40.0);
    let hides = hidden.is_some() || stalled;
    let gate = gate(scene, first);
    let names = off.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more =
        off.len().checked_sub(3).filter(|more| *more > 0).map_or(String::new(), |more| format!(" and {more} more"));
    let file = scene.cgroup_file(gate.as_ref().unwrap_or(first), "cgroup.subtree_control");
    let set = |sign: char| Some(format!("echo {sign}io > {}", super::advise::plain(&file)?));
    Finding {
        severity: if hides { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: format!(
            "the io controller is off for {names}{more}: what they do to a disk is neither counted nor limited"
        ),
        evidence: vec![evidence(
            Aspect::Limit,
            "without io",
            Value::Number(quell_units::count(count(off))),
            file.clone(),
        )],
        advice: vec![
            Advice { command: set('+'), undo: set('-'), ..Advice::text("enable it, from the top down") }
                .risk("under systemd set IOAccounting=yes on the slice instead, or the next reload takes it back"),
        ],
        stall_ratio: if hides { 0.5 } else { 0.0 },
        ..finding(RULE.id, subject(hidden))
    }
}

fn count(off: &[&CgroupPath]) -> u64 {
    u64::try_from(off.len()).unwrap_or(u64::MAX)
}

fn subject(disk: Option<&Disk>) -> Subject {
    Subject { device: disk.map(|disk| disk.name), ..host_subject() }
}

/// The cgroup whose subtree_control has to name io first: the highest on the way that has it and does not pass it on.
fn gate(scene: &Scene, path: &CgroupPath) -> Option<CgroupPath> {
    let above: Vec<CgroupPath> = path.ancestors().skip(1).collect();
    above.into_iter().rev().find(|at| {
        scene.config(at).is_some_and(|config| config.subtree_control.as_ref().is_ok_and(|subtree| !subtree.io))
    })
}
