//! The host that runs the test, whatever it is.

use std::fs;
use std::path::PathBuf;

use quell_engine::snapshot::CgroupMode;
use quell_host::{Depth, Machine};
use quell_units::CgroupPath;

#[test]
fn this_host_can_be_read_without_a_panic_and_with_a_clock() {
    let mut machine = Machine::live().unwrap();
    let first = machine.snapshot(Depth::Full);
    let second = machine.snapshot(Depth::Counters);
    assert!(second.clock.system > first.clock.system && first.clock.wall.is_some());
    assert!(first.clock.cgroups >= first.clock.system && first.clock.tasks >= first.clock.cgroups);
    assert!(first.host.kernel.is_ok());
    let me = std::process::id();
    let mine = first.tasks.iter().find(|task| task.pid == me && task.tid == me).expect("this process is one of those");
    assert!(!mine.kernel_thread && !mine.comm.is_empty());
    assert!(first.cost.files > 0 && second.cost.files < first.cost.files);
}

#[test]
fn what_is_found_is_in_order_and_of_one_piece() {
    let snapshot = Machine::live().unwrap().snapshot(Depth::Full);
    assert!(snapshot.devices.is_sorted_by_key(|device| device.dev));
    assert!(snapshot.cgroups.is_sorted_by_key(|cgroup| &cgroup.path));
    assert_eq!(snapshot.host.cgroups == CgroupMode::Absent, snapshot.host.cgroup_mount.is_err());
    for device in &snapshot.devices {
        let disk = device.partition_of.map(|disk| snapshot.device(disk).is_some());
        assert_ne!(disk, Some(false), "{} is a partition of nothing", device.name);
    }
}

#[test]
fn a_look_at_this_host_is_later_than_its_snapshot() {
    let mut machine = Machine::live().unwrap();
    let snapshot = machine.snapshot(Depth::Counters);
    let look = machine.look();
    assert!(look.at >= snapshot.clock.system);
    let disks = snapshot.devices.iter().filter(|device| device.partition_of.is_none());
    assert!(look.disks.iter().map(|disk| disk.dev).eq(disks.map(|disk| disk.dev)));
}

#[test]
#[ignore = "makes a cgroup, so it needs root"]
fn a_cgroup_of_the_kernels_own_is_noticed_when_it_comes_and_when_it_goes() {
    let mut machine = Machine::live().unwrap();
    let mount = PathBuf::from(machine.snapshot(Depth::Counters).host.cgroup_mount.unwrap());
    let name = format!("quell-test-{}", std::process::id());
    let (dir, path) = (mount.join(&name), CgroupPath::new(name.as_bytes()).unwrap());
    fs::create_dir(&dir).unwrap();
    fs::create_dir(dir.join("child")).unwrap();
    let with = machine.snapshot(Depth::Counters);
    fs::remove_dir(dir.join("child")).unwrap();
    fs::remove_dir(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    let again = machine.snapshot(Depth::Counters);
    fs::remove_dir(&dir).unwrap();
    let without = machine.snapshot(Depth::Full);
    let id = |snapshot: &quell_engine::snapshot::Snapshot| snapshot.cgroup(&path).map(|cgroup| cgroup.id);
    assert!(id(&with).is_some() && with.cgroup(&path.join(b"child").unwrap()).is_some());
    assert!(id(&again).is_some() && again.cgroup(&path.join(b"child").unwrap()).is_none());
    assert_ne!(id(&with), id(&again), "another cgroup under the same path");
    assert_eq!(id(&without), None);
    assert!(without.gaps.iter().all(|missing| !missing.what.contains("cgroup")), "{:?}", without.gaps);
}
