//! Disks: what class they are, what their counters are worth, and who uses them.

use quell_units::{Bytes, DevName, DevNum, ratio};

use super::workload::Workload;
use crate::rates::{CgroupIo, DiskRates, Rates};
use crate::snapshot::{Device, Queue, Snapshot, Window};

/// One whole device: a disk, or a dm, md or loop device above some.
#[derive(Debug)]
pub struct Disk<'a> {
    /// Its number.
    pub dev: DevNum,
    /// Its name.
    pub name: DevName,
    /// What kind of disk it is.
    pub class: DiskClass,
    /// It, at the later moment.
    pub device: &'a Device,
    /// What it did in between; `None` where it was not there at both moments.
    pub rates: Option<&'a DiskRates>,
    /// Whether requests were in flight at both moments and at every look between.
    pub always_in_flight: bool,
    /// The larger `%util` of the disk and its partitions.
    ///
    /// The kernel raises a disk's own in-flight count late when the I/O goes through a partition, so the disk alone
    /// under-reads: 47 % at full saturation was measured on 6.12.
    pub util_pct: f64,
    /// Whether it is a disk with nothing below it: what lies lowest, and is no memory and no empty drive.
    pub leaf: bool,
    /// Whether its busy time can be believed.
    pub trust: Trust,
    /// Who used it, biggest first.
    pub shares: Vec<Share>,
}

/// What kind of disk lies behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskClass {
    /// A local NVMe drive.
    Nvme,
    /// A SATA or SAS flash drive.
    Ssd,
    /// A spinning disk.
    Hdd,
    /// A disk that a hypervisor or a cloud serves; what lies behind it is not known.
    Virtual,
    /// Not told.
    Unknown,
}

/// Whether a disk's busy time can be believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trust {
    /// Nothing speaks against it.
    Trusted,
    /// It claims more busy time than its requests took. The two shares, 0 to 100.
    BusierThanItsRequests {
        /// What the counter says.
        util_pct: f64,
        /// What the completed requests add up to at the most.
        ticks_pct: f64,
    },
}

/// One workload's part of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its place in the scene's workloads.
    pub workload: usize,
    /// Its part of the estimated device time, 0 to 1.
    pub ratio: f64,
    /// What it did on the disk.
    pub io: CgroupIo,
}

impl DiskClass {
    /// The class of a device; for a layer above disks that of the slowest of them.
    #[must_use]
    pub fn of(snapshot: &Snapshot, device: &Device) -> Self {
        class(snapshot, device)
    }

    /// The time a healthy disk of this class takes for one request of this size, in microseconds.
    ///
    /// A base and a bandwidth, generous on purpose: a request is called slow at three times this. The classes' usual
    /// data-sheet figures (NVMe 0.3 ms and 2 GB/s, SATA flash 1 ms and 400 MB/s, 7200 rpm 15 ms and 120 MB/s), and for
    /// a cloud volume 2 ms and 100 MB/s; what is not known gets the volume's.
    #[must_use]
    pub fn fast_usec(self, size_bytes: f64) -> f64 {
        let (base_usec, bytes_per_usec) = match self {
            Self::Nvme => (300.0, 2000.0),
            Self::Ssd => (1000.0, 400.0),
            Self::Hdd => (15_000.0, 120.0),
            Self::Virtual | Self::Unknown => (2000.0, 100.0),
        };
        base_usec + size_bytes / bytes_per_usec
    }

    /// The word people use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Ssd => "ssd",
            Self::Hdd => "hdd",
            Self::Virtual => "virtual",
            Self::Unknown => "unknown",
        }
    }
}

