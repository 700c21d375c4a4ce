//! What lies behind a node: settings, paths, pools, overlays and superblocks, read from a tree, and kept in a capture.

use std::fs;

use quell_engine::snapshot::{Mount, Snapshot};
use quell_host::{Depth, Machine, Ticker, Wake, capture};
use quell_kfile::superblock::{Ext, ExtJournal, Superblock, render};
use quell_units::{Bytes, CgroupPath, DevNum, Gap, Micros, MonoMicros};

use crate::tree::{Tree, gaps};

const NVME: &str = "virtual/nvme-subsystem/nvme-subsys0/nvme0n1";

fn number(text: &str) -> DevNum {
    text.parse().unwrap()
}

/// A disk of two partitions, an NVMe disk over two controllers, a loop, btrfs on two disks, and an overlay.
fn host() -> Tree {
    let tree = Tree::version2();
    tree.disk("7:0", "virtual/block/loop0");
    tree.file("sys/devices/virtual/block/loop0/loop/backing_file", "/srv/payroll.img\n");
    tree.disk("253:0", "pci0/virtio0/block/vda");
    for (minor, start) in [(1, 2048), (2, 4099)] {
        tree.disk(&format!("253:{minor}"), &format!("pci0/virtio0/block/vda/vda{minor}"));
        let part = format!("sys/devices/pci0/virtio0/block/vda/vda{minor}");
        tree.file(&format!("{part}/partition"), &format!("{minor}\n"));
        tree.file(&format!("{part}/start"), &format!("{start}\n"));
        tree.file(&format!("{part}/size"), "16\n");
    }
    let vda = "sys/devices/pci0/virtio0/block/vda";
    tree.file(&format!("{vda}/queue/iosched/fifo_batch"), "16\n");
    tree.file(&format!("{vda}/queue/nomerges"), "0\n");
    tree.file(&format!("{vda}/mq/0/cpu_list"), "0, 1\n");
    tree.file(&format!("{vda}/mq/0/nr_tags"), "128\n");
    tree.file(&format!("{vda}/mq/10/cpu_list"), "2\n");
    for (minor, name) in [(16, "vdb"), (32, "vdc")] {
        tree.disk(&format!("253:{minor}"), &format!("pci0/virtio0/block/{name}"));
        tree.link(
            &format!("sys/fs/btrfs/0-1-2/devices/{name}"),
            &format!("../../../../devices/pci0/virtio0/block/{name}"),
        );
    }
    tree.file("sys/fs/btrfs/features/no_holes", "0\n");
    tree.disk("259:0", NVME);
    for (number, state) in [(0, "live"), (1, "connecting")] {
        let controller = format!("pci0/nvme/nvme{number}");
        tree.link(
            &format!("sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme{number}"),
            &format!("../../../{controller}"),
        );
        tree.file(&format!("sys/devices/{controller}/state"), &format!("{state}\n"));
        tree.file(&format!("sys/devices/{controller}/transport"), "pcie\n");
        tree.file(&format!("sys/devices/{controller}/nvme0c{number}n1/ana_state"), "optimized\n");
    }
    let ext = Ext { journal: ExtJournal::Internal(Some(Bytes(64 << 20))), block_bytes: Bytes(4096), ..Ext::default() };
    fs::create_dir_all(tree.path("dev")).unwrap();
    fs::write(tree.path("dev/vda1"), render(&Superblock::Ext(ext))).unwrap();
    tree.file("dev/vda2", "no file system");
    tree.file(
        "proc/self/mountinfo",
        "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         2 0 253:1 / /srv rw - ext4 /dev/vda1 rw\n\
         3 0 0:30 /@a /pool rw - btrfs /dev/vdc rw,subvol=/@a\n\
         4 0 0:31 / /run/merged rw - overlay overlay rw,lowerdir=/l,upperdir=/srv/up,workdir=/srv/w\n",
    );
    tree
}

fn settings(tree: &Tree) -> Snapshot {
    tree.machine().snapshot(Depth::Settings)
}

#[test]
fn settings_are_read_where_they_are_asked_for_and_never_in_a_watch() {
    let tree = host();
    let detail =
        |snapshot: &Snapshot, dev: &str| snapshot.device(number(dev)).unwrap().queue.as_ref().unwrap().detail.clone();
    assert_eq!(detail(&tree.full(), "253:0"), None);
    let seen = detail(&settings(&tree), "253:0").unwrap();
    let files: Vec<_> = seen.settings.iter().map(|setting| (&*setting.file, setting.value.as_deref())).collect();
    assert_eq!(files, [("queue/nomerges", Ok("0")), ("queue/iosched/fifo_batch", Ok("16"))]);
    let queues: Vec<_> = seen.hardware_queues.iter().map(|queue| (queue.index, queue.cpus.as_deref())).collect();
    assert_eq!(queues, [(0, Ok("0, 1")), (10, Ok("2"))]);
    assert_eq!(seen.hardware_queues[1].tags, Err(Gap::NotInKernel));
    assert_eq!(detail(&settings(&tree), "7:0").unwrap().backing_file.as_deref(), Some("/srv/payroll.img"));
}

