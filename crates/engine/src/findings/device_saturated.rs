//! `device-saturated`: requests queue at a disk that can do no more.

use super::advise;
use super::evidence::{disk_subject, finding, of_disk, of_share, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity};
use super::scene::{Disk, Scene, Share, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "device-saturated",
    explain: Explain {
        means: "More requests are sent than the disk can serve; they wait in its queue, and each takes far longer than \
            a healthy disk of its class needs.",
        kernel: "A request's await runs from its insertion to its completion, so it holds the wait behind all others: \
            with a full queue it is the queue's length over the rate (Little's law), whatever the disk itself needs.",
        evidence: "aqu-sz of at least 4 (2 on a spinning disk), await at least three times that of a healthy disk of this \
            class for requests of this size, and hardly a gap: %util of the disk or a partition at 80, or a queue that \
            is never short. %util alone proves nothing: it under-reads behind partitions and says nothing of how many \
            requests a disk serves at once.",
        change: "Send less: cap or weigh the workload that fills the queue, cache its reads, move it to another disk; or \
            buy a disk that serves more.",
        undo: "A cap is lifted with `max` for the same key of io.max.",
    },
    find,
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter(|disk| disk.is_queueing()).map(|disk| saturated(scene, disk)).collect()
}

fn saturated(scene: &Scene, disk: &Disk) -> Finding {
    let user = main_user(scene, disk);
    let await_text = disk.rates.and_then(|rates| rates.await_usec()).map_or("unknown".into(), usec);
    let what = user.map_or(format!("{} is full", disk.name), |(user, _)| format!("{} fills {}", user.name, disk.name));
    let mut evidence = of_disk(disk);
    let mut advice = Vec::new();
    if let Some((workload, share)) = user {
        evidence.extend(of_share(scene, workload, share, Aspect::Victim));
        evidence.extend(of_stall(scene, workload, Aspect::Victim));
        advice.push(Advice::text(format!(
            "{} is alone on {}: fewer requests (cache, larger blocks) or a faster disk; a cap would only move the wait",
            workload.name, disk.name
        )));
    } else if let Some((workload, _)) = scene.users(disk).find(|(workload, _)| !workload.is_kernel()) {
        advice.push(advise::cap_at_half(scene, workload, disk));
    }
    Finding {
        severity: Severity::Critical,
        confidence: 0.9,
        summary: format!("{what}: {:.0} requests queue and each takes {await_text}", disk.queue_length_avg()),
        evidence,
        advice,
        stall_ratio: user.map_or(1.0, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}

/// The workload that the disk mostly works for, where there is one: three fifths of its time.
pub(super) fn main_user<'s>(scene: &'s Scene, disk: &'s Disk) -> Option<(&'s Workload, &'s Share)> {
    scene.users(disk).next().filter(|(workload, share)| share.ratio >= 0.6 && !workload.is_kernel())
}

/// A time in microseconds, for people.
pub(super) fn usec(usec: f64) -> String {
    std::time::Duration::try_from_secs_f64(usec / 1e6)
        .ok()
        .and_then(|span| u64::try_from(span.as_micros()).ok())
        .map_or("unknown".into(), |us| quell_units::Micros(us).to_string())
}
