//! `quell.cgroup-tree/1`: a cgroup and all below it, parents before their children.

use quell_engine::snapshot::Snapshot;
use quell_units::CgroupPath;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Cgroup, Counts};
use crate::doc::{Gap, Host};

/// A cgroup and all below it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell cgroup tree")]
pub struct Document {
    /// `quell.cgroup-tree/1`.
    #[schemars(extend("const" = "quell.cgroup-tree/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// The cgroups, each after its parent.
    pub cgroups: Vec<Node>,
    /// Empty cgroups without limits that were left out.
    pub left_out: usize,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
}

/// One cgroup of the tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Node {
    /// How far below the first one it is.
    pub depth: usize,
    /// It.
    #[serde(flatten)]
    pub cgroup: Cgroup,
}

impl Document {
    /// The tree below a cgroup; without `all`, what is empty and limits nothing is left out.
    #[must_use]
    pub fn of(snapshot: &Snapshot, top: &CgroupPath, all: bool) -> Self {
        let counts = Counts::of(snapshot);
        let below: Vec<_> = snapshot.cgroups.iter().filter(|cgroup| cgroup.path.is_within(top)).collect();
        let is_told = |cgroup: &Cgroup| {
            let is_limited = !cgroup.io_max.is_empty() || !cgroup.io_latency.is_empty();
            all || cgroup.populated != Some(false) || is_limited || cgroup.backlog_bytes.is_some_and(|bytes| bytes > 0)
        };
        let depth_of = |path: &CgroupPath| path.components().count().saturating_sub(top.components().count());
        let nodes = below
            .iter()
            .map(|cgroup| Node { depth: depth_of(&cgroup.path), cgroup: Cgroup::of(cgroup, snapshot, &counts) });
        // A limit below keeps the cgroups above it in the tree.
        let nodes: Vec<Node> = nodes.collect();
        let told: Vec<bool> = nodes.iter().map(|node| is_told(&node.cgroup)).collect();
        let kept = |at: usize| {
            let depth = nodes.get(at).map_or(0, |node| node.depth);
            let mut inside = nodes.iter().zip(&told).skip(at + 1).take_while(|(node, _)| node.depth > depth);
            told.get(at) == Some(&true) || at == 0 || inside.any(|(_, told)| *told)
        };
        let cgroups: Vec<Node> =
            nodes.iter().enumerate().filter(|(at, _)| kept(*at)).map(|(_, node)| node.clone()).collect();
        Self {
            schema: "quell.cgroup-tree/1",
            host: Host::of(&snapshot.host),
            left_out: nodes.len().saturating_sub(cgroups.len()),
            cgroups,
            gaps: super::gaps(snapshot),
        }
    }
}
