//! `quell.devices/1`: what lies on what, and how each disk and file system is set up.

use quell_engine::findings::DiskClass;
use quell_engine::settings::{self, FsReport, Judged};
use quell_engine::snapshot::{self, Mount, Snapshot};
use quell_engine::stack::{self, Layer, Place};
use quell_units::{Bytes, DevNum, Known, escape};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Gap, Host};

/// Devices, file systems, and where each knob acts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell devices")]
pub struct Document {
    /// `quell.devices/1`.
    #[schemars(extend("const" = "quell.devices/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// What was asked for and how it was resolved; null where nothing was.
    pub asked: Option<Asked>,
    /// The devices, partitions among them, by number.
    pub devices: Vec<Device>,
    /// The file systems on them.
    pub filesystems: Vec<Filesystem>,
    /// The overlays that write to them.
    pub overlays: Vec<Overlay>,
    /// Mounts whose files are kept on disks that cannot be seen from here.
    pub unseen: Vec<Unseen>,
    /// For each device with a file system on it, and for what was asked for, where each knob acts.
    pub knobs: Vec<Knob>,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
}

/// What was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Asked {
    /// As it was typed.
    pub text: String,
    /// How it was resolved, step by step; empty for a disk by its own name.
    pub steps: Vec<String>,
    /// The devices it lies on, the highest of each stack.
    pub devices: Vec<String>,
    /// The whole disks at the bottom, as the kernel counts them: `MAJ:MIN`.
    pub disks: Vec<String>,
    /// Why the devices cannot be seen, where they cannot.
    pub unseen: Option<String>,
}

/// One device or partition.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StackedDevice")]
pub struct Device {
    /// The kernel's name.
    pub name: String,
    /// The device's number, `MAJ:MIN`.
    pub dev: String,
    /// What it is: `disk`, `partition`, `lvm`, `crypt`, `md`, `loop` and so on.
    pub layer: &'static str,
    /// What kind of disk lies below: `nvme`, `ssd`, `hdd`, `virtual` or `unknown`.
    pub class: &'static str,
    /// Its name under `/dev/mapper`.
    pub mapper_name: Option<String>,
    /// The level of an md array.
    pub raid_level: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// Whether memory is swapped to it.
    pub swap: bool,
    /// Its model, as it tells it.
    pub model: Option<String>,
    /// The memory node it is attached to; null where there is none.
    pub numa_node: Option<i64>,
    /// The devices directly below it.
    pub over: Vec<String>,
    /// Its settings, judged; of a partition where it begins, since all else is its disk's.
    pub settings: Vec<Setting>,
    /// The queues that its driver gives it, and the processors that submit to each.
    pub hardware_queues: Vec<HardwareQueue>,
    /// The paths of an NVMe disk that is reached over several controllers.
    pub nvme_paths: Vec<NvmePath>,
}

/// One setting.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Setting {
    /// What is set.
    pub name: String,
    /// Its value, in the kernel's own spelling and unit.
    pub value: String,
    /// `fine`, `questionable`, `wrong`, or `open` where it depends on the work.
    pub judgement: &'static str,
    /// Why; empty where there is nothing to say.
    pub why: String,
    /// A better value, where one write to `source` sets it.
    pub better: Option<String>,
    /// The file it came from.
    pub source: String,
}

/// One queue between the kernel and a disk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HardwareQueue {
    /// Its number.
    pub index: u32,
    /// The processors that submit to it, as the kernel prints them.
    pub cpus: Option<String>,
    /// Requests that it takes at once.
    pub tags: Option<u64>,
}

/// One way to an NVMe disk.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NvmePath {
    /// The hidden disk of this way.
    pub name: String,
    /// The controller.
    pub controller: String,
    /// How it is attached.
    pub transport: Option<String>,
    /// Its state.
    pub state: Option<String>,
    /// How well the target serves this way.
    pub ana_state: Option<String>,
}

