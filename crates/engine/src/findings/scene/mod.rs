//! What the rules look at: the window's disks, workloads, limits and waits, joined once.
//!
//! A [`Scene`] makes no finding; it answers the questions that several rules ask (which disk lies lowest, does it queue,
//! whose bytes are these, who waits for what) so that each of them has one answer.

mod asked;
mod budget;
mod bypass;
mod cap;
mod contention;
mod controller;
mod disk;
mod series;
mod wait;
mod weight;
mod workload;

pub use crate::class::DiskClass;
pub use asked::Named;
pub use budget::Budget;
pub use bypass::Bypass;
pub use cap::{Cap, CapKey};
pub use contention::Contention;
pub(super) use controller::{is_a_users, is_rootless};
pub use disk::{Disk, Share, Trust};
pub use series::Step;
pub(super) use series::spread;
pub use wait::{Wait, WaitKind};
pub use weight::Engine;
pub use workload::Workload;

use quell_units::{Bytes, CgroupPath, DevNum, Known, Micros, count, ratio};

use crate::identity::identify;
use crate::rates::Rates;
use crate::snapshot::{Cgroup, CgroupConfig, Filesystem, Window};

/// The window's disks, workloads, limits and waits.
#[derive(Debug)]
pub struct Scene<'a> {
    /// What was read.
    pub window: &'a Window,
    /// What it says per second.
    pub rates: &'a Rates,
    /// Every whole device, by number.
    pub disks: Vec<Disk<'a>>,
    /// Every container, service and other cgroup with work of its own, by path.
    pub workloads: Vec<Workload>,
    /// Every configured ceiling, with the rate it is held against.
    pub caps: Vec<Cap>,
}

impl<'a> Scene<'a> {
    /// The size of a page of memory, by [`System::page_bytes`](crate::snapshot::System::page_bytes).
    #[must_use]
    pub fn page_bytes(&self) -> f64 {
        self.window.t1.system.page_bytes()
    }

    /// Joins a window and its rates.
    #[must_use]
    pub fn of(window: &'a Window, rates: &'a Rates) -> Self {
        let mut workloads = workload::workloads(window, rates, wait::waits(window));
        let disks = disk::disks(window, rates, &mut workloads);
        let caps = cap::caps(window, rates);
        Self { window, rates, disks, workloads, caps }
    }

