//! What a cgroup is to people: a container, a pod, a service, or just a cgroup.
//!
//! Two sources, and the better one wins: the names that the runtimes' own state gave to the snapshot, else the shapes
//! that the runtimes give to a path, which hold an id at most. So a container whose state cannot be read is still a
//! container, by its id.

use std::borrow::Cow;

use quell_units::{CgroupPath, escape, unescape};

use crate::snapshot::{Container, Snapshot};

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

/// What a path alone tells of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The runtime as people call it: `docker`, `podman`, `lxc`, `slurm`.
    pub runtime: &'static str,
    /// The id or name that the path holds, whole and safe to print.
    pub id: String,
}

/// What the root cgroup is to people where its I/O is told: no cgroup of theirs, but the kernel's own threads.
pub const KERNEL: &str = "the kernel (root cgroup)";

/// The scopes that runtimes make under systemd: the scope's prefix, and what people call the runtime.
const SCOPES: [(&str, &str); 7] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "crio"),
    ("nspawn-", "nspawn"),
    ("lxc-", "lxc"),
];

/// The parents that runtimes use without systemd, and the runtime.
const PARENTS: [(&[u8], &str); 4] =
    [(b"docker", "docker"), (b"machine", "nspawn"), (b"lxc", "lxc"), (b"actions_job", "docker")];

/// What the cgroup is, and its name as people know it: `docker/mysql`, `pod/shop/cart/web`, `unit/nginx.service`,
/// `tenants/etl`. Safe to print.
#[must_use]
pub fn identify(path: &CgroupPath, snapshot: &Snapshot) -> (WorkloadKind, String) {
    if let Some(container) = snapshot.container(path) {
        return (WorkloadKind::Container, name_of(container));
    }
    if let Some(pod) = snapshot.pod(path) {
        return (WorkloadKind::Cgroup, format!("pod/{}/{}", pod.namespace, pod.name));
    }
    if let Some(shape) = container_shape(path) {
        return (WorkloadKind::Container, format!("{}/{}", shape.runtime, short_id(&shape.id)));
    }
    match unit_name(path) {
        Some(unit) => (WorkloadKind::Unit, format!("unit/{unit}")),
        None => (WorkloadKind::Cgroup, path.to_string()),
    }
}

/// Whether the cgroup is one workload, whatever it makes below: a container or a service.
#[must_use]
pub fn is_whole(path: &CgroupPath, snapshot: &Snapshot) -> bool {
    // A user's own service manager is no workload but a tree of them.
    let is_service = path.name().ends_with(b".service") && !path.name().starts_with(b"user@");
    is_service || snapshot.container(path).is_some() || container_shape(path).is_some()
}

/// The workload that a cgroup belongs to: the container or service it lies in, else the cgroup itself.
#[must_use]
pub fn workload_of(path: &CgroupPath, snapshot: &Snapshot) -> CgroupPath {
    path.ancestors().filter(|path| is_whole(path, snapshot)).last().unwrap_or_else(|| path.clone())
}

/// What the path alone tells of the container, machine or batch job that the cgroup is.
#[must_use]
pub fn container_shape(path: &CgroupPath) -> Option<Shape> {
    let name = escape(path.name());
    let parent = path.parent()?;
    scope_shape(&name, parent.name()).or_else(|| job_shape(&name, path)).or_else(|| {
        let lxc = name.strip_prefix("lxc.payload.").map(|name| ("lxc", name));
        // Podman's own supervisors and pods lie beside its containers.
        let podman = || name.strip_prefix("libpod-").filter(|id| !is_supervisor(id)).map(|id| ("podman", id));
        let by_parent = || {
            let (_, runtime) = PARENTS.iter().find(|(dir, _)| parent.name() == *dir)?;
            Some((*runtime, &*name))
        };
        let (runtime, id) =
            lxc.or_else(podman).or_else(by_parent).or_else(|| pod_container(&name, path, parent.name()))?;
        Some(Shape { runtime, id: id.to_owned() })
    })
}

