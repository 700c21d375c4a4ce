//! Containers and pods as their runtimes know them: the names, and what was asked for when they were made.
//!
//! A cgroup's path holds an id at most, so this is read from the runtimes' own state on disk. It is what the runtime was
//! told, not what the kernel does: the limits in force are the cgroup's own. All text is escaped for display and bounded.

use quell_units::{Bytes, CgroupPath, DevNum};
use serde::{Deserialize, Serialize};

/// One container whose runtime's state was found. What the state does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its cgroup.
    pub cgroup: CgroupPath,
    /// Its runtime as people call it: `docker`, `podman`, `containerd`, `crio`.
    pub runtime: String,
    /// Its whole id.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Its image.
    pub image: Option<String>,
    /// The container of a pod that it is.
    pub pod: Option<PodContainer>,
    /// The limits on its I/O that were asked for.
    pub asked: Vec<AskedLimit>,
    /// The directory on the host that holds what it writes outside its volumes.
    pub upper_dir: Option<String>,
    /// The size its writable layer was asked to be held to (docker's `--storage-opt size`).
    pub storage_size: Option<Bytes>,
    /// What takes its output, such as `json-file`.
    pub log_driver: Option<String>,
    /// The file that its output goes to.
    pub log_path: Option<String>,
    /// The size at which that file is begun anew.
    pub log_size_max: Option<Bytes>,
    /// The size of docker's json log now. `None` for any other log, and in a snapshot of counters alone.
    #[serde(default)]
    pub log_size: Option<Bytes>,
}

impl Container {
    /// Whether its output goes to a file that docker never begins anew: a json log that was given no size.
    ///
    /// The kubelet keeps the logs of the other runtimes to a size, and docker's other drivers have one of their own.
    #[must_use]
    pub fn log_grows_without_end(&self) -> bool {
        self.has_json_log() && self.log_size_max.is_none()
    }

    /// Whether its output goes to docker's json log.
    #[must_use]
    pub fn has_json_log(&self) -> bool {
        self.runtime == "docker" && self.log_driver.as_deref() == Some("json-file")
    }
}

/// A container's place in a pod of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodContainer {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name in it; `None` for the one that only holds the pod's namespaces.
    pub container: Option<String>,
}

/// A pod of Kubernetes whose cgroup is known by its uid alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    /// Its cgroup.
    pub cgroup: CgroupPath,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A limit on I/O that a runtime was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedLimit {
    /// The device; `None` for all of them.
    pub device: Option<AskedDevice>,
    /// What is limited.
    pub key: AskedKey,
    /// The limit: bytes or requests per second, or a weight of 10 to 1000.
    pub value: u64,
}

/// A device as a runtime was told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedDevice {
    /// A node, such as `/dev/vda`.
    Node(String),
    /// A number.
    Number(DevNum),
}

/// What a limit that was asked for is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedKey {
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WriteBytes,
    /// Reads per second.
    ReadIos,
    /// Writes per second.
    WriteIos,
    /// The share of the device, in the scale of version 1: 10 to 1000.
    Weight,
}
