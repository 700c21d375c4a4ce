//! Block devices and the file systems on them.

use quell_kfile::diskstats::Counters;
use quell_kfile::jbd2_info::Jbd2Info;
use quell_kfile::scheduler::Scheduler;
use quell_units::{Bytes, DevName, DevNum, Known, Micros};
use serde::{Deserialize, Serialize};

/// One block device or partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its number, which identifies it.
    pub dev: DevNum,
    /// Its name, for people.
    pub name: DevName,
    /// Its counters, from `diskstats`.
    pub counters: Counters,
    /// The disk it is a partition of.
    pub partition_of: Option<DevNum>,
    /// The devices directly below a dm, md or loop device; for a loop the disk that holds its file.
    pub slaves: Vec<DevNum>,
    /// The kernel's serial number of this appearance of the disk: another one is another disk. Since 5.15.
    pub diskseq: Known<u64>,
    /// The queue's settings. `None` for a partition, which has none, and in a snapshot of counters alone.
    pub queue: Option<Box<Queue>>,
}

/// What a whole disk is and how its queue is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The device's place under `/sys/devices`, which names its bus and driver.
    pub sysfs_path: String,
    /// The model, as the device tells it.
    pub model: Known<String>,
    /// Its size.
    pub size: Known<Bytes>,
    /// Whether the kernel takes it for a spinning disk.
    pub rotational: Known<bool>,
    /// The I/O schedulers.
    pub scheduler: Known<Scheduler>,
    /// Requests the scheduler may hold.
    pub nr_requests: Known<u64>,
    /// Read-ahead.
    pub read_ahead_bytes: Known<Bytes>,
    /// The largest request.
    pub request_bytes_max: Known<Bytes>,
    /// `write back` where the disk has a volatile cache, `write through` where it has none.
    pub write_cache: Known<String>,
    /// The latency target of write-back throttling in microseconds; 0 is off.
    pub wbt_target_usec: Known<i64>,
    /// The live state of write-back throttling, from debugfs.
    pub wbt: Known<Wbt>,
    /// What a device-mapper node is.
    pub device_mapper: Option<DeviceMapper>,
    /// What an md array is.
    pub multi_disk: Option<MultiDisk>,
    /// The rest of its settings. `None` but in a snapshot of settings.
    pub detail: Option<Box<QueueDetail>>,
}

/// The settings of a disk that no rate depends on, and what lies behind its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDetail {
    /// Its files as the kernel prints them, by their path below `/sys/block/NAME`.
    pub settings: Vec<Setting>,
    /// The queues that the driver gives it; empty for a device that has none of its own.
    pub hardware_queues: Vec<HardwareQueue>,
    /// The memory node it is attached to; -1 where there is none.
    pub numa_node: Known<i64>,
    /// The file behind a loop device, escaped for display.
    pub backing_file: Option<String>,
    /// The paths of an NVMe disk that is reached over several controllers.
    pub nvme_paths: Vec<NvmePath>,
}

/// One file of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its path below `/sys/block/NAME`, such as `queue/nomerges`.
    pub file: String,
    /// Its one line.
    pub value: Known<String>,
}

/// One queue between the kernel and the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareQueue {
    /// Its number.
    pub index: u32,
    /// The processors that submit to it, as the kernel prints them: `0, 1`.
    pub cpus: Known<String>,
    /// Requests that it takes at once.
    pub tags: Known<u64>,
}

/// One way to an NVMe disk: a controller, and the hidden disk that stands for the namespace behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmePath {
    /// The hidden disk, such as `nvme0c1n1`: it takes no limit, and may carry the counters.
    pub name: String,
    /// The controller, such as `nvme1`.
    pub controller: String,
    /// How it is attached: `pcie`, `tcp`, `rdma`, `fc`.
    pub transport: Known<String>,
    /// Its state, such as `live`.
    pub state: Known<String>,
    /// How well the target serves this way: `optimized`, `non-optimized`, `inaccessible`.
    pub ana_state: Known<String>,
}

/// The live state of write-back throttling (`debugfs block/*/rqos/wbt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wbt {
    /// Throttled requests in flight: background, swap, discard.
    pub in_flight: [u64; 3],
    /// The present limit for ordinary write-back.
    pub normal_depth: u64,
    /// The present limit for background write-back.
    pub background_depth: u64,
    /// The latency it aims at.
    pub target_usec: Micros,
}

/// What a device-mapper node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMapper {
    /// Its name under `/dev/mapper`.
    pub name: Known<String>,
    /// Its UUID; its prefix names the target (`LVM-`, `CRYPT-`).
    pub uuid: Known<String>,
    /// Whether it is suspended: then nothing moves, and nothing is counted either.
    pub suspended: Known<bool>,
}

/// What an md array is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiDisk {
    /// Its level, such as `raid0`.
    pub level: Known<String>,
    /// What it is doing besides serving: `idle`, `resync`, `recover`, `check`, `repair`.
    pub sync_action: Known<String>,
    /// The most that it may do for that, as `md/sync_speed_max` says: `200000 (system)` or `10000 (local)`, in KiB/s for each
    /// member.
    pub sync_speed_max: Known<String>,
}

/// A mounted file system with a block device below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// The device it lies on; for btrfs the device its mount names as source.
    pub dev: DevNum,
    /// Its type, such as `ext4`.
    pub fs_type: String,
    /// Where it is mounted first, escaped for display.
    pub mount_point: String,
    /// Its own options, such as `data=ordered`.
    pub options: String,
    /// The journal's counters, where it is jbd2's.
    pub journal: Known<Jbd2Info>,
    /// The file they came from, such as `/proc/fs/jbd2/vda1-8/info`.
    pub journal_file: Option<String>,
}
