//! Cgroups: the walk, what it notices, and what is missing.

use std::fs;

use quell_engine::snapshot::CgroupMode;
use quell_host::Depth;
use quell_units::{Bytes, DevNum, Gap, Limit, Micros};

use crate::tree::{Tree, cgroup, gaps, paths};

const VDA: DevNum = DevNum { major: 253, minor: 0 };

#[test]
fn every_value_of_version_2_is_read() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    tree.cgroup(b"a/b");
    let snapshot = tree.full();
    assert_eq!(snapshot.host.cgroups, CgroupMode::V2);
    assert_eq!(snapshot.host.cgroup_mount.as_deref(), Ok("/sys/fs/cgroup"));
    let b = cgroup(&snapshot, b"a/b");
    let io = b.io.as_ref().unwrap();
    assert_eq!((io[0].dev, io[0].write_bytes, io[0].read_ios), (VDA, Bytes(2), 3));
    assert_eq!(b.io_pressure.unwrap().full_usec, Some(Micros(6)));
    assert_eq!((b.memory, b.populated), (Ok(Bytes(4096)), Ok(true)));
    assert_eq!(b.memory_stat.unwrap().file_writeback_bytes, Some(Bytes(4)));
    let config = b.config.as_ref().unwrap();
    assert_eq!(config.io_max.as_ref().unwrap()[0].write_bytes_per_sec, Limit::At(Bytes(10)));
    assert_eq!(config.memory_max, Ok(Limit::Max));
    assert_eq!(config.io_latency, Err(Gap::NotInKernel));
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
}

#[test]
fn a_snapshot_of_counters_has_the_counters_and_no_more() {
    let tree = Tree::version2();
    tree.process(7, "app", 'S', "/");
    let snapshot = tree.machine().snapshot(Depth::Counters);
    assert!(cgroup(&snapshot, b"").io.is_ok());
    assert!(cgroup(&snapshot, b"").config.is_none());
    assert!(snapshot.tasks.is_empty() && snapshot.filesystems.is_empty());
}

#[test]
fn names_may_hold_any_byte() {
    let tree = Tree::version2();
    let names: [&[u8]; 5] = [b"sp ace", b"new\nline", b"\x1b[2Jesc", b"\xff\xfe", b"dev-disk\\x2dby.scope"];
    names.iter().for_each(|name| tree.cgroup(name));
    let snapshot = tree.full();
    for name in names {
        assert!(cgroup(&snapshot, name).io.is_ok(), "{name:?}");
    }
    assert!(snapshot.cgroups.is_sorted_by_key(|cgroup| &cgroup.path));
}

#[test]
fn new_cgroups_are_noticed_and_removed_ones_dropped() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    let mut machine = tree.machine();
    assert_eq!(paths(&machine.snapshot(Depth::Counters)), [&b""[..], b"a"]);
    tree.cgroup(b"a/b/c");
    tree.cgroup(b"a b");
    assert_eq!(paths(&machine.snapshot(Depth::Counters)), [&b""[..], b"a", b"a b", b"a/b", b"a/b/c"]);
    tree.remove("sys/fs/cgroup/a/b");
    let snapshot = machine.snapshot(Depth::Counters);
    assert_eq!(paths(&snapshot), [&b""[..], b"a", b"a b"]);
    assert_eq!(gaps(&snapshot), Vec::<String>::new(), "it went away before, so nothing is missing");
}

#[test]
fn a_cgroup_made_anew_under_the_same_path_is_read_anew() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    let mut machine = tree.machine();
    machine.snapshot(Depth::Counters);
    tree.remove("sys/fs/cgroup/a");
    tree.cgroup(b"a");
    fs::write(tree.cgroup_dir(b"a").join("memory.current"), "8192\n").unwrap();
    assert_eq!(cgroup(&machine.snapshot(Depth::Counters), b"a").memory, Ok(Bytes(8192)));
}

