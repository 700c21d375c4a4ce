//! One device and the workloads on it, as `quell stat` and `quell doctor` tell them.

use quell_engine::findings::{Disk, Scene, Share, Workload};
use quell_engine::rates::{DiskRates, Flow};
use quell_engine::snapshot;
use schemars::JsonSchema;
use serde::Serialize;

use super::Gap;

/// One whole device: a disk, or a dm, md or loop device above some.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Device {
    /// The kernel's name.
    pub name: String,
    /// The device's number, `MAJ:MIN`.
    pub dev: String,
    /// What kind of disk it is: `nvme`, `ssd`, `hdd`, `virtual` or `unknown`.
    pub class: &'static str,
    /// The devices directly below it; empty for a disk. The same bytes show at each layer: never add them.
    pub over: Vec<String>,
    /// Reads completed per second.
    pub reads_per_sec: Option<f64>,
    /// Writes completed per second, flushes left out.
    pub writes_per_sec: Option<f64>,
    /// Discards completed per second.
    pub discards_per_sec: Option<f64>,
    /// Flushes completed per second.
    pub flushes_per_sec: Option<f64>,
    /// Bytes read per second.
    pub read_bytes_per_sec: Option<f64>,
    /// Bytes written per second.
    pub write_bytes_per_sec: Option<f64>,
    /// Bytes discarded per second.
    pub discard_bytes_per_sec: Option<f64>,
    /// Bios merged into queued reads per second.
    pub read_merges_per_sec: Option<f64>,
    /// Bios merged into queued writes per second.
    pub write_merges_per_sec: Option<f64>,
    /// Bios merged into queued discards per second.
    pub discard_merges_per_sec: Option<f64>,
    /// Share of read bios that were merged.
    pub read_merged_pct: Option<f64>,
    /// Share of write bios that were merged.
    pub write_merged_pct: Option<f64>,
    /// Share of discard bios that were merged.
    pub discard_merged_pct: Option<f64>,
    /// Mean time of a read, queueing included; null where none completed.
    pub read_await_usec: Option<f64>,
    /// Mean time of a write, queueing included; null where none completed.
    pub write_await_usec: Option<f64>,
    /// Mean time of a discard, queueing included; null where none completed.
    pub discard_await_usec: Option<f64>,
    /// Mean time of a flush; null where none completed.
    pub flush_await_usec: Option<f64>,
    /// Mean size of a read.
    pub read_size_bytes_avg: Option<f64>,
    /// Mean size of a write.
    pub write_size_bytes_avg: Option<f64>,
    /// Mean size of a discard.
    pub discard_size_bytes_avg: Option<f64>,
    /// Mean number of requests in flight: iostat's aqu-sz.
    pub queue_length_avg: Option<f64>,
    /// Share of the time with a request in flight, by the disk's own counter: iostat's %util. Not a measure of load.
    pub util_pct: Option<f64>,
    /// The larger of that and its partitions': the kernel under-reads a disk whose I/O goes through a partition.
    pub busy_pct: Option<f64>,
    /// Requests in flight at the later moment.
    pub in_flight: u64,
    /// Whether it ever completed anything.
    #[serde(skip)]
    pub ever_used: bool,
    /// Who used it, the biggest share of its time first.
    pub workloads: Vec<Use>,
}

/// What one workload did on one device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Use {
    /// The workload's name, as `quell doctor` takes it.
    pub name: String,
    /// `container`, `unit` or `cgroup`.
    pub kind: &'static str,
    /// Its path below the cgroup root; bytes that are no UTF-8 are `\xNN`.
    pub cgroup: String,
    /// The inode of the cgroup's directory.
    pub cgroup_id: u64,
    /// Its part of the device's time, estimated from its I/Os and bytes.
    pub share_ratio: f64,
    /// Read bios per second, before merging.
    pub reads_per_sec: f64,
    /// Write bios per second, before merging.
    pub writes_per_sec: f64,
    /// Bytes read per second.
    pub read_bytes_per_sec: f64,
    /// Bytes written per second.
    pub write_bytes_per_sec: f64,
    /// Share of the time in which at least one of its tasks was stalled on I/O, on any device.
    pub io_pressure_some_pct: Option<f64>,
    /// Share of the time in which all of its tasks were stalled on I/O, on any device.
    pub io_pressure_full_pct: Option<f64>,
    /// `cgroup` where its cgroup counts the I/O, `processes` where it is what its processes say.
    pub counted_by: &'static str,
}

