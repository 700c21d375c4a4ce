//! A tree of files that looks like a host with many cgroups, in memory.
//!
//! On tmpfs a read is a copy, where the kernel prints a cgroup's file anew at each: a ratio that holds here holds on a
//! real host all the more. The files are as long as those of a 6.12 kernel; the host's own are this machine's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::interrupt::Interrupt;

/// Where memory is a file system.
const MEMORY: &str = "/dev/shm";

/// The files of a host that a sample reads, below the root. This machine's own are copied.
const HOST_FILES: [&str; 12] = [
    "proc/vmstat",
    "proc/stat",
    "proc/pressure/io",
    "proc/pressure/memory",
    "proc/pressure/cpu",
    "proc/meminfo",
    "proc/swaps",
    "proc/sys/vm/dirty_background_bytes",
    "proc/sys/vm/dirty_background_ratio",
    "proc/sys/vm/dirty_bytes",
    "proc/sys/vm/dirty_ratio",
    "proc/sys/kernel/osrelease",
];

/// The lines of `memory.stat`.
const MEMORY_STAT: &str = "anon file kernel kernel_stack pagetables sec_pagetables percpu sock vmalloc shmem zswap \
    zswapped file_mapped file_dirty file_writeback swapcached anon_thp file_thp shmem_thp inactive_anon active_anon \
    inactive_file active_file unevictable slab_reclaimable slab_unreclaimable slab workingset_refault_anon \
    workingset_refault_file workingset_activate_anon workingset_activate_file workingset_restore_anon \
    workingset_restore_file workingset_nodereclaim pgdemote_kswapd pgdemote_direct pgdemote_khugepaged pgscan pgsteal \
    pgscan_kswapd pgscan_direct pgscan_khugepaged pgsteal_kswapd pgsteal_direct pgsteal_khugepaged pgfault pgmajfault \
    pgrefill pgactivate pgdeactivate pglazyfree pglazyfreed zswpin zswpout zswpwb thp_fault_alloc thp_collapse_alloc";

/// The disks: number and name.
const DISKS: [(&str, &str); 3] = [("259:0", "nvme0n1"), ("259:1", "nvme1n1"), ("8:0", "sda")];

/// A tree of two moments. It is removed with its value.
#[derive(Debug)]
pub(super) struct Tree {
    dir: TempDir,
    /// The cgroups' directories below a moment's root.
    cgroups: Vec<PathBuf>,
}

impl Tree {
    /// Makes a tree with as many cgroups below the root, in three levels.
    pub(super) fn make(cgroups: u32, interrupt: &Interrupt) -> Result<Self> {
        ensure!(Path::new(MEMORY).is_dir(), "{MEMORY} is not there: the tree must lie in memory");
        let dir = tempfile::Builder::new().prefix("quell-bench-").tempdir_in(MEMORY)?;
        let root = PathBuf::from("sys/fs/cgroup");
        let cgroups = std::iter::once(root.clone()).chain(below(&root, cgroups)).collect();
        let tree = Self { dir, cgroups };
        for moment in [0, 1] {
            tree.write(moment, interrupt)?;
        }
        Ok(tree)
    }

    /// The root of a moment.
    pub(super) fn root(&self, moment: u64) -> PathBuf {
        self.dir.path().join(format!("t{moment}"))
    }

    /// The files that a sample of counters reads.
    pub(super) fn files(&self, moment: u64) -> Vec<PathBuf> {
        let root = self.root(moment);
        let host = HOST_FILES.iter().map(PathBuf::from).chain(["proc/diskstats".into(), "proc/uptime".into()]);
        let disks = DISKS.iter().map(|(_, name)| disk_dir(name).join("diskseq"));
        let cgroups = self.cgroups.iter().enumerate().flat_map(|(at, dir)| {
            let names = cgroup_files(u64::try_from(at).unwrap_or_default(), moment, self.below_root(at));
            names.into_iter().filter(|file| file.counters).map(|file| dir.join(file.name))
        });
        host.chain(disks).chain(cgroups).map(|file| root.join(file)).collect()
    }

    /// How many cgroups there are below the root, for the root alone.
    fn below_root(&self, at: usize) -> Option<usize> {
        (at == 0).then(|| self.cgroups.len() - 1)
    }

    fn write(&self, moment: u64, interrupt: &Interrupt) -> Result<()> {
        let root = self.root(moment);
        write_host(&root, moment)?;
        for (at, dir) in self.cgroups.iter().enumerate() {
            interrupt.check()?;
            let dir = root.join(dir);
            fs::create_dir_all(&dir)?;
            for file in cgroup_files(u64::try_from(at)?, moment, self.below_root(at)) {
                fs::write(dir.join(file.name), file.text)?;
            }
        }
        Ok(())
    }
}