/// One file system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Filesystem {
    /// Its type.
    pub fs_type: String,
    /// The devices it lies on.
    pub devices: Vec<String>,
    /// Every place where it is seen, the first mount first; empty where it is not mounted.
    pub mount_points: Vec<String>,
    /// Its size, where it is known.
    pub size_bytes: Option<u64>,
    /// How it is set up, judged.
    pub settings: Vec<Setting>,
}

/// One overlay.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Overlay {
    /// Where it is mounted.
    pub mount_point: String,
    /// The directory it writes to.
    pub upper_dir: String,
    /// The devices that directory lies on.
    pub devices: Vec<String>,
    /// `holds`, `counted-only`, `off`, `other-filesystem` or `unseen`: whether storage-opt size can hold here.
    pub quota: &'static str,
    /// What to know about that.
    pub quota_told: &'static str,
}

/// A mount whose disks cannot be seen.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Unseen {
    /// Where it is mounted.
    pub mount_point: String,
    /// Its type.
    pub fs_type: String,
    /// What was mounted: a pool, a server.
    pub source: String,
    /// Why its disks cannot be seen.
    pub why: String,
}

/// Where one knob acts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Knob {
    /// The device at the top of the stack.
    pub device: String,
    /// The knob: a file of a cgroup, or of a disk.
    pub knob: &'static str,
    /// Where to set it; empty where it does not act.
    pub at: Vec<At>,
    /// Why there.
    pub why: String,
}

/// A device to set something at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct At {
    /// Its name.
    pub name: String,
    /// Its number, as a cgroup's file wants it.
    pub dev: String,
}

/// What of a host is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// What was asked for, as it was typed, and where it lies.
    pub asked: Option<(&'a str, &'a Place)>,
    /// Whether devices without a medium are told.
    pub all: bool,
}

impl Document {
    /// The document of a snapshot of settings.
    #[must_use]
    pub fn of(snapshot: &Snapshot, view: View) -> Self {
        let shown = shown(snapshot, view);
        let is_shown = |dev: &DevNum| shown.contains(dev);
        let reports = settings::filesystems(snapshot);
        let reports: Vec<&FsReport> = reports.iter().filter(|report| report.devices.iter().any(is_shown)).collect();
        let mut tops: Vec<DevNum> = reports.iter().flat_map(|report| report.devices.clone()).collect();
        if let Some((_, place)) = view.asked {
            tops.retain(|dev| place.devices.contains(dev));
            tops.extend(&place.devices);
        }
        tops.sort_unstable();
        tops.dedup();
        let mut gaps: Vec<Gap> = snapshot
            .gaps
            .iter()
            .filter(|missing| concerns_devices(&missing.what))
            .map(|missing| Gap { what: missing.what.clone(), reason: missing.reason.to_string() })
            .collect();
        for (report, (what, reason)) in
            reports.iter().flat_map(|report| report.gaps.iter().map(move |gap| (report, gap)))
        {
            let gap = Gap { what: format!("{what} of {}", at(report, snapshot)), reason: reason.to_string() };
            if !gaps.iter().any(|known| known.what == gap.what) {
                gaps.push(gap);
            }
        }
        Self {
            schema: "quell.devices/1",
            host: Host::of(&snapshot.host),
            asked: view.asked.map(|(text, place)| Asked::of(text, place, snapshot)),
            devices: snapshot
                .devices
                .iter()
                .filter(|device| is_shown(&device.dev))
                .map(|device| Device::of(device, snapshot))
                .collect(),
            filesystems: reports.iter().map(|report| Filesystem::of(report, snapshot)).collect(),
            overlays: overlays(snapshot, &shown, view),
            unseen: if view.asked.is_none() { unseen(snapshot) } else { Vec::new() },
            knobs: tops.iter().flat_map(|&top| knobs(top, snapshot)).collect(),
            gaps,
        }
    }
}

/// Where a file system is, for people.
fn at(report: &FsReport, snapshot: &Snapshot) -> String {
    let name = report.devices.first().map(|&dev| name_of(dev, snapshot));
    report.mount_points.first().cloned().or(name).unwrap_or_default()
}

