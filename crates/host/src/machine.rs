//! The machine: reads everything once, in an order that keeps numbers of one kind close together in time.

use std::path::Path;

use quell_engine::snapshot::{Clock, Cost, Host, Look, Snapshot, System};
use quell_kfile::vmstat;
use quell_units::{CgroupPath, Gap, Known, Micros};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cgroups::{Bounds, Hierarchies, Table};
use crate::clock;
use crate::devices::Devices;
use crate::error::HostError;
use crate::gaps::{Gaps, Of};
use crate::mounts;
use crate::names::Names;
use crate::open_files;
use crate::reader::{Reader, join};
use crate::superblocks;
use crate::system::{read_host, read_system};
use crate::tasks;
use crate::values::many;

/// How much a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Counters alone: of the host, its devices and its cgroups. What a loop reads.
    Counters,
    /// Configuration, queues, file systems and processes too.
    Full,
    /// Every setting of every disk too, and what its file system says on it. Thousands of files on a large host.
    Settings,
}

/// Cgroups that are walked.
const CGROUPS_MAX: usize = 20_000;

/// Descriptors that are kept open. The kernel holds 4 KiB for each cgroup file that was read, so this is 64 MiB of its
/// memory at most, and some 2,700 cgroups.
const KEPT_MAX: usize = 16_384;

/// Descriptors that are left to the rest of the program.
const KEPT_RESERVE: u64 = 256;

/// A host that is read: this one, or a captured tree.
///
/// It keeps files open between snapshots, so a second snapshot is much cheaper than the first. For that, making one
/// raises this process's limit of open descriptors as far as it may; children that are started later inherit the limit.
#[derive(Debug)]
pub struct Machine {
    pub(crate) reader: Reader,
    bounds: Bounds,
    host: Option<Host>,
    hierarchies: Hierarchies,
    devices: Devices,
    cgroups: Option<Table>,
    names: Names,
    /// The processes that held an io_uring at the last full snapshot: a light look cannot find out.
    io_uring: Vec<u32>,
    look_from: tasks::Cursor,
}

impl Machine {
    /// This machine.
    ///
    /// # Errors
    /// `/` cannot be opened.
    pub fn live() -> Result<Self, HostError> {
        Reader::live().map(Self::new)
    }

    /// A captured tree, in place of `/`.
    ///
    /// # Errors
    /// It cannot be opened, there is neither `proc` nor `sys` in it, or this kernel cannot keep links inside of it
    /// (`openat2`, from 5.6).
    pub fn under(dir: &Path) -> Result<Self, HostError> {
        let mut reader = Reader::under(dir)?;
        if reader.open_dir(b"proc").is_err() && reader.open_dir(b"sys").is_err() {
            return Err(HostError::new("find proc or sys in", dir, Errno::NOENT));
        }
        Ok(Self::new(reader))
    }

    fn new(reader: Reader) -> Self {
        let kept_max = raise_descriptor_limit().saturating_sub(KEPT_RESERVE);
        let kept_max = usize::try_from(kept_max).unwrap_or(usize::MAX).min(KEPT_MAX);
        Self {
            reader,
            bounds: Bounds { cgroups_max: CGROUPS_MAX, kept_max },
            host: None,
            hierarchies: Hierarchies::default(),
            devices: Devices::default(),
            cgroups: None,
            names: Names::default(),
            io_uring: Vec::new(),
            look_from: tasks::Cursor::default(),
        }
    }

    /// Reads everything once.
    ///
    /// It never fails as a whole. What is missing carries its reason, and [`Snapshot::gaps`] lists it by kind.
    pub fn snapshot(&mut self, depth: Depth) -> Snapshot {
        let cost = self.cost();
        let mut gaps = Gaps::default();
        let mut clock = self.begin(&mut gaps);
        self.devices.read_counters(&mut self.reader, &mut gaps);
        let system = read_system(&mut self.reader, &mut gaps);
        let full = depth >= Depth::Full;
        let mounts = self.read_topology(full, &mut gaps);
        let host = self.host(&system);
        let devices = self.devices.build(&mut self.reader, depth, &mut gaps);
        let cgroups_begun = clock::boot_time();
        let cgroups = self.cgroups.as_mut().map(|table| table.sample(&mut self.reader, full, &mut gaps));
        if !self.reader.is_captured() {
            clock.cgroups = cgroups_begun.midpoint(clock::boot_time());
            clock.tasks = clock::boot_time();
        }
        let (mut tasks, mut filesystems, mut mounted) = (Vec::new(), Vec::new(), Vec::new());
        let (mut on_disk, mut partitions) = (Vec::new(), Vec::new());
        if full {
            tasks = tasks::read_tasks(&mut self.reader, &self.hierarchies, &mut gaps);
            self.io_uring = tasks.iter().filter(|task| task.io_uring).map(|task| task.pid).collect();
            let places = self.devices.places();
            filesystems = mounts::read_filesystems(&mut self.reader, &mounts, places, &mut gaps);
            mounted = mounts::mounted(&mut self.reader, &mounts, places, &mut gaps);
        }
        if depth == Depth::Settings {
            partitions = self.devices.read_partitions(&mut self.reader);
            on_disk = superblocks::read_superblocks(&mut self.reader, &devices, &mut gaps);
        }
        if cgroups.is_none() {
            gaps.missing("cgroups", Of::Host, Gap::NotInKernel, || "");
        }
        let cgroups = cgroups.unwrap_or_default();
        let (mut containers, pods) =
            self.names.read(&mut self.reader, &cgroups, full.then_some(mounts.as_slice()), &mut gaps);
        let mut files = Vec::new();
        if full {
            files = open_files::read_open_files(&mut self.reader, &tasks, &containers, &mut gaps);
            open_files::read_log_sizes(&mut self.reader, &mut containers, &mut gaps);
        }
        let gaps = gaps.into_missing();
        let cost = spent(cost, self.cost());
        Snapshot {
            clock,
            host,
            system,
            devices,
            cgroups,
            containers,
            pods,
            tasks,
            open_files: files,
            filesystems,
            mounts: mounted,
            on_disk,
            partitions,
            gaps,
            cost,
        }
    }

