//! `swap-io`: the disk is busy with memory that did not fit.

use quell_units::{escape, ratio};

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "swap-io",
    explain: Explain {
        means: "Most of what the disk does is swapping: memory is short, and the disk pays for it.",
        kernel: "Pages in and out of swap are ordinary requests to the swap disk, counted as I/O pressure; \
            memory.pressure can stay near 2 % meanwhile (1.8 % beside 80 % of io.pressure was measured).",
        evidence: "pswpin and pswpout of at least 50 pages a second that make up at least half of the bytes of the disk \
            that /proc/swaps names, while that disk is a fifth busy or the workload stalled; not where zram comes first.",
        change: "Give the workload more memory, or the host; put swap on another disk, or on zram.",
        undo: "Write the old limit back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    swap_io(scene).into_iter().collect()
}

fn swap_io(scene: &Scene) -> Option<Finding> {
    let system = &scene.rates.system;
    let (swapped_in, swapped_out) = (system.swap_in_pages_per_sec.ok()?, system.swap_out_pages_per_sec.ok()?);
    let pages = swapped_in + swapped_out;
    let disk = scene.leaf_disks().find(|disk| holds_swap(scene, disk))?;
    let share = ratio(pages * scene.page_bytes(), disk.rates?.bytes_per_sec());
    let workload = who_swaps(scene);
    let felt = disk.util_pct >= 20.0 || workload.is_some_and(|workload| workload.stall_ratio() >= 0.1);
    if pages < 50.0 || share < 0.5 || !felt || memory_takes_it(scene) {
        return None;
    }
    let mut out = vec![
        evidence(Aspect::Memory, "swapped in", Value::PerSec(swapped_in), "/proc/vmstat"),
        evidence(Aspect::Memory, "swapped out", Value::PerSec(swapped_out), "/proc/vmstat"),
        evidence(
            Aspect::Memory,
            "share of the disk's bytes",
            Value::Pct(share.min(1.0) * 100.0),
            "/proc/vmstat, /proc/diskstats",
        ),
    ];
    if let Some(workload) = workload {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    out.extend(of_disk(disk));
    let who = workload.map_or("this host".to_owned(), |workload| workload.name.clone());
    Some(Finding {
        confidence: 0.9,
        summary: format!(
            "{who} is short of memory: {:.0} % of what {} does is swapping",
            share.min(1.0) * 100.0,
            disk.name
        ),
        evidence: out,
        advice: vec![Advice::text(format!("give {who} more memory, or less to do; swap on zram keeps the disk free"))],
        stall_ratio: workload.map_or(0.5, Workload::stall_ratio),
        ..finding(RULE.id, workload.map_or(disk_subject(disk), |workload| subject(workload, Some(disk.name))))
    })
}

/// Whether a swap partition, or the file system of a swap file, lies on the disk.
fn holds_swap(scene: &Scene, disk: &Disk) -> bool {
    let Ok(swaps) = &scene.window.t1.system.swaps else { return false };
    swaps.iter().any(|swap| {
        let path = escape(&swap.path);
        let by_node = path.strip_prefix("/dev/").and_then(|name| {
            let device = scene.window.t1.devices.iter().find(|device| device.name.as_str() == name)?;
            Some(device.dev)
        });
        let by_mount = || {
            let mounts = scene.window.t1.filesystems.iter();
            let below =
                |mount: &str| mount == "/" || path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/'));
            let holds = mounts.filter(|fs| below(&fs.mount_point)).max_by_key(|fs| fs.mount_point.len());
            holds.map(|fs| fs.dev)
        };
        by_node.or_else(by_mount).is_some_and(|dev| scene.window.t1.leaves(dev).contains(&disk.dev))
    })
}

/// Whether swap in memory (zram) comes first and has room: then pages go there, and the disk's work is another's.
fn memory_takes_it(scene: &Scene) -> bool {
    let Ok(swaps) = &scene.window.t1.system.swaps else { return false };
    let first = swaps.iter().max_by_key(|swap| swap.priority);
    first.is_some_and(|swap| swap.path.starts_with(b"/dev/zram") && swap.used_bytes < swap.size_bytes)
}

/// The workload that reads most of its memory back from swap.
fn who_swaps<'s>(scene: &'s Scene) -> Option<&'s Workload> {
    let refaults =
        |workload: &Workload| workload.memory.and_then(|memory| memory.refault_anon_pages_per_sec).unwrap_or(0.0);
    let most = scene.workloads.iter().max_by(|a, b| refaults(a).total_cmp(&refaults(b)))?;
    (refaults(most) >= 10.0).then_some(most)
}
