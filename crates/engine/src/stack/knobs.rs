//! At which layer each knob acts, on this kernel and for this stack.
//!
//! Two kinds of knob. Throttling acts on the bio where it is submitted, so it works at every whole device of a stack,
//! once for each at which it is set. All others act on requests, which only the lowest disks have: device-mapper and md
//! hand bios on. What decides between the layers is whose bios arrive below: some layers send them on from threads of
//! the kernel's own, and the cgroup is lost on the way.

use quell_units::{DevNum, Gap, Known};

use super::Layer;
use super::locate::shown;
use crate::snapshot::{CgroupConfig, Device, Snapshot};

/// Where one knob acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acts {
    /// The knob: a file of a cgroup or of a queue.
    pub knob: &'static str,
    /// The devices at which to set it; none where it does not act on this stack or this kernel.
    pub at: Vec<DevNum>,
    /// Why there, and what is known to go wrong.
    pub why: String,
}

/// Where each knob acts on what lies on a device.
#[must_use]
pub fn knobs(top: DevNum, snapshot: &Snapshot) -> Vec<Acts> {
    let stack = Stack::of(top, snapshot);
    vec![
        stack.io_max(),
        stack.io_weight(),
        stack.bfq_weight(),
        stack.io_latency(),
        stack.scheduler(),
        stack.read_ahead(),
        stack.wbt(),
    ]
}

/// One device with all below it.
struct Stack<'a> {
    snapshot: &'a Snapshot,
    top: DevNum,
    /// The whole devices, from the top.
    whole: Vec<&'a Device>,
    leaves: Vec<DevNum>,
}

impl<'a> Stack<'a> {
    fn of(top: DevNum, snapshot: &'a Snapshot) -> Self {
        let devices = snapshot.stack(top).into_iter().filter_map(|dev| snapshot.device(dev));
        let whole = devices.filter(|device| device.partition_of.is_none()).collect();
        Self { snapshot, top, whole, leaves: snapshot.leaves(top) }
    }

    fn io_max(&self) -> Acts {
        let knob = if self.snapshot.host.cgroups.io_is_v1() { "blkio.throttle.*" } else { "io.max" };
        if self.no_cgroup_offers(|config| config.io_max.as_ref().err().copied()) {
            return Acts { knob, at: Vec::new(), why: "this kernel has no throttling (BLK_DEV_THROTTLING)".into() };
        }
        let mut why = Vec::new();
        if let Some(disk) = self.snapshot.device(self.top).and_then(|device| device.partition_of) {
            let (part, disk) = (shown(self.top, self.snapshot), shown(disk, self.snapshot));
            why.push(format!("a partition's number is refused with ENODEV: {part} is set as {disk}"));
        }
        let at = match (self.losing(), self.whole.as_slice()) {
            (Some((device, how)), _) => {
                why.push(format!("below {} {how}, so a cap there does not hold them", device.name));
                vec![device.dev]
            }
            (None, [only]) => {
                why.push("a bio waits where it is submitted, and this is the only layer".into());
                vec![only.dev]
            }
            (None, [top, ..]) if self.leaves.len() > 1 => {
                why.push(format!(
                    "{} disks lie below: at {} one cap holds for all of it, at a disk only for what falls on that disk",
                    self.leaves.len(),
                    top.name
                ));
                vec![top.dev]
            }
            (None, _) => {
                why.push("at the disk it holds whichever way the I/O comes; the layers above take it as well".into());
                self.leaves.clone()
            }
        };
        if self.whole.len() > 1 {
            why.push("set it at one layer: a cap at two of them throttles twice".into());
        }
        if self.whole.iter().any(|device| is_mapper(device)) {
            why.push(
                "a range of kernels loses the cgroup of buffered writes in device-mapper: prove it with a write".into(),
            );
        }
        if let Some(unbilled) = self.unbilled() {
            why.push(format!("{unbilled}, so buffered writes pass any cap"));
        }
        if self.snapshot.host.cgroups.io_is_v1() {
            why.push("version 1 holds direct I/O alone: buffered writes are flushed by others".into());
        }
        Acts { knob, at, why: why.join("; ") }
    }

