//! `latency-target-working`: a latency target protects one workload by holding its siblings back.

use quell_units::Micros;

use super::evidence::{evidence, finding, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, WaitKind, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "latency-target-working",
    explain: Explain {
        means: "io.latency is at work: siblings without a target, or with a looser one, are held back so that the protected \
            workload's requests are served in time.",
        kernel: "While the target is missed, a looser sibling's queue depth is halved every half second or so, down to 1, and \
            then it is delayed. Only siblings are held. The held ones wait in rq_qos_wait, as with wbt; io.stat tells \
            nothing of it unless blk_cgroup.blkcg_debug_stats=1.",
        evidence: "A cgroup with io.latency for the disk that uses it, and a sibling on the disk that is stalled for a tenth \
            of the time or seen in rq_qos_wait, with aqu-sz of at least 1.",
        change: "If the target is missed all the same, the disk cannot keep it beside this load: cap the sibling as well.",
        undo: "`target=0` for the disk in io.latency.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let targets = scene.window.t1.cgroups.iter().filter_map(|cgroup| {
        let rows = cgroup.config.as_deref()?.io_latency.as_ref().ok()?;
        Some(rows.iter().map(|row| (&cgroup.path, row.dev, row.target_usec)))
    });
    targets
        .flatten()
        .filter_map(|(path, dev, target)| {
            let protected = scene.workloads.iter().find(|workload| workload.path.is_within(path))?;
            working(scene, protected, path, scene.disk(dev)?, target)
        })
        .collect()
}

fn working(
    scene: &Scene,
    protected: &Workload,
    path: &quell_units::CgroupPath,
    disk: &Disk,
    target: Micros,
) -> Option<Finding> {
    let parent = path.parent()?;
    let held = scene
        .users(disk)
        .map(|(workload, _)| workload)
        .filter(|other| {
            !other.is_kernel()
                && !other.inner
                && other.path.is_within(&parent)
                && !other.path.is_within(path)
                && is_looser(scene, other, disk, target)
        })
        .find(|other| other.stall_ratio() >= 0.1 || other.waits.iter().any(|wait| wait.kind == WaitKind::QueueQos))?;
    let rates = disk.rates.filter(|rates| rates.queue_length_avg >= 1.0)?;
    let io = protected.io_on(disk.dev)?;
    let reads = io.read.ios_per_sec >= io.write.ios_per_sec;
    let (kind, took) = if reads { ("read", rates.read.await_usec?) } else { ("write", rates.write.await_usec?) };
    let missed = took > target.as_f64();
    let mut out = of_stall(scene, protected, Aspect::Victim);
    out.push(evidence(Aspect::Victim, &format!("{kind} await"), Value::Usec(took), "/proc/diskstats"));
    out.push(evidence(Aspect::Limit, "target", Value::Usec(target.as_f64()), scene.cgroup_file(path, "io.latency")));
    out.extend(of_stall(scene, held, Aspect::Culprit));
    out.extend(of_disk(disk));
    let verdict = if missed { "is missed all the same, by the disk's mean" } else { "is met, by the disk's mean" };
    let advice = super::advise::cap_at_half(scene, held, disk);
    Some(Finding {
        severity: if missed { Severity::Warning } else { Severity::Info },
        confidence: 0.75,
        culprit: Some(subject(held, Some(disk.name))),
        summary: format!(
            "{} is held back on {} for {}'s io.latency; the target of {} {verdict}: {}",
            held.name,
            disk.name,
            protected.name,
            usec(target.as_f64()),
            usec(took)
        ),
        evidence: out,
        advice: if missed { vec![advice] } else { vec![Advice::text("nothing: this is what the target is for")] },
        stall_ratio: protected.stall_ratio(),
        ..finding(RULE.id, subject(protected, Some(disk.name)))
    })
}

/// Whether a sibling has no target on the disk, or a looser one.
fn is_looser(scene: &Scene, other: &Workload, disk: &Disk, target: Micros) -> bool {
    let own = scene.config(&other.path).and_then(|config| config.io_latency.as_ref().ok());
    own.and_then(|rows| rows.iter().find(|row| row.dev == disk.dev)).is_none_or(|row| row.target_usec > target)
}
