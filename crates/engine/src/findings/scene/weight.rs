//! Weights, and the engines that heed them.

use quell_units::{CgroupPath, DevNum};

use super::{Disk, Scene};
use crate::snapshot::CgroupConfig;

/// What divides a disk by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// iocost, by `io.weight`.
    IoCost,
    /// The bfq scheduler, by `io.bfq.weight`.
    Bfq,
}

impl Engine {
    /// The file that holds its weights.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::IoCost => "io.weight",
            Self::Bfq => "io.bfq.weight",
        }
    }

    /// A cgroup's weight for a disk under this engine.
    #[must_use]
    pub fn weight(self, config: &CgroupConfig, dev: DevNum) -> Option<u32> {
        let weights = match self {
            Self::IoCost => &config.io_weight,
            Self::Bfq => &config.bfq_weight,
        };
        weights.as_ref().ok().map(|weights| weights.on(dev))
    }
}

impl Scene<'_> {
    /// The engine at work on a disk.
    #[must_use]
    pub fn engine(&self, disk: &Disk) -> Option<Engine> {
        let qos = self.root_config().and_then(|config| config.cost_qos.as_ref().ok());
        let iocost = qos.is_some_and(|rows| rows.iter().any(|row| row.dev == disk.dev && row.enabled));
        let bfq = disk.scheduler() == Some("bfq");
        if iocost { Some(Engine::IoCost) } else { bfq.then_some(Engine::Bfq) }
    }

    /// How many times the share of another's an engine on the disk gives a cgroup, both being busy: its weight where their
    /// paths part, over the other's there. `None` without an engine.
    #[must_use]
    pub fn advantage(&self, disk: &Disk, of: &CgroupPath, over: &CgroupPath) -> Option<f64> {
        let engine = self.engine(disk)?;
        // What lies below divides its own parent's share alone, and siblings that are idle take nothing of it.
        let first_apart = |path: &CgroupPath, other: &CgroupPath| {
            path.ancestors().take_while(|at| !other.is_within(at)).last().unwrap_or_else(|| path.clone())
        };
        let weight = |path: &CgroupPath| engine.weight(self.config(path)?, disk.dev).map(f64::from);
        Some(weight(&first_apart(of, over))? / weight(&first_apart(over, of))?.max(1.0))
    }
}
