//! The devices that a paste tells of, in the snapshots.
//!
//! A table of rates names devices and gives no numbers; lsblk gives both. A device without a number gets one of major 0,
//! which no disk has, so that nothing it is compared with can be it.

use quell_kfile::diskstats::Counters;
use quell_kfile::scheduler::Scheduler;
use quell_paste::{DeviceFact, Pasted};
use quell_units::{DevName, DevNum, Gap};

use super::series::Stretch;
use crate::snapshot::{Device, MultiDisk, Queue, Snapshot, Window};

/// What the disk of a load generator is called that names none.
pub(super) const UNNAMED: &str = "disk";

/// Adds to both moments each device that a table, a list of devices or a load generator names.
pub(super) fn add(window: &mut Window, pasted: &Pasted, stretch: Option<&Stretch>) {
    let facts = pasted.devices.iter().filter(|fact| fact.kind.as_deref() != Some("char"));
    let rows = stretch.into_iter().flat_map(|stretch| &stretch.rows).map(|row| row.name.as_str());
    let benchmarks = pasted.benchmarks.iter().map(|one| one.device.as_deref().unwrap_or(UNNAMED));
    let mut names: Vec<(&str, Option<DevNum>)> = facts.clone().map(|fact| (fact.name.as_str(), fact.dev)).collect();
    names.extend(rows.chain(benchmarks).map(|name| (name, None)));
    for snapshot in [&mut window.t0, &mut window.t1] {
        for (name, dev) in &names {
            add_device(snapshot, name, *dev);
        }
        for fact in facts.clone() {
            apply(snapshot, fact);
        }
        stack_by_name(snapshot);
    }
}

fn by_name(snapshot: &Snapshot, name: &str) -> Option<DevNum> {
    let name = DevName::new(name.as_bytes())?;
    snapshot.devices.iter().find(|device| device.name == name).map(|device| device.dev)
}

fn add_device(snapshot: &mut Snapshot, name: &str, dev: Option<DevNum>) {
    let (Some(dev_name), None) = (DevName::new(name.as_bytes()), by_name(snapshot, name)) else { return };
    let next = (1..).map(|minor| DevNum { major: 0, minor }).find(|dev| snapshot.device(*dev).is_none());
    let Some(dev) = dev.or_else(|| usual_number(name)).filter(|dev| snapshot.device(*dev).is_none()).or(next) else {
        return;
    };
    let device = Device {
        dev,
        name: dev_name,
        counters: Counters::default(),
        partition_of: None,
        slaves: Vec::new(),
        diskseq: Err(Gap::NotInKernel),
        queue: None,
    };
    let at = snapshot.devices.partition_point(|other| other.dev < dev);
    snapshot.devices.insert(at, device);
}

/// The number that `sda` to `sdp` and their partitions have on every host (Documentation/admin-guide/devices.txt: 8 block).
fn usual_number(name: &str) -> Option<DevNum> {
    let rest = name.strip_prefix("sd")?;
    let letter = rest.bytes().next().filter(|letter| (b'a'..=b'p').contains(letter))?;
    let partition: u32 = match rest.get(1..)? {
        "" => 0,
        digits => digits.parse().ok().filter(|part| (1..16).contains(part))?,
    };
    Some(DevNum { major: 8, minor: u32::from(letter - b'a') * 16 + partition })
}

