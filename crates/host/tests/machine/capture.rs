//! Captures: what is written reads as what was read.

use std::fs;
use std::path::Path;

use quell_engine::findings::{Scene, find};
use quell_engine::rates::Rates;
use quell_engine::snapshot::{Cost, Snapshot, Window};
use quell_host::{Depth, Machine, Ticker, Wake, capture};
use quell_units::{CgroupPath, Micros, MonoMicros};

use crate::tree::{Tree, paths, stat};

/// A clock that is never waited for.
struct NoWait;

impl Ticker for NoWait {
    fn now(&mut self) -> MonoMicros {
        MonoMicros(0)
    }

    fn sleep_until(&mut self, _: MonoMicros) -> Wake {
        Wake::Reached
    }
}

fn read_back(dir: &Path) -> Snapshot {
    Machine::under(dir).unwrap().snapshot(Depth::Settings)
}

/// Without what cannot be the same: the wall clock, and what reading it cost.
fn comparable(mut snapshot: Snapshot) -> Snapshot {
    snapshot.clock.wall = None;
    snapshot.cost = Cost::default();
    // What went away while it was read is not in the capture.
    snapshot.gaps.retain(|missing| !missing.what.ends_with("processes") && !missing.what.ends_with("process"));
    snapshot
}

fn host() -> Tree {
    let tree = Tree::version2();
    tree.cgroup(b"payroll.slice/sp ace\xff");
    tree.unreadable("sys/fs/cgroup/payroll.slice/io.pressure", 95);
    tree.process(7, "payroll", 'S', "/payroll.slice");
    tree.file("proc/7/task/8/stat", &stat(8, "payroll", 'D', 0));
    tree.file("proc/7/task/8/wchan", "jbd2_log_wait_commit");
    tree.link("proc/7/fd/3", "anon_inode:[io_uring]");
    tree.link("proc/7/fd/4", "/home/alice/payroll.db");
    tree.file("proc/7/cmdline", "payroll --password=secret");
    tree.file("proc/sys/kernel/hostname", "payroll-db-7\n");
    tree.disk("253:0", "pci0/block/vda");
    tree.disk("252:0", "virtual/block/dm-0");
    tree.file("sys/devices/virtual/block/dm-0/dm/name", "vg0-payroll\n");
    tree.file("sys/devices/virtual/block/dm-0/dm/uuid", "LVM-payroll\n");
    tree.link("sys/devices/virtual/block/dm-0/slaves/vda", "../../../../pci0/block/vda");
    tree.file("sys/devices/pci0/block/vda/serial", "payroll\n");
    tree.link("sys/devices/pci0/block/vda/device", "../../../pci0");
    tree.file("sys/devices/pci0/model", "Payroll 3000\n");
    tree.file(
        "proc/self/mountinfo",
        "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         2 0 252:0 / /srv/payroll rw - ext4 /dev/mapper/vg0-payroll rw\n",
    );
    tree
}

#[test]
fn a_capture_reads_as_the_host_it_was_made_from() {
    let tree = host();
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("new/capture");
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), &dir, false).unwrap();
    for (place, read) in [("t0", &captured.window.t0), ("t1", &captured.window.t1)] {
        assert_eq!(comparable(read_back(&dir.join(place))), comparable(read.clone()), "{place}");
    }
    assert_eq!(comparable(tree.machine().snapshot(Depth::Settings)), comparable(captured.window.t0));
    assert!(captured.files > 60 && captured.bytes > 1000, "{} {}", captured.files, captured.bytes);
}

#[test]
fn a_capture_holds_only_what_is_read() {
    let tree = host();
    let out = tempfile::tempdir().unwrap();
    capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), false).unwrap();
    for unread in ["proc/7/cmdline", "proc/7/fd/4", "sys/devices/pci0/block/vda/serial"] {
        assert!(fs::symlink_metadata(out.path().join("t0").join(unread)).is_err(), "{unread}");
    }
}

#[test]
fn a_live_capture_reads_as_this_host() {
    let out = tempfile::tempdir().unwrap();
    let mut machine = Machine::live().unwrap();
    let captured = capture(&mut machine, &mut NoWait, Micros(1), out.path(), false).unwrap();
    let (read, mut back) = (comparable(captured.window.t0), comparable(read_back(&out.path().join("t0"))));
    // Cgroups can vanish under the reader, and a copy cannot tell.
    back.gaps.retain(|missing| read.gaps.contains(missing));
    assert_eq!(back.clock, read.clock);
    assert_eq!(back.devices, read.devices);
    assert_eq!(back.cgroups, read.cgroups);
    assert_eq!(back.tasks, read.tasks);
    assert_eq!(back, read);
    assert!(out.path().join("t1/.uptime_end").exists() && out.path().join("t1/proc/uptime").exists());
}

#[test]
fn an_existing_capture_is_not_written_over() {
    let tree = host();
    let out = tempfile::tempdir().unwrap();
    fs::create_dir(out.path().join("t1")).unwrap();
    let error = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), false).unwrap_err();
    assert_eq!((error.op, error.errno), ("mkdir", 17));
}

