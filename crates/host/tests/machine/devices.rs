//! Devices: what they lie on, how their queues are set, and the file systems on them.

use quell_host::Depth;
use quell_units::{Bytes, DevNum, Gap};

use crate::tree::{Tree, gaps};

const VDA: DevNum = DevNum { major: 253, minor: 0 };
const VDA1: DevNum = DevNum { major: 253, minor: 1 };
const DM: DevNum = DevNum { major: 252, minor: 0 };
const LOOP: DevNum = DevNum { major: 7, minor: 0 };

fn tree() -> Tree {
    let tree = Tree::version2();
    tree.disk("253:0", "pci0/virtio0/block/vda");
    tree.disk("253:1", "pci0/virtio0/block/vda/vda1");
    tree.file("sys/devices/pci0/virtio0/block/vda/vda1/partition", "1\n");
    tree.file("sys/devices/pci0/virtio0/block/vda/diskseq", "9\n");
    tree.file("sys/devices/pci0/virtio0/block/vda/size", "8\n");
    for (name, text) in [("scheduler", "none [bfq]\n"), ("rotational", "1\n"), ("read_ahead_kb", "128\n")] {
        tree.file(&format!("sys/devices/pci0/virtio0/block/vda/queue/{name}"), text);
    }
    tree.disk("252:0", "virtual/block/dm-0");
    tree.file("sys/devices/virtual/block/dm-0/dm/name", "vg0-data\n");
    tree.file("sys/devices/virtual/block/dm-0/dm/uuid", "LVM-x\n");
    tree.file("sys/devices/virtual/block/dm-0/dm/suspended", "1\n");
    tree.link("sys/devices/virtual/block/dm-0/slaves/vda1", "../../../../pci0/virtio0/block/vda/vda1");
    tree
}

#[test]
fn a_stack_is_told_from_dm_down_to_the_disk() {
    let snapshot = tree().full();
    assert_eq!(snapshot.device(VDA1).unwrap().partition_of, Some(VDA));
    assert_eq!(snapshot.device(DM).unwrap().slaves, [VDA1]);
    assert_eq!(snapshot.leaves(DM), [VDA]);
    assert_eq!(snapshot.device(VDA1).unwrap().diskseq, Ok(9), "a partition appears with its disk");
    let dm = snapshot.device(DM).unwrap().queue.as_ref().unwrap().device_mapper.as_ref().unwrap();
    assert_eq!((dm.name.as_deref(), dm.suspended), (Ok("vg0-data"), Ok(true)));
}

#[test]
fn a_queue_is_read_for_a_whole_disk_alone() {
    let snapshot = tree().full();
    assert!(snapshot.device(VDA1).unwrap().queue.is_none());
    let queue = snapshot.device(VDA).unwrap().queue.as_ref().unwrap();
    assert_eq!(queue.sysfs_path, "pci0/virtio0/block/vda");
    assert_eq!(&*queue.scheduler.as_ref().unwrap().active, "bfq");
    assert_eq!((queue.size, queue.rotational), (Ok(Bytes(4096)), Ok(true)));
    assert_eq!(queue.read_ahead_bytes, Ok(Bytes(128 * 1024)));
    assert_eq!(queue.nr_requests, Err(Gap::NotInKernel));
}

#[test]
fn what_a_device_lies_on_is_known_to_a_snapshot_of_counters() {
    let tree = tree();
    let mut machine = tree.machine();
    let snapshot = machine.snapshot(Depth::Counters);
    assert_eq!(snapshot.device(VDA1).unwrap().partition_of, Some(VDA));
    assert!(snapshot.device(VDA).unwrap().queue.is_none());
    tree.disk("253:16", "pci0/virtio1/block/vdb");
    tree.disk("253:17", "pci0/virtio1/block/vdb/vdb1");
    tree.file("sys/devices/pci0/virtio1/block/vdb/vdb1/partition", "1\n");
    let vdb1 = DevNum { major: 253, minor: 17 };
    let later = machine.snapshot(Depth::Counters);
    assert_eq!(later.device(vdb1).unwrap().partition_of, Some(DevNum { major: 253, minor: 16 }));
}

#[test]
fn a_loop_device_lies_on_the_disk_that_holds_its_file() {
    let tree = tree();
    tree.disk("7:0", "virtual/block/loop0");
    tree.file("sys/devices/virtual/block/loop0/loop/backing_file", "/srv/images/a.img\n");
    tree.file(
        "proc/self/mountinfo",
        "1 0 253:1 / / rw - ext4 /dev/vda1 rw\n2 1 252:0 / /srv rw - xfs /dev/mapper/vg0-data rw\n",
    );
    let snapshot = tree.full();
    assert_eq!(snapshot.device(LOOP).unwrap().slaves, [DM]);
    assert_eq!(snapshot.leaves(LOOP), [VDA]);
}

#[test]
fn file_systems_are_listed_once_with_their_journal() {
    let tree = tree();
    tree.file(
        "proc/self/mountinfo",
        "1 0 0:2 / / rw - rootfs rootfs rw\n\
         2 1 252:0 / /srv/a\\040b rw - ext4 /dev/mapper/vg0-data rw\n\
         3 1 252:0 /sub /mnt rw - ext4 /dev/mapper/vg0-data rw\n\
         4 1 0:30 / /btr rw - btrfs /dev/vda1 rw,subvol=/\n\
         5 1 0:31 / /run rw - tmpfs tmpfs rw\n",
    );
    tree.file("proc/fs/jbd2/dm-0-8/info", "3 transactions (2 requested), each up to 1024 blocks\n");
    tree.file("proc/fs/jbd2/dm-01-8/info", "9 transactions (9 requested), each up to 1024 blocks\n");
    tree.file("proc/fs/ext4/dm-0/options", "rw\ndata=ordered\n");
    let snapshot = tree.full();
    let shown: Vec<_> =
        snapshot.filesystems.iter().map(|fs| (fs.dev, fs.fs_type.as_str(), fs.mount_point.as_str())).collect();
    assert_eq!(shown, [(DM, "ext4", "/srv/a b"), (VDA1, "btrfs", "/btr")]);
    assert_eq!(snapshot.filesystems[0].journal.unwrap().transactions, Some(3));
    assert_eq!(snapshot.filesystems[0].journal_file.as_deref(), Some("/proc/fs/jbd2/dm-0-8/info"));
    assert_eq!(snapshot.filesystems[1].journal_file, None);
    assert_eq!(snapshot.filesystems[0].options, "rw,data=ordered");
    assert_eq!(snapshot.filesystems[1].journal, Err(Gap::NotInKernel));
}

#[test]
fn a_loop_of_links_ends() {
    let tree = tree();
    tree.disk("252:1", "virtual/block/dm-1");
    tree.link("sys/devices/virtual/block/dm-1/slaves/dm-1", "../../dm-1");
    tree.link("sys/devices/virtual/block/dm-1/device", "device");
    let snapshot = tree.full();
    let dm1 = DevNum { major: 252, minor: 1 };
    assert_eq!(snapshot.device(dm1).unwrap().slaves, [dm1]);
    let _ = snapshot.leaves(dm1);
}

#[test]
fn a_device_that_sys_does_not_show_is_a_gap() {
    let tree = Tree::version2();
    tree.file("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    let snapshot = tree.full();
    assert_eq!(snapshot.devices.len(), 1);
    assert_eq!(gaps(&snapshot), ["sys/dev/block of sda: not offered here"]);
}
