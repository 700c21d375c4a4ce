//! `/proc/PID/cgroup`: the cgroups of a process, `ID:CONTROLLERS:PATH` a hierarchy.
//!
//! Read from inside a cgroup namespace, a process outside it has a path like `/../other`. Such a path names nothing
//! under the root that quell can read, so the line is lost and not resolved.

use quell_units::CgroupPath;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// Where a process belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidCgroup {
    /// Its cgroup in the v2 hierarchy (`0::`); `None` where that is not mounted.
    pub unified: Option<CgroupPath>,
    /// Whether the v2 cgroup was removed while the process, a zombie, is still in it.
    pub unified_deleted: bool,
    /// Its cgroups in v1 hierarchies, by their controllers as printed: `blkio`, `cpu,cpuacct`, `name=systemd`.
    pub v1: Vec<(Box<str>, CgroupPath)>,
}

impl PidCgroup {
    /// Its cgroup in the v1 hierarchy of a controller.
    #[must_use]
    pub fn v1_of(&self, controller: &str) -> Option<&CgroupPath> {
        let (_, path) = self.v1.iter().find(|(controllers, _)| controllers.split(',').any(|c| c == controller))?;
        Some(path)
    }
}

/// What the kernel appends to the path of a removed cgroup.
const DELETED: &[u8] = b" (deleted)";

/// Parses `/proc/PID/cgroup`.
///
/// A cgroup whose own name ends in ` (deleted)` cannot be told from a removed one.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<PidCgroup> {
    scan::fold(bytes, add)
}

fn add(cgroup: &mut PidCgroup, line: &[u8]) -> Result<(), &'static str> {
    const FORM: &str = "ID:CONTROLLERS:/PATH, the path without . or ..";
    // The path comes last and may hold colons itself.
    let (id, rest) = scan::split_once(line, b':').ok_or(FORM)?;
    let (controllers, path) = scan::split_once(rest, b':').ok_or(FORM)?;
    scan::number(id).filter(|_| path.starts_with(b"/")).ok_or(FORM)?;
    if controllers.is_empty() {
        let live = path.strip_suffix(DELETED);
        cgroup.unified = Some(CgroupPath::new(live.unwrap_or(path)).map_err(|_| FORM)?);
        cgroup.unified_deleted = live.is_some();
    } else {
        let controllers = std::str::from_utf8(controllers).map_err(|_| FORM)?;
        cgroup.v1.push((controllers.into(), CgroupPath::new(path).map_err(|_| FORM)?));
    }
    Ok(())
}

/// The file as the kernel prints it; the ids of v1 hierarchies, which nobody uses, are counted down to 1.
#[must_use]
pub fn render(cgroup: &PidCgroup) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |id: usize, controllers: &str, path: &CgroupPath, end: &[u8]| {
        out.extend(format!("{id}:{controllers}:/").into_bytes());
        out.extend_from_slice(path.as_bytes());
        out.extend_from_slice(end);
        out.push(b'\n');
    };
    for ((controllers, path), id) in cgroup.v1.iter().zip((1..=cgroup.v1.len()).rev()) {
        line(id, controllers, path, b"");
    }
    if let Some(path) = &cgroup.unified {
        line(0, "", path, if cgroup.unified_deleted { DELETED } else { b"" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> CgroupPath {
        CgroupPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_hybrid_host_has_both_versions() {
        let text = b"4:blkio:/docker/aa11\n3:cpu,cpuacct:/\n1:name=systemd:/a:b\n0::/init.scope\n";
        let parsed = parse(text);
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value.unified, Some(path("init.scope")));
        assert_eq!(parsed.value.v1_of("blkio"), Some(&path("docker/aa11")));
        assert_eq!(parsed.value.v1_of("cpuacct"), Some(&CgroupPath::root()));
        assert_eq!(parsed.value.v1_of("name=systemd"), Some(&path("a:b")));
        assert_eq!(parsed.value.v1_of("cpu,cpuacct"), None);
        assert_eq!(parse(&render(&parsed.value)).value, parsed.value);
    }

    #[test]
    fn a_removed_cgroup_is_marked() {
        let parsed = parse(b"0::/a/b (deleted)\n");
        assert_eq!((parsed.value.unified, parsed.value.unified_deleted), (Some(path("a/b")), true));
    }

    #[test]
    fn a_path_outside_the_namespace_is_lost_alone() {
        let parsed = parse(b"3:memory:/\n0::/../other\n");
        assert_eq!((parsed.value.unified, parsed.value.v1.len(), parsed.lost.lines), (None, 1, 1));
    }
}
