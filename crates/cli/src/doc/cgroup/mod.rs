//! Cgroups, as `quell cgroup tree` and `quell cgroup show` tell them.

pub mod kept;
pub mod show;
pub mod tree;

use std::collections::HashMap;

use quell_engine::hierarchy::{backlog, controller_words, processes, type_told, type_word};
use quell_engine::identity::identify;
use quell_engine::shares;
use quell_engine::snapshot::{self, CgroupConfig, Snapshot};
use quell_units::{Bytes, CgroupPath, DevNum, Known, Limit};
use schemars::JsonSchema;
use serde::Serialize;

/// One cgroup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cgroup {
    /// Its name as people know it, and as a target is asked for.
    pub name: String,
    /// Its path below the cgroup root; bytes that are no UTF-8 are `\xNN`.
    pub cgroup: String,
    /// The inode of its directory.
    pub cgroup_id: u64,
    /// `domain`, `domain threaded`, `domain invalid` or `threaded`; null for the root, and in version 1.
    #[serde(rename = "type")]
    pub kind: Option<&'static str>,
    /// What that means.
    pub type_told: Option<&'static str>,
    /// The controllers it has; null where there is no such thing.
    pub controllers: Option<Vec<&'static str>>,
    /// The controllers it gives to its children.
    pub subtree_control: Option<Vec<&'static str>>,
    /// How many children it has.
    pub children: usize,
    /// The processes in it, its descendants' left out; null where processes were not read.
    pub processes: Option<usize>,
    /// Whether a process is in it or below.
    pub populated: Option<bool>,
    /// Its ceilings, a row a device.
    pub io_max: Vec<IoMax>,
    /// Its weight under iocost.
    pub io_weight: Option<u32>,
    /// Its weight under bfq.
    pub io_bfq_weight: Option<u32>,
    /// What it gets of each disk where something heeds weights; a weight does nothing anywhere else.
    pub shares: Vec<Share>,
    /// Its latency targets, a row a device.
    pub io_latency: Vec<IoLatency>,
    /// Memory charged to it.
    pub memory_bytes: Option<u64>,
    /// `memory.max`; null where there is none or it is not known.
    pub memory_max_bytes: Option<u64>,
    /// `memory.high`; null where there is none or it is not known.
    pub memory_high_bytes: Option<u64>,
    /// What of its files is dirty or under write-back.
    pub backlog_bytes: Option<u64>,
    /// The time in which at least one of its tasks was stalled on I/O, since it was made.
    pub io_some_usec: Option<u64>,
    /// The time in which all of its tasks were.
    pub io_full_usec: Option<u64>,
}

/// The ceilings of a cgroup on one device; null is none.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IoMax {
    /// The device.
    pub device: String,
    /// Its number.
    pub dev: String,
    /// Bytes read a second.
    pub read_bytes_per_sec: Option<u64>,
    /// Bytes written a second.
    pub write_bytes_per_sec: Option<u64>,
    /// Reads a second.
    pub read_ios_per_sec: Option<u64>,
    /// Writes a second.
    pub write_ios_per_sec: Option<u64>,
}

/// The latency target of a cgroup on one device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IoLatency {
    /// The device.
    pub device: String,
    /// Its number.
    pub dev: String,
    /// The target.
    pub target_usec: u64,
}

/// What the weights of the tree make of one disk for one cgroup.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Share {
    /// The disk.
    pub device: String,
    /// Its number.
    pub dev: String,
    /// The file that its engine heeds: `io.weight` is iocost's, `io.bfq.weight` bfq's.
    pub heeds: &'static str,
    /// The cgroup's weight there.
    pub weight: u32,
    /// The part of the disk that it gets with all below it, while all that have processes want more than they get.
    pub share_ratio: f64,
}

/// The shares of every cgroup with processes, on every disk where something heeds weights.
fn shares(snapshot: &Snapshot) -> HashMap<CgroupPath, Vec<Share>> {
    let mut of: HashMap<CgroupPath, Vec<Share>> = HashMap::new();
    for device in snapshot.devices.iter().filter(|device| device.partition_of.is_none()) {
        for engine in shares::engines(snapshot, device.dev) {
            let active = |cgroup: &snapshot::Cgroup| cgroup.populated != Ok(false);
            for row in shares::shares(snapshot, device.dev, engine, active) {
                of.entry(row.cgroup).or_default().push(Share {
                    device: device.name.to_string(),
                    dev: device.dev.to_string(),
                    heeds: engine.file(),
                    weight: row.weight,
                    share_ratio: row.share_ratio,
                });
            }
        }
    }
    of
}

