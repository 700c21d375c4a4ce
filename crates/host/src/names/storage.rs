//! The store that podman and CRI-O share: `overlay-containers/containers.json`, one list for all containers.
//!
//! Podman keeps the rest in a database, which is not read; the list has the names, and CRI-O puts the pod into it.

use std::collections::HashMap;

use quell_engine::snapshot::{Container, PodContainer};
use quell_units::{CgroupPath, escape};
use serde::{Deserialize, Serialize};

use super::annotations::pod_of_name;
use super::nameless;
use super::state::{Entry, noted, read_json, text, text_of};
use crate::gaps::Gaps;
use crate::reader::{Reader, join};

/// Where root's containers are stored unless told otherwise.
pub(super) const ROOT: &[u8] = b"var/lib/containers/storage";

/// The drivers that name the folder of the list; nearly every host has the first.
const DRIVERS: [&str; 3] = ["overlay", "vfs", "btrfs"];

/// Containers of the ordinary kind, and those that are gone with their end (`--rm`).
const LISTS: [&[u8]; 2] = [b"containers.json", b"volatile-containers.json"];

#[derive(Debug, Deserialize, Serialize)]
struct Row {
    id: String,
    #[serde(default)]
    names: Option<Vec<String>>,
    #[serde(default)]
    layer: Option<String>,
    /// JSON within JSON, and only the engine's own fields of it are wanted.
    #[serde(default, with = "metadata")]
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    image_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// CRI-O's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_id: Option<String>,
}

/// Metadata is a string of JSON; one that is not is as good as none.
mod metadata {
    use super::Metadata;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Metadata, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    pub(super) fn serialize<S: Serializer>(metadata: &Metadata, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(metadata).unwrap_or_default())
    }
}

/// One store, read once: its containers by id.
#[derive(Debug, Default)]
pub(super) struct Storage {
    /// Its place below the root of the machine.
    root: Vec<u8>,
    driver: &'static str,
    rows: HashMap<String, Row>,
}

impl Storage {
    /// Reads the lists of a store.
    pub(super) fn read(reader: &mut Reader, root: &[u8], gaps: &mut Gaps) -> Self {
        let mut storage = Self { root: root.into(), ..Self::default() };
        for driver in DRIVERS {
            for list in LISTS {
                let path = join(&[root, format!("{driver}-containers").as_bytes(), list]);
                let rows: Option<Vec<Entry<Row>>> = noted(read_json(reader, &path), "containers.json", &path, gaps);
                let rows = rows.into_iter().flatten().filter_map(|row| match row {
                    Entry::Good(row) => Some((row.id.clone(), row)),
                    Entry::Bad(_) => None,
                });
                storage.rows.extend(rows);
            }
            if !storage.rows.is_empty() {
                storage.driver = driver;
                break;
            }
        }
        storage
    }

    /// What the list says of a container.
    pub(super) fn find(&self, id: &str, cgroup: &CgroupPath) -> Option<Container> {
        let row = self.rows.get(id)?;
        let name = row.names.as_ref().and_then(|names| names.first()).or(row.metadata.name.as_ref());
        let pod: Option<PodContainer> = name.and_then(|name| pod_of_name(name));
        let runtime = if pod.is_some() || row.metadata.pod_id.is_some() { "crio" } else { "podman" };
        let layer = row.layer.as_deref().filter(|_| self.driver == "overlay").and_then(text);
        Some(Container {
            name: text_of(name),
            image: text_of(row.metadata.image_name.as_ref()),
            pod,
            upper_dir: layer.map(|layer| format!("/{}/overlay/{layer}/diff", escape(&self.root))),
            ..nameless(cgroup, runtime, id)
        })
    }

    /// Where podman keeps the container's configuration for its runtime.
    pub(super) fn bundle(&self, id: &str) -> Option<Vec<u8>> {
        let dir = format!("{}-containers", self.driver);
        self.rows.contains_key(id).then(|| join(&[&self.root, dir.as_bytes(), id.as_bytes(), b"userdata/config.json"]))
    }
}
