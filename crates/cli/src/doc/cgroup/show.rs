//! `quell.cgroup-show/1`: one cgroup, what reaches it, and every limit that holds it, its ancestors' among them.

use quell_engine::findings::enable;
use quell_engine::hierarchy::{Blocked, Controller, lacks};
use quell_engine::snapshot::{self, Snapshot};
use quell_host::LayerUsage;
use quell_units::{CgroupPath, Known};
use schemars::JsonSchema;
use serde::Serialize;

use super::kept::Kept;
use super::{Cgroup, Counts};
use crate::doc::{Gap, Host};

/// One cgroup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell cgroup show")]
pub struct Document {
    /// `quell.cgroup-show/1`.
    #[schemars(extend("const" = "quell.cgroup-show/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// The cgroup.
    pub cgroup: Cgroup,
    /// The cgroups above it, the root first: each limit of theirs holds it as well.
    pub ancestors: Vec<Cgroup>,
    /// Why io or memory does not reach it, the highest first; empty where both do.
    pub lacks: Vec<Lack>,
    /// What it keeps on the host outside of its volumes; null where it is no container, or its runtime's state was not found.
    pub kept: Option<Kept>,
    /// Its other files, as the kernel prints them.
    pub files: Vec<File>,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
}

/// A cgroup above that does not pass a controller on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Lack {
    /// `io` or `memory`.
    pub controller: &'static str,
    /// The cgroup that does not pass it on; `/` is the root.
    pub at: String,
    /// Why it cannot as it stands; null where `command` is enough.
    pub blocked: Option<String>,
    /// The command that passes it on, where the kernel would take it.
    pub command: Option<String>,
}

/// One file of the cgroup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct File {
    /// Its name.
    pub file: String,
    /// What it says, its lines joined by a space; null where it could not be read.
    pub value: Option<String>,
}

impl Document {
    /// The document of one cgroup with its other files and its writable layer; `None` where it is not there.
    #[must_use]
    pub fn of(
        snapshot: &Snapshot,
        path: &CgroupPath,
        files: Vec<snapshot::Setting>,
        layer: Option<(String, Known<LayerUsage>)>,
    ) -> Option<Self> {
        let counts = Counts::of(snapshot);
        let cgroup = Cgroup::of(snapshot.cgroup(path)?, snapshot, &counts);
        let mut above: Vec<CgroupPath> = path.ancestors().filter(|at| at != path).collect();
        above.sort_by_key(|at| at.as_bytes().len());
        let ancestors = above.iter().filter_map(|at| snapshot.cgroup(at));
        let file = |setting: snapshot::Setting| File { file: setting.file, value: setting.value.ok() };
        Some(Self {
            schema: "quell.cgroup-show/1",
            host: Host::of(&snapshot.host),
            cgroup,
            ancestors: ancestors.map(|above| Cgroup::of(above, snapshot, &counts)).collect(),
            lacks: [Controller::Io, Controller::Memory]
                .into_iter()
                .flat_map(|controller| lacks_of(snapshot, path, controller))
                .collect(),
            kept: snapshot.container(path).and_then(|container| Kept::of(container, layer, snapshot)),
            files: files.into_iter().map(file).collect(),
            gaps: super::gaps(snapshot),
        })
    }
}

fn lacks_of(snapshot: &Snapshot, path: &CgroupPath, controller: Controller) -> Vec<Lack> {
    let told = |lack: quell_engine::hierarchy::Lack| Lack {
        controller: controller.as_str(),
        command: enable(snapshot, &lack.at, path, controller).map(|(set, _)| set).filter(|_| lack.blocked.is_none()),
        blocked: lack.blocked.map(Blocked::told),
        at: lack.at.to_string(),
    };
    lacks(snapshot, path, controller).into_iter().map(told).collect()
}
