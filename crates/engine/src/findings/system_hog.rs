//! `system-hog`: a noisy neighbour that belongs to the host: a service, or the kernel's own threads.

use super::finding::{Explain, Finding};
use super::in_the_way::in_the_way;
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
};

fn find(scene: &Scene) -> Vec<Finding> {
    let cases = scene.contentions();
    cases.iter().filter(|case| case.is_of_the_host()).map(|case| in_the_way(scene, case, RULE.id)).collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};

    const CONTAINER: &str =
        "system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";

    fn host(culprit: &str, victim: &str) -> Written {
        let mut host = Written::new();
        let did = Did {
            reads: 30,
            read_bytes: 30 * 4096,
            read_usec: 35_000,
            writes: 900,
            write_bytes: 900 * 65_536,
            write_usec: 35_000,
            util_pct: 99,
        };
        host.disk(0, "sda", "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda", did);
        if culprit.starts_with("system.slice/") {
            host.cgroup("system.slice", 0.0, &[(0, 0, 900, 900 * 65_536)]);
        }
        host.cgroup(culprit, 0.0, &[(0, 0, 900, 900 * 65_536)]).cgroup(victim, 0.8, &[(0, 30, 0, 30 * 4096)]);
        host
    }

    #[test]
    fn a_service_that_fills_the_disk_of_a_container_is_the_hosts_own_doing() {
        let findings = host("system.slice/backup.service", CONTAINER).findings();
        assert_eq!(findings[0].id, "system-hog");
        assert_eq!(findings[0].subject.name, "docker/0123456789ab");
        assert_eq!(findings[0].culprit.as_ref().unwrap().name, "unit/backup.service");
        let command = findings[0].advice[0].command.as_deref().unwrap();
        assert!(command.starts_with("systemctl set-property --runtime backup.service"), "{command}");
    }

    #[test]
    fn between_two_services_or_two_containers_it_is_a_noisy_neighbour() {
        assert_eq!(host("system.slice/backup.service", "system.slice/db.service").ids(), ["noisy-neighbour"]);
        assert_eq!(host("tenants/hog", "tenants/victim").ids(), ["noisy-neighbour"]);
    }
}
