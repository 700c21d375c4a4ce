//! `scheduler-mismatch`: the disk's I/O scheduler is of the wrong kind for it.

use super::evidence::{disk_subject, evidence, finding, of_disk, subject};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "scheduler-mismatch",
    explain: Explain {
        means: "A scheduler made for slow disks stands in front of a fast one and costs CPU that the requests then lack; or \
            a spinning disk has none that could order its requests.",
        kernel: "A scheduler takes a lock per device and orders requests. One core spends 2.8 us on a 4K read without one, \
            3.4 with mq-deadline, 4.2 with bfq; over many cores one device is held to about 300,000 a second by bfq and \
            500,000 by mq-deadline. A spinning disk gains from order what an NVMe drive has no use for.",
        evidence: "NVMe with bfq at 2,000 requests a second or more, or with mq-deadline at 100,000, and half of the CPU time in \
            the kernel, or a tenth of it and a whole processor; a spinning disk with `none` whose requests queue.",
        change: "none on NVMe, mq-deadline or bfq on a spinning disk; per disk, by a udev rule that goes by the class.",
        undo: "Write the old name back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(|disk| Some(mismatch(scene, disk, better(scene, disk)?))).collect()
}

/// The scheduler that fits better, where the present one does harm.
fn better(scene: &Scene, disk: &Disk) -> Option<&'static str> {
    let per_sec = disk.rates?.ios_per_sec();
    let cpus = scene.window.t1.host.cpus.map_or(1.0, f64::from);
    let in_kernel =
        scene.rates.system.cpu_system_pct.is_ok_and(|pct| pct >= 50.0 || pct >= 10.0 && pct * cpus >= 100.0);
    match (disk.class, disk.scheduler()?) {
        (DiskClass::Nvme, "bfq") if per_sec >= 2_000.0 && in_kernel => Some("none"),
        (DiskClass::Nvme, "mq-deadline") if per_sec >= 100_000.0 && in_kernel => Some("none"),
        (DiskClass::Hdd, "none") if disk.is_queueing() => Some("mq-deadline"),
        _ => None,
    }
}

fn mismatch(scene: &Scene, disk: &Disk, better: &str) -> Finding {
    let scheduler = disk.scheduler().unwrap_or_default();
    let source = format!("/sys/block/{}/queue/scheduler", disk.name);
    let mut out = vec![evidence(Aspect::Device, "scheduler", Value::Word(scheduler.to_owned()), source)];
    out.extend(of_disk(disk));
    if let Ok(pct) = scene.rates.system.cpu_system_pct {
        out.push(evidence(Aspect::Device, "CPU in the kernel", Value::Pct(pct), "/proc/stat"));
    }
    let text = format!("{better} is the scheduler for a disk of this class");
    let advice = super::advise::set_queue(disk, "scheduler", better, scheduler, text);
    let user = scene.main_user(disk);
    let kind = if disk.class == DiskClass::Nvme { "an NVMe disk" } else { "a disk that rotates" };
    Finding {
        confidence: 0.8,
        summary: format!("{scheduler} is the wrong scheduler for {}, {kind}", disk.name),
        evidence: out,
        advice: vec![
            advice.risk("requests in flight are drained first, for a moment; weights under bfq lose their engine"),
        ],
        stall_ratio: user.map_or(0.3, |(workload, _)| workload.stall_ratio().max(0.3)),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}
