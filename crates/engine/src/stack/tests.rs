//! Stacks on a written host: docker on a partition, a database on LVM over dm-crypt, btrfs on two disks, ZFS.

use quell_units::{DevName, Gap};

use super::*;
use crate::findings::written;
use crate::snapshot::{Device, DeviceMapper, Mount, MultiDisk};

fn dev(text: &str) -> DevNum {
    text.parse().unwrap()
}

fn device(number: &str, name: &str) -> Device {
    Device { dev: dev(number), name: DevName::new(name.as_bytes()).unwrap(), ..written::device(0, "x", "/sys/block") }
}

fn mapper(number: &str, name: &str, uuid: &str, below: &[&str]) -> Device {
    let mut device = device(number, name);
    device.slaves = below.iter().map(|below| dev(below)).collect();
    device.queue.as_mut().unwrap().device_mapper =
        Some(DeviceMapper { name: Ok(format!("vg-{name}")), uuid: Ok(uuid.into()), suspended: Ok(false) });
    device
}

fn mount(point: &str, number: &str, fs_type: &str, on: &[&str]) -> Mount {
    Mount {
        mount_point: point.into(),
        root: "/".into(),
        dev: dev(number),
        fs_type: fs_type.into(),
        source: "tank/data".into(),
        options: "rw".into(),
        fs_options: "rw".into(),
        upper_dir: None,
        on: on.iter().map(|on| dev(on)).collect(),
    }
}

/// docker on a partition of vda, a database on LVM over dm-crypt over a partition of vdb, btrfs on two disks, ZFS.
fn host() -> Snapshot {
    let mut host = written::snapshot(0);
    let part = |number, name, of| Device { partition_of: Some(dev(of)), queue: None, ..device(number, name) };
    host.devices = vec![
        device("253:0", "vda"),
        part("253:1", "vda1", "253:0"),
        device("253:16", "vdb"),
        part("253:17", "vdb1", "253:16"),
        mapper("254:0", "dm-0", "CRYPT-LUKS2-x", &["253:17"]),
        mapper("254:1", "dm-1", "LVM-abc", &["254:0"]),
        device("253:32", "vdc"),
        device("253:48", "vdd"),
    ];
    host.devices.sort_by_key(|device| device.dev);
    let overlay = Mount {
        upper_dir: Some("/var/lib/docker/overlay2/f/diff".into()),
        ..mount("/var/lib/docker/overlay2/f/merged", "0:60", "overlay", &[])
    };
    host.mounts = vec![
        mount("/", "253:1", "ext4", &["253:1"]),
        overlay,
        mount("/data", "254:1", "xfs", &["254:1"]),
        mount("/pool", "0:50", "btrfs", &["253:32", "253:48"]),
        mount("/tank", "0:51", "zfs", &[]),
    ];
    host
}

fn numbers(devices: &[DevNum]) -> Vec<String> {
    devices.iter().map(ToString::to_string).collect()
}

#[test]
fn a_path_on_a_partition_becomes_the_disk_and_each_step_is_told() {
    let place = locate("/var/lib/docker", &host()).unwrap();
    assert_eq!(numbers(&place.devices), ["253:1"]);
    assert_eq!(
        place.steps,
        ["/var/lib/docker is below /, which is ext4 on vda1 253:1", "vda1 253:1 is a partition of vda 253:0"]
    );
    assert_eq!(numbers(&host().leaves(dev("253:1"))), ["253:0"]);
}

#[test]
fn an_overlay_leads_to_the_disk_of_its_upper_directory() {
    let place = locate("/var/lib/docker/overlay2/f/merged/etc", &host()).unwrap();
    assert_eq!(numbers(&place.devices), ["253:1"]);
    assert!(place.steps[0].contains("writes to /var/lib/docker/overlay2/f/diff"), "{:?}", place.steps);
}

#[test]
fn inside_a_container_the_upper_directory_is_not_seen_and_not_guessed() {
    let mut host = host();
    let upper_dir = Some("/var/lib/docker/overlay2/f/diff".into());
    host.mounts = vec![Mount { upper_dir, ..mount("/", "0:60", "overlay", &[]) }];
    let place = locate("/etc", &host).unwrap();
    assert!(place.devices.is_empty() && place.unseen.unwrap().contains("mount namespace"));
}

#[test]
fn a_stack_is_told_from_the_top_down_to_the_disk() {
    let host = host();
    let place = locate("/data/pg/base", &host).unwrap();
    let layers: Vec<&str> =
        host.stack(place.devices[0]).iter().map(|&dev| Layer::of(host.device(dev).unwrap(), &host).as_str()).collect();
    assert_eq!(layers, ["lvm", "crypt", "partition", "disk"]);
    assert_eq!(place.steps.len(), 4);
}

