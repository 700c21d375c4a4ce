//! The settings of a disk's queue, by the class of the disk.
//!
//! A table says which files are judged and how. What is read and not in it is shown and left open. A device that hands
//! bios on has most of these files and heeds few of them, so only those are told of it.

use quell_units::{Gap, Known, count};

use super::{Judged, Verdict};
use crate::class::DiskClass;
use crate::snapshot::{Device, Queue, Snapshot};
use crate::stack::Layer;

/// What a rule goes by.
struct Disk<'a> {
    class: DiskClass,
    layer: Layer,
    device: &'a Device,
    queue: &'a Queue,
    cpus: Option<u32>,
    weights_in_use: bool,
    iocost: bool,
}

/// How one file is read and judged.
struct Rule {
    /// The file, below `/sys/block/NAME`.
    file: &'static str,
    /// Its value; `None` where the disk has none.
    value: fn(&Disk) -> Option<Known<String>>,
    judge: fn(&Disk, &str) -> Verdict,
    /// Whether a layer that passes bios on heeds it too.
    layers: bool,
}

// A layer says `iostats` 0 and counts all the same: device-mapper does its own accounting.
static RULES: &[Rule] = &[
    Rule { file: "queue/scheduler", value: |d| Some(scheduler_of(d)), judge: scheduler, layers: false },
    Rule { file: "queue/nr_requests", value: |d| number(&d.queue.nr_requests), judge: nr_requests, layers: false },
    Rule { file: "device/queue_depth", value: |d| d.raw("device/queue_depth"), judge: queue_depth, layers: false },
    Rule {
        file: "queue/read_ahead_kb",
        value: |d| number(&d.queue.read_ahead_bytes.map(|bytes| bytes.get() / 1024)),
        judge: read_ahead,
        layers: true,
    },
    Rule {
        file: "queue/max_sectors_kb",
        value: |d| number(&d.queue.request_bytes_max.map(|bytes| bytes.get() / 1024)),
        judge: max_sectors,
        layers: true,
    },
    Rule {
        file: "queue/rotational",
        value: |d| number(&d.queue.rotational.map(u64::from)),
        judge: rotational,
        layers: false,
    },
    Rule { file: "queue/write_cache", value: |d| word(&d.queue.write_cache), judge: write_cache, layers: false },
    Rule { file: "queue/wbt_lat_usec", value: wbt_of, judge: wbt, layers: false },
    Rule { file: "queue/rq_affinity", value: |d| d.raw("queue/rq_affinity"), judge: rq_affinity, layers: false },
    Rule { file: "queue/nomerges", value: |d| d.raw("queue/nomerges"), judge: nomerges, layers: false },
    Rule { file: "queue/iostats", value: |d| d.raw("queue/iostats"), judge: iostats, layers: false },
    Rule { file: "queue/add_random", value: |d| d.raw("queue/add_random"), judge: add_random, layers: false },
    Rule { file: "queue/io_poll", value: |d| d.raw("queue/io_poll"), judge: |_, _| Verdict::fine(""), layers: false },
    Rule {
        file: "queue/logical_block_size",
        value: |d| d.raw("queue/logical_block_size"),
        judge: |_, _| Verdict::fine(""),
        layers: true,
    },
    Rule {
        file: "queue/physical_block_size",
        value: |d| d.raw("queue/physical_block_size"),
        judge: physical_block,
        layers: true,
    },
    Rule { file: "alignment_offset", value: |d| d.raw("alignment_offset"), judge: alignment, layers: true },
    Rule { file: "mq", value: hardware_queues_of, judge: hardware_queues, layers: false },
];