impl Disk<'_> {
    /// Whether there were requests enough to speak of their mean: 5 a second and 50 in all.
    #[must_use]
    pub fn rate_gate(&self) -> bool {
        self.rates.is_some_and(|rates| rates.ios_per_sec() >= 5.0 && rates.ios() >= 50)
    }

    /// Mean queue length: iostat's aqu-sz.
    #[must_use]
    pub fn queue_length_avg(&self) -> f64 {
        self.rates.map_or(0.0, |rates| rates.queue_length_avg)
    }

    /// What the queue holds on average, if all of it were writes of the usual size.
    #[must_use]
    pub fn queued_write_bytes(&self) -> f64 {
        let size = self.rates.and_then(|rates| rates.write.size_bytes_avg);
        self.queue_length_avg() * size.unwrap_or(0.0)
    }

    /// How many times longer than a healthy disk of its class a request took; `None` where none completed.
    #[must_use]
    pub fn slowness(&self) -> Option<f64> {
        let rates = self.rates?;
        Some(rates.await_usec()? / self.class.fast_usec(rates.size_bytes_avg()?))
    }

    /// Whether requests queue: more than this class serves at once, and each takes far longer than it need.
    #[must_use]
    pub fn is_queueing(&self) -> bool {
        let deep = if self.class == DiskClass::Hdd { 2.0 } else { 4.0 };
        self.rate_gate()
            && self.is_busy()
            && self.queue_length_avg() >= deep
            && (self.slowness().is_some_and(|times| times >= 3.0) || self.waits_longer_than_served())
    }

    /// Whether there is hardly a gap without a request, by a busy time that can be believed.
    ///
    /// A burst of a tenth of the time can make a long queue on the average, so the queue alone is no answer. Where it was
    /// there at every look, half of the time will do: the counter under-reads down to that (47 % was measured).
    fn is_busy(&self) -> bool {
        let always = self.always_in_flight && self.queue_length_avg() >= 8.0;
        self.trust == Trust::Trusted && self.util_pct >= if always { 45.0 } else { 80.0 }
    }

    /// For disks whose own speed is not known: a request waited three times as long as the disk took for one.
    fn waits_longer_than_served(&self) -> bool {
        let Some(rates) = self.rates else { return false };
        let served_usec = self.util_pct.min(100.0) * 1e4 / rates.ios_per_sec().max(1.0);
        let unknown = self.class == DiskClass::Unknown && !self.is_surely_flash();
        (self.class == DiskClass::Hdd || unknown) && rates.await_usec().is_some_and(|usec| usec >= 3.0 * served_usec)
    }

    /// Whether small requests are served as no spinning disk serves them: more than 500 a second, or each in 2 ms. A
    /// rotation of 15,000 a minute takes 4 ms.
    #[must_use]
    pub fn is_surely_flash(&self) -> bool {
        let Some(rates) = self.rates else { return false };
        let small = rates.size_bytes_avg().is_some_and(|bytes| bytes <= 16_384.0);
        small && (rates.ios_per_sec() > 500.0 || rates.await_usec().is_some_and(|usec| usec < 2000.0))
    }

    /// The queue's settings, where they were read.
    #[must_use]
    pub fn queue(&self) -> Option<&Queue> {
        self.device.queue.as_deref()
    }

    /// The active scheduler, where it is known.
    #[must_use]
    pub fn scheduler(&self) -> Option<&str> {
        self.queue()?.scheduler.as_ref().ok().map(|scheduler| &*scheduler.active)
    }
}

/// Every whole device, with its users.
pub(super) fn disks<'a>(window: &'a Window, rates: &'a Rates, workloads: &mut [Workload]) -> Vec<Disk<'a>> {
    let now = &window.t1;
    let whole = now.devices.iter().filter(|device| device.partition_of.is_none());
    let mut disks: Vec<_> = whole.map(|device| disk(window, rates, device)).collect();
    share_process_io(&disks, workloads);
    for disk in &mut disks {
        disk.shares = shares(disk, workloads);
    }
    disks
}

fn disk<'a>(window: &'a Window, rates: &'a Rates, device: &'a Device) -> Disk<'a> {
    let now = &window.t1;
    let of = |dev: DevNum| rates.device(dev).and_then(|device| device.rates.as_ref().ok());
    let own = of(device.dev);
    let partitions = now.partitions(device.dev).filter_map(|part| of(part.dev));
    let util_pct = own.into_iter().chain(partitions).map(|rates| rates.util_pct).fold(0.0, f64::max);
    Disk {
        dev: device.dev,
        name: device.name,
        class: class(now, device),
        device,
        rates: own,
        always_in_flight: always_in_flight(window, device),
        util_pct,
        leaf: device.slaves.is_empty() && !is_no_disk(device),
        // What is in flight counts as busy and has no ticks yet: it explains any difference.
        trust: own
            .filter(|_| now.in_flight(device) == 0)
            .map_or(Trust::Trusted, |rates| trust(rates, window.pasted.is_some())),
        shares: Vec::new(),
    }
}

fn always_in_flight(window: &Window, device: &Device) -> bool {
    let before = window.t0.device(device.dev).map_or(0, |was| window.t0.in_flight(was));
    let mut between = window.looks.iter().flat_map(|look| &look.disks).filter(|look| look.dev == device.dev);
    before > 0 && window.t1.in_flight(device) > 0 && between.all(|look| look.in_flight > 0)
}