/// Whether a gap is one of devices; those of cgroups and processes do not matter here.
fn concerns_devices(what: &str) -> bool {
    ["queue/", "superblock", "diskstats", "mountinfo", "sys/dev/block", "file system"]
        .iter()
        .any(|part| what.contains(part))
}

/// The devices that are told: all with a medium, or those that what was asked for lies on, and for a device those above
/// it as well.
fn shown(snapshot: &Snapshot, view: View) -> Vec<DevNum> {
    let all = snapshot.devices.iter().map(|device| device.dev);
    match view.asked {
        Some((_, place)) => {
            let below: Vec<DevNum> = place.devices.iter().flat_map(|&dev| snapshot.stack(dev)).collect();
            let is_above = |dev: &DevNum| {
                place.mount_point.is_none() && snapshot.stack(*dev).iter().any(|d| place.devices.contains(d))
            };
            all.filter(|dev| below.contains(dev) || is_above(dev)).collect()
        }
        None => all.filter(|&dev| view.all || has_medium(dev, snapshot)).collect(),
    }
}

/// A loop device without a file, an empty drive and memory that is not set up have no size.
fn has_medium(dev: DevNum, snapshot: &Snapshot) -> bool {
    let disk = snapshot.device(snapshot.whole_disk(dev));
    let queue = disk.and_then(|disk| disk.queue.as_deref());
    let is_ram = disk.is_some_and(|disk| Layer::of(disk, snapshot) == Layer::Memory && disk.counters.completed() == 0);
    !is_ram && queue.is_none_or(|queue| queue.size != Ok(Bytes(0)))
}

impl Asked {
    fn of(text: &str, place: &Place, snapshot: &Snapshot) -> Self {
        let mut disks: Vec<DevNum> = place.devices.iter().flat_map(|&dev| snapshot.leaves(dev)).collect();
        disks.sort_unstable();
        disks.dedup();
        Self {
            text: escape(text.as_bytes()).into_owned(),
            steps: place.steps.clone(),
            devices: place.devices.iter().map(|&dev| name_of(dev, snapshot)).collect(),
            disks: disks.iter().map(|dev| format!("{} {dev}", name_of(*dev, snapshot))).collect(),
            unseen: place.unseen.clone(),
        }
    }
}

impl Device {
    fn of(device: &snapshot::Device, snapshot: &Snapshot) -> Self {
        let queue = device.queue.as_deref();
        let detail = queue.and_then(|queue| queue.detail.as_deref());
        let mapper = queue.and_then(|queue| queue.device_mapper.as_ref());
        let raid = queue.and_then(|queue| queue.multi_disk.as_ref());
        Self {
            name: device.name.to_string(),
            dev: device.dev.to_string(),
            layer: Layer::of(device, snapshot).as_str(),
            class: DiskClass::of(snapshot, device).as_str(),
            mapper_name: mapper.and_then(|mapper| text(&mapper.name)),
            raid_level: raid.and_then(|raid| text(&raid.level)),
            backing_file: detail.and_then(|detail| detail.backing_file.clone()),
            size_bytes: snapshot.size_of(device.dev).map(Bytes::get),
            swap: is_swap(device.dev, snapshot),
            model: queue.and_then(|queue| text(&queue.model)),
            numa_node: detail.and_then(|detail| detail.numa_node.ok()).filter(|&node| node >= 0),
            over: snapshot.below(device.dev).into_iter().map(|dev| name_of(dev, snapshot)).collect(),
            settings: settings::queue(snapshot, device).into_iter().map(Setting::of).collect(),
            hardware_queues: detail
                .map(|detail| detail.hardware_queues.iter().map(HardwareQueue::of).collect())
                .unwrap_or_default(),
            nvme_paths: detail.map(|detail| detail.nvme_paths.iter().map(NvmePath::of).collect()).unwrap_or_default(),
        }
    }
}

