//! Workloads: the containers, services and other cgroups that do work of their own.
//!
//! `io.stat` counts a cgroup with all below it, so the tree is cut where people think in one thing: at a container or a
//! service, whatever it makes below, else at the leaves; what a cgroup in between did itself is what is left when its
//! children's are taken away. So no byte is counted twice.

use std::collections::{HashMap, HashSet};

use quell_units::{CgroupId, CgroupPath, DevNum, count, ratio};

use super::wait::{Wait, WaitKind};
use crate::identity::{KERNEL, WorkloadKind, identify, is_whole};
use crate::rates::{CgroupIo, CgroupRates, DiskRates, MemoryRates, PressureRates, Rates, Span};
use crate::snapshot::{Snapshot, Task, Window};

/// One container, service or other cgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its cgroup.
    pub path: CgroupPath,
    /// Its cgroup's identity.
    pub id: CgroupId,
    /// What it is.
    pub kind: WorkloadKind,
    /// Its name as people know it, safe to print.
    pub name: String,
    /// What it did on each device.
    pub io: Vec<CgroupIo>,
    /// Whether its cgroup counts its I/O; else `io` is what its processes say, on the one disk they can have meant.
    pub io_counted: bool,
    /// Whether cgroups with work of their own lie below: then `io` is what is left, and may be that of some that ended.
    pub inner: bool,
    /// Time stalled on I/O. `None` where the kernel does not tell, and for what a cgroup with children did itself.
    pub pressure: Option<PressureRates>,
    /// What its memory did.
    pub memory: Option<MemoryRates>,
    /// Its tasks that were seen waiting, the longest first.
    pub waits: Vec<Wait>,
    /// Bytes its processes read and wrote per second, from `/proc/PID/io`.
    process_bytes_per_sec: (f64, f64),
}

impl Workload {
    /// Whether a task of it was seen waiting for a file system's journal.
    #[must_use]
    pub fn waits_for_journal(&self) -> bool {
        self.waits.iter().any(|wait| wait.kind == WaitKind::Journal && !wait.kernel_thread)
    }

    /// The share of the time it was stalled on I/O, 0 to 1: the larger of its pressure and of what was seen of its tasks.
    ///
    /// Pressure is evidence for a stall and never against one: asynchronous and journal waiters do not show in it.
    #[must_use]
    pub fn stall_ratio(&self) -> f64 {
        let seen = self.waits.iter().map(Wait::ratio).fold(0.0, f64::max);
        self.pressure_full_pct().map_or(seen, |pct| seen.max(pct / 100.0)).min(1.0)
    }

    /// `io.pressure` full, 0 to 100; some where the kernel has no full.
    #[must_use]
    pub fn pressure_full_pct(&self) -> Option<f64> {
        self.pressure.map(|pressure| pressure.full_pct.unwrap_or(pressure.some_pct))
    }

    /// Bytes that its processes wrote per second, into the page cache or past it, as `/proc/PID/io` counts them when they
    /// are made and not when they reach a disk.
    #[must_use]
    pub const fn process_write_bytes_per_sec(&self) -> f64 {
        self.process_bytes_per_sec.1
    }

    /// What it did on one device.
    #[must_use]
    pub fn io_on(&self, dev: DevNum) -> Option<&CgroupIo> {
        self.io.iter().find(|io| io.dev == dev)
    }

    /// Whether it is the root cgroup: the kernel's own threads, the journal's among them.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.path.is_root()
    }

    /// Puts what its processes say on a disk, in requests of the disk's mean size, where its cgroup counts nothing.
    pub(super) fn place_process_io(&mut self, dev: DevNum, rates: &DiskRates) -> Option<(CgroupPath, CgroupIo)> {
        let span = |bytes_per_sec: f64, size: Option<f64>| Span {
            ios_per_sec: ratio(bytes_per_sec, size.unwrap_or(0.0)),
            bytes_per_sec,
            size_bytes_avg: size,
        };
        let (read, write) = self.process_bytes_per_sec;
        if self.io_counted || read + write <= 0.0 {
            return None;
        }
        let read = span(read, rates.read.size_bytes_avg);
        let write = span(write, rates.write.size_bytes_avg);
        let io = CgroupIo { dev, read, write, cost_usage_ratio: None, cost_wait_ratio: None };
        self.io = vec![io];
        Some((self.path.clone(), io))
    }

    /// Takes away what turned out to be another's.
    pub(super) fn take_away(&mut self, other: &CgroupIo) {
        if let Some(row) = self.io.iter_mut().find(|row| row.dev == other.dev) {
            *row = less(row, &[other]);
        }
    }
}

/// The workloads of a window, by path.
pub(super) fn workloads(window: &Window, rates: &Rates, waits: Vec<(CgroupPath, Wait)>) -> Vec<Workload> {
    let tree = Tree::of(&rates.cgroups, &window.t1);
    let mut workloads: Vec<Workload> = rates
        .cgroups
        .iter()
        .filter(|cgroup| !tree.is_inside_a_whole(&cgroup.path))
        .map(|cgroup| tree.workload(cgroup))
        .collect();
    if workloads.is_empty() {
        // No cgroup was read at all: everything is the host's.
        workloads.push(nameless());
    }
    let at: HashMap<CgroupPath, usize> = workloads.iter().enumerate().map(|(at, w)| (w.path.clone(), at)).collect();
    let owner = |path: &CgroupPath| path.ancestors().find_map(|path| at.get(&path).copied());
    for (path, wait) in waits {
        if let Some(workload) = owner(&path).and_then(|at| workloads.get_mut(at)) {
            workload.waits.push(wait);
        }
    }
    for (path, read, write) in process_bytes(window) {
        if let Some(workload) = owner(&path).and_then(|at| workloads.get_mut(at)) {
            workload.process_bytes_per_sec.0 += read;
            workload.process_bytes_per_sec.1 += write;
        }
    }
    workloads
}