/// Devices that no disk lies behind: memory, and loop devices and drives without a file or medium.
fn is_no_disk(device: &Device) -> bool {
    let numbered = |prefix: &str| {
        device.name.as_str().strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let empty = device.queue.as_deref().is_some_and(|queue| queue.size == Ok(Bytes(0)));
    numbered("zram") || numbered("ram") || empty
}

/// Kernels that raise `io_ticks` by a whole jiffy at each start over-read sparse I/O many times over.
///
/// Believed is up to a quarter more than the requests' own time and a jiffy (10 ms at the most) at either end. Without
/// completions there is nothing to compare with, and below 20 % nobody is misled. What a tool printed is rounded to
/// hundredths of a millisecond a request, so that twice the requests' time is believed of it.
fn trust(rates: &DiskRates, printed: bool) -> Trust {
    let ticks_pct = rates.ticks_ratio * 100.0;
    let believable = if printed { 2.0 } else { 1.25 } * ticks_pct + 2.0 * 10.0 / 10.0 / rates.seconds;
    let compared = rates.ios() > 0 && rates.util_pct >= 20.0;
    if compared && rates.util_pct > believable {
        Trust::BusierThanItsRequests { util_pct: rates.util_pct, ticks_pct }
    } else {
        Trust::Trusted
    }
}

/// Parts of a sysfs path or a name that say that the disk is served by a hypervisor or over a network.
const REMOTE: [&str; 9] =
    ["/virtio", "/vbd-", "/vmbus", "/xen", "/nvme-fabrics/", "/session", "/block/rbd", "/block/nbd", "/block/drbd"];

/// Models that a hypervisor or a cloud gives its disks. QEMU's emulated NVMe is left out: it behaves like one.
const VIRTUAL_MODELS: [&str; 9] = [
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Virtual Disk",
    "Virtual disk",
    "Virtual NVMe Disk",
    "QEMU HARDDISK",
    "VBOX HARDDISK",
];

/// A disk's class; for a device above others that of its slowest leaf.
fn class(snapshot: &Snapshot, device: &Device) -> DiskClass {
    let leaves = snapshot.leaves(device.dev).into_iter().filter_map(|dev| snapshot.device(dev));
    let slowest = |a: DiskClass, b: DiskClass| if a.fast_usec(4096.0) >= b.fast_usec(4096.0) { a } else { b };
    leaves.map(|leaf| leaf_class(snapshot, leaf)).reduce(slowest).unwrap_or(DiskClass::Unknown)
}

fn leaf_class(snapshot: &Snapshot, device: &Device) -> DiskClass {
    let Some(queue) = device.queue.as_deref() else { return DiskClass::Unknown };
    let model = queue.model.as_deref().unwrap_or_default();
    let name = device.name.as_str();
    let is_remote = REMOTE.iter().any(|part| queue.sysfs_path.contains(part))
        || VIRTUAL_MODELS.iter().any(|name| model.contains(name));
    match queue.rotational {
        _ if is_remote => DiskClass::Virtual,
        _ if name.starts_with("nvme") => DiskClass::Nvme,
        // A guest's SATA or SCSI disk is a file of its host's, whatever it says.
        _ if snapshot.host.virtualised == Ok(true) => DiskClass::Virtual,
        // Cards of flash are slower than either, and tell nothing of it.
        _ if name.starts_with("mmcblk") => DiskClass::Unknown,
        Ok(true) => DiskClass::Hdd,
        Ok(false) => DiskClass::Ssd,
        Err(_) => DiskClass::Unknown,
    }
}

/// Gives a workload whose cgroup counts no I/O what its processes did, where one disk can have been meant.
///
/// `/proc/PID/io` names no device: it is used only where one disk carried nine tenths of all bytes. The requests' sizes
/// are taken to be the disk's own. What a cgroup above counted for it is taken away there.
fn share_process_io(disks: &[Disk], workloads: &mut [Workload]) {
    let bytes = |disk: &&Disk| disk.rates.map_or(0.0, DiskRates::bytes_per_sec);
    let leaves: Vec<_> = disks.iter().filter(|disk| disk.leaf).collect();
    let all: f64 = leaves.iter().map(bytes).sum();
    let Some(disk) = leaves.into_iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b))) else { return };
    let Some(rates) = disk.rates.filter(|_| ratio(bytes(&disk), all) >= 0.9) else { return };
    for at in 0..workloads.len() {
        let Some((path, io)) = workloads.get_mut(at).and_then(|workload| workload.place_process_io(disk.dev, rates))
        else {
            continue;
        };
        let above =
            |workload: &&mut Workload| workload.io_counted && path != workload.path && path.is_within(&workload.path);
        if let Some(above) = workloads.iter_mut().filter(above).max_by_key(|workload| workload.path.as_bytes().len()) {
            above.take_away(&io);
        }
    }
}

/// The users of a disk by estimated device time: a base for each I/O and its bytes over the class's bandwidth.
fn shares(disk: &Disk, workloads: &[Workload]) -> Vec<Share> {
    let time = |ios: f64, size: Option<f64>| ios * disk.class.fast_usec(size.unwrap_or(0.0));
    let mut shares: Vec<Share> = workloads
        .iter()
        .enumerate()
        .filter_map(|(at, workload)| {
            let io = *workload.io.iter().find(|io| io.dev == disk.dev)?;
            let usec =
                time(io.read.ios_per_sec, io.read.size_bytes_avg) + time(io.write.ios_per_sec, io.write.size_bytes_avg);
            (usec > 0.0).then_some(Share { workload: at, ratio: usec, io })
        })
        .collect();
    let all: f64 = shares.iter().map(|share| share.ratio).sum();
    for share in &mut shares {
        share.ratio = ratio(share.ratio, all);
    }
    shares.sort_by(|a, b| b.ratio.total_cmp(&a.ratio).then(a.workload.cmp(&b.workload)));
    shares
}