/// What is counted once for all cgroups.
struct Counts<'s> {
    processes: HashMap<&'s CgroupPath, usize>,
    children: HashMap<CgroupPath, usize>,
    shares: HashMap<CgroupPath, Vec<Share>>,
}

impl<'s> Counts<'s> {
    fn of(snapshot: &'s Snapshot) -> Self {
        let mut children = HashMap::new();
        for parent in snapshot.cgroups.iter().filter_map(|cgroup| cgroup.path.parent()) {
            *children.entry(parent).or_insert(0) += 1;
        }
        Self { processes: processes(snapshot), children, shares: shares(snapshot) }
    }
}

impl Cgroup {
    fn of(cgroup: &snapshot::Cgroup, snapshot: &Snapshot, counts: &Counts) -> Self {
        let config = cgroup.config.as_deref();
        let kind = config.and_then(|config| config.kind.ok());
        let pressure = cgroup.io_pressure.as_ref().ok();
        Self {
            name: identify(&cgroup.path, snapshot).1,
            cgroup: cgroup.path.to_string(),
            cgroup_id: cgroup.id.0,
            kind: kind.map(type_word),
            type_told: kind.map(type_told),
            controllers: config.and_then(|config| config.controllers.as_ref().ok()).map(controller_words),
            subtree_control: config.and_then(|config| config.subtree_control.as_ref().ok()).map(controller_words),
            children: counts.children.get(&cgroup.path).copied().unwrap_or(0),
            processes: (!snapshot.tasks.is_empty()).then(|| counts.processes.get(&cgroup.path).copied().unwrap_or(0)),
            populated: cgroup.populated.ok(),
            io_max: config.map(|config| io_max(config, snapshot)).unwrap_or_default(),
            io_weight: config.and_then(|config| config.io_weight.as_ref().ok()).map(|weights| weights.default),
            io_bfq_weight: config.and_then(|config| config.bfq_weight.as_ref().ok()).map(|weights| weights.default),
            shares: counts.shares.get(&cgroup.path).cloned().unwrap_or_default(),
            io_latency: config.map(|config| io_latency(config, snapshot)).unwrap_or_default(),
            memory_bytes: cgroup.memory.ok().map(Bytes::get),
            memory_max_bytes: config.and_then(|config| at(config.memory_max)),
            memory_high_bytes: config.and_then(|config| at(config.memory_high)),
            backlog_bytes: backlog(cgroup).map(Bytes::get),
            io_some_usec: pressure.map(|pressure| pressure.some_usec.get()),
            io_full_usec: pressure.and_then(|pressure| pressure.full_usec).map(|full| full.get()),
        }
    }
}

fn at(limit: Known<Limit<Bytes>>) -> Option<u64> {
    limit.ok()?.at().map(Bytes::get)
}

fn io_max(config: &CgroupConfig, snapshot: &Snapshot) -> Vec<IoMax> {
    let rows = config.io_max.as_deref().unwrap_or_default();
    let rows = rows.iter().map(|row| IoMax {
        device: name_of(row.dev, snapshot),
        dev: row.dev.to_string(),
        read_bytes_per_sec: row.read_bytes_per_sec.at().map(Bytes::get),
        write_bytes_per_sec: row.write_bytes_per_sec.at().map(Bytes::get),
        read_ios_per_sec: row.read_ios_per_sec.at(),
        write_ios_per_sec: row.write_ios_per_sec.at(),
    });
    rows.collect()
}

fn io_latency(config: &CgroupConfig, snapshot: &Snapshot) -> Vec<IoLatency> {
    let rows = config.io_latency.as_deref().unwrap_or_default();
    let rows = rows.iter().map(|row| IoLatency {
        device: name_of(row.dev, snapshot),
        dev: row.dev.to_string(),
        target_usec: row.target_usec.get(),
    });
    rows.collect()
}

fn name_of(dev: DevNum, snapshot: &Snapshot) -> String {
    snapshot.device(dev).map_or_else(|| dev.to_string(), |device| device.name.to_string())
}

/// The gaps that concern cgroups.
fn gaps(snapshot: &Snapshot) -> Vec<super::Gap> {
    let concerns =
        |what: &str| ["cgroup", "io.", "memory.", "children", "blkio"].iter().any(|part| what.contains(part));
    let of_cgroups = snapshot.gaps.iter().filter(|missing| concerns(&missing.what));
    of_cgroups.map(|missing| super::Gap { what: missing.what.clone(), reason: missing.reason.to_string() }).collect()
}
