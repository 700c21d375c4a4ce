//! `system-hog`: a noisy neighbour that belongs to the host: a service, or the kernel's own threads.

use super::finding::{Explain, Finding};
use super::noisy_neighbour::contentions;
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "system-hog",
    explain: Explain {
        means: "A container waits for a disk whose queue the host itself fills: a backup, a log shipper, an image pull, \
            an update, or the kernel's own threads.",
        kernel: "Services of the host live in system.slice, image pulls in the runtime's own cgroup and not in the pod's, \
            journal and rebuild threads in the root cgroup, which no limit reaches.",
        evidence: "As noisy-neighbour, with a culprit that is a unit of systemd or the root cgroup.",
        change: "Limit that unit; what the root cgroup does is slowed by its own setting (md: sync_speed_max; trim and \
            scrub: their timers).",
        undo: "Reset the unit's property.",
    },
    find,
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    contentions(scene)
        .into_iter()
        .filter(|case| case.is_of_the_host())
        .map(|case| case.finding(scene, RULE.id))
        .collect()
}
