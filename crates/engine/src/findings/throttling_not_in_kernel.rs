//! `throttling-not-in-kernel`: the kernel was built without the limits that somebody asks for.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "throttling-not-in-kernel",
    explain: Explain {
        means: "io.max is not there, so no limit can be set. The kernel was built without block throttling, as those of some \
            virtual machines for containers are; or the io controller is not on for this cgroup.",
        kernel: "io.max and blkio.throttle.* exist with CONFIG_BLK_DEV_THROTTLING only. io.stat needs no more than the io \
            controller, so that a cgroup with io.stat and without io.max has such a kernel.",
        evidence: "A file of limits that was not found on a host of its own version of cgroups, or a runtime that says that \
            the kernel has no throttling.",
        change: "Boot a kernel with CONFIG_BLK_DEV_THROTTLING=y. Until then only weights (iocost, bfq) or the program's own \
            rate limit can hold it.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    // A runtime that misses the controller itself says nothing of the kernel.
    let off = scene.statements().iter().any(|said| matches!(said, Statement::ControllerMissing { .. }));
    if off {
        return Vec::new();
    }
    scene.statements().iter().find_map(|said| absent(scene, said)).into_iter().collect()
}

fn absent(scene: &Scene, said: &Statement) -> Option<Finding> {
    let (by, what) = match said {
        Statement::Refused { by, file, refusal: Refusal::NoFile, .. } if is_there(scene, file) => (by, file),
        Statement::KnobMissing { by, knob } if knob.contains("throttle") || knob.contains("io.max") => (by, knob),
        _ => return None,
    };
    let what = safe(what);
    Some(Finding {
        // A controller that is off for the cgroup looks the same from here.
        confidence: 0.6,
        summary: format!("{what} is not there: this kernel has no block throttling, or the io controller is off here"),
        evidence: vec![evidence(Aspect::Limit, "not found", Value::Word(what), PASTE)],
        advice: vec![
            super::advise::look(
                "look what the kernel was built with",
                Some(
                    "zgrep BLK_DEV_THROTTLING /proc/config.gz || grep BLK_DEV_THROTTLING /boot/config-$(uname -r)"
                        .into(),
                ),
            ),
            super::advise::look(
                "and whether the io controller is there and passed on",
                Some("cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/cgroup.subtree_control".into()),
            ),
            Advice::text("without throttling use a weight: bfq on the disk, or iocost where the kernel has it"),
        ],
        ..finding(RULE.id, asker(by))
    })
}

/// Whether the file belongs to the version of cgroups that the host has, so that its absence is the kernel's.
fn is_there(scene: &Scene, file: &str) -> bool {
    match file {
        "io.max" => scene.cgroup_version() != Some(1),
        _ => file.starts_with("blkio.throttle.") && scene.cgroup_version() == Some(1),
    }
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};

    use crate::findings::written::Written;

    fn says(statements: Vec<Statement>) -> bool {
        let mut host = Written::new();
        host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
        host.ids().contains(&"throttling-not-in-kernel")
    }

    fn not_found(file: &str) -> Statement {
        let (by, file) = ("docker".into(), file.into());
        Statement::Refused { by, file, path: None, dev: None, value: None, refusal: Refusal::NoFile }
    }

    #[test]
    fn a_missing_io_max_is_the_kernels_unless_the_controller_is_said_to_be_off() {
        assert!(says(vec![not_found("io.max")]));
        let missing = Statement::ControllerMissing { by: "crun".into(), controller: "io".into() };
        assert!(!says(vec![not_found("io.max"), missing]));
    }

    #[test]
    fn a_file_of_the_other_version_is_not_the_kernels_fault() {
        assert!(!says(vec![not_found("blkio.throttle.read_bps_device")]));
        assert!(says(vec![not_found("blkio.throttle.read_bps_device"), Statement::CgroupVersion(1)]));
        assert!(!says(vec![not_found("io.weight")]));
    }
}