/// Whether memory is swapped to a device; a file of a file system is the file system's.
fn is_swap(dev: DevNum, snapshot: &Snapshot) -> bool {
    let swaps = snapshot.system.swaps.as_deref().unwrap_or_default();
    let node = |path: &[u8]| stack::locate(&escape(path), snapshot).filter(|place| place.mount_point.is_none());
    swaps.iter().filter_map(|swap| node(&swap.path)).any(|place| place.devices.contains(&dev))
}

impl Setting {
    fn of(judged: Judged) -> Self {
        let Judged { what, value, source, judgement, why, better } = judged;
        Self { name: what, value, judgement: judgement.as_str(), why, better, source }
    }
}

impl HardwareQueue {
    fn of(queue: &snapshot::HardwareQueue) -> Self {
        Self { index: queue.index, cpus: text(&queue.cpus), tags: queue.tags.ok() }
    }
}

impl NvmePath {
    fn of(path: &snapshot::NvmePath) -> Self {
        Self {
            name: path.name.clone(),
            controller: path.controller.clone(),
            transport: text(&path.transport),
            state: text(&path.state),
            ana_state: text(&path.ana_state),
        }
    }
}

impl Filesystem {
    fn of(report: &FsReport, snapshot: &Snapshot) -> Self {
        Self {
            fs_type: report.fs_type.clone(),
            devices: report.devices.iter().map(|&dev| name_of(dev, snapshot)).collect(),
            mount_points: report.mount_points.clone(),
            size_bytes: report.size.map(Bytes::get),
            settings: report.settings.iter().cloned().map(Setting::of).collect(),
        }
    }
}

fn overlays(snapshot: &Snapshot, shown: &[DevNum], view: View) -> Vec<Overlay> {
    let overlay = |mount: &Mount| {
        let quota = settings::writable_layer_quota(mount, snapshot)?;
        let upper_dir = mount.upper_dir.clone()?;
        let devices = stack::locate(&mount.mount_point, snapshot).map(|place| place.devices).unwrap_or_default();
        let is_shown = view.asked.is_none() || devices.iter().any(|dev| shown.contains(dev));
        is_shown.then(|| Overlay {
            mount_point: mount.mount_point.clone(),
            upper_dir,
            devices: devices.iter().map(|&dev| name_of(dev, snapshot)).collect(),
            quota: quota_word(quota),
            quota_told: quota.as_str(),
        })
    };
    snapshot.mounts.iter().filter_map(overlay).collect()
}

fn unseen(snapshot: &Snapshot) -> Vec<Unseen> {
    let unseen = |mount: &Mount| {
        Some(Unseen {
            why: stack::kept_out_of_sight(mount)?,
            mount_point: mount.mount_point.clone(),
            fs_type: mount.fs_type.clone(),
            source: mount.source.clone(),
        })
    };
    snapshot.mounts.iter().filter_map(unseen).collect()
}

pub(super) const fn quota_word(quota: settings::LayerQuota) -> &'static str {
    match quota {
        settings::LayerQuota::Holds => "holds",
        settings::LayerQuota::CountedOnly => "counted-only",
        settings::LayerQuota::Off => "off",
        settings::LayerQuota::OtherFilesystem => "other-filesystem",
        settings::LayerQuota::Unseen => "unseen",
    }
}

fn knobs(top: DevNum, snapshot: &Snapshot) -> Vec<Knob> {
    let at = |dev: DevNum| At { name: name_of(dev, snapshot), dev: dev.to_string() };
    let knob = |acts: stack::Acts| Knob {
        device: name_of(top, snapshot),
        knob: acts.knob,
        at: acts.at.iter().map(|&dev| at(dev)).collect(),
        why: acts.why,
    };
    stack::knobs(top, snapshot).into_iter().map(knob).collect()
}

fn name_of(dev: DevNum, snapshot: &Snapshot) -> String {
    snapshot.device(dev).map_or_else(|| dev.to_string(), |device| device.name.to_string())
}

fn text(known: &Known<String>) -> Option<String> {
    known.as_ref().ok().map(|text| escape(text.as_bytes()).into_owned()).filter(|text| !text.is_empty())
}