    /// The first layer below which I/O no longer carries its cgroup, and what is lost.
    fn losing(&self) -> Option<(&'a Device, &'static str)> {
        self.whole.iter().find_map(|device| Some((*device, loses(device, self.snapshot)?)))
    }

    /// Why write-back of the file system on top is charged to nobody, where it is not.
    fn unbilled(&self) -> Option<String> {
        // Those that mark their super blocks for it (SB_I_CGROUPWB).
        const BILLED: [&str; 5] = ["ext2", "ext4", "btrfs", "xfs", "f2fs"];
        let mount = self.snapshot.mounts.iter().find(|mount| mount.on.contains(&self.top))?;
        let fs = self.snapshot.filesystems.iter().find(|fs| fs.dev == self.top);
        if fs.is_some_and(|fs| fs.options.split(',').any(|option| option == "data=journal")) {
            return Some("with data=journal no cgroup is charged for write-back".into());
        }
        (!BILLED.contains(&&*mount.fs_type))
            .then(|| format!("on {} no cgroup is charged for write-back", mount.fs_type))
    }

    fn io_weight(&self) -> Acts {
        let knob = "io.weight";
        let none = |why: &str| Acts { knob, at: Vec::new(), why: why.into() };
        let root = self.snapshot.cgroups.first().and_then(|root| root.config.as_deref());
        if self.snapshot.host.cgroups.io_is_v1() {
            return none("version 1 has no io.weight; blkio.bfq.weight acts where bfq runs");
        }
        if self.no_cgroup_offers(|config| config.io_weight.as_ref().err().copied()) {
            return none("this kernel has no iocost (BLK_CGROUP_IOCOST)");
        }
        let enabled = |dev: DevNum| {
            let rows = root.and_then(|root| root.cost_qos.as_ref().ok());
            rows.is_some_and(|rows| rows.iter().any(|row| row.dev == dev && row.enabled))
        };
        let at = self.request_disks();
        let (on, off): (Vec<DevNum>, Vec<DevNum>) = at.iter().partition(|&&dev| enabled(dev));
        let state = match (on.as_slice(), off.as_slice()) {
            ([], _) => "iocost is off there (io.cost.qos), so weights do nothing".to_owned(),
            (_, []) => "iocost is on there".to_owned(),
            (on, _) => format!("iocost is on at {} of {} disks", on.len(), at.len()),
        };
        if at.is_empty() {
            return none("no disk below has requests that iocost could charge");
        }
        Acts { knob, at, why: format!("iocost charges requests: dm, md and NVMe heads answer EOPNOTSUPP; {state}") }
    }

    fn bfq_weight(&self) -> Acts {
        let runs_bfq = |dev: &DevNum| {
            let queue = self.snapshot.device(*dev).and_then(|device| device.queue.as_deref());
            queue.and_then(|queue| queue.scheduler.as_ref().ok()).is_some_and(|scheduler| &*scheduler.active == "bfq")
        };
        let at: Vec<DevNum> = self.request_disks().into_iter().filter(runs_bfq).collect();
        let why = match at.is_empty() {
            true => "no disk below runs the bfq scheduler, which alone heeds it",
            false => "bfq runs there and heeds it",
        };
        Acts { knob: "io.bfq.weight", at, why: why.into() }
    }

    fn io_latency(&self) -> Acts {
        let absent = self.no_cgroup_offers(|config| config.io_latency.as_ref().err().copied());
        let (at, why) = match absent {
            _ if self.snapshot.host.cgroups.io_is_v1() => (Vec::new(), "version 1 has no io.latency"),
            true => (Vec::new(), "this kernel has no io.latency"),
            false => (
                self.request_disks(),
                "it holds requests back; it hooks into requests, so a target on dm or md has nothing to hold. Microseconds; siblings alone \
                 make room",
            ),
        };
        Acts { knob: "io.latency", at, why: why.into() }
    }