/// What a list of devices says of one.
fn apply(snapshot: &mut Snapshot, fact: &DeviceFact) {
    let below: Vec<DevNum> = fact.below.iter().filter_map(|name| by_name(snapshot, name)).collect();
    let Some(dev) = by_name(snapshot, &fact.name) else { return };
    let Some(device) = snapshot.devices.iter_mut().find(|device| device.dev == dev) else { return };
    if fact.kind.as_deref() == Some("part") {
        device.partition_of = device.partition_of.or(below.first().copied());
        return;
    }
    for slave in below {
        if !device.slaves.contains(&slave) {
            device.slaves.push(slave);
        }
    }
    let queue = device.queue.get_or_insert_with(|| Box::new(untold()));
    if let Some(rotational) = fact.rotational.filter(|_| queue.rotational.is_err()) {
        queue.rotational = Ok(rotational);
    }
    if let Some(model) = fact.model.clone().filter(|_| queue.model.is_err()) {
        queue.model = Ok(model);
    }
    if let Some(active) = fact.scheduler.as_deref().map(Box::<str>::from).filter(|_| queue.scheduler.is_err()) {
        queue.scheduler = Ok(Scheduler { available: vec![active.clone()], active });
    }
    let level = fact.kind.clone().filter(|kind| kind.starts_with("raid") || kind == "linear");
    if level.is_some() || fact.sync.is_some() {
        queue.multi_disk.get_or_insert_with(|| MultiDisk {
            level: level.ok_or(Gap::NotInKernel),
            sync_action: Ok(fact.sync.as_ref().map_or_else(|| "idle".into(), |(action, _)| action.clone())),
            sync_speed_max: Err(Gap::NotInKernel),
        });
    }
}

/// A queue of which nothing is told.
fn untold() -> Queue {
    const GAP: Gap = Gap::NotInKernel;
    Queue {
        sysfs_path: String::new(),
        model: Err(GAP),
        size: Err(GAP),
        rotational: Err(GAP),
        scheduler: Err(GAP),
        nr_requests: Err(GAP),
        read_ahead_bytes: Err(GAP),
        request_bytes_max: Err(GAP),
        write_cache: Err(GAP),
        wbt_target_usec: Err(GAP),
        wbt: Err(GAP),
        device_mapper: None,
        multi_disk: None,
        detail: None,
    }
}

/// What the names alone say where no list did: `sda1` is of `sda`, and a dm, md or loop device lies on the disks that are
/// named beside it, one or the other.
fn stack_by_name(snapshot: &mut Snapshot) {
    let named: Vec<(DevNum, DevName)> = snapshot.devices.iter().map(|device| (device.dev, device.name)).collect();
    let is_layer = |name: &DevName| {
        ["dm-", "md", "loop", "bcache", "zd", "drbd", "bd"].iter().any(|prefix| {
            name.as_str().strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    let disk_of = |name: &DevName| named.iter().find(|(_, disk)| is_partition_of(name.as_str(), disk.as_str()));
    let whole: Vec<DevNum> = named
        .iter()
        .filter(|(_, name)| !is_layer(name) && disk_of(name).is_none() && !name.as_str().starts_with("zram"))
        .map(|(dev, _)| *dev)
        .collect();
    for device in &mut snapshot.devices {
        if device.partition_of.is_none() && device.slaves.is_empty() {
            if is_layer(&device.name) {
                device.slaves.clone_from(&whole);
            } else if let Some((disk, _)) = disk_of(&device.name) {
                device.partition_of = Some(*disk);
            }
        }
    }
}

/// Whether a name is that of a partition of a disk: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition_of(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let digits = if disk.ends_with(|c: char| c.is_ascii_digit()) { rest.strip_prefix('p') } else { Some(rest) };
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_scsi_disks_are_known_and_others_are_not_guessed() {
        assert_eq!(usual_number("sda4"), Some(DevNum { major: 8, minor: 4 }));
        assert_eq!(usual_number("sdc"), Some(DevNum { major: 8, minor: 32 }));
        for name in ["sdq", "sda16", "sdaa", "vda", "sda-x"] {
            assert_eq!(usual_number(name), None, "{name}");
        }
    }

    #[test]
    fn partitions_are_told_by_their_names() {
        assert!(is_partition_of("sda1", "sda") && is_partition_of("nvme0n1p2", "nvme0n1"));
        assert!(
            !is_partition_of("nvme0n11", "nvme0n1")
                && !is_partition_of("sdab", "sda")
                && !is_partition_of("sda", "sda")
        );
    }
}
