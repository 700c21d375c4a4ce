//! `cgroup-v1`: the I/O controller is the old one, which sees and holds only part of what a workload does.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "cgroup-v1",
    explain: Explain {
        means: "I/O is controlled by cgroup version 1. Direct I/O and fsync are counted and limited; buffered writes that \
            the kernel writes back later are neither.",
        kernel: "In version 1 the memory and the I/O controller do not know of each other, so a page written back by the \
            flusher is charged to the root. Limits are not hierarchical by default. There is no io.pressure, no io.latency \
            and no iocost.",
        evidence: "The blkio controller in a hierarchy of version 1 in /proc/self/mountinfo. A warning where a disk queues \
            and three tenths of its time are the root's, so that the answer is hidden; else information. In a paste: a \
            runtime that says so, or a file of version 1 that the kernel answered for; then a warning, since somebody asks.",
        change: "Boot with systemd.unified_cgroup_hierarchy=1 (the default of every distribution today).",
        undo: "Take the option out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let mounted = scene.window.t1.host.cgroups.io_is_v1();
    if !mounted && !is_said(scene) {
        return Vec::new();
    }
    let hidden = scene
        .leaf_disks()
        .filter(|disk| disk.is_queueing())
        .any(|disk| scene.users(disk).any(|(workload, share)| workload.is_kernel() && share.ratio >= 0.3));
    let severity = if hidden || scene.pasted().is_some() { Severity::Warning } else { Severity::Info };
    vec![Finding {
        severity,
        confidence: 1.0,
        summary: "I/O is under cgroup version 1: buffered writes are neither billed to their container nor limited"
            .into(),
        evidence: vec![evidence(
            Aspect::Limit,
            "hierarchy",
            Value::Word("cgroup v1 (blkio)".into()),
            if mounted && scene.pasted().is_none() { "/proc/self/mountinfo" } else { PASTE },
        )],
        advice: vec![
            Advice::text("boot with systemd.unified_cgroup_hierarchy=1; until then limit direct I/O and fsync only")
                .risk("runtimes older than docker 20.10, containerd 1.4 and kubernetes 1.25 do not know version 2"),
        ],
        ..finding(RULE.id, host_subject())
    }]
}

/// Whether a paste says that the host is under version 1: outright, by a program that asks for version 2, or by a file of
/// version 1 that was there to be written.
fn is_said(scene: &Scene) -> bool {
    let told = scene.cgroup_version();
    let answered = |said: &Statement| match said {
        Statement::Refused { file, refusal, .. } => file.starts_with("blkio.") && *refusal != Refusal::NoFile,
        Statement::WantsCgroup { version, .. } => *version == 2,
        _ => false,
    };
    told == Some(1) || (told.is_none() && scene.statements().iter().any(answered))
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};

    use crate::findings::written::Written;

    #[test]
    fn a_file_of_version_1_that_answered_is_a_host_of_version_1() {
        let says = |refusal| {
            let mut host = Written::new();
            let (by, file) = ("docker".into(), "blkio.throttle.write_bps_device".into());
            let refused = Statement::Refused { by, file, path: None, dev: None, value: None, refusal };
            host.window.pasted = Some(Box::new(Pasted { statements: vec![refused], ..Pasted::default() }));
            host.ids().contains(&"cgroup-v1")
        };
        assert!(says(Refusal::NoDevice));
        assert!(!says(Refusal::NoFile));
    }
}