/// What each process read and wrote per second, with its cgroup.
fn process_bytes(window: &Window) -> Vec<(CgroupPath, f64, f64)> {
    let Some(span) = window.t1.clock.tasks.since(window.t0.clock.tasks) else { return Vec::new() };
    let first_threads = |tasks: &'_ [Task]| -> HashMap<u32, (u64, u64)> {
        let io = |task: &Task| {
            let io = task.io.ok()?;
            Some((task.pid, (io.read_bytes?.get(), io.write_bytes?.get())))
        };
        tasks.iter().filter(|task| task.tid == task.pid).filter_map(io).collect()
    };
    let was = first_threads(&window.t0.tasks);
    let now = first_threads(&window.t1.tasks);
    let per_sec = |was: u64, now: u64| count(now.saturating_sub(was)) / span.seconds();
    let mut seen = HashSet::new();
    window
        .t1
        .tasks
        .iter()
        .filter(|task| seen.insert(task.pid))
        .filter_map(|task| {
            let ((read_was, write_was), (read, write)) = (was.get(&task.pid)?, now.get(&task.pid)?);
            Some((task.cgroup.clone().ok()?, per_sec(*read_was, *read), per_sec(*write_was, *write)))
        })
        .collect()
}

/// The cgroups' rates, and what is said of a cgroup by those below it.
struct Tree<'a> {
    snapshot: &'a Snapshot,
    children_io: HashMap<CgroupPath, Vec<&'a CgroupRates>>,
    wholes: HashSet<CgroupPath>,
}

impl<'a> Tree<'a> {
    fn of(cgroups: &'a [CgroupRates], snapshot: &'a Snapshot) -> Self {
        let mut children_io: HashMap<CgroupPath, Vec<&CgroupRates>> = HashMap::new();
        for cgroup in cgroups {
            if let Some(parent) = cgroup.path.parent() {
                children_io.entry(parent).or_default().push(cgroup);
            }
        }
        let wholes =
            cgroups.iter().map(|cgroup| &cgroup.path).filter(|path| is_whole(path, snapshot)).cloned().collect();
        Self { snapshot, children_io, wholes }
    }

    fn is_inside_a_whole(&self, path: &CgroupPath) -> bool {
        path.ancestors().skip(1).any(|path| self.wholes.contains(&path))
    }

    fn workload(&self, cgroup: &CgroupRates) -> Workload {
        let children: &[&CgroupRates] = if self.wholes.contains(&cgroup.path) {
            &[]
        } else {
            self.children_io.get(&cgroup.path).map_or(&[], Vec::as_slice)
        };
        let (kind, name) = identify(&cgroup.path, self.snapshot);
        let rows = cgroup.io.as_deref().unwrap_or_default();
        Workload {
            path: cgroup.path.clone(),
            id: cgroup.id,
            kind,
            name: if cgroup.path.is_root() { KERNEL.into() } else { name },
            io: rows.iter().map(|row| own(row, children)).collect(),
            io_counted: cgroup.io.is_ok(),
            inner: !children.is_empty(),
            pressure: cgroup.io_pressure.ok().filter(|_| children.is_empty()),
            memory: cgroup.memory.ok().filter(|_| children.is_empty()),
            waits: Vec::new(),
            process_bytes_per_sec: (0.0, 0.0),
        }
    }
}

/// A row less what the children did on the same device.
fn own(row: &CgroupIo, children: &[&CgroupRates]) -> CgroupIo {
    let below = children.iter().flat_map(|child| child.io.as_deref().unwrap_or_default());
    less(row, &below.filter(|io| io.dev == row.dev).collect::<Vec<_>>())
}

/// A row less others of the same device.
///
/// The files are read one after the other, so a busy child can be a little ahead of its parent: less than a fiftieth
/// of the parent's is taken for that and not for work.
fn less(row: &CgroupIo, others: &[&CgroupIo]) -> CgroupIo {
    if others.is_empty() {
        return *row;
    }
    let left = |whole: f64, of: fn(&CgroupIo) -> f64| {
        let left = whole - others.iter().map(|io| of(io)).sum::<f64>();
        if left < whole / 50.0 { 0.0 } else { left }
    };
    let span = |whole: Span, ios: fn(&CgroupIo) -> f64, bytes: fn(&CgroupIo) -> f64| {
        let (ios_per_sec, bytes_per_sec) = (left(whole.ios_per_sec, ios), left(whole.bytes_per_sec, bytes));
        let size_bytes_avg = (ios_per_sec > 0.0).then(|| bytes_per_sec / ios_per_sec);
        Span { ios_per_sec, bytes_per_sec, size_bytes_avg }
    };
    CgroupIo {
        dev: row.dev,
        read: span(row.read, |io| io.read.ios_per_sec, |io| io.read.bytes_per_sec),
        write: span(row.write, |io| io.write.ios_per_sec, |io| io.write.bytes_per_sec),
        cost_usage_ratio: row.cost_usage_ratio.map(|whole| left(whole, |io| io.cost_usage_ratio.unwrap_or(0.0))),
        cost_wait_ratio: row.cost_wait_ratio,
    }
}

fn nameless() -> Workload {
    Workload {
        path: CgroupPath::root(),
        id: CgroupId::default(),
        kind: WorkloadKind::Cgroup,
        name: "the host".into(),
        io: Vec::new(),
        io_counted: false,
        inner: false,
        pressure: None,
        memory: None,
        waits: Vec::new(),
        process_bytes_per_sec: (0.0, 0.0),
    }
}