#[test]
fn the_head_of_an_nvme_disk_knows_its_paths() {
    let snapshot = settings(&host());
    let paths = &snapshot.device(number("259:0")).unwrap().queue.as_ref().unwrap().detail.as_ref().unwrap().nvme_paths;
    let told: Vec<_> = paths
        .iter()
        .map(|path| (&*path.name, &*path.controller, path.state.as_deref(), path.ana_state.as_deref()))
        .collect();
    let expected = [
        ("nvme0c0n1", "nvme0", Ok("live"), Ok("optimized")),
        ("nvme0c1n1", "nvme1", Ok("connecting"), Ok("optimized")),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_mount_knows_all_its_disks_and_where_an_overlay_writes() {
    let snapshot = host().full();
    let at = |point: &str| -> &Mount { snapshot.mounts.iter().find(|mount| mount.mount_point == point).unwrap() };
    assert_eq!(at("/pool").on, [number("253:16"), number("253:32")]);
    assert_eq!(at("/run/merged").upper_dir.as_deref(), Some("/srv/up"));
    assert_eq!(at("/run/merged").fs_options, "rw", "a page of lower directories is nobody's setting");
    assert_eq!(at("/srv").on, [number("253:1")]);
}

#[test]
fn a_superblock_is_read_of_what_holds_one_and_of_nothing_else() {
    let snapshot = settings(&host());
    let seen: Vec<_> = snapshot.on_disk.iter().map(|on_disk| (on_disk.dev, on_disk.superblock.is_ok())).collect();
    assert_eq!(seen, [(number("253:1"), true)]);
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
    let starts: Vec<_> = snapshot.partitions.iter().map(|partition| partition.start).collect();
    assert_eq!(starts, [Ok(Bytes(1 << 20)), Ok(Bytes(4099 * 512))]);
}

#[test]
fn a_device_that_may_not_be_read_is_a_gap() {
    let tree = host();
    tree.unreadable("dev/vda1", 1);
    let snapshot = settings(&tree);
    assert_eq!(snapshot.on_disk[0].superblock, Err(Gap::Denied));
    assert_eq!(gaps(&snapshot), ["superblock of vda1: no permission"]);
}

struct NoWait;

impl Ticker for NoWait {
    fn now(&mut self) -> MonoMicros {
        MonoMicros(0)
    }

    fn sleep_until(&mut self, _: MonoMicros) -> Wake {
        Wake::Reached
    }
}

#[test]
fn a_scrubbed_capture_holds_the_stack_and_none_of_its_names() {
    let tree = host();
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), true).unwrap();
    assert_eq!(captured.left_out, Vec::<String>::new());
    let (read, back) = (settings(&tree), Machine::under(&out.path().join("t0")).unwrap().snapshot(Depth::Settings));
    assert_eq!(back.on_disk, read.on_disk);
    assert_eq!(back.partitions, read.partitions);
    let on = |snapshot: &Snapshot| snapshot.mounts.iter().map(|mount| mount.on.clone()).collect::<Vec<_>>();
    assert_eq!(on(&back), on(&read));
    let paths = |snapshot: &Snapshot| {
        snapshot.device(number("259:0")).unwrap().queue.as_ref().unwrap().detail.as_ref().unwrap().nvme_paths.clone()
    };
    assert_eq!(paths(&back), paths(&read));
    assert!(!out.path().join("t0/sys/fs/btrfs/0-1-2").exists(), "the id of a file system is a name");
}

#[test]
fn the_other_files_of_a_cgroup_are_text_and_what_is_absent_is_left_out() {
    let tree = host();
    tree.cgroup(b"etl");
    tree.file("sys/fs/cgroup/etl/cgroup.freeze", "0\n");
    tree.unreadable("sys/fs/cgroup/etl/cpu.pressure", 95);
    let mut machine = tree.machine();
    machine.snapshot(Depth::Full);
    let files = machine.cgroup_details(&CgroupPath::new(b"etl").unwrap());
    let told: Vec<_> = files.iter().map(|file| (&*file.file, file.value.as_deref())).collect();
    let expected = [
        ("cgroup.freeze", Ok("0")),
        ("cgroup.events", Ok("populated 1 frozen 0")),
        ("cpu.pressure", Err(&Gap::Disabled)),
    ];
    assert_eq!(told, expected);
}
