//! A tree of files that stands for a host, made by a test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use quell_engine::snapshot::{Cgroup, Snapshot};
use quell_host::{Depth, Machine};
use quell_units::CgroupPath;

pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// An empty host.
    pub(crate) fn empty() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir(tree.path("proc")).unwrap();
        tree
    }

    /// A host with version 2 at `/sys/fs/cgroup`, and all files of the system.
    pub(crate) fn version2() -> Self {
        let tree = Self::empty();
        tree.system();
        tree.file("proc/self/mountinfo", "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        tree.cgroup(b"");
        tree
    }

    /// The files of the system, without cgroups and devices.
    pub(crate) fn system(&self) {
        self.file("proc/uptime", "100.00 1.00\n");
        self.file("proc/diskstats", "");
        self.file("proc/vmstat", "nr_dirty 5\nnr_writeback 2\n");
        self.file("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
        self.file("proc/meminfo", "MemTotal:  1000 kB\n");
        self.file("proc/swaps", "Filename Type Size Used Priority\n");
        for pressure in ["io", "memory", "cpu"] {
            self.file(&format!("proc/pressure/{pressure}"), PRESSURE);
        }
        for name in ["dirty_background_bytes", "dirty_background_ratio", "dirty_bytes", "dirty_ratio"] {
            self.file(&format!("proc/sys/vm/{name}"), "10\n");
        }
    }

    /// A cgroup with all files of version 2, by its path.
    pub(crate) fn cgroup(&self, path: &[u8]) {
        let dir = self.cgroup_dir(path);
        fs::create_dir_all(&dir).unwrap();
        let files = [
            ("cgroup.controllers", "io memory\n"),
            ("cgroup.subtree_control", "io memory\n"),
            ("cgroup.events", "populated 1\nfrozen 0\n"),
            ("cgroup.type", "domain\n"),
            ("io.stat", "253:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n"),
            ("io.pressure", PRESSURE),
            ("io.max", "253:0 rbps=max wbps=10 riops=max wiops=max\n"),
            ("io.weight", "default 100\n"),
            ("memory.current", "4096\n"),
            ("memory.stat", "anon 1\nfile 2\nfile_dirty 3\nfile_writeback 4\n"),
            ("memory.max", "max\n"),
            ("memory.high", "max\n"),
        ];
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
    }

    pub(crate) fn cgroup_dir(&self, path: &[u8]) -> PathBuf {
        self.path("sys/fs/cgroup").join(OsStr::from_bytes(path))
    }

    /// A process, asleep and without other threads.
    pub(crate) fn process(&self, pid: u32, comm: &str, state: char, cgroup: &str) {
        self.file(&format!("proc/{pid}/stat"), &stat(pid, comm, state, 0));
        self.file(&format!("proc/{pid}/cgroup"), &format!("0::{cgroup}\n"));
        self.file(&format!("proc/{pid}/io"), "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4\n");
        self.file(&format!("proc/{pid}/wchan"), "do_wait");
    }

    /// A disk or partition at a place under `/sys/devices`, with its line in `diskstats`.
    pub(crate) fn disk(&self, dev: &str, place: &str) {
        let name = place.rsplit('/').next().unwrap();
        let line = format!("{} {name} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", dev.replace(':', " "));
        let known = fs::read_to_string(self.path("proc/diskstats")).unwrap_or_default();
        self.file("proc/diskstats", &(known + &line));
        self.file(&format!("sys/devices/{place}/dev"), &format!("{dev}\n"));
        self.link(&format!("sys/dev/block/{dev}"), &format!("../../devices/{place}"));
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// In place of a file, the error that reading it gave.
    pub(crate) fn unreadable(&self, path: &str, errno: i32) {
        if self.path(path).exists() {
            self.remove(path);
        }
        self.link(path, &format!("errno:{errno}"));
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn machine(&self) -> Machine {
        Machine::under(self.root()).unwrap()
    }

    pub(crate) fn full(&self) -> Snapshot {
        self.machine().snapshot(Depth::Full)
    }
}

const PRESSURE: &str =
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=6\n";

/// A line of `/proc/PID/stat`.
pub(crate) fn stat(pid: u32, comm: &str, state: char, flags: u64) -> String {
    format!("{pid} ({comm}) {state} 1 0 0 0 -1 {flags}{}\n", " 0".repeat(43))
}

pub(crate) fn path(path: &[u8]) -> CgroupPath {
    CgroupPath::new(path).unwrap()
}

pub(crate) fn cgroup<'a>(snapshot: &'a Snapshot, at: &[u8]) -> &'a Cgroup {
    snapshot.cgroup(&path(at)).unwrap()
}

pub(crate) fn paths(snapshot: &Snapshot) -> Vec<&[u8]> {
    snapshot.cgroups.iter().map(|cgroup| cgroup.path.as_bytes()).collect()
}

/// The gaps as they are printed.
pub(crate) fn gaps(snapshot: &Snapshot) -> Vec<String> {
    snapshot.gaps.iter().map(|missing| format!("{}: {}", missing.what, missing.reason)).collect()
}