/// The settings of a device, judged; of a partition where it begins, since all else is its disk's.
#[must_use]
pub fn queue(snapshot: &Snapshot, device: &Device) -> Vec<Judged> {
    let Some(queue) = device.queue.as_deref() else { return partition(snapshot, device).into_iter().collect() };
    let root = snapshot.cgroups.first().and_then(|root| root.config.as_deref());
    let qos = root.and_then(|root| root.cost_qos.as_ref().ok());
    let layer = Layer::of(device, snapshot);
    let disk = Disk {
        class: DiskClass::of(snapshot, device),
        layer,
        device,
        queue,
        cpus: snapshot.host.cpus.ok(),
        weights_in_use: snapshot.cgroups.iter().any(|cgroup| {
            let weights = cgroup.config.as_deref().and_then(|config| config.bfq_weight.as_ref().ok());
            weights.is_some_and(|weights| weights.on(device.dev) != 100)
        }),
        iocost: qos.is_some_and(|rows| rows.iter().any(|row| row.dev == device.dev && row.enabled)),
    };
    let heeded = RULES.iter().filter(|rule| rule.layers || layer.has_requests());
    let mut out: Vec<Judged> = heeded.filter_map(|rule| disk.judged(rule)).collect();
    out.extend(disk.scheduler_settings());
    out
}

/// Where a partition begins: a write that is whole to the file system should be whole to the disk.
fn partition(snapshot: &Snapshot, device: &Device) -> Option<Judged> {
    // Tools begin partitions at whole MiB, which is whole to any disk, array or flash page.
    const WHOLE: u64 = 1 << 20;
    let start = snapshot.partitions.iter().find(|partition| partition.dev == device.dev)?.start.ok()?.get();
    let disk = snapshot.device(device.partition_of?)?;
    let detail = disk.queue.as_deref().and_then(|queue| queue.detail.as_deref());
    let block = detail.and_then(|detail| {
        let block = detail.settings.iter().find(|setting| setting.file == "queue/physical_block_size")?;
        block.value.as_ref().ok()?.parse::<u64>().ok().filter(|&block| block > 0)
    });
    let verdict = match block {
        _ if start.is_multiple_of(WHOLE) => Verdict::fine("at a whole MiB"),
        Some(block) if !start.is_multiple_of(block) => Verdict::wrong(format!(
            "no whole block of the disk ({block} bytes): a write of one block touches two, and the disk reads both first"
        )),
        _ => Verdict::open("not at a whole MiB: stripes of an array or pages of flash may be cut"),
    };
    let source = format!("/sys/block/{}/{}/start", disk.name, device.name);
    Some(Judged::of("start", format!("{} sectors", start / 512), source, verdict))
}

impl Disk<'_> {
    fn judged(&self, rule: &Rule) -> Option<Judged> {
        let what = rule.file.rsplit('/').next().unwrap_or(rule.file);
        let (value, verdict) = match (rule.value)(self)? {
            Ok(value) => {
                let verdict = (rule.judge)(self, &value);
                (value, verdict)
            }
            // What this kernel or disk has no file for is no setting of it.
            Err(Gap::NotInKernel) => return None,
            Err(reason) => ("?".into(), Verdict::open(reason.to_string())),
        };
        Some(self.told(if what == "mq" { "hardware queues" } else { what }, value, rule.file, verdict))
    }

    fn told(&self, what: &str, value: String, file: &str, verdict: Verdict) -> Judged {
        Judged::of(what, value, format!("/sys/block/{}/{file}", self.device.name), verdict)
    }

    /// A file of which nothing but its text is kept.
    fn raw(&self, file: &str) -> Option<Known<String>> {
        let settings = &self.queue.detail.as_ref()?.settings;
        settings.iter().find(|setting| setting.file == file).map(|setting| setting.value.clone())
    }

    fn scheduler(&self) -> &str {
        self.queue.scheduler.as_ref().map_or("", |scheduler| &scheduler.active)
    }

    /// Whether the kernel offers a scheduler here without loading a module.
    fn offers(&self, name: &str) -> bool {
        let listed = self.queue.scheduler.as_ref().map(|scheduler| scheduler.available.as_slice());
        listed.is_ok_and(|listed| listed.iter().any(|listed| &**listed == name))
    }

    /// The files of the active scheduler.
    fn scheduler_settings(&self) -> Vec<Judged> {
        const DIR: &str = "queue/iosched/";
        let settings = self.queue.detail.as_ref().map(|detail| detail.settings.as_slice()).unwrap_or_default();
        settings
            .iter()
            .filter_map(|setting| {
                let name = setting.file.strip_prefix(DIR)?;
                let (value, verdict) = match &setting.value {
                    Ok(value) => (value.clone(), scheduler_setting(self, name, value)),
                    Err(reason) => ("?".into(), Verdict::open(reason.to_string())),
                };
                Some(self.told(&format!("{}: {name}", self.scheduler()), value, &setting.file, verdict))
            })
            .collect()
    }
}