/// The uid of the pod whose cgroup this is, with dashes whatever the driver writes.
#[must_use]
pub fn pod_uid(path: &CgroupPath) -> Option<String> {
    if !is_under_kubelet(path) {
        return None;
    }
    let name = std::str::from_utf8(path.name()).ok()?;
    // `kubepods-burstable-pod8a5f1c2e_77aa.slice`, `kubepods-pod8a5f.slice`, `pod8a5f1c2e-77aa`.
    let uid = match name.strip_suffix(".slice") {
        Some(slice) => slice.rsplit_once("-pod").map(|(_, uid)| uid.replace('_', "-")),
        None => name.strip_prefix("pod").map(str::to_owned),
    };
    uid.filter(|uid| !uid.is_empty() && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

/// A container's id as `docker ps` shows it: 12 digits of the 64.
#[must_use]
pub fn short_id(id: &str) -> &str {
    if is_id(id) { id.get(..12).unwrap_or(id) } else { id }
}

/// Whether this is an id as docker, podman and the kubelet's runtimes make them: 64 hexadecimal digits.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The name by which people know a container.
fn name_of(container: &Container) -> String {
    match (&container.pod, &container.name) {
        (Some(pod), _) => {
            // What holds the pod's namespaces has no name of its own; its image is called so everywhere.
            let inside = pod.container.as_deref().unwrap_or("pause");
            format!("pod/{}/{}/{inside}", pod.namespace, pod.pod)
        }
        (None, Some(name)) => format!("{}/{name}", container.runtime),
        (None, None) => format!("{}/{}", container.runtime, short_id(&container.id)),
    }
}

/// A scope or service of systemd that holds a container or a machine.
fn scope_shape(name: &str, parent: &[u8]) -> Option<Shape> {
    if let Some(machine) = name.strip_prefix("systemd-nspawn@").and_then(|name| name.strip_suffix(".service")) {
        return Some(Shape { runtime: "nspawn", id: unit_text(machine).into_owned() });
    }
    let scope = name.strip_suffix(".scope")?;
    if let (Some(machine), b"machine.slice") = (scope.strip_prefix("machine-"), parent) {
        return Some(Shape { runtime: "machine", id: unit_text(machine).into_owned() });
    }
    let (runtime, id) =
        SCOPES.iter().find_map(|(prefix, runtime)| scope.strip_prefix(prefix).map(|id| (*runtime, id)))?;
    (!is_supervisor(id)).then(|| Shape { runtime, id: id.to_owned() })
}

/// A job of Slurm: `slurm/uid_0/job_42` in version 1, `system.slice/slurmstepd.scope/job_42` in version 2.
fn job_shape(name: &str, path: &CgroupPath) -> Option<Shape> {
    let number = name.strip_prefix("job_")?;
    let of_slurm = |part: &[u8]| part.starts_with(b"slurm") || part.ends_with(b"slurmstepd.scope");
    let is_job = !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
        && path.components().rev().skip(1).any(of_slurm);
    is_job.then(|| Shape { runtime: "slurm", id: name.to_owned() })
}

/// A container in a pod of a kubelet that does without systemd. Which runtime made it is told by CRI-O alone.
fn pod_container<'a>(name: &'a str, path: &CgroupPath, parent: &[u8]) -> Option<(&'static str, &'a str)> {
    if !parent.starts_with(b"pod") || !is_under_kubelet(path) {
        return None;
    }
    match name.strip_prefix("crio-") {
        Some(id) => (!is_supervisor(id)).then_some(("crio", id)),
        None => Some(("containerd", name)),
    }
}

fn is_under_kubelet(path: &CgroupPath) -> bool {
    path.components().any(|part| part == b"kubepods" || part == b"kubepods.slice" || part.ends_with(b"-kubepods.slice"))
}

/// Whether what follows a runtime's prefix is its supervisor of a container and not the container.
fn is_supervisor(id: &str) -> bool {
    id == "conmon" || id.starts_with("conmon-")
}

/// A name as it was before systemd escaped it for a unit: `qemu\x2d1\x2dweb` is `qemu-1-web`.
fn unit_text(name: &str) -> Cow<'_, str> {
    match unescape(name) {
        Some(bytes) if name.contains('\\') => Cow::Owned(escape(&bytes).into_owned()),
        _ => Cow::Borrowed(name),
    }
}

/// The unit of systemd that the cgroup is or lies in.
fn unit_name(path: &CgroupPath) -> Option<String> {
    const SUFFIXES: [&[u8]; 3] = [b".service", b".scope", b".slice"];
    let unit = path.components().rev().find(|part| SUFFIXES.iter().any(|suffix| part.ends_with(suffix)))?;
    // What lies below a scope or slice is a cgroup of somebody's own; below a service it is the service's.
    let is_whole = unit.ends_with(b".service") && !unit.starts_with(b"user@");
    (unit == path.name() || is_whole).then(|| escape(unit).into_owned())
}

