//! `io-not-delegated`: a user's own service manager was not given the io controller, so nothing of that user can be limited.

use quell_paste::Statement;
use quell_units::CgroupPath;

use super::evidence::{PASTE, asker, evidence, finding, host_subject, safe};
use super::finding::{Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, is_a_users, is_rootless};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "io-not-delegated",
    explain: Explain {
        means: "Containers without root live below the user's own systemd, which has only the controllers that the system's \
            passes on: memory and pids as it comes. Limits and weights of I/O cannot be set there, nor is I/O counted.",
        kernel: "A cgroup has a controller only where its parent names it in cgroup.subtree_control. systemd writes there for \
            user@UID.service what Delegate= says.",
        evidence: "Populated cgroups below user@UID.service without io in cgroup.controllers, or crun or podman that misses \
            the controller. A warning where a disk queues, so that the answer is hidden, or where somebody asked for a limit.",
        change: "A drop-in for user@.service with Delegate=cpu cpuset io memory pids, then `systemctl restart user@UID.service`, which ends its session's programs.",
        undo: "Remove the drop-in and restart user@UID.service again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let users: Vec<&CgroupPath> = scene.without_io().into_iter().filter(|path| is_a_users(path)).collect();
    let live = users.first().map(|first| {
        let hides = scene.leaf_disks().any(Disk::is_queueing);
        Finding {
            severity: if hides { Severity::Warning } else { Severity::Info },
            stall_ratio: if hides { 0.5 } else { 0.0 },
            ..not_delegated(&first.to_string(), scene.cgroup_file(first, "cgroup.controllers"), host_subject())
        }
    });
    live.into_iter().chain(scene.statements().iter().find_map(said)).collect()
}

fn said(said: &Statement) -> Option<Finding> {
    let Statement::ControllerMissing { by, controller } = said else { return None };
    let io = matches!(controller.as_str(), "io" | "blkio") && is_rootless(by);
    io.then(|| not_delegated(&safe(by), PASTE.into(), asker(by)))
}

fn not_delegated(who: &str, source: String, subject: super::Subject) -> Finding {
    Finding {
        confidence: 0.85,
        summary: format!("the io controller is not delegated to the user's session: {who} cannot limit or count I/O"),
        evidence: vec![evidence(Aspect::Limit, "without io", Value::Word(who.to_owned()), source)],
        advice: vec![super::advise::delegate_io(
            "delegate it to users' sessions, then restart user@UID.service: a session that lingers never logs in again",
        )],
        ..finding(RULE.id, subject)
    }
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Statement};
    use quell_units::Gap;

    use crate::findings::Severity;
    use crate::findings::written::{Did, Written};

    fn without_io(path: &str) -> Written {
        let mut host = Written::new();
        host.disk(0, "vda", "/sys/devices/pci0000:00/virtio0/block/vda", Did::default());
        host.cgroup(path, 0.0, &[]).now(path, |cgroup| cgroup.io = Err(Gap::ControllerOff));
        host
    }

    #[test]
    fn what_a_users_session_lacks_is_a_matter_of_delegation_and_on_a_quiet_host_information() {
        let host = without_io("user.slice/user-1000.slice/user@1000.service/app.slice");
        assert_eq!(host.ids(), ["healthy", "io-not-delegated"]);
        assert!(host.findings().iter().all(|finding| finding.severity == Severity::Info));
        assert!(!without_io("system.slice").ids().contains(&"io-not-delegated"));
    }

    #[test]
    fn who_runs_without_root_misses_a_delegation_and_others_the_controller() {
        let says = |by: &str, controller: &str| {
            let mut host = Written::new();
            let missing = Statement::ControllerMissing { by: by.into(), controller: controller.into() };
            host.window.pasted = Some(Box::new(Pasted { statements: vec![missing], ..Pasted::default() }));
            let ids = host.ids();
            (ids.contains(&"io-not-delegated"), ids.contains(&"io-controller-off"))
        };
        assert_eq!(says("crun", "io"), (true, false));
        assert_eq!(says("docker", "io"), (false, true));
        assert_eq!(says("crun", "cpu"), (false, false));
    }
}
