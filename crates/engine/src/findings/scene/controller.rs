//! Where the io controller does not reach, and who is meant by that.

use quell_units::{CgroupPath, Gap};

use super::Scene;

impl Scene<'_> {
    /// The lowest populated cgroups that the io controller does not reach.
    #[must_use]
    pub fn without_io(&self) -> Vec<&CgroupPath> {
        let is_off = |path: &CgroupPath| {
            let cgroup = self.cgroup(path);
            cgroup.is_some_and(|cgroup| cgroup.io == Err(Gap::ControllerOff) && cgroup.populated != Ok(false))
        };
        let all: Vec<&CgroupPath> =
            self.workloads.iter().map(|workload| &workload.path).filter(|path| is_off(path)).collect();
        // Those above them hold no work of their own: they are on the way, and the command says so.
        all.iter().copied().filter(|path| !all.iter().any(|other| other != path && other.is_within(path))).collect()
    }
}

/// Whether a cgroup is below a user's own service manager.
pub(in crate::findings) fn is_a_users(path: &CgroupPath) -> bool {
    path.components().any(|part| part.starts_with(b"user@") && part.ends_with(b".service"))
}

/// Whether a program that misses a controller is one that people run without root.
pub(in crate::findings) fn is_rootless(by: &str) -> bool {
    ["crun", "podman", "buildah", "rootless"].iter().any(|word| by.contains(word))
}