    fn scheduler(&self) -> Acts {
        let paths: Vec<&str> = self.nvme_paths();
        let why = if paths.is_empty() {
            "requests are ordered where they are made; a switch drains those in flight first".to_owned()
        } else {
            format!("the head passes bios on: each path has its own, {}", paths.join(", "))
        };
        let at = self.request_disks();
        Acts { knob: "queue/scheduler", at, why }
    }

    fn read_ahead(&self) -> Acts {
        let mount = self.snapshot.mounts.iter().find(|mount| mount.on.contains(&self.top) && mount.fs_type == "btrfs");
        if mount.is_some() {
            let why = "btrfs has its own, /sys/class/bdi/btrfs-N/read_ahead_kb: the disks' are not asked".into();
            return Acts { knob: "queue/read_ahead_kb", at: Vec::new(), why };
        }
        let at = self.whole.first().map(|device| device.dev).into_iter().collect();
        let why = "the page cache asks the device that is mounted, and none below it".into();
        Acts { knob: "queue/read_ahead_kb", at, why }
    }

    fn wbt(&self) -> Acts {
        let why = "write-back throttling counts requests; it holds buffered writes alone, of all cgroups alike".into();
        Acts { knob: "queue/wbt_lat_usec", at: self.request_disks(), why }
    }

    /// The lowest disks that have requests of their own.
    fn request_disks(&self) -> Vec<DevNum> {
        let is = |dev: &DevNum| {
            self.snapshot.device(*dev).is_some_and(|device| Layer::of(device, self.snapshot).has_requests())
        };
        self.leaves.iter().copied().filter(is).collect()
    }

    fn nvme_paths(&self) -> Vec<&'a str> {
        let details = self.whole.iter().filter_map(|device| device.queue.as_deref()?.detail.as_deref());
        details.flat_map(|detail| &detail.nvme_paths).map(|path| path.name.as_str()).collect()
    }

    /// Whether the kernel has a file not: a cgroup with the controller lacks it, and none has it. Where the controller is
    /// off everywhere nothing is known, and nothing is denied.
    fn no_cgroup_offers(&self, lacks: impl Fn(&CgroupConfig) -> Option<Gap>) -> bool {
        let below_root = self.snapshot.cgroups.iter().filter(|cgroup| !cgroup.path.is_root());
        let answers: Vec<Option<Gap>> = below_root.filter_map(|cgroup| cgroup.config.as_deref()).map(lacks).collect();
        !answers.contains(&None) && answers.contains(&Some(Gap::NotInKernel))
    }
}

fn is_mapper(device: &Device) -> bool {
    device.queue.as_deref().is_some_and(|queue| queue.device_mapper.is_some())
}

/// What loses its cgroup in a layer, where something does.
///
/// dm-crypt writes new bios with the ciphertext (`crypt_alloc_buffer`), which nobody charges to the writer; md's parity
/// levels write whole stripes from their own thread; bcache writes back when it likes.
fn loses(device: &Device, snapshot: &Snapshot) -> Option<&'static str> {
    let level = |known: &Known<String>| known.as_deref().unwrap_or_default().to_owned();
    let parity = || {
        let array = device.queue.as_deref().and_then(|queue| queue.multi_disk.as_ref());
        array.is_some_and(|array| ["raid4", "raid5", "raid6"].contains(&&*level(&array.level)))
    };
    match Layer::of(device, snapshot) {
        Layer::Crypt => Some("encrypted writes are the kernel's own"),
        Layer::Raid if parity() => Some("stripes are written by the array's thread"),
        Layer::Bcache => Some("cached writes are sent on by the cache"),
        _ => None,
    }
}