fn number(value: &Known<u64>) -> Option<Known<String>> {
    Some(value.map(|n| n.to_string()))
}

fn word(value: &Known<String>) -> Option<Known<String>> {
    Some(value.clone())
}

fn scheduler_of(disk: &Disk) -> Known<String> {
    disk.queue.scheduler.as_ref().map(|scheduler| scheduler.active.to_string()).map_err(|gap| *gap)
}

fn wbt_of(disk: &Disk) -> Option<Known<String>> {
    match disk.queue.wbt_target_usec {
        // Off by way of bfq, or of a queue that cannot have it.
        Err(Gap::Disabled) => None,
        target => Some(target.map(|target| target.to_string())),
    }
}

fn hardware_queues_of(disk: &Disk) -> Option<Known<String>> {
    let queues = &disk.queue.detail.as_ref()?.hardware_queues;
    let tags = queues.iter().filter_map(|queue| queue.tags.ok()).max();
    let tags = tags.map(|tags| format!(", {tags} deep")).unwrap_or_default();
    (!queues.is_empty()).then(|| Ok(format!("{}{tags}", queues.len())))
}

/// Which scheduler fits is the class's: `none` for what has queues and an order of its own, a deadline for SATA flash,
/// which starves reads behind writes, an elevator for what has a head to move.
fn scheduler(disk: &Disk, active: &str) -> Verdict {
    let or_deadline =
        |verdict: Verdict| if disk.offers("mq-deadline") { verdict.better("mq-deadline") } else { verdict };
    match (disk.class, active) {
        _ if disk.layer == Layer::Loop => match active {
            "none" => Verdict::fine("the disk below orders requests"),
            _ => Verdict::questionable("requests are ordered again on the disk below").better("none"),
        },
        (_, "bfq") if disk.weights_in_use => Verdict::fine("it is the engine of the weights in io.bfq.weight"),
        (DiskClass::Nvme, "none") => Verdict::fine("many queues and no head to move: nothing to order"),
        (DiskClass::Nvme, "kyber") => Verdict::open("it trades throughput for latency; none is the usual"),
        (DiskClass::Nvme, "bfq") => Verdict::wrong(
            "it takes a lock for each request: one disk is held to about 300,000 a second, and nobody has set a weight",
        )
        .better("none"),
        (DiskClass::Nvme, _) => Verdict::questionable(
            "it costs CPU for each request (3.4 us against 2.8) and one lock for all queues; the drive orders by itself",
        )
        .better("none"),
        (DiskClass::Virtual, "none") => Verdict::fine("what serves the disk orders requests again"),
        (DiskClass::Virtual, "bfq") => {
            Verdict::questionable("it idles for the next request of a disk it cannot see, and nobody has set a weight")
                .better("none")
        }
        (DiskClass::Virtual, _) => Verdict::questionable(
            "it orders by sector on a disk whose sectors lie elsewhere; what serves the disk orders again",
        )
        .better("none"),
        (DiskClass::Ssd, "mq-deadline" | "kyber") => Verdict::fine("reads are not starved by writes"),
        (DiskClass::Ssd, "none") => {
            or_deadline(Verdict::questionable("a SATA drive has one short queue: a burst of writes makes reads wait"))
        }
        (DiskClass::Ssd, "bfq") => {
            or_deadline(Verdict::questionable("fair, at a price in CPU and throughput; nobody has set a weight"))
        }
        (DiskClass::Hdd, "mq-deadline" | "bfq") => Verdict::fine("requests are ordered for the head"),
        (DiskClass::Hdd, _) => or_deadline(Verdict::wrong(
            "nothing orders requests for the head: random I/O seeks for each, and reads wait behind writes",
        )),
        _ => Verdict::open("what kind of disk it is, is not known"),
    }
}

