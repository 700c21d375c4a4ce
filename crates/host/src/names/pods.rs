//! Kubernetes' logs, whose names tell what each pod and container is called, whatever its runtime.
//!
//! `/var/log/pods/NAMESPACE_POD_UID` is a pod's directory; `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` is a link
//! to a container's log in it. The kubelet makes both.

use std::collections::HashMap;

use quell_engine::snapshot::PodContainer;
use quell_units::escape;

use super::state::{list, text};
use crate::gaps::Gaps;
use crate::reader::{Reader, join};

const PODS: &[u8] = b"var/log/pods";
const CONTAINERS: &[u8] = b"var/log/containers";

/// Entries of one of the two that are looked at: a node has some hundreds of pods.
const ENTRIES_MAX: usize = 16_384;

/// What the names of the logs tell, listed when it is first asked for.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// Names of directories, by the pod's uid.
    pods: Option<HashMap<String, String>>,
    /// Names of links, by the container's id.
    containers: Option<HashMap<String, String>>,
}

impl Logs {
    /// The namespace and name of the pod of this uid.
    pub(super) fn pod(&mut self, reader: &mut Reader, uid: &str, gaps: &mut Gaps) -> Option<(String, String)> {
        let pods = self.pods.get_or_insert_with(|| {
            let names =
                list(reader, PODS, ENTRIES_MAX, gaps).into_iter().filter_map(|name| String::from_utf8(name).ok());
            names.filter_map(|name| Some((name.rsplit_once('_')?.1.to_owned(), name))).collect()
        });
        let dir = pods.get(uid)?;
        // Seen by a recording too: a capture holds the directories that told something.
        reader.open_dir(&join(&[PODS, dir.as_bytes()])).ok()?;
        let mut parts = dir.split('_');
        let (namespace, name) = (parts.next()?, parts.next()?);
        Some((text(namespace)?, text(name)?))
    }

    /// The place in its pod, and the log, of the container of this id.
    pub(super) fn container(
        &mut self,
        reader: &mut Reader,
        id: &str,
        gaps: &mut Gaps,
    ) -> Option<(PodContainer, String)> {
        let containers = self.containers.get_or_insert_with(|| {
            let names =
                list(reader, CONTAINERS, ENTRIES_MAX, gaps).into_iter().filter_map(|name| String::from_utf8(name).ok());
            let with_id = |name: String| Some((name.strip_suffix(".log")?.rsplit_once('-')?.1.to_owned(), name));
            names.filter_map(with_id).collect()
        });
        let link = containers.get(id)?;
        let log = reader.read_link(&join(&[CONTAINERS, link.as_bytes()])).ok()?;
        let mut parts = link.strip_suffix(".log")?.rsplit_once('-')?.0.split('_');
        let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
        let place = PodContainer { namespace: text(namespace)?, pod: text(pod)?, container: text(container) };
        Some((place, text(&escape(&log))?))
    }
}