#[test]
fn counters_are_read_again_from_the_files_that_stay_open() {
    let tree = Tree::version2();
    let mut machine = tree.machine();
    machine.snapshot(Depth::Counters);
    fs::write(tree.cgroup_dir(b"").join("memory.current"), "8192\n").unwrap();
    assert_eq!(cgroup(&machine.snapshot(Depth::Counters), b"").memory, Ok(Bytes(8192)));
}

#[test]
fn a_file_that_appears_later_is_found() {
    let tree = Tree::version2();
    tree.remove("sys/fs/cgroup/io.stat");
    let mut machine = tree.machine();
    assert_eq!(cgroup(&machine.snapshot(Depth::Counters), b"").io, Err(Gap::NotInKernel));
    tree.cgroup(b"");
    assert!((0..16).any(|_| cgroup(&machine.snapshot(Depth::Counters), b"").io.is_ok()));
}

#[test]
fn what_is_missing_has_a_reason_and_one_entry_a_kind() {
    let tree = Tree::version2();
    for at in ["a", "b", "c"] {
        tree.cgroup(at.as_bytes());
        tree.unreadable(&format!("sys/fs/cgroup/{at}/io.pressure"), 95);
    }
    tree.file("sys/fs/cgroup/a/cgroup.controllers", "memory\n");
    tree.remove("sys/fs/cgroup/a/io.stat");
    tree.remove("sys/fs/cgroup/b/io.stat");
    tree.unreadable("sys/fs/cgroup/c/io.stat", 13);
    let snapshot = tree.full();
    assert_eq!(cgroup(&snapshot, b"a").io, Err(Gap::ControllerOff));
    assert_eq!(cgroup(&snapshot, b"b").io, Err(Gap::NotInKernel));
    assert_eq!(cgroup(&snapshot, b"c").io, Err(Gap::Denied));
    assert_eq!(cgroup(&snapshot, b"c").io_pressure, Err(Gap::Disabled));
    let expected = [
        "io.pressure of 3 cgroups: switched off in this kernel",
        "io.stat of a: controller not enabled",
        "io.stat of b: not offered here",
        "io.stat of c: no permission",
    ];
    let mut found = gaps(&snapshot);
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn pressure_can_be_switched_off_for_one_cgroup() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    tree.remove("sys/fs/cgroup/a/io.pressure");
    tree.file("sys/fs/cgroup/a/cgroup.pressure", "0\n");
    assert_eq!(cgroup(&tree.full(), b"a").io_pressure, Err(Gap::Disabled));
}

#[test]
fn a_directory_that_cannot_be_read_is_a_cgroup_without_values() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    // A file in its place would not be listed as a directory, so what fails is the open of a real one.
    tree.unreadable("sys/fs/cgroup/a/io.stat", 13);
    tree.unreadable("sys/fs/cgroup/a/memory.stat", 5);
    let snapshot = tree.full();
    assert_eq!(cgroup(&snapshot, b"a").memory_stat, Err(Gap::Errno(5)));
    assert!(gaps(&snapshot).contains(&"memory.stat of a: errno 5".to_owned()));
}

#[test]
fn lost_lines_are_counted_beside_what_was_kept() {
    let tree = Tree::version2();
    tree.cgroup(b"a");
    tree.file("sys/fs/cgroup/a/io.stat", "8:0 rbytes=x\n253:0 rbytes=1\n8:16 rby");
    tree.file("proc/diskstats", "253 0 vda 1\n");
    let snapshot = tree.full();
    assert_eq!(cgroup(&snapshot, b"a").io.as_ref().unwrap().len(), 1);
    let found = gaps(&snapshot);
    assert!(found.iter().any(|gap| gap.starts_with("io.stat of a: 2 lines lost: line 1: ")), "{found:?}");
    assert!(found.iter().any(|gap| gap.starts_with("diskstats: 1 line lost: line 1: ")), "{found:?}");
}