/// Directories in three levels: of a hundred, one is a slice and nine are pods.
fn below(root: &Path, cgroups: u32) -> Vec<PathBuf> {
    let slices = cgroups.div_ceil(100);
    let pods = cgroups / 10;
    let slice = |at: u32| root.join(format!("kubepods-{:03}.slice", at % slices));
    let pod = |at: u32| slice(at).join(format!("kubepods-pod{at:08x}_8a1c_4f37_9d0e_{at:012x}.slice"));
    let container = |at: u32| {
        let dir = if pods > slices { pod(slices + at % (pods - slices)) } else { slice(at) };
        dir.join(format!("cri-containerd-{at:064x}.scope"))
    };
    let dir = |at: u32| match at {
        _ if at < slices => slice(at),
        _ if at < pods => pod(at),
        _ => container(at),
    };
    (0..cgroups).map(dir).collect()
}

/// A file of a cgroup.
struct CgroupFile {
    name: &'static str,
    text: String,
    /// Whether it holds counters: what a sample reads again and again.
    counters: bool,
}

fn cgroup_files(at: u64, moment: u64, below_root: Option<usize>) -> Vec<CgroupFile> {
    // Numbers of a real length that grow from the first moment to the second.
    let number = |scale: u64| (at + 7) * scale * (10 + moment) / 10;
    let io = |(dev, _): &(&str, &str)| {
        let (bytes, ios) = (number(1_234_567), number(97));
        format!("{dev} rbytes={bytes} wbytes={bytes} rios={ios} wios={ios} dbytes=0 dios=0\n")
    };
    let stalled = |kind: &str| format!("{kind} avg10=0.18 avg60=0.03 avg300=0.00 total={}\n", number(10_007));
    let memory = || MEMORY_STAT.split_whitespace().map(|key| format!("{key} {}\n", number(3_001))).collect();
    let file = |name, text, counters| CgroupFile { name, text, counters };
    let mut files = vec![
        file("io.stat", DISKS.iter().map(io).collect(), true),
        file("io.pressure", [stalled("some"), stalled("full")].concat(), true),
        file("memory.stat", memory(), true),
        file("cgroup.controllers", "cpu io memory pids\n".into(), false),
    ];
    match below_root {
        // From 4.14. A walk goes by the root's: while it counts as many as are known, no directory is asked.
        Some(below) => {
            let text = format!("nr_descendants {below}\nnr_dying_descendants 0\n");
            files.push(file("cgroup.stat", text, true));
        }
        None => files.extend([
            file("memory.current", format!("{}\n", number(1_048_576)), true),
            file("cgroup.events", "populated 1\nfrozen 0\n".into(), true),
            file("cgroup.type", "domain\n".into(), false),
            file("io.max", String::new(), false),
            file("io.weight", "default 100\n".into(), false),
            file("memory.high", "max\n".into(), false),
            file("memory.max", "max\n".into(), false),
        ]),
    }
    files
}

fn write_host(root: &Path, moment: u64) -> Result<()> {
    let write = |path: &str, text: String| -> Result<()> {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a path without a directory")?)?;
        Ok(fs::write(path, text)?)
    };
    for path in HOST_FILES {
        // What this machine lacks has a line that any parser takes or counts as lost: its cost is a read all the same.
        write(path, fs::read_to_string(Path::new("/").join(path)).unwrap_or_else(|_| "0\n".into()))?;
    }
    write("proc/self/mountinfo", "23 19 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n".into())?;
    write("proc/uptime", format!("{}.00 0.00\n", 5_000 + 10 * moment))?;
    let mut diskstats = String::new();
    for (dev, name) in DISKS {
        let ios = 1_000_000 + 5_000 * moment;
        let numbers = format!("{ios} 0 {0} {ios} {ios} 0 {0} {ios} 0 {ios} {ios} 0 0 0 0 0 0", ios * 64);
        diskstats += &format!("{} {name} {numbers}\n", dev.replace(':', " "));
        let dir = disk_dir(name);
        write(dir.join("dev").to_str().context("a path that is not UTF-8")?, format!("{dev}\n"))?;
        write(dir.join("diskseq").to_str().context("a path that is not UTF-8")?, "1\n".into())?;
        let links = root.join("sys/dev/block");
        fs::create_dir_all(&links)?;
        symlink(Path::new("../../..").join(dir), links.join(dev))?;
    }
    write("proc/diskstats", diskstats)
}

fn disk_dir(name: &str) -> PathBuf {
    Path::new("sys/devices/virtual/block").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_tree_has_as_many_cgroups_as_asked_for_each_below_another() {
        for cgroups in [1, 2, 10, 11, 99, 101, 1000, 5000] {
            let root = PathBuf::from("cg");
            let all: BTreeSet<_> = below(&root, cgroups).into_iter().collect();
            assert_eq!(all.len(), usize::try_from(cgroups).unwrap(), "{cgroups}");
            for dir in &all {
                let parent = dir.parent().unwrap();
                assert!(parent == root || all.contains(parent), "{cgroups}: {}", dir.display());
            }
        }
        let deepest = below(&PathBuf::from("cg"), 1000).iter().map(|dir| dir.components().count()).max();
        assert_eq!(deepest, Some(4));
    }

    #[test]
    fn a_tree_is_removed_with_its_value() {
        let Ok(tree) = Tree::make(3, &Interrupt::take_over().unwrap()) else { return };
        let dir = tree.dir.path().to_owned();
        assert!(tree.files(1).iter().all(|file| file.is_file()));
        drop(tree);
        assert!(!dir.exists());
    }
}
