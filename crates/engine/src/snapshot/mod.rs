//! All that was read at one moment, gaps included.
//!
//! A [`Snapshot`] is plain data: raw counters in the kernel's own words, and for each value that is missing the reason.
//! It is what `host` makes from the machine or a captured tree, and all that the rest of the engine ever sees, so a
//! history, a recording and a bug report are the same thing. A [`Window`] is two of them and the light looks between.
//!
//! Not all files can be read at once: each group carries its own time, and rates divide by the time of their group.

mod cgroup;
mod container;
mod device;
mod mount;
mod open_file;
mod task;
mod trace;

pub use cgroup::{Cgroup, CgroupConfig};
pub use container::{AskedDevice, AskedKey, AskedLimit, Container, Pod, PodContainer};
pub use device::{
    Device, DeviceMapper, Filesystem, HardwareQueue, MultiDisk, NvmePath, Queue, QueueDetail, Setting, Wbt,
};
pub use mount::{Mount, OnDisk, Partition};
pub use open_file::OpenFile;
pub use task::{DiskLook, Look, Task};
pub use trace::{BUCKETS, Operation, Stage, StageCounters, Trace, TraceCounts, TraceGroup, TraceKey, TraceLosses};

use quell_kfile::cpu_times::CpuTimes;
use quell_kfile::meminfo::MemInfo;
use quell_kfile::pressure::Pressure;
use quell_kfile::swaps;
use quell_kfile::vmstat::VmStat;
use quell_paste::Pasted;
use quell_units::{Bytes, CgroupPath, DevNum, Gap, Known, Micros, MonoMicros, UnixMicros, count};
use serde::{Deserialize, Serialize};

/// All that was read at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When each group of files was read.
    pub clock: Clock,
    /// The host as a whole: what does not change while one looks.
    pub host: Host,
    /// The counters of the host as a whole.
    pub system: System,
    /// Every block device and partition, by number.
    pub devices: Vec<Device>,
    /// Every cgroup that was walked, by path, the root first.
    pub cgroups: Vec<Cgroup>,
    /// The containers among them whose runtime's state was found, by path.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// The pods among them whose name was found, by path.
    #[serde(default)]
    pub pods: Vec<Pod>,
    /// Every process, and every thread in uninterruptible sleep. Empty in a snapshot of counters alone.
    pub tasks: Vec<Task>,
    /// The files that containers have open for writing, within bounds. Empty in a snapshot of counters alone.
    #[serde(default)]
    pub open_files: Vec<OpenFile>,
    /// Every mounted file system with a block device below it.
    pub filesystems: Vec<Filesystem>,
    /// Every mount, in the order in which they were made. Empty in a snapshot of counters alone.
    pub mounts: Vec<Mount>,
    /// The superblocks of ext4 and XFS. Empty but in a snapshot of settings.
    pub on_disk: Vec<OnDisk>,
    /// Where partitions lie. Empty but in a snapshot of settings.
    pub partitions: Vec<Partition>,
    /// What could not be read, for people: one entry a kind, not one a file.
    pub gaps: Vec<Missing>,
    /// What reading it cost quell.
    pub cost: Cost,
}

/// When each group of files was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// `diskstats`, `vmstat` and the system's pressure.
    pub system: MonoMicros,
    /// The files of the cgroups.
    pub cgroups: MonoMicros,
    /// The files of the processes.
    pub tasks: MonoMicros,
    /// The wall clock, for display. `None` in a capture.
    pub wall: Option<UnixMicros>,
}

/// What quell spent on one snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Its own CPU time.
    pub cpu_usec: Micros,
    /// Files read.
    pub files: u64,
}

/// The host as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: Known<String>,
    /// The kernel's release, such as `6.1.0-57-cloud-amd64`.
    pub kernel: Known<String>,
    /// Which cgroup hierarchies are mounted.
    pub cgroups: CgroupMode,
    /// Where the hierarchy that carries the I/O controller is mounted, such as `/sys/fs/cgroup`.
    pub cgroup_mount: Known<String>,
    /// Whether a hypervisor is below.
    pub virtualised: Known<bool>,
    /// Online processors, counted in `/proc/stat`.
    pub cpus: Known<u32>,
}

/// Which cgroup hierarchy carries the I/O controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupMode {
    /// The unified hierarchy alone.
    V2,
    /// One hierarchy a controller.
    V1,
    /// Both are mounted, and the I/O controller is bound to version 1.
    HybridIoV1,
    /// Both are mounted, and the I/O controller is in the unified hierarchy.
    HybridIoV2,
    /// No hierarchy is mounted.
    Absent,
}

impl CgroupMode {
    /// Whether I/O is limited and counted by the files of version 1.
    #[must_use]
    pub const fn io_is_v1(self) -> bool {
        matches!(self, Self::V1 | Self::HybridIoV1)
    }
}

