//! What a cgroup is to people: a container, a service, or just a cgroup.
//!
//! Told from the path alone, by the shapes that the runtimes give it; `host` will add the names that only the
//! runtimes' own state knows.

use quell_units::{CgroupPath, escape};

/// What a cgroup is to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// A container.
    Container,
    /// A systemd service, scope or slice of the host.
    Unit,
    /// Any other cgroup.
    Cgroup,
}

/// The scopes that runtimes make under systemd: the scope's prefix, and what people call the runtime.
const SCOPES: [(&str, &str); 6] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("crio-", "crio"),
    ("nspawn-", "nspawn"),
    ("lxc-", "lxc"),
];

/// The parents that runtimes use without systemd, and the runtime.
const PARENTS: [(&[u8], &str); 5] = [
    (b"docker", "docker"),
    (b"libpod_parent", "podman"),
    (b"machine", "nspawn"),
    (b"lxc", "lxc"),
    (b"actions_job", "docker"),
];

/// What the cgroup is, and its name as people know it: `docker/1f2e3d4c5b6a`, `unit/nginx.service`, `tenants/etl`.
#[must_use]
pub fn identify(path: &CgroupPath) -> (WorkloadKind, String) {
    match container_name(path) {
        Some(name) => (WorkloadKind::Container, name),
        None => match unit_name(path) {
            Some(unit) => (WorkloadKind::Unit, format!("unit/{unit}")),
            None => (WorkloadKind::Cgroup, path.to_string()),
        },
    }
}

/// Whether the cgroup's name alone says that it is one workload: a container or a service, whatever it makes below.
#[must_use]
pub fn is_whole(path: &CgroupPath) -> bool {
    // A user's own service manager is no workload but a tree of them.
    let is_service = path.name().ends_with(b".service") && !path.name().starts_with(b"user@");
    container_name(path).is_some() || is_service
}

fn container_name(path: &CgroupPath) -> Option<String> {
    let name = escape(path.name());
    if let Some(scope) = name.strip_suffix(".scope") {
        let (prefix, runtime) = SCOPES.iter().find(|(prefix, _)| scope.starts_with(prefix))?;
        return Some(format!("{runtime}/{}", short_id(scope.strip_prefix(prefix)?)));
    }
    let parent = path.parent()?;
    if let Some(container) = name.strip_prefix("lxc.payload.").filter(|_| parent.is_root()) {
        return Some(format!("lxc/{container}"));
    }
    let under_kubelet = || path.components().next().is_some_and(|top| top == b"kubepods");
    if let Some((_, runtime)) = PARENTS.iter().find(|(dir, _)| parent.name() == *dir) {
        return Some(format!("{runtime}/{}", short_id(&name)));
    }
    (under_kubelet() && parent.name().starts_with(b"pod")).then(|| format!("containerd/{}", short_id(&name)))
}

/// The unit of systemd that the cgroup is or lies in.
fn unit_name(path: &CgroupPath) -> Option<String> {
    const SUFFIXES: [&[u8]; 3] = [b".service", b".scope", b".slice"];
    let unit = path.components().rev().find(|part| SUFFIXES.iter().any(|suffix| part.ends_with(suffix)))?;
    // What lies below a scope or slice is a cgroup of somebody's own; below a service it is the service's.
    let is_whole = unit.ends_with(b".service") && !unit.starts_with(b"user@");
    (unit == path.name() || is_whole).then(|| escape(unit).into_owned())
}

/// A container's id as `docker ps` shows it: 12 digits of the 64.
fn short_id(id: &str) -> &str {
    let is_id = id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit());
    if is_id { id.get(..12).unwrap_or(id) } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> (WorkloadKind, String) {
        identify(&CgroupPath::new(path.as_bytes()).unwrap())
    }

    #[test]
    fn containers_are_known_by_the_shapes_of_their_runtimes() {
        use WorkloadKind::Container;
        let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for (path, name) in [
            (format!("system.slice/docker-{id}.scope"), "docker/0123456789ab"),
            (format!("docker/{id}"), "docker/0123456789ab"),
            ("docker/aa11".into(), "docker/aa11"),
            ("lxc.payload.web".into(), "lxc/web"),
            (format!("machine.slice/libpod-{id}.scope"), "podman/0123456789ab"),
            ("kubepods.slice/kubepods-burstable.slice/pod5f.slice/cri-containerd-bb22.scope".into(), "containerd/bb22"),
            (format!("kubepods/burstable/pod5f1c/{id}"), "containerd/0123456789ab"),
        ] {
            assert_eq!(named(&path), (Container, name.to_string()), "{path}");
        }
    }

    #[test]
    fn units_and_other_cgroups_keep_their_names() {
        assert_eq!(named("system.slice/nginx.service"), (WorkloadKind::Unit, "unit/nginx.service".into()));
        assert_eq!(named("system.slice/a.service/worker"), (WorkloadKind::Unit, "unit/a.service".into()));
        assert_eq!(named("user.slice"), (WorkloadKind::Unit, "unit/user.slice".into()));
        assert_eq!(
            named("user.slice/user-0.slice/user@0.service/app.slice/run-1.scope"),
            (WorkloadKind::Unit, "unit/run-1.scope".into())
        );
        assert_eq!(named("user.slice/mine"), (WorkloadKind::Cgroup, "user.slice/mine".into()));
        assert_eq!(named("tenants/etl"), (WorkloadKind::Cgroup, "tenants/etl".into()));
        assert_eq!(named("/"), (WorkloadKind::Cgroup, "/".into()));
    }
}