/// Ranges from practice: 32 to 256 for flash, 64 to 128 for spinning disks, whose every request costs a seek.
fn nr_requests(disk: &Disk, value: &str) -> Verdict {
    let Ok(requests) = value.parse::<u64>() else { return Verdict::open("") };
    match (disk.class, requests) {
        (DiskClass::Hdd, 129..) => Verdict::questionable(format!(
            "at 8 ms a seek the last of {requests} waits {:.1} s; 64 to 128 still lets the elevator order",
            count(requests) * 0.008
        ))
        .better("128"),
        (DiskClass::Hdd, 0..64) => {
            Verdict::questionable("too few to order for the head; 64 to 128 is usual").better("64")
        }
        (DiskClass::Ssd | DiskClass::Nvme | DiskClass::Virtual, 0..32) => {
            Verdict::questionable("fewer than the drive serves at once: requests wait for a tag").better("64")
        }
        (DiskClass::Ssd, 257..) => {
            Verdict::questionable("more than the drive serves at once: a burst of writes fills it before reads get in")
                .better("256")
        }
        (DiskClass::Unknown, _) => Verdict::open(""),
        _ => Verdict::fine(""),
    }
}

fn queue_depth(disk: &Disk, value: &str) -> Verdict {
    match value.parse::<u64>() {
        Ok(1) => Verdict::questionable("one command at a time: command queueing is off, or the controller has none"),
        Ok(_) if disk.class == DiskClass::Unknown => Verdict::open(""),
        Ok(_) => Verdict::fine("commands that the device takes at once"),
        Err(_) => Verdict::open(""),
    }
}

fn read_ahead(disk: &Disk, value: &str) -> Verdict {
    let Ok(kib) = value.parse::<u64>() else { return Verdict::open("") };
    // An array is read a stripe of all disks at a time, and the kernel sets it so.
    let most = match (disk.layer, disk.class) {
        (Layer::Raid | Layer::Multipath, _) => 16_384,
        (_, DiskClass::Hdd) => 4096,
        _ => 1024,
    };
    match kib {
        0 => Verdict::questionable("a sequential reader waits for every request").better("128"),
        kib if kib > most => Verdict::questionable(format!(
            "a reader that looks sequential for a moment reads {kib} KiB, which random readers throw away again"
        ))
        .better(if disk.class == DiskClass::Hdd { "1024" } else { "128" }),
        _ => Verdict::fine(""),
    }
}

fn max_sectors(disk: &Disk, value: &str) -> Verdict {
    let most = disk.raw("queue/max_hw_sectors_kb").and_then(|known| known.ok()?.parse::<u64>().ok());
    match (value.parse::<u64>(), most) {
        (Ok(kib @ 0..256), Some(most)) if most > kib => Verdict::questionable(format!(
            "a write of 1 MiB becomes {} requests, and counts as many for an IOPS limit; the device takes {most} KiB",
            1024_u64.div_ceil(kib.max(1))
        ))
        .better(most.min(1280).to_string()),
        (Ok(kib @ 0..256), _) => {
            Verdict::open(format!("the device takes no more: 1 MiB is {} requests", 1024_u64.div_ceil(kib.max(1))))
        }
        _ => Verdict::fine(""),
    }
}