impl Device {
    /// The device of a scene's disk.
    #[must_use]
    pub fn of(scene: &Scene, disk: &Disk) -> Self {
        let rates = disk.rates;
        let flow = |of: fn(&DiskRates) -> Option<Flow>| rates.and_then(of);
        let (read, write, discard) = (flow(|r| Some(r.read)), flow(|r| Some(r.write)), flow(|r| r.discard));
        let flush = rates.and_then(|rates| rates.flush);
        let name_of = |dev| scene.window.t1.device(dev).map(|device| device.name.to_string());
        let before = scene.window.t0.device(disk.dev);
        let used = |device: &snapshot::Device| device.counters.completed() > 0;
        Self {
            name: disk.name.to_string(),
            dev: disk.dev.to_string(),
            class: disk.class.as_str(),
            over: disk.device.slaves.iter().filter_map(|&dev| name_of(dev)).collect(),
            reads_per_sec: read.map(|flow| flow.ios_per_sec),
            writes_per_sec: write.map(|flow| flow.ios_per_sec),
            discards_per_sec: discard.map(|flow| flow.ios_per_sec),
            flushes_per_sec: flush.map(|flush| flush.ios_per_sec),
            read_bytes_per_sec: read.map(|flow| flow.bytes_per_sec),
            write_bytes_per_sec: write.map(|flow| flow.bytes_per_sec),
            discard_bytes_per_sec: discard.map(|flow| flow.bytes_per_sec),
            read_merges_per_sec: read.map(|flow| flow.merges_per_sec),
            write_merges_per_sec: write.map(|flow| flow.merges_per_sec),
            discard_merges_per_sec: discard.map(|flow| flow.merges_per_sec),
            read_merged_pct: read.map(|flow| flow.merged_pct),
            write_merged_pct: write.map(|flow| flow.merged_pct),
            discard_merged_pct: discard.map(|flow| flow.merged_pct),
            read_await_usec: read.and_then(|flow| flow.await_usec),
            write_await_usec: write.and_then(|flow| flow.await_usec),
            discard_await_usec: discard.and_then(|flow| flow.await_usec),
            flush_await_usec: flush.and_then(|flush| flush.await_usec),
            read_size_bytes_avg: read.and_then(|flow| flow.size_bytes_avg),
            write_size_bytes_avg: write.and_then(|flow| flow.size_bytes_avg),
            discard_size_bytes_avg: discard.and_then(|flow| flow.size_bytes_avg),
            queue_length_avg: rates.map(|rates| rates.queue_length_avg),
            util_pct: rates.map(|rates| rates.util_pct),
            busy_pct: rates.map(|_| disk.util_pct),
            in_flight: disk.device.counters.in_flight,
            ever_used: used(disk.device) || before.is_some_and(used),
            workloads: scene.users(disk).map(|(workload, share)| Use::of(workload, share)).collect(),
        }
    }

    /// Whether it did anything, as far as is known: something completed, is in flight, or cannot be told.
    #[must_use]
    pub fn is_active(&self) -> bool {
        if !self.has_rates() {
            return self.ever_used;
        }
        let ios = [self.reads_per_sec, self.writes_per_sec, self.discards_per_sec, self.flushes_per_sec];
        self.in_flight > 0 || ios.iter().flatten().any(|&ios| ios > 0.0)
    }
}

impl Device {
    /// Whether what it did is known.
    #[must_use]
    pub const fn has_rates(&self) -> bool {
        self.queue_length_avg.is_some()
    }

    /// Why what it did is not known.
    #[must_use]
    pub fn gap<'g>(&self, gaps: &'g [Gap]) -> &'g str {
        let what = gap_of(&self.name);
        let gap = gaps.iter().find(|gap| gap.what == what || gap.what == super::ALL_RATES);
        gap.map_or("not known", |gap| gap.reason.as_str())
    }
}

/// What the gap of a device's rates is called.
pub(super) fn gap_of(device: &str) -> String {
    format!("rates of {device}")
}

impl Use {
    fn of(workload: &Workload, share: &Share) -> Self {
        Self {
            name: workload.name.clone(),
            kind: quell_engine::findings::SubjectKind::Workload(workload.kind).as_str(),
            cgroup: workload.path.to_string(),
            cgroup_id: workload.id.0,
            share_ratio: share.ratio,
            reads_per_sec: share.io.read.ios_per_sec,
            writes_per_sec: share.io.write.ios_per_sec,
            read_bytes_per_sec: share.io.read.bytes_per_sec,
            write_bytes_per_sec: share.io.write.bytes_per_sec,
            io_pressure_some_pct: workload.pressure.map(|pressure| pressure.some_pct),
            io_pressure_full_pct: workload.pressure.and_then(|pressure| pressure.full_pct),
            counted_by: if workload.io_counted { "cgroup" } else { "processes" },
        }
    }
}
