//! What a container keeps on the host outside of its volumes: its log, and its writable layer.

use quell_engine::settings::layer_quota;
use quell_engine::snapshot::{self, Snapshot};
use quell_host::LayerUsage;
use quell_units::{Bytes, Gap, Known};
use schemars::JsonSchema;
use serde::Serialize;

use crate::doc::devices::quota_word;

/// What a container keeps on the host outside of its volumes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Kept {
    /// Where its output goes; null where its runtime does not tell.
    pub log: Option<Log>,
    /// Where it writes outside of its volumes; null where that is not known, or no overlay.
    pub writable_layer: Option<Layer>,
}

/// A container's log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Log {
    /// What takes its output, such as `json-file`; null where its runtime does not tell.
    pub driver: Option<String>,
    /// The file it goes to.
    pub path: Option<String>,
    /// The size of docker's json log now; null for any other, and where it is not known.
    pub size_bytes: Option<u64>,
    /// The size at which docker begins it anew; null where none was given.
    pub size_max_bytes: Option<u64>,
    /// Whether something keeps it to a size; null where that is not known.
    pub rotated: Option<bool>,
}

/// A container's writable layer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Layer {
    /// The directory on the host.
    pub upper_dir: String,
    /// The space that its files take; a bound on the count makes it the least that they take. Null where it was not read.
    pub used_bytes: Option<u64>,
    /// Its files, directories and marks of deletion; the least that there are where the count was cut.
    pub inodes: Option<u64>,
    /// Whether a bound of entries or of time cut the count: then there is more.
    pub cut: bool,
    /// Why it was not counted; null where it was.
    pub not_counted: Option<String>,
    /// The size it was asked to be held to (`--storage-opt size`); null where none was.
    pub size_asked_bytes: Option<u64>,
    /// `holds`, `counted-only`, `off`, `other-filesystem` or `unseen`: whether storage-opt size can hold here.
    pub quota: &'static str,
    /// What to know about that.
    pub quota_told: &'static str,
}

impl Kept {
    /// What is known of a container; `layer` is the directory of its writable layer, links followed, and what is in it.
    #[must_use]
    pub fn of(
        container: &snapshot::Container,
        layer: Option<(String, Known<LayerUsage>)>,
        snapshot: &Snapshot,
    ) -> Option<Self> {
        let kept =
            Self { log: Log::of(container), writable_layer: layer.map(|layer| Layer::of(container, layer, snapshot)) };
        (kept.log.is_some() || kept.writable_layer.is_some()).then_some(kept)
    }
}

impl Log {
    fn of(container: &snapshot::Container) -> Option<Self> {
        let snapshot::Container { log_driver, log_path, log_size, log_size_max, .. } = container;
        if log_driver.is_none() && log_path.is_none() {
            return None;
        }
        let rotated = match log_driver.as_deref() {
            Some("json-file") if container.has_json_log() => Some(!container.log_grows_without_end()),
            Some("local") => Some(true),
            // The kubelet begins the logs of its own runtimes anew, whatever their path.
            None if container.pod.is_some() => Some(true),
            _ => None,
        };
        Some(Self {
            driver: log_driver.clone(),
            path: log_path.clone().filter(|path| !path.is_empty()),
            size_bytes: log_size.map(Bytes::get),
            size_max_bytes: log_size_max.map(Bytes::get),
            rotated,
        })
    }
}

impl Layer {
    fn of(container: &snapshot::Container, layer: (String, Known<LayerUsage>), snapshot: &Snapshot) -> Self {
        let (upper_dir, usage) = layer;
        let quota = layer_quota(&upper_dir, snapshot);
        Self {
            used_bytes: usage.ok().map(|usage| usage.used.get()),
            inodes: usage.ok().map(|usage| usage.inodes),
            cut: usage.is_ok_and(|usage| usage.cut),
            not_counted: usage.err().map(|reason| match reason {
                // As in every capture: it holds none of a container's files.
                Gap::NotInKernel | Gap::Gone => "it is not there".into(),
                reason => reason.to_string(),
            }),
            size_asked_bytes: container.storage_size.map(Bytes::get),
            quota: quota_word(quota),
            quota_told: quota.as_str(),
            upper_dir,
        }
    }
}
