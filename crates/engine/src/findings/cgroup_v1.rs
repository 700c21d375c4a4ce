//! `cgroup-v1`: the I/O controller is the old one, which sees and holds only part of what a workload does.

use super::evidence::{evidence, finding, host_subject};
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
            and three tenths of its time are the root's, so that the answer is hidden; else information.",
        change: "Boot with systemd.unified_cgroup_hierarchy=1 (the default of every distribution today).",
        undo: "Take the option out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    if !scene.window.t1.host.cgroups.io_is_v1() {
        return Vec::new();
    }
    let hidden = scene
        .leaf_disks()
        .filter(|disk| disk.is_queueing())
        .any(|disk| scene.users(disk).any(|(workload, share)| workload.is_kernel() && share.ratio >= 0.3));
    let severity = if hidden { Severity::Warning } else { Severity::Info };
    vec![Finding {
        severity,
        confidence: 1.0,
        summary: "I/O is under cgroup version 1: buffered writes are neither billed to their container nor limited"
            .into(),
        evidence: vec![evidence(
            Aspect::Limit,
            "hierarchy",
            Value::Word("cgroup v1 (blkio)".into()),
            "/proc/self/mountinfo",
        )],
        advice: vec![
            Advice::text("boot with systemd.unified_cgroup_hierarchy=1; until then limit direct I/O and fsync only")
                .risk("runtimes older than docker 20.10, containerd 1.4 and kubernetes 1.25 do not know version 2"),
        ],
        ..finding(RULE.id, host_subject())
    }]
}