/// A container of which a test says the rest.
#[cfg(test)]
pub(super) fn container(cgroup: &str) -> Container {
    Container {
        cgroup: CgroupPath::new(cgroup.as_bytes()).unwrap(),
        runtime: "docker".into(),
        id: "0123456789abcdef".repeat(4),
        name: None,
        image: None,
        pod: None,
        asked: Vec::new(),
        upper_dir: None,
        storage_size: None,
        log_driver: None,
        log_path: None,
        log_size_max: None,
        log_size: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::Written;
    use crate::snapshot::{Pod, PodContainer};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn path(text: &str) -> CgroupPath {
        CgroupPath::new(text.as_bytes()).unwrap()
    }

    fn named(text: &str) -> (WorkloadKind, String) {
        identify(&path(text), &Written::new().window.t1)
    }

    #[test]
    fn containers_are_known_by_the_shapes_of_their_runtimes() {
        use WorkloadKind::Container;
        for (path, name) in [
            (format!("system.slice/docker-{ID}.scope"), "docker/0123456789ab"),
            (format!("docker/{ID}"), "docker/0123456789ab"),
            ("docker/aa11".into(), "docker/aa11"),
            ("lxc.payload.web".into(), "lxc/web"),
            ("lxc/101".into(), "lxc/101"),
            (format!("machine.slice/libpod-{ID}.scope"), "podman/0123456789ab"),
            (format!("libpod_parent/libpod-{ID}"), "podman/0123456789ab"),
            (
                format!("user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"),
                "podman/0123456789ab",
            ),
            ("kubepods.slice/kubepods-burstable.slice/pod5f.slice/cri-containerd-bb22.scope".into(), "containerd/bb22"),
            (format!("kubepods/burstable/pod5f1c/{ID}"), "containerd/0123456789ab"),
            (format!("kubepods/besteffort/pod5f1c/crio-{ID}"), "crio/0123456789ab"),
            ("slurm/uid_1000/job_42".into(), "slurm/job_42"),
            ("system.slice/slurmstepd.scope/job_42".into(), "slurm/job_42"),
            ("machine.slice/machine-qemu\\x2d1\\x2dweb.scope".into(), "machine/qemu-1-web"),
            ("machine.slice/systemd-nspawn@web.service".into(), "nspawn/web"),
        ] {
            assert_eq!(named(&path), (Container, name.to_string()), "{path}");
        }
    }

    #[test]
    fn supervisors_pods_and_steps_are_no_containers() {
        for text in [
            &format!("machine.slice/libpod-conmon-{ID}.scope"),
            &format!("kubepods.slice/kubepods-pod5f.slice/crio-conmon-{ID}.scope"),
            &format!("libpod_parent/{ID}"),
            "libpod_parent/conmon",
            "system.slice/slurmstepd.scope/job_42/step_0",
            "batch/job_42",
            "kubepods/burstable/pod5f1c",
        ] {
            assert_eq!(container_shape(&path(text)), None, "{text}");
        }
    }

    #[test]
    fn a_pod_is_the_same_under_both_drivers() {
        let uid = "8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e";
        for text in [
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8a5f1c2e_77aa_4b6c_9d0e_1f2a3b4c5d6e.slice",
            "kubepods.slice/kubepods-pod8a5f1c2e_77aa_4b6c_9d0e_1f2a3b4c5d6e.slice",
            "kubepods/besteffort/pod8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e",
        ] {
            assert_eq!(pod_uid(&path(text)).as_deref(), Some(uid), "{text}");
        }
        for text in ["kubepods.slice", "kubepods.slice/kubepods-burstable.slice", "acme/pod8a5f1c2e", "kubepods/pod"] {
            assert_eq!(pod_uid(&path(text)), None, "{text}");
        }
    }

    #[test]
    fn the_names_of_the_runtimes_win_over_the_shapes() {
        let mut snapshot = Written::new().window.t1;
        let (plain, of_pod, pause) = (format!("docker/{ID}"), "kubepods/pod5f/a", "kubepods/pod5f/b");
        let place = |container| PodContainer { namespace: "shop".into(), pod: "cart".into(), container };
        snapshot.containers = vec![
            Container { name: Some("mysql".into()), ..container(&plain) },
            Container { name: Some("x".into()), pod: Some(place(Some("web".into()))), ..container(of_pod) },
            Container { pod: Some(place(None)), ..container(pause) },
            container(&format!("tenants/{ID}")),
        ];
        snapshot.pods = vec![Pod { cgroup: path("kubepods/pod5f"), namespace: "shop".into(), name: "cart".into() }];
        for (text, name) in [
            (plain.as_str(), "docker/mysql"),
            (of_pod, "pod/shop/cart/web"),
            (pause, "pod/shop/cart/pause"),
            ("kubepods/pod5f", "pod/shop/cart"),
            (&format!("tenants/{ID}"), "docker/0123456789ab"),
        ] {
            assert_eq!(identify(&path(text), &snapshot).1, name);
        }
        assert!(is_whole(&path(&format!("tenants/{ID}")), &snapshot), "no shape tells it, the state does");
        assert!(!is_whole(&path("kubepods/pod5f"), &snapshot), "a pod is cut at its containers");
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