/// Models whose disks are behind a controller that hides what they are.
const CONTROLLERS: [&str; 7] = ["PERC", "LOGICAL VOLUME", "MegaRAID", "ServeRAID", "MR9", "AVAGO", "SmartArray"];

fn rotational(disk: &Disk, value: &str) -> Verdict {
    let model = disk.queue.model.as_deref().unwrap_or_default();
    let spins = value == "1";
    match disk.class {
        DiskClass::Nvme if spins => Verdict::wrong("no NVMe drive spins: iocost, wbt, swap and btrfs go by it").better("0"),
        _ if spins && model.contains("SSD") => Verdict::wrong(format!("{model} does not spin")).better("0"),
        DiskClass::Virtual if spins && !acts_on_rotational(disk) => {
            Verdict::fine("virtio disks say so by default; iocost, bfq and wbt would go by it, and none is on")
        }
        DiskClass::Virtual if spins => Verdict::questionable(
            "a virtual disk that says it spins gets iocost's model of a spinning disk (370 random IOPS) and wbt's 75 ms",
        )
        .better("0"),
        DiskClass::Hdd if CONTROLLERS.iter().any(|name| model.contains(name)) => {
            Verdict::questionable("the controller says it of all its disks: look what they are")
        }
        DiskClass::Unknown => Verdict::open(""),
        _ => Verdict::fine(""),
    }
}

/// Whether anything treats the disk by its rotational flag.
fn acts_on_rotational(disk: &Disk) -> bool {
    let bfq = disk.queue.scheduler.as_ref().is_ok_and(|scheduler| &*scheduler.active == "bfq");
    disk.iocost || bfq || disk.queue.wbt_target_usec.is_ok_and(|usec| usec > 0)
}

fn write_cache(disk: &Disk, value: &str) -> Verdict {
    match (value, disk.class) {
        ("write back", _) => Verdict::fine("volatile: each fsync costs a flush, and barriers must stay on"),
        ("write through", DiskClass::Hdd | DiskClass::Ssd) => {
            Verdict::fine("not volatile, or a battery's: the kernel sends no flush")
        }
        ("write through", _) => Verdict::fine("the kernel sends no flush: what is written is taken to be safe"),
        _ => Verdict::open(""),
    }
}

fn wbt(disk: &Disk, value: &str) -> Verdict {
    let Ok(usec) = value.parse::<i64>() else { return Verdict::open("") };
    let least = disk.class.fast_usec(4096.0);
    // `wbt_default_latency_nsec` in block/blk-wbt.c.
    let default = if disk.queue.rotational == Ok(true) { 75_000 } else { 2000 };
    match usec {
        0 => Verdict::fine("off: buffered writes are not held back"),
        _ if disk.iocost => Verdict::questionable("iocost is on, and both hold writes back").better("0"),
        usec if usec > 0
            && usec != default
            && u64::try_from(usec).is_ok_and(|usec| count(usec) < least)
            && disk.class != DiskClass::Nvme =>
        {
            Verdict::questionable(format!(
                "a disk of this class may need {:.1} ms for one write: wbt would hold buffered writes to one at a time",
                least / 1000.0
            ))
            .better(default.to_string())
        }
        _ => Verdict::fine("buffered writes give way when reads take longer than this"),
    }
}

fn rq_affinity(disk: &Disk, value: &str) -> Verdict {
    let many = disk.cpus.is_some_and(|cpus| cpus > 1);
    match (value, disk.class) {
        ("0", DiskClass::Nvme | DiskClass::Ssd | DiskClass::Virtual) if many => {
            Verdict::questionable("one processor completes everybody's requests").better("1")
        }
        ("0" | "1" | "2", _) => Verdict::fine(""),
        _ => Verdict::open(""),
    }
}

