//! `device-saturated`: requests queue at a disk that can do no more.

use super::advise;
use super::evidence::{disk_subject, finding, of_disk, of_share, of_stall, subject, took};
use super::finding::{Advice, Aspect, Explain, Finding, Severity};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "device-saturated",
    explain: Explain {
        means: "More requests are sent than the disk can serve; they wait in its queue, and each takes far longer than \
            a healthy disk of its class needs.",
        kernel: "A request's await runs from its insertion to its completion, so it holds the wait behind all others: \
            with a full queue it is the queue's length over the rate (Little's law), whatever the disk itself needs.",
        evidence: "aqu-sz of at least 4 (2 on a spinning disk), await at least three times that of a healthy disk of this \
            class for requests of this size, at least 5 a second and 50 in all, and hardly a gap: %util of the disk or a \
            partition at 80, or at 45 with requests in flight at every look. %util alone proves nothing: it under-reads behind partitions and says nothing of how many \
            requests a disk serves at once.",
        change: "Send less: cap or weigh the workload that fills the queue, cache its reads, move it to another disk; or \
            buy a disk that serves more.",
        undo: "A cap is lifted with `max` for the same key of io.max.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter(|disk| disk.is_queueing()).map(|disk| saturated(scene, disk)).collect()
}

fn saturated(scene: &Scene, disk: &Disk) -> Finding {
    let user = scene.main_user(disk);
    let what = user.map_or(format!("{} is full", disk.name), |(user, _)| format!("{} fills {}", user.name, disk.name));
    let mut evidence = of_disk(disk);
    if let Some((workload, share)) = user {
        evidence.extend(of_share(scene, workload, share, Aspect::Victim));
        evidence.extend(of_stall(scene, workload, Aspect::Victim));
    }
    Finding {
        severity: Severity::Critical,
        confidence: 0.9,
        summary: format!("{what}: {:.0} requests queue and each takes {}", disk.queue_length_avg(), took(disk)),
        evidence,
        advice: vec![advice(scene, disk)],
        stall_ratio: user.map_or(1.0, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}

fn advice(scene: &Scene, disk: &Disk) -> Advice {
    let name = disk.name;
    match scene.users(disk).find(|(workload, _)| !workload.is_kernel()) {
        Some((workload, share)) if share.ratio >= 0.9 => Advice::text(format!(
            "{} has {name} to itself: fewer requests (cache, larger blocks) or a faster disk; a cap would only move the wait",
            workload.name
        )),
        Some((workload, share)) if share.ratio >= 0.3 => advise::cap_at_half(scene, workload, disk),
        _ => Advice::text(format!("nobody alone fills {name}: fewer requests from all, or a faster disk")),
    }
}