#[test]
fn a_scrubbed_capture_has_the_numbers_and_not_the_names() {
    let tree = host();
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), true).unwrap();
    assert_eq!(captured.left_out, Vec::<String>::new());
    let back = read_back(&out.path().join("t1"));
    assert_eq!(paths(&back).len(), 3);
    let slice = CgroupPath::new(paths(&back)[1]).unwrap();
    assert!(slice.name().ends_with(b".slice"));
    assert_eq!(back.cgroups[1].io, captured.window.t1.cgroups[1].io);
    assert_eq!(back.cgroups[1].id, captured.window.t1.cgroups[1].id);
    assert_eq!(back.tasks[1].cgroup, Ok(slice), "the same name in the tree and in the process's file");
    assert_eq!(back.filesystems[0].dev, captured.window.t1.filesystems[0].dev);
    assert_eq!(names_in(out.path(), &["payroll", "Payroll", "alice", "sp ace", "secret"]), Vec::<String>::new());
}

/// A clock that is never waited for: meanwhile the host does ten seconds of work.
struct Work<'a>(&'a Tree);

impl Ticker for Work<'_> {
    fn now(&mut self) -> MonoMicros {
        MonoMicros(0)
    }

    fn sleep_until(&mut self, _: MonoMicros) -> Wake {
        let tree = self.0;
        tree.file("proc/uptime", "110.00 1.00\n");
        tree.file("proc/diskstats", "259 0 nvme0n1 300 0 2400 9000 9000 0 1152000 270000 0 9900 279000 0 0 0 0 0 0\n");
        let io = |path: &str, counts: &str| tree.file(&format!("sys/fs/cgroup/{path}/io.stat"), counts);
        io(BACKUP, "259:0 rbytes=0 wbytes=589824000 rios=0 wios=9000 dbytes=0 dios=0\n");
        io(PAYROLL, "259:0 rbytes=1228800 wbytes=0 rios=300 wios=0 dbytes=0 dios=0\n");
        let stalled = "some avg10=0.00 avg60=0.00 avg300=0.00 total=8000007\n\
                       full avg10=0.00 avg60=0.00 avg300=0.00 total=8000006\n";
        tree.file(&format!("sys/fs/cgroup/{PAYROLL}/io.pressure"), stalled);
        Wake::Reached
    }
}

const BACKUP: &str = "actions_job/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const PAYROLL: &str = "lxc.payload.payroll";

/// What the doctor finds: rules, kinds of subject, and the runtime in front of a name.
fn found(window: &Window) -> Vec<String> {
    let rates = Rates::of(window);
    let findings = find(&Scene::of(window, &rates));
    let shown = findings.iter().map(|finding| {
        let runtime = |name: &str| name.split_once('/').map(|(runtime, _)| runtime.to_owned());
        let culprit = finding.culprit.as_ref().map(|culprit| runtime(&culprit.name));
        format!("{} {:?} {:?} {culprit:?}", finding.id, finding.subject.kind, runtime(&finding.subject.name))
    });
    shown.collect()
}

#[test]
fn a_scrubbed_capture_is_judged_as_the_host_it_was_made_from() {
    let tree = Tree::version2();
    tree.disk("259:0", "pci0/0000:00:04.0/nvme/nvme0/nvme0n1");
    tree.file("proc/diskstats", "259 0 nvme0n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    tree.file("sys/devices/pci0/0000:00:04.0/nvme/nvme0/model", "Amazon Elastic Block Store              \n");
    tree.link("sys/devices/pci0/0000:00:04.0/nvme/nvme0/nvme0n1/device", "../../nvme0");
    tree.file("sys/devices/pci0/0000:00:04.0/nvme/nvme0/nvme0n1/queue/rotational", "0\n");
    for cgroup in [BACKUP, PAYROLL] {
        tree.cgroup(cgroup.as_bytes());
        tree.file(&format!("sys/fs/cgroup/{cgroup}/io.stat"), "");
    }
    tree.cgroup(b"actions_job");
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut Work(&tree), Micros(1), out.path(), true).unwrap();
    let (t0, t1) = (read_back(&out.path().join("t0")), read_back(&out.path().join("t1")));
    let model = |snapshot: &Snapshot| snapshot.devices[0].queue.as_ref().unwrap().model.clone();
    assert_eq!(model(&t1), model(&captured.window.t1));
    let scrubbed = found(&Window { t0, looks: Vec::new(), t1, pasted: None });
    assert_eq!(scrubbed, found(&captured.window));
    assert!(scrubbed.iter().any(|finding| finding.contains("docker")), "{scrubbed:?}");
    assert_eq!(names_in(out.path(), &["payroll"]), Vec::<String>::new());
}

/// The paths below a directory that hold one of the words, in their name, their content or their target.
pub(crate) fn names_in(dir: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let mut text = entry.file_name().into_encoded_bytes();
        let file_type = entry.file_type().unwrap();
        if file_type.is_dir() {
            found.extend(names_in(&path, words));
        } else if file_type.is_symlink() {
            text.extend(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            text.extend(fs::read(&path).unwrap());
        }
        let text = String::from_utf8_lossy(&text);
        if words.iter().any(|word| text.contains(word)) {
            found.push(path.display().to_string());
        }
    }
    found
}