#[test]
fn devices_are_found_by_name_node_number_and_mapper_name() {
    for text in ["dm-1", "/dev/dm-1", "254:1", "/dev/mapper/vg-dm-1", "vg-dm-1"] {
        assert_eq!(numbers(&locate(text, &host()).unwrap().devices), ["254:1"], "{text}");
    }
    assert_eq!(locate("/dev/nosuch", &host()), None);
    assert_eq!(locate("nosuch", &host()), None);
}

#[test]
fn btrfs_lies_on_all_its_disks_and_zfs_on_none_that_are_seen() {
    assert_eq!(numbers(&locate("/pool/x", &host()).unwrap().devices), ["253:32", "253:48"]);
    let tank = locate("/tank", &host()).unwrap();
    assert!(tank.devices.is_empty() && tank.unseen.unwrap().contains("zpool status tank"));
    let host = host();
    let out_of_sight = host.mounts.iter().filter(|mount| kept_out_of_sight(mount).is_some());
    let points: Vec<&str> = out_of_sight.map(|mount| &*mount.mount_point).collect();
    assert_eq!(points, ["/tank"]);
}

#[test]
fn a_loop_of_layers_ends() {
    let mut host = host();
    host.devices = vec![mapper("254:0", "dm-0", "", &["254:1"]), mapper("254:1", "dm-1", "", &["254:0"])];
    assert_eq!(host.stack(dev("254:0")).len(), 2);
    assert!(!knobs(dev("254:0"), &host).is_empty());
}

fn at(host: &Snapshot, top: &str, knob: &str) -> Vec<String> {
    numbers(&knobs(dev(top), host).into_iter().find(|acts| acts.knob == knob).unwrap().at)
}

#[test]
fn a_cap_goes_to_the_disk_and_above_a_layer_that_loses_the_cgroup() {
    let mut host = host();
    assert_eq!(at(&host, "253:1", "io.max"), ["253:0"]);
    assert_eq!(at(&host, "254:1", "io.max"), ["254:0"], "encrypted writes are the kernel's own below dm-crypt");
    *host.devices.iter_mut().find(|device| device.dev == dev("254:0")).unwrap() =
        mapper("254:0", "dm-0", "LVM-x", &["253:17"]);
    assert_eq!(at(&host, "254:1", "io.max"), ["253:16"]);
    assert_eq!(at(&host, "254:1", "queue/scheduler"), ["253:16"]);
    assert_eq!(at(&host, "254:1", "queue/read_ahead_kb"), ["254:1"]);
    host.devices.iter_mut().find(|device| device.dev == dev("254:0")).unwrap().slaves.push(dev("253:32"));
    assert_eq!(at(&host, "254:1", "io.max"), ["254:1"], "one cap for both disks");
}

#[test]
fn a_file_system_that_bills_nobody_is_named_where_a_cap_is_explained() {
    let mut host = host();
    let told = |host: &Snapshot| knobs(dev("253:1"), host)[0].why.contains("buffered writes pass any cap");
    assert!(!told(&host));
    host.mounts[0].fs_type = "vfat".into();
    assert!(told(&host));
}

#[test]
fn version_1_has_throttling_and_none_of_the_later_knobs() {
    let mut host = host();
    host.host.cgroups = crate::snapshot::CgroupMode::V1;
    assert_eq!(at(&host, "253:1", "blkio.throttle.*"), ["253:0"]);
    assert!(at(&host, "253:1", "io.weight").is_empty() && at(&host, "253:1", "io.latency").is_empty());
}

#[test]
fn parity_arrays_lose_the_cgroup_and_mirrors_do_not() {
    let mut host = host();
    let mut array = device("9:0", "md0");
    array.slaves = vec![dev("253:32")];
    for (level, holds) in [("raid5", "9:0"), ("raid1", "253:32")] {
        array.queue.as_mut().unwrap().multi_disk = Some(MultiDisk {
            level: Ok(level.into()),
            sync_action: Err(Gap::NotInKernel),
            sync_speed_max: Err(Gap::NotInKernel),
        });
        host.devices.retain(|device| device.dev != dev("9:0"));
        host.devices.insert(0, array.clone());
        assert_eq!(at(&host, "9:0", "io.max"), [holds], "{level}");
    }
}

#[test]
fn a_thin_volume_is_told_from_its_pool() {
    let mut host = host();
    host.devices = vec![mapper("254:0", "dm-0", "LVM-x-tpool", &[]), mapper("254:1", "dm-1", "LVM-y", &["254:0"])];
    let layers = host.devices.iter().map(|device| Layer::of(device, &host));
    assert_eq!(layers.collect::<Vec<_>>(), [Layer::LvmThinPool, Layer::LvmThin]);
}