    /// Takes a light look: which threads wait, how much is dirty, what is in flight.
    pub fn look(&mut self) -> Look {
        let at = clock::boot_time();
        let mut gaps = Gaps::default();
        self.devices.read_counters(&mut self.reader, &mut gaps);
        if self.host.is_none() {
            // The first thing ever read: which hierarchy a task's cgroup is taken from is not known yet.
            self.read_topology(false, &mut gaps);
        }
        let (vmstat, _) = many(self.reader.read(b"proc/vmstat"), vmstat::parse);
        let (dirty_pages, writeback_pages) = vmstat.map_or((None, None), |vm| (vm.dirty_pages, vm.writeback_pages));
        let disks = self.devices.look();
        let (mut blocked, cut) = tasks::read_blocked(&mut self.reader, &self.hierarchies, &mut self.look_from);
        for task in &mut blocked {
            task.io_uring = self.io_uring.contains(&task.pid);
        }
        Look { at, blocked, cut, dirty_pages, writeback_pages, disks }
    }

    /// Where a cgroup's directory lies below the root.
    pub(crate) fn cgroup_dir(&self, path: &CgroupPath) -> Vec<u8> {
        self.hierarchies.io().map(|walked| join(&[&walked.point, path.as_bytes()])).unwrap_or_default()
    }

    /// Where the hierarchies that are read are mounted, below the root.
    pub(crate) fn cgroup_points(&self) -> Vec<Vec<u8>> {
        self.hierarchies.all().map(|hierarchy| hierarchy.point.clone()).collect()
    }

    /// Forgets all that is kept between snapshots, so that the next one reads every file anew.
    pub(crate) fn forget(&mut self) {
        self.host = None;
        self.devices = Devices::default();
        self.cgroups = None;
        self.names = Names::default();
    }

    fn begin(&mut self, gaps: &mut Gaps) -> Clock {
        if self.reader.is_captured() {
            return clock::read_captured(&mut self.reader, gaps);
        }
        let now = clock::boot_time();
        Clock { system: now, cgroups: now, tasks: now, wall: Some(clock::wall_time()) }
    }

    /// Reads what seldom changes: for a full snapshot, at first, and when devices came or went.
    fn read_topology(&mut self, full: bool, gaps: &mut Gaps) -> Vec<quell_kfile::mountinfo::Row> {
        let first = self.host.is_none();
        let devices_changed = self.devices.changed();
        if !(full || first || devices_changed) {
            return Vec::new();
        }
        let mounts = mounts::read_mounts(&mut self.reader, gaps);
        self.devices.read_places(&mut self.reader, &mounts, gaps);
        if full || first {
            let hierarchies = Hierarchies::find(&mut self.reader, &mounts);
            if first || hierarchies != self.hierarchies {
                self.cgroups = Table::new(&hierarchies, self.bounds);
                self.host = Some(read_host(&mut self.reader, &hierarchies));
                self.hierarchies = hierarchies;
            }
        }
        mounts
    }

    fn host(&self, system: &System) -> Host {
        let cpus: Known<u32> = system.cpu.map(|cpu| cpu.online);
        match &self.host {
            Some(host) => Host { cpus, ..host.clone() },
            None => Host {
                name: Err(Gap::NotInKernel),
                kernel: Err(Gap::NotInKernel),
                cgroups: self.hierarchies.mode(),
                cgroup_mount: Err(Gap::NotInKernel),
                virtualised: Err(Gap::NotInKernel),
                cpus,
            },
        }
    }

    fn cost(&self) -> Cost {
        Cost { cpu_usec: clock::cpu_time(), files: self.reader.files() }
    }
}

fn spent(before: Cost, after: Cost) -> Cost {
    Cost {
        cpu_usec: Micros(after.cpu_usec.0.saturating_sub(before.cpu_usec.0)),
        files: after.files.saturating_sub(before.files),
    }
}

/// Raises the limit on open descriptors as far as this process may, and gives it.
fn raise_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum || setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        return current.unwrap_or(u64::MAX);
    }
    maximum.unwrap_or(u64::MAX)
}
