//! The share of a disk that each cgroup really gets, from the weights of the whole tree.
//!
//! A weight says nothing alone: it counts against the active siblings on its level, and only where an engine on the disk
//! heeds its file. The scales of systemd and of the container runtimes are turned into the kernel's here and nowhere else;
//! that is what makes one number, "200", a share of two thirds under iocost and of hardly more than a half under bfq.

use std::collections::HashMap;

use quell_units::{CgroupPath, DevNum};

use crate::snapshot::{Cgroup, CgroupConfig, Snapshot};

/// What divides a disk by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// iocost, by `io.weight` (1 to 10000).
    IoCost,
    /// The bfq scheduler, by `io.bfq.weight` (1 to 1000).
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

/// The engines at work on a disk, iocost first: none, one, or both, which is a fault of its own.
///
/// iocost is on where the root's `io.cost.qos` says `enable=1` for the disk; bfq where it is the active scheduler.
#[must_use]
pub fn engines(snapshot: &Snapshot, dev: DevNum) -> Vec<Engine> {
    let root = snapshot.cgroup(&CgroupPath::root()).and_then(|root| root.config.as_deref());
    let qos = root.and_then(|config| config.cost_qos.as_deref().ok()).unwrap_or_default();
    let iocost = qos.iter().any(|row| row.dev == dev && row.enabled);
    let queue = snapshot.device(dev).and_then(|device| device.queue.as_deref());
    let bfq = queue.is_some_and(|queue| queue.scheduler.as_ref().is_ok_and(|scheduler| &*scheduler.active == "bfq"));
    [(iocost, Engine::IoCost), (bfq, Engine::Bfq)].into_iter().filter_map(|(on, engine)| on.then_some(engine)).collect()
}

/// What one cgroup gets of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveShare {
    /// The cgroup.
    pub cgroup: CgroupPath,
    /// Its weight for the disk, in the engine's own scale.
    pub weight: u32,
    /// Its part of the disk while all that are active want more than they get, 0 to 1, with all below it.
    pub share_ratio: f64,
}

/// The part of a disk that each active cgroup gets under an engine: its weight over that of its active siblings, times
/// what its parent gets.
///
/// Rows are in the order of the tree, each with all below it, so that those of one level under one parent make up the
/// parent's. `active` says who competes: with rates, who did I/O on the disk; without, who is populated. An idle sibling
/// takes nothing. The root has no row: it is outside iocost altogether and its I/O is free there, and bfq weighs its
/// processes by their I/O priority. A cgroup without the file has none either: its I/O counts as its parent's.
#[must_use]
pub fn shares(
    snapshot: &Snapshot,
    dev: DevNum,
    engine: Engine,
    active: impl Fn(&Cgroup) -> bool,
) -> Vec<EffectiveShare> {
    let weighed: Vec<(&Cgroup, CgroupPath, u32)> = snapshot
        .cgroups
        .iter()
        .filter_map(|cgroup| {
            let parent = cgroup.path.parent()?;
            let weight = engine.weight(cgroup.config.as_deref()?, dev)?;
            active(cgroup).then_some((cgroup, parent, weight))
        })
        .collect();
    let mut of_siblings: HashMap<&CgroupPath, f64> = HashMap::new();
    for (_, parent, weight) in &weighed {
        *of_siblings.entry(parent).or_default() += f64::from(*weight);
    }
    // The snapshot's order puts a parent before its children.
    let mut gets: HashMap<&CgroupPath, f64> = HashMap::new();
    let mut rows = Vec::with_capacity(weighed.len());
    for (cgroup, parent, weight) in &weighed {
        let above = if parent.is_root() { Some(1.0) } else { gets.get(parent).copied() };
        let Some(above) = above else { continue };
        let all = of_siblings.get(parent).copied().unwrap_or_default();
        let share_ratio = above * quell_units::ratio(f64::from(*weight), all);
        gets.insert(&cgroup.path, share_ratio);
        rows.push(EffectiveShare { cgroup: cgroup.path.clone(), weight: *weight, share_ratio });
    }
    rows
}

/// What systemd writes to `io.bfq.weight` for an `IOWeight=` (1 to 10000).
///
/// Up to 100 the same; above, what is over 100 is mapped from 9900 steps to 900 (`BFQ_WEIGHT` in systemd's
/// `src/core/cgroup.c`, since version 244). `io.weight` takes `IOWeight=` as it is.
#[must_use]
pub const fn bfq_weight_of_systemd(io_weight: u64) -> u64 {
    if io_weight <= 100 { io_weight } else { 100 + (io_weight - 100).saturating_mul(900) / 9900 }
}

/// What runc and crun write to `io.weight` for docker's and podman's `--blkio-weight` (10 to 1000); 0 is none asked.
///
/// Linear from 10..1000 to 1..10000: `1 + (w - 10) * 9999 / 990` (runc's `ConvertBlkIOToIOWeight`, crun's
/// `src/libcrun/cgroup-resources.c`), so that their 100 becomes 910 while the kernel's own default stays at 100. Where
/// `io.bfq.weight` exists both write the weight there as it is, and leave `io.weight` alone.
#[must_use]
pub const fn io_weight_of_runtime(blkio_weight: u64) -> u64 {
    if blkio_weight == 0 { 0 } else { 1 + blkio_weight.saturating_sub(10).saturating_mul(9999) / 990 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_converted_as_their_owners_do() {
        assert_eq!([50, 100, 200, 10_000].map(bfq_weight_of_systemd), [50, 100, 109, 1000]);
        assert_eq!([0, 10, 100, 500, 1000].map(io_weight_of_runtime), [0, 1, 910, 4950, 10_000]);
    }
}
