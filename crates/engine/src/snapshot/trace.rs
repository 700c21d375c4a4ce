//! What the kernel-side programs of `crates/trace` have added up: where the time of I/O went.
//!
//! Counters since tracing began, as raw as the kernel's own: two readings make rates, and nothing is ever cleared.

use quell_units::{CgroupId, DevNum, Nanos};
use serde::{Deserialize, Serialize};

use super::Missing;

/// A part of the way from a bio's submission to its request's last completion, and the whole.
///
/// Counted by the bio: of several that were held and then merged into one request, each waited.
/// Each stage begins where the one before it ends, so that all but the last add up to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Held by io.max, or by version 1's limits.
    Throttle,
    /// Held by iocost, io.latency or wbt.
    Qos,
    /// Waiting for a request; with what holds before it, where that cannot be told apart.
    Tag,
    /// From there until the driver got it: the plug, the scheduler, the dispatch.
    Queue,
    /// In the driver and the device.
    Device,
    /// In flushes of the device's cache, before its data and after it.
    Flush,
    /// From the bio's submission to the request's last completion.
    Total,
}

impl Stage {
    /// Every stage in order, the whole last.
    pub const ALL: [Self; 7] =
        [Self::Throttle, Self::Qos, Self::Tag, Self::Queue, Self::Device, Self::Flush, Self::Total];

    /// The word in JSON and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Throttle => "throttle",
            Self::Qos => "qos",
            Self::Tag => "tag",
            Self::Queue => "queue",
            Self::Device => "device",
            Self::Flush => "flush",
            Self::Total => "total",
        }
    }
}

/// What a request was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Read.
    Read,
    /// Write that nobody waits for: write-back.
    Write,
    /// Write that somebody waits for: `O_DIRECT`, a sync, a journal.
    SyncWrite,
    /// Flush without data.
    Flush,
    /// Discard.
    Discard,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::SyncWrite, Self::Flush, Self::Discard];

    /// The word in JSON and on the page.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::SyncWrite => "sync write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// The number of buckets of a stage: see [`crate::rates::BucketEdge`].
pub const BUCKETS: usize = 112;

/// One stage of one device, cgroup and operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounters {
    /// The time of all of them.
    pub sum_nsec: Nanos,
    /// The longest since tracing began.
    pub max_nsec: Nanos,
    /// Bios that spent time here and are in no bucket, because no histogram was left.
    pub bios_loose: u64,
    /// Bios that spent time here, by how much; requests where the device alone is traced; empty where there were none. A
    /// count wraps at 2^32.
    pub buckets: Vec<u32>,
}

/// Whose I/O is counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TraceKey {
    /// The device.
    pub dev: DevNum,
    /// The cgroup that is billed; `None` for the flushes that the kernel sends to a disk for whoever asked.
    pub cgroup: Option<CgroupId>,
    /// What for.
    pub operation: Operation,
}

/// How much I/O that was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCounts {
    /// Requests that ended.
    pub requests: u64,
    /// Bios that ended with them, merged ones included; 0 where the device alone is traced.
    pub bios: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// How often the driver gave a request back.
    pub requeues: u64,
}

/// What one cgroup did on one device by one operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceGroup {
    /// Whose it is.
    pub key: TraceKey,
    /// How much it was.
    pub counts: TraceCounts,
    /// By [`Stage::ALL`].
    pub stages: [StageCounters; 7],
}

/// What could not be counted in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLosses {
    /// Bios for which there was no room: their requests are counted, with less of their time.
    pub bios: u64,
    /// Requests of a device, cgroup and operation for which there was no room.
    pub requests: u64,
    /// The time of those.
    pub requests_nsec: Nanos,
    /// Requests that ended without their times: they were under way when tracing began.
    pub unmatched: u64,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// By their keys.
    pub groups: Vec<TraceGroup>,
    /// What could not be counted in its place.
    pub losses: TraceLosses,
    /// What this kernel does not let one see, and why.
    pub missing: Vec<Missing>,
    /// The stages among it. What [`Stage::Qos`] is not seen to hold counts as [`Stage::Tag`]; what [`Stage::Throttle`] holds
    /// is in no total then.
    pub unseen: Vec<Stage>,
}