#[test]
fn version_1_is_told_in_the_words_of_version_2() {
    let tree = Tree::empty();
    tree.system();
    tree.file(
        "proc/self/mountinfo",
        "1 0 0:20 / /cg/blkio rw - cgroup cgroup rw,blkio\n2 0 0:21 / /cg/memory rw - cgroup cgroup rw,memory\n",
    );
    for at in ["", "docker/aa"] {
        let counts = |n: u64| format!("253:0 Read {n}\n253:0 Write {}\n253:0 Total 0\nTotal 0\n", n + 1);
        tree.file(&format!("cg/blkio/{at}/blkio.throttle.io_service_bytes_recursive"), &counts(10));
        tree.file(&format!("cg/blkio/{at}/blkio.throttle.io_serviced_recursive"), &counts(20));
        for (limit, text) in [("write_bps", "253:0 5\n"), ("read_bps", ""), ("write_iops", ""), ("read_iops", "")] {
            tree.file(&format!("cg/blkio/{at}/blkio.throttle.{limit}_device"), text);
        }
    }
    tree.file("cg/memory/docker/aa/memory.usage_in_bytes", "77\n");
    tree.file("cg/memory/docker/aa/memory.limit_in_bytes", "9223372036854771712\n");
    tree.file("cg/memory/docker/aa/memory.stat", "cache 1\ntotal_cache 2\n");
    let snapshot = tree.full();
    assert_eq!(snapshot.host.cgroups, CgroupMode::V1);
    let aa = cgroup(&snapshot, b"docker/aa");
    let row = aa.io.as_ref().unwrap()[0];
    assert_eq!((row.read_bytes, row.write_bytes, row.read_ios, row.write_ios), (Bytes(10), Bytes(11), 20, 21));
    assert_eq!((aa.memory, aa.memory_stat.unwrap().file_bytes), (Ok(Bytes(77)), Some(Bytes(2))));
    assert_eq!((aa.io_pressure, aa.populated), (Err(Gap::NotInKernel), Err(Gap::NotInKernel)));
    let config = aa.config.as_ref().unwrap();
    assert_eq!(config.io_max.as_ref().unwrap()[0].write_bytes_per_sec, Limit::At(Bytes(5)));
    assert_eq!(config.memory_max, Ok(Limit::Max));
    assert_eq!(cgroup(&snapshot, b"docker").io, Err(Gap::NotInKernel), "a directory without files");
}

#[test]
fn version_1_without_recursive_counters_says_that_descendants_are_missing() {
    let tree = Tree::empty();
    tree.system();
    tree.file("proc/self/mountinfo", "1 0 0:20 / /cg/blkio rw - cgroup cgroup rw,blkio\n");
    tree.file("cg/blkio/blkio.throttle.io_service_bytes", "253:0 Read 1\n253:0 Write 2\n");
    tree.file("cg/blkio/blkio.throttle.io_serviced", "253:0 Read 3\n253:0 Write 4\n");
    let snapshot = tree.full();
    assert_eq!(cgroup(&snapshot, b"").io.as_ref().unwrap()[0].write_ios, 4);
    assert!(gaps(&snapshot).iter().any(|gap| gap.starts_with("descendants in blkio.throttle of ")));
}

#[test]
fn a_host_with_both_versions_reads_io_where_the_controller_is() {
    let tree = Tree::empty();
    tree.system();
    tree.file(
        "proc/self/mountinfo",
        "1 0 0:20 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
         2 0 0:21 / /cg/memory rw - cgroup cgroup rw,memory\n",
    );
    tree.cgroup(b"unified/app");
    tree.cgroup(b"unified");
    tree.file("cg/memory/app/memory.usage_in_bytes", "99\n");
    let snapshot = tree.full();
    assert_eq!(snapshot.host.cgroups, CgroupMode::HybridIoV2);
    let app = cgroup(&snapshot, b"app");
    assert!(app.io.is_ok() && app.io_pressure.is_ok());
    assert_eq!(app.memory, Ok(Bytes(99)));
}
