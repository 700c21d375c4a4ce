//! Bundles: the `config.json` that each runtime below hands to runc or crun, as the OCI runtime specification has it.
//!
//! The one state that every engine writes. It names the cgroup, which no other file does, so a container is found here
//! even where its cgroup's path has no shape that tells it.

use quell_engine::snapshot::{AskedDevice, AskedKey, AskedLimit, Container};
use quell_units::{CgroupPath, DevNum};
use serde::{Deserialize, Serialize};

use super::annotations::Annotations;
use super::nameless;
use super::state::{list, noted, read_json};
use crate::gaps::Gaps;
use crate::reader::{Reader, join};

/// Where containerd keeps the bundles of running containers: its own place, that of k3s and RKE2, and
/// MicroK8s'.
const TASK_DIRS: [&[u8]; 3] = [
    b"run/containerd/io.containerd.runtime.v2.task",
    b"run/k3s/containerd/io.containerd.runtime.v2.task",
    b"var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task",
];

/// Where CRI-O keeps those of its containers.
const CRIO_DIR: &[u8] = b"run/containers/storage/overlay-containers";

/// Namespaces of containerd and bundles of one namespace that are listed; a node runs some hundreds of containers.
const NAMESPACES_MAX: usize = 64;
const BUNDLES_MAX: usize = 4_096;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Spec {
    annotations: Option<Annotations>,
    linux: Option<Linux>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Linux {
    cgroups_path: Option<String>,
    resources: Option<Resources>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Resources {
    #[serde(rename = "blockIO")]
    block_io: Option<BlockIo>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct BlockIo {
    weight: Option<u64>,
    weight_device: Vec<OnDevice>,
    throttle_read_bps_device: Vec<OnDevice>,
    throttle_write_bps_device: Vec<OnDevice>,
    #[serde(rename = "throttleReadIOPSDevice")]
    throttle_read_iops_device: Vec<OnDevice>,
    #[serde(rename = "throttleWriteIOPSDevice")]
    throttle_write_iops_device: Vec<OnDevice>,
}

#[derive(Debug, Deserialize, Serialize)]
struct OnDevice {
    major: u32,
    minor: u32,
    #[serde(rename = "rate", alias = "weight")]
    value: Option<u64>,
}

/// One bundle.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) id: String,
    /// The engine that made it.
    runtime: &'static str,
    /// Its directory below the root of the machine.
    dir: Vec<u8>,
    spec: Spec,
}

/// Where a bundle is, before it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) id: String,
    runtime: &'static str,
    dir: Vec<u8>,
}

/// The bundles of containerd's running containers.
pub(super) fn places(reader: &mut Reader, gaps: &mut Gaps) -> Vec<Place> {
    let mut places = Vec::new();
    for tasks in TASK_DIRS {
        for namespace in list(reader, tasks, NAMESPACES_MAX, gaps) {
            // Docker's own namespace.
            let runtime = if namespace == b"moby" { "docker" } else { "containerd" };
            let dir = join(&[tasks, &namespace]);
            let ids = list(reader, &dir, BUNDLES_MAX, gaps).into_iter();
            places.extend(ids.filter_map(|id| {
                let dir = join(&[&dir, &id]);
                Some(Place { id: String::from_utf8(id).ok()?, runtime, dir })
            }));
        }
    }
    places
}

impl Bundle {
    /// Reads a bundle of containerd.
    pub(super) fn read(reader: &mut Reader, place: &Place, gaps: &mut Gaps) -> Option<Self> {
        let path = join(&[&place.dir, b"config.json"]);
        let spec = noted(read_json(reader, &path), "config.json", &path, gaps)?;
        Some(Self { id: place.id.clone(), runtime: place.runtime, dir: place.dir.clone(), spec })
    }

    /// Reads the bundle of a container of CRI-O or podman: at CRI-O's place, else at the one that the store tells.
    pub(super) fn read_stored(
        reader: &mut Reader,
        stored: Option<Vec<u8>>,
        runtime: &'static str,
        id: &str,
        gaps: &mut Gaps,
    ) -> Option<Self> {
        let crio = join(&[CRIO_DIR, id.as_bytes(), b"userdata/config.json"]);
        std::iter::once(crio).chain(stored).find_map(|path| {
            let spec = noted(read_json(reader, &path), "config.json", &path, gaps)?;
            let dir = path.strip_suffix(b"/config.json").unwrap_or(&path).to_vec();
            Some(Self { id: id.to_owned(), runtime, dir, spec })
        })
    }

    /// Whether the bundle names this cgroup: by its path, or by systemd's `SLICE:PREFIX:NAME`.
    pub(super) fn is_of(&self, cgroup: &CgroupPath) -> bool {
        let Some(path) = self.cgroups_path() else { return false };
        let mut parts = path.split(':');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(slice), Some(prefix), Some(name), None) => {
                let unit = if prefix.is_empty() { format!("{name}.scope") } else { format!("{prefix}-{name}.scope") };
                let in_slice = cgroup.parent().is_some_and(|parent| {
                    slice.is_empty() || parent.name() == slice.rsplit('/').next().unwrap_or(slice).as_bytes()
                });
                cgroup.name() == unit.as_bytes() && in_slice
            }
            _ => CgroupPath::new(path.as_bytes()).is_ok_and(|path| !path.is_root() && path == *cgroup),
        }
    }

    /// Where the container's root is mounted.
    pub(super) fn rootfs(&self) -> Vec<u8> {
        join(&[&self.dir, b"rootfs"])
    }

    /// The container that it configures.
    pub(super) fn container(&self, cgroup: &CgroupPath) -> Container {
        let annotations = self.spec.annotations.clone().unwrap_or_default();
        Container {
            name: annotations.name(),
            image: annotations.image(),
            pod: annotations.pod(),
            log_path: annotations.log_path(),
            asked: self.asked(),
            ..nameless(cgroup, self.runtime, &self.id)
        }
    }

    fn cgroups_path(&self) -> Option<&str> {
        self.spec.linux.as_ref()?.cgroups_path.as_deref().filter(|path| !path.is_empty())
    }

    fn asked(&self) -> Vec<AskedLimit> {
        let linux = self.spec.linux.as_ref();
        let Some(io) = linux.and_then(|linux| linux.resources.as_ref()?.block_io.as_ref()) else { return Vec::new() };
        let of_all = io.weight.map(|value| AskedLimit { device: None, key: AskedKey::Weight, value });
        let of_one = [
            (&io.weight_device, AskedKey::Weight),
            (&io.throttle_read_bps_device, AskedKey::ReadBytes),
            (&io.throttle_write_bps_device, AskedKey::WriteBytes),
            (&io.throttle_read_iops_device, AskedKey::ReadIos),
            (&io.throttle_write_iops_device, AskedKey::WriteIos),
        ];
        let of_one = of_one.into_iter().flat_map(|(rows, key)| {
            rows.iter().filter_map(move |row| {
                let device = Some(AskedDevice::Number(DevNum { major: row.major, minor: row.minor }));
                Some(AskedLimit { device, key, value: row.value? })
            })
        });
        of_all.into_iter().chain(of_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cgroups_path: &str, cgroup: &str) -> bool {
        let json = serde_json::json!({ "linux": { "cgroupsPath": cgroups_path } });
        let spec = serde_json::from_value(json).unwrap();
        let bundle = Bundle { id: "box".into(), runtime: "containerd", dir: Vec::new(), spec };
        bundle.is_of(&CgroupPath::new(cgroup.as_bytes()).unwrap())
    }

    #[test]
    fn a_bundle_names_its_cgroup_by_path_or_by_unit() {
        assert!(names("/default/box", "default/box"));
        assert!(names(
            "kubepods-besteffort-pod5f.slice:cri-containerd:box",
            "k.slice/kubepods-besteffort-pod5f.slice/cri-containerd-box.scope"
        ));
        assert!(names("system.slice::box", "system.slice/box.scope"));
        assert!(!names("system.slice:runc:box", "user.slice/runc-box.scope"));
        assert!(!names("", ""));
        assert!(!names("/", ""));
        assert!(!names("../../etc", "etc"));
    }
}