fn nomerges(disk: &Disk, value: &str) -> Verdict {
    match (value, disk.class) {
        ("0", _) => Verdict::fine(""),
        (_, DiskClass::Hdd) => Verdict::wrong("neighbouring requests stay apart, and each costs a turn").better("0"),
        ("1", _) => Verdict::open("only the cheap merges are tried"),
        _ => Verdict::questionable("sequential I/O is not merged: more requests for the same bytes").better("0"),
    }
}

fn iostats(_: &Disk, value: &str) -> Verdict {
    match value {
        "0" => Verdict::wrong("the kernel counts nothing: iostat and quell are blind here").better("1"),
        _ => Verdict::fine(""),
    }
}

fn add_random(disk: &Disk, value: &str) -> Verdict {
    match (value, disk.class) {
        ("1", DiskClass::Nvme | DiskClass::Ssd | DiskClass::Virtual) => {
            Verdict::questionable("each completion feeds the random pool, for which flash is no source").better("0")
        }
        _ => Verdict::fine(""),
    }
}

fn physical_block(disk: &Disk, value: &str) -> Verdict {
    let logical = disk.raw("queue/logical_block_size").and_then(Result::ok);
    match logical {
        Some(logical) if logical != value => {
            Verdict::fine(format!("writes that are no whole {value} bytes are read first by the device"))
        }
        _ => Verdict::fine(""),
    }
}

fn alignment(_: &Disk, value: &str) -> Verdict {
    match value {
        "0" => Verdict::fine(""),
        _ => Verdict::wrong("its blocks do not begin where the device's do: each write may touch two"),
    }
}

fn hardware_queues(disk: &Disk, _: &str) -> Verdict {
    let queues = disk.queue.detail.as_ref().map_or(0, |detail| detail.hardware_queues.len());
    let cpus = disk.cpus.and_then(|cpus| usize::try_from(cpus).ok()).unwrap_or(0);
    match disk.class {
        DiskClass::Nvme if queues < cpus => {
            Verdict::open(format!("{cpus} processors share them: the drive or the driver offers no more"))
        }
        DiskClass::Virtual if queues == 1 && cpus >= 4 => {
            Verdict::questionable(format!("{cpus} processors share one; the hypervisor can give more (num-queues)"))
        }
        _ => Verdict::fine(""),
    }
}

/// The kernel's defaults, of the schedulers' sources: times in milliseconds, kyber's in nanoseconds.
const DEFAULTS: [(&str, &str, &str); 14] = [
    ("mq-deadline", "read_expire", "500"),
    ("mq-deadline", "write_expire", "5000"),
    ("mq-deadline", "writes_starved", "2"),
    ("mq-deadline", "fifo_batch", "16"),
    ("mq-deadline", "front_merges", "1"),
    ("mq-deadline", "prio_aging_expire", "10000"),
    ("kyber", "read_lat_nsec", "2000000"),
    ("kyber", "write_lat_nsec", "10000000"),
    ("bfq", "slice_idle", "8"),
    ("bfq", "low_latency", "1"),
    ("bfq", "timeout_sync", "125"),
    ("bfq", "strict_guarantees", "0"),
    ("bfq", "max_budget", "0"),
    ("bfq", "back_seek_penalty", "2"),
];

fn scheduler_setting(disk: &Disk, name: &str, value: &str) -> Verdict {
    let is_flash = matches!(disk.class, DiskClass::Nvme | DiskClass::Ssd | DiskClass::Virtual);
    let default = DEFAULTS.iter().find(|(of, file, _)| *of == disk.scheduler() && *file == name);
    match (disk.scheduler(), name, value) {
        ("bfq", "slice_idle", value) if value != "0" && is_flash => {
            Verdict::questionable("the disk idles for the next request of one process, which flash need not wait for")
                .better("0")
        }
        _ => match default {
            Some((_, _, default)) if *default == value => Verdict::fine("the kernel's default"),
            Some((_, _, default)) => Verdict::open(format!("the kernel's default is {default}")),
            None => Verdict::open(""),
        },
    }
}
