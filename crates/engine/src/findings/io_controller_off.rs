//! `io-controller-off`: cgroups without the io controller: nobody counts their I/O, and nobody can limit it.

use quell_paste::Statement;
use quell_units::CgroupPath;

use super::advise;
use super::evidence::{PASTE, asker, evidence, finding, host_subject, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Subject, Value};
use super::scene::{Disk, Scene, is_a_users, is_rootless};
use super::table::Rule;
use crate::hierarchy::{Controller, Lack, lacks};
use crate::snapshot::Snapshot;

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
    let lowest: Vec<&CgroupPath> = scene.without_io().into_iter().filter(|path| !is_a_users(path)).collect();
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
            advise::look(
                "look who has it and who passes it on",
                Some("cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/cgroup.subtree_control".into()),
            ),
            Advice::text("enable it from the top down, or set IOAccounting=yes for a unit of that slice"),
        ],
        ..finding(RULE.id, asker(by))
    })
}

fn off(scene: &Scene, off: &[&CgroupPath], first: &CgroupPath) -> Finding {
    let hidden = scene.leaf_disks().find(|disk| disk.is_queueing());
    let stalled = scene.rates.system.io_pressure.is_ok_and(|pressure| pressure.some_pct >= 40.0);
    let hides = hidden.is_some() || stalled;
    let names = off.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let more =
        off.len().checked_sub(3).filter(|more| *more > 0).map_or(String::new(), |more| format!(" and {more} more"));
    let snapshot = &scene.window.t1;
    let lacks: Vec<(&CgroupPath, Lack)> = off
        .iter()
        .flat_map(|path| lacks(snapshot, path, Controller::Io).into_iter().map(move |lack| (*path, lack)))
        .collect();
    let source = match lacks.first() {
        Some((_, lack)) => scene.cgroup_file(&lack.at, "cgroup.subtree_control"),
        None => scene.cgroup_file(first, "cgroup.controllers"),
    };
    let number = quell_units::count(u64::try_from(off.len()).unwrap_or(u64::MAX));
    Finding {
        severity: if hides { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: format!("the io controller is off for {names}{more}: their I/O is neither counted nor limited"),
        evidence: vec![evidence(Aspect::Limit, "cgroups without the io controller", Value::Number(number), source)],
        advice: advice(snapshot, &lacks),
        stall_ratio: if hides { 0.5 } else { 0.0 },
        ..finding(RULE.id, subject(hidden))
    }
}

fn subject(disk: Option<&Disk>) -> Subject {
    Subject { device: disk.map(|disk| disk.name), ..host_subject() }
}

/// How to enable it, from the top down; and what is in the way where a cgroup cannot pass it on as it stands.
fn advice(snapshot: &Snapshot, lacks: &[(&CgroupPath, Lack)]) -> Vec<Advice> {
    let mut out: Vec<Advice> = Vec::new();
    if let Some((at, blocked)) = lacks.iter().find_map(|(_, lack)| Some((&lack.at, lack.blocked?))) {
        let name = if at.is_root() { "the root cgroup".to_owned() } else { at.to_string() };
        out.push(Advice::text(format!("{name} cannot pass it on: {}", blocked.told())));
    }
    let open = lacks.iter().filter(|(_, lack)| lack.blocked.is_none());
    let mut steps: Vec<(String, String)> = Vec::new();
    for (towards, lack) in open {
        // A name that a shell would read as more leaves the whole without a command.
        let Some(step) = advise::enable(snapshot, &lack.at, towards, Controller::Io) else { return out };
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    let all = |steps: Vec<&String>| steps.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(" && ");
    if !steps.is_empty() {
        out.push(Advice {
            command: Some(all(steps.iter().map(|(set, _)| set).collect())),
            undo: Some(all(steps.iter().rev().map(|(_, undo)| undo).collect())),
            ..Advice::text("enable it, from the top down")
        });
    }
    out
}