/// The counters of the host as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// Time of all processors.
    pub cpu: Known<CpuTimes>,
    /// Virtual-memory counters.
    pub vmstat: Known<VmStat>,
    /// Memory in use.
    pub meminfo: Known<MemInfo>,
    /// Time stalled on I/O.
    pub io_pressure: Known<Pressure>,
    /// Time stalled on memory.
    pub memory_pressure: Known<Pressure>,
    /// Time stalled on processors.
    pub cpu_pressure: Known<Pressure>,
    /// `vm.dirty_background_bytes`; 0 where the ratio counts.
    pub dirty_background_bytes: Known<Bytes>,
    /// `vm.dirty_background_ratio`, percent of dirtyable memory.
    pub dirty_background_ratio_pct: Known<u64>,
    /// `vm.dirty_bytes`; 0 where the ratio counts.
    pub dirty_bytes: Known<Bytes>,
    /// `vm.dirty_ratio`, percent of dirtyable memory.
    pub dirty_ratio_pct: Known<u64>,
    /// Where memory is swapped to.
    pub swaps: Known<Vec<swaps::Row>>,
}

impl System {
    /// The size of a page of memory: what is mapped, in bytes over in pages, to the nearest power of two. 4 KiB where one of
    /// the two is not known, as on x86-64 and most of arm64.
    ///
    /// No file tells it by itself. The two are read a moment apart; only a factor of 1.4 between them would tell wrong.
    #[must_use]
    pub fn page_bytes(&self) -> f64 {
        const USUAL: f64 = 4096.0;
        let told = || {
            let bytes = self.meminfo.as_ref().ok()?.mapped_bytes?.get();
            let pages = self.vmstat.as_ref().ok()?.mapped_pages.filter(|pages| *pages > 0)?;
            Some(count(bytes) / count(pages))
        };
        told().map_or(USUAL, |bytes| bytes.log2().round().exp2().clamp(USUAL, 65_536.0))
    }
}

/// What could not be read, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What is missing: a file, or "`io.stat` of 3 cgroups".
    pub what: String,
    /// Why.
    pub reason: Gap,
}

/// Two snapshots of one host and the light looks between them: what rates and findings are made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The earlier snapshot.
    pub t0: Snapshot,
    /// The light looks in between, about ten a second. None in a capture.
    pub looks: Vec<Look>,
    /// The later snapshot.
    pub t1: Snapshot,
    /// What a paste says: tables of rates, errors, logs. `None` where a host or a captured tree was read.
    pub pasted: Option<Box<Pasted>>,
}

impl Snapshot {
    /// The device of this number.
    #[must_use]
    pub fn device(&self, dev: DevNum) -> Option<&Device> {
        let at = self.devices.binary_search_by_key(&dev, |device| device.dev).ok()?;
        self.devices.get(at)
    }

    /// The requests in flight at a disk, its partitions' included: recent kernels count a partition's there alone.
    #[must_use]
    pub fn in_flight(&self, disk: &Device) -> u64 {
        let of_partitions = self.partitions(disk.dev).map(|part| part.counters.in_flight).fold(0, u64::saturating_add);
        disk.counters.in_flight.max(of_partitions)
    }

    /// The cgroup at this path.
    #[must_use]
    pub fn cgroup(&self, path: &CgroupPath) -> Option<&Cgroup> {
        let at = self.cgroups.binary_search_by(|cgroup| cgroup.path.cmp(path)).ok()?;
        self.cgroups.get(at)
    }

    /// What the runtime knows of the container whose cgroup this is.
    #[must_use]
    pub fn container(&self, path: &CgroupPath) -> Option<&Container> {
        let at = self.containers.binary_search_by(|container| container.cgroup.cmp(path)).ok()?;
        self.containers.get(at)
    }

    /// The pod whose cgroup this is.
    #[must_use]
    pub fn pod(&self, path: &CgroupPath) -> Option<&Pod> {
        let at = self.pods.binary_search_by(|pod| pod.cgroup.cmp(path)).ok()?;
        self.pods.get(at)
    }

    /// The partitions of a whole disk.
    pub fn partitions(&self, disk: DevNum) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(move |device| device.partition_of == Some(disk))
    }

    /// The whole disk a partition lies on; the device itself where it is no partition.
    #[must_use]
    pub fn whole_disk(&self, dev: DevNum) -> DevNum {
        self.device(dev).and_then(|device| device.partition_of).unwrap_or(dev)
    }

    /// The size of a device or partition, where it was read.
    #[must_use]
    pub fn size_of(&self, dev: DevNum) -> Option<Bytes> {
        let partition = self.partitions.iter().find(|partition| partition.dev == dev);
        let disk = || self.device(dev)?.queue.as_deref()?.size.ok();
        partition.map_or_else(disk, |partition| partition.size.ok())
    }

    /// The lowest whole disks below a device: itself where nothing lies below.
    #[must_use]
    pub fn leaves(&self, dev: DevNum) -> Vec<DevNum> {
        // A stack is shallow, but a captured tree may hold anything, a loop included.
        const DEPTH_MAX: u32 = 16;
        fn walk(snapshot: &Snapshot, dev: DevNum, depth: u32, out: &mut Vec<DevNum>) {
            let disk = snapshot.whole_disk(dev);
            match snapshot.device(disk).map(|device| device.slaves.as_slice()) {
                Some(slaves) if !slaves.is_empty() && depth < DEPTH_MAX => {
                    slaves.iter().for_each(|&slave| walk(snapshot, slave, depth + 1, out));
                }
                _ if !out.contains(&disk) => out.push(disk),
                _ => {}
            }
        }
        let mut out = Vec::new();
        walk(self, dev, 0, &mut out);
        out
    }
}
