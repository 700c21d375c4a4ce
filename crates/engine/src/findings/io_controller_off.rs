//! `io-controller-off`: cgroups without the io controller: nobody counts their I/O, and nobody can limit it.

use quell_paste::Statement;
use quell_units::{CgroupPath, Gap};

use super::evidence::{PASTE, asker, evidence, finding, host_subject, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Subject, Value};
use super::io_not_delegated::{is_a_users, is_rootless};
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
        evidence: "Populated cgroups whose cgroup.controllers lacks io while the kernel has it, those of users' own managers \
            left out; or a runtime that says so. A warning where a disk is \
            queueing or the host is stalled on I/O, so that the answer is hidden; else information.",
        change: "Name io in cgroup.subtree_control of the cgroup above, on every level; under systemd IOAccounting=yes for \
            a unit among them, or DefaultIOAccounting=yes for all.",
        undo: "`-io` into the same file.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let lowest: Vec<&CgroupPath> = without_io(scene).into_iter().filter(|path| !is_a_users(path)).collect();
    let live = lowest.first().map(|first| off(scene, &lowest, first));
    live.into_iter().chain(scene.statements().iter().find_map(said_off)).collect()
}

/// What a runtime says that wants the controller and has the whole host to ask for it.
fn said_off(said: &Statement) -> Option<Finding> {
    let Statement::ControllerMissing { by, controller } = said else { return None };
    let io = matches!(controller.as_str(), "io" | "blkio") && !is_rootless(by);
    io.then(|| Finding {
        confidence: 0.8,
        summary: "the io controller is not there for who asks for a limit: none is set".into(),
        evidence: vec![evidence(Aspect::Limit, "missing", Value::Word(safe(controller)), PASTE)],
        advice: vec![
            super::advise::look(
                "look who has it and who passes it on",
                Some("cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/cgroup.subtree_control".into()),
            ),
            Advice::text("enable it from the top down, or set IOAccounting=yes for a unit of that slice"),
        ],
        ..finding(RULE.id, asker(by))
    })
}

/// The lowest populated cgroups that the controller does not reach.
pub(super) fn without_io<'s>(scene: &'s Scene) -> Vec<&'s CgroupPath> {
    let is_off = |path: &CgroupPath| {
        let cgroup = scene.cgroup(path);
        cgroup.is_some_and(|cgroup| cgroup.io == Err(Gap::ControllerOff) && cgroup.populated != Ok(false))
    };
    let all: Vec<&CgroupPath> =
        scene.workloads.iter().map(|workload| &workload.path).filter(|path| is_off(path)).collect();
    // Those above them hold no work of their own: they are on the way, and the command says so.
    all.iter().copied().filter(|path| !all.iter().any(|other| other != path && other.is_within(path))).collect()
}

fn off(scene: &Scene, off: &[&CgroupPath], first: &CgroupPath) -> Finding {
    let hidden = scene.leaf_disks().find(|disk| disk.is_queueing());
    let stalled = scene.rates.system.io_pressure.is_ok_and(|pressure| pressure.some_pct >= 40.0);
    let hides = hidden.is_some() || stalled;
    let names = off.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more =
        off.len().checked_sub(3).filter(|more| *more > 0).map_or(String::new(), |more| format!(" and {more} more"));
    let mut gates: Vec<String> = off.iter().flat_map(|path| gates(scene, path)).collect();
    let mut said = std::collections::HashSet::new();
    gates.retain(|gate| said.insert(gate.clone()));
    let source = gates.first().cloned().unwrap_or_else(|| scene.cgroup_file(first, "cgroup.controllers"));
    let number = quell_units::count(u64::try_from(off.len()).unwrap_or(u64::MAX));
    Finding {
        severity: if hides { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: format!("the io controller is off for {names}{more}: their I/O is neither counted nor limited"),
        evidence: vec![evidence(Aspect::Limit, "cgroups without the io controller", Value::Number(number), source)],
        advice: vec![
            Advice {
                command: set('+', gates.iter()),
                undo: set('-', gates.iter().rev()),
                ..Advice::text("enable it, from the top down")
            }
            .risk("under systemd set IOAccounting=yes on a unit among them instead, or the next reload takes it back"),
        ],
        stall_ratio: if hides { 0.5 } else { 0.0 },
        ..finding(RULE.id, subject(hidden))
    }
}

fn subject(disk: Option<&Disk>) -> Subject {
    Subject { device: disk.map(|disk| disk.name), ..host_subject() }
}

/// The files that have to name io, from the top down: those above the cgroup that do not pass it on.
fn gates(scene: &Scene, path: &CgroupPath) -> Vec<String> {
    let closed = |at: &CgroupPath| {
        scene.config(at).is_some_and(|config| config.subtree_control.as_ref().is_ok_and(|subtree| !subtree.io))
    };
    let mut gates: Vec<CgroupPath> = path.ancestors().skip(1).filter(closed).collect();
    gates.reverse();
    gates.iter().map(|at| scene.cgroup_file(at, "cgroup.subtree_control")).collect()
}

/// The command that adds io to each file, or takes it away.
fn set<'f>(sign: char, files: impl Iterator<Item = &'f String>) -> Option<String> {
    let echo = |file: &'f String| Some(format!("echo {sign}io > {}", super::advise::plain(file)?));
    let all: Option<Vec<String>> = files.map(echo).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.join(" && "))
}
