//! Cgroups: what they did and how they are configured.

use quell_kfile::cgroup_type::CgroupType;
use quell_kfile::controllers::Controllers;
use quell_kfile::io_weight::Weights;
use quell_kfile::memory_stat::MemoryStat;
use quell_kfile::pressure::Pressure;
use quell_kfile::{io_cost_model, io_cost_qos, io_latency, io_max, io_stat};
use quell_units::{Bytes, CgroupId, CgroupPath, Known, Limit};
use serde::{Deserialize, Serialize};

/// One cgroup: its counters, and its configuration where that was read.
///
/// Version 1 is put into the same words: bytes and counts of `blkio.throttle.*` in `io`, its limits in `io_max`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its place in the tree.
    pub path: CgroupPath,
    /// Its identity: another one under the same path is another cgroup.
    pub id: CgroupId,
    /// What it and its descendants did, a row a device.
    pub io: Known<Vec<io_stat::Row>>,
    /// Time its tasks and its descendants' were stalled on I/O.
    pub io_pressure: Known<Pressure>,
    /// Memory charged to it.
    pub memory: Known<Bytes>,
    /// What that memory is.
    pub memory_stat: Known<MemoryStat>,
    /// Whether a process is in it or below.
    pub populated: Known<bool>,
    /// How it is configured. `None` in a snapshot of counters alone.
    pub config: Option<Box<CgroupConfig>>,
}

/// How a cgroup is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupConfig {
    /// `cgroup.type`; the root has none.
    pub kind: Known<CgroupType>,
    /// The controllers it has.
    pub controllers: Known<Controllers>,
    /// The controllers it gives to its children.
    pub subtree_control: Known<Controllers>,
    /// `memory.max`.
    pub memory_max: Known<Limit<Bytes>>,
    /// `memory.high`.
    pub memory_high: Known<Limit<Bytes>>,
    /// `io.max`.
    pub io_max: Known<Vec<io_max::Row>>,
    /// `io.weight`, which iocost heeds.
    pub io_weight: Known<Weights>,
    /// `io.bfq.weight`, which bfq heeds.
    pub bfq_weight: Known<Weights>,
    /// `io.latency`.
    pub io_latency: Known<Vec<io_latency::Row>>,
    /// `io.cost.qos`. Only in the root.
    pub cost_qos: Known<Vec<io_cost_qos::Row>>,
    /// `io.cost.model`. Only in the root.
    pub cost_model: Known<Vec<io_cost_model::Row>>,
}