    /// The disks with nothing below them that were seen at both moments.
    pub fn leaf_disks(&self) -> impl Iterator<Item = &Disk<'a>> {
        self.disks.iter().filter(|disk| disk.leaf && disk.rates.is_some())
    }

    /// The disk of this number, or the one that the partition of this number lies on.
    #[must_use]
    pub fn disk(&self, dev: DevNum) -> Option<&Disk<'a>> {
        let dev = self.window.t1.whole_disk(dev);
        self.disks.iter().find(|disk| disk.dev == dev)
    }

    /// The lowest disks below a device.
    pub fn leaves(&self, dev: DevNum) -> impl Iterator<Item = &Disk<'a>> {
        self.window.t1.leaves(dev).into_iter().filter_map(|leaf| self.disk(leaf))
    }

    /// The workloads that use a disk, biggest share first.
    pub fn users<'s, 'd>(
        &'s self,
        disk: &'d Disk<'_>,
    ) -> impl Iterator<Item = (&'s Workload, &'d Share)> + use<'s, 'd, 'a> {
        disk.shares.iter().filter_map(|share| Some((self.workloads.get(share.workload)?, share)))
    }

    /// Whether a workload ever did I/O on a disk or on those below it, as far as that is counted.
    #[must_use]
    pub fn uses(&self, workload: &Workload, disk: &Disk) -> bool {
        let below = self.window.t1.leaves(disk.dev);
        !workload.io_counted || workload.io.iter().any(|io| io.dev == disk.dev || below.contains(&io.dev))
    }

    /// Those that were seen waiting for a journal and use this disk: a wait does not say whose journal it is.
    pub fn journal_waiters<'s>(&'s self, disk: &Disk) -> impl Iterator<Item = &'s Workload> {
        let of_people = self.workloads.iter().filter(|workload| !workload.is_kernel());
        of_people.filter(move |workload| workload.waits_for_journal() && self.uses(workload, disk))
    }

    /// Who a disk mostly works for, the kernel included, where there is one: three fifths of its time.
    #[must_use]
    pub fn top_user<'s, 'd>(&'s self, disk: &'d Disk<'_>) -> Option<(&'s Workload, &'d Share)> {
        self.users(disk).next().filter(|(_, share)| share.ratio >= 0.6)
    }

    /// The workload that a disk mostly works for: the same, where it is not the kernel.
    #[must_use]
    pub fn main_user<'s, 'd>(&'s self, disk: &'d Disk<'_>) -> Option<(&'s Workload, &'d Share)> {
        self.top_user(disk).filter(|(workload, _)| !workload.is_kernel())
    }

    /// The cgroup of this path at the later moment.
    #[must_use]
    pub fn cgroup(&self, path: &CgroupPath) -> Option<&'a Cgroup> {
        self.window.t1.cgroup(path)
    }

    /// A cgroup as people know it, where its runtime has a name for it; else its path.
    #[must_use]
    pub fn name_of(&self, path: &CgroupPath) -> String {
        let snapshot = &self.window.t1;
        let has_name = snapshot.container(path).is_some() || snapshot.pod(path).is_some();
        if has_name { identify(path, snapshot).1 } else { path.to_string() }
    }

    /// A cgroup's configuration at the later moment.
    #[must_use]
    pub fn config(&self, path: &CgroupPath) -> Option<&'a CgroupConfig> {
        self.cgroup(path)?.config.as_deref()
    }

    /// The root cgroup's configuration at the later moment: iocost is set there.
    #[must_use]
    pub fn root_config(&self) -> Option<&'a CgroupConfig> {
        self.config(&CgroupPath::root())
    }

    /// The limits that hold a workload on a device or on one below it: its own and its ancestors'.
    pub fn caps_over(&self, path: &CgroupPath, dev: DevNum) -> impl Iterator<Item = &Cap> {
        let below = self.window.t1.leaves(dev);
        self.caps.iter().filter(move |cap| {
            let on_path = path.is_within(&cap.cgroup);
            on_path && (cap.dev == dev || below.contains(&cap.dev) || self.window.t1.leaves(cap.dev).contains(&dev))
        })
    }

    /// Dirty page cache of a workload, and of it what is under write-back, at the later moment.
    #[must_use]
    pub fn backlog(&self, path: &CgroupPath) -> Option<Backlog> {
        let stat = self.cgroup(path)?.memory_stat.ok()?;
        Some(Backlog { dirty: stat.file_dirty_bytes?, writeback: stat.file_writeback_bytes? })
    }

    /// Dirty and write-back pages of the host: at both moments and at the looks between.
    #[must_use]
    pub fn host_backlog_pages(&self) -> Vec<u64> {
        let of_snapshot = |vmstat: &Known<quell_kfile::vmstat::VmStat>| {
            let vmstat = vmstat.as_ref().ok()?;
            Some(vmstat.dirty_pages?.saturating_add(vmstat.writeback_pages?))
        };
        let looks = self.window.looks.iter().map(|look| Some(look.dirty_pages?.saturating_add(look.writeback_pages?)));
        let first = of_snapshot(&self.window.t0.system.vmstat);
        let last = of_snapshot(&self.window.t1.system.vmstat);
        std::iter::once(first).chain(looks).chain([last]).flatten().collect()
    }

    /// The host's dirty limits.
    #[must_use]
    pub fn dirty_limits(&self) -> Option<DirtyLimits> {
        let vmstat = self.window.t1.system.vmstat.as_ref().ok()?;
        Some(DirtyLimits {
            background_pages: vmstat.dirty_background_threshold_pages?,
            limit_pages: vmstat.dirty_threshold_pages?,
        })
    }

    /// What a file system's journal committed in the window.
    #[must_use]
    pub fn commits(&self, now: &Filesystem) -> Option<Commits> {
        let was = self.window.t0.filesystems.iter().find(|fs| fs.dev == now.dev)?;
        let (was, now) = (was.journal.as_ref().ok()?, now.journal.as_ref().ok()?);
        let commits = count(now.transactions?.checked_sub(was.transactions?)?);
        let requested = count(now.requested?.checked_sub(was.requested?)?);
        Some(Commits {
            per_sec: commits / self.rates.seconds.ok()?,
            requested_ratio: ratio(requested, commits),
            mean_usec: now.commit_usec_avg.map(Micros::as_f64),
        })
    }

    /// The path of a cgroup's file on the host, for evidence and commands.
    #[must_use]
    pub fn cgroup_file(&self, path: &CgroupPath, file: &str) -> String {
        let mount = self.window.t1.host.cgroup_mount.as_deref().unwrap_or("/sys/fs/cgroup");
        if path.is_root() { format!("{mount}/{file}") } else { format!("{mount}/{path}/{file}") }
    }
}

/// Where write-back starts in the background, and where writers are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyLimits {
    /// `nr_dirty_background_threshold`.
    pub background_pages: u64,
    /// `nr_dirty_threshold`.
    pub limit_pages: u64,
}

/// What a journal committed in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Commits {
    /// Commits per second.
    pub per_sec: f64,
    /// The share of them that somebody asked for, by fsync or for want of room.
    pub requested_ratio: f64,
    /// What one takes: the kernel's own moving average.
    pub mean_usec: Option<f64>,
}

/// Page cache of one cgroup that the disk has not got yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Modified, and not under write-back yet.
    pub dirty: Bytes,
    /// Under write-back.
    pub writeback: Bytes,
}

impl Backlog {
    /// Both together.
    #[must_use]
    pub fn bytes(self) -> f64 {
        count(self.dirty.saturating_add(self.writeback).get())
    }
}
