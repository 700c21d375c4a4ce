//! Trees that are no whole host: gaps and never a panic.

use std::path::Path;

use quell_engine::snapshot::CgroupMode;
use quell_host::{Depth, Machine};
use quell_units::Gap;

use crate::tree::{Tree, gaps};

#[test]
fn a_directory_without_proc_and_sys_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let error = Machine::under(dir.path()).unwrap_err();
    assert_eq!((error.path.as_path(), error.errno), (dir.path(), 2));
    assert!(error.to_string().ends_with(": No such file or directory (ENOENT)"), "{error}");
    let nowhere = Machine::under(Path::new("/nowhere")).unwrap_err();
    assert_eq!((nowhere.path.as_path(), nowhere.errno), (Path::new("/nowhere"), 2));
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(Machine::under(&file).unwrap_err().errno, 20, "ENOTDIR");
}

#[test]
fn an_empty_host_is_a_snapshot_of_gaps() {
    let tree = Tree::empty();
    let mut machine = tree.machine();
    for depth in [Depth::Counters, Depth::Full, Depth::Counters] {
        let snapshot = machine.snapshot(depth);
        assert_eq!(snapshot.host.cgroups, CgroupMode::Absent);
        assert!(snapshot.cgroups.is_empty() && snapshot.devices.is_empty() && snapshot.tasks.is_empty());
        assert_eq!(snapshot.system.vmstat, Err(Gap::NotInKernel));
        let found = gaps(&snapshot);
        for file in ["diskstats", "vmstat", "pressure/io", "cgroups", "uptime"] {
            assert!(found.contains(&format!("{file}: not offered here")), "{file} {found:?}");
        }
    }
    assert_eq!(machine.look().dirty_pages, None);
}

#[test]
fn garbage_in_every_file_is_gaps() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    tree.process(7, "app", 'S', "/a");
    tree.disk("253:0", "pci0/block/vda");
    let mut stack = vec![tree.root().to_owned()];
    while let Some(dir) = stack.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let file_type = entry.file_type().unwrap();
            if file_type.is_dir() {
                stack.push(entry.path());
            } else if file_type.is_file() && !entry.path().ends_with("proc/self/mountinfo") {
                std::fs::write(entry.path(), b"\xff\x00 garbage = :\n\n(").unwrap();
            }
        }
    }
    let mut machine = tree.machine();
    let snapshot = machine.snapshot(Depth::Full);
    assert_eq!(snapshot.cgroups.len(), 2);
    assert!(snapshot.cgroups.iter().all(|cgroup| cgroup.io_pressure == Err(Gap::Malformed)));
    assert!(snapshot.gaps.len() > 10, "{:?}", gaps(&snapshot));
    machine.look();
}

#[test]
fn links_of_a_hostile_tree_stay_inside() {
    let tree = Tree::version2();
    tree.remove("proc/vmstat");
    tree.link("proc/vmstat", "/proc/vmstat");
    tree.remove("proc/meminfo");
    tree.link("proc/meminfo", "../../../../../../../../proc/meminfo");
    tree.link("sys/dev/block/253:0", "../../../../../../../../../../etc");
    tree.file("proc/diskstats", "253 0 vda 1 2 3 4 5 6 7 8 9 10 11\n");
    let snapshot = tree.full();
    assert!(snapshot.system.vmstat.is_err() && snapshot.system.meminfo.is_err());
    assert_eq!(snapshot.devices[0].partition_of, None);
}

#[test]
fn a_fifo_in_the_tree_does_not_hang_the_read() {
    let tree = Tree::version2();
    tree.remove("proc/vmstat");
    let fifo = std::ffi::CString::new(tree.path("proc/vmstat").into_os_string().into_encoded_bytes()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let snapshot = tree.full();
    assert!(snapshot.system.vmstat.is_ok_and(|vmstat| vmstat.dirty_pages.is_none()));
}
