//! The files of one cgroup: which there are in each version, kept open, and read at every sample.
//!
//! A table says where each number comes from, so version 1, version 2 and a host with both go through the same code.
//! What is missing is looked into once, when the file is opened: its controller may be off, or pressure switched off.

use std::os::fd::OwnedFd;

use quell_engine::snapshot::Cgroup;
use quell_kfile::{blkio, cgroup_events, controllers, io_stat, memory_stat, pressure, single};
use quell_units::{Bytes, CgroupId, CgroupPath, Gap, Known};

use super::hierarchies::{Hierarchies, Hierarchy};
use crate::error::{gap, is_gone};
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, join};
use crate::values::{many, one};

/// Files that one cgroup is read from, at most.
const SLOTS: usize = 6;

/// One of them.
#[derive(Debug)]
struct Spec {
    name: &'static str,
    /// The file that older kernels have instead. It counts the cgroup alone, without its descendants.
    own_only: Option<&'static str>,
    /// Whether it lies in the memory hierarchy of version 1, at the same path.
    in_memory: bool,
    /// Why it may be missing though the kernel offers it.
    off: Off,
}

/// What makes a file disappear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    /// Nothing: the kernel has it or not.
    Never,
    /// The controller is not enabled for the cgroup.
    Io,
    Memory,
    /// Pressure is switched off for the cgroup.
    Pressure,
    /// It is by design not in the root.
    InRoot,
}

const fn v2(name: &'static str, off: Off) -> Spec {
    Spec { name, own_only: None, in_memory: false, off }
}

const IO_STAT: Spec = v2("io.stat", Off::Io);
const IO_PRESSURE: Spec = v2("io.pressure", Off::Pressure);
const MEMORY_CURRENT: Spec = v2("memory.current", Off::Memory);
const MEMORY_STAT: Spec = v2("memory.stat", Off::Memory);
const CGROUP_EVENTS: Spec = v2("cgroup.events", Off::InRoot);
const V1_BYTES: Spec = Spec {
    name: "blkio.throttle.io_service_bytes_recursive",
    own_only: Some("blkio.throttle.io_service_bytes"),
    in_memory: false,
    off: Off::Never,
};
const V1_IOS: Spec = Spec {
    name: "blkio.throttle.io_serviced_recursive",
    own_only: Some("blkio.throttle.io_serviced"),
    in_memory: false,
    off: Off::Never,
};
const V1_USAGE: Spec = Spec { name: "memory.usage_in_bytes", own_only: None, in_memory: true, off: Off::Memory };
const V1_MEMORY_STAT: Spec = Spec { name: "memory.stat", own_only: None, in_memory: true, off: Off::Memory };

/// Which files a cgroup has on this host, and where.
#[derive(Debug)]
pub(super) struct Layout {
    specs: [Option<&'static Spec>; SLOTS],
    pub(super) io_is_v1: bool,
    pub(super) walked: Hierarchy,
    /// The memory hierarchy of version 1, where that is the one.
    pub(super) memory: Option<Hierarchy>,
}

impl Layout {
    /// The layout of a host; `None` where no hierarchy is mounted that could be walked.
    pub(super) fn of(hierarchies: &Hierarchies) -> Option<Self> {
        let walked = hierarchies.io()?.clone();
        let io_is_v1 = hierarchies.mode().io_is_v1();
        let memory = hierarchies.memory.clone();
        let v1_memory = memory.is_some() || hierarchies.unified.is_none();
        let (usage, stat) = if v1_memory { (&V1_USAGE, &V1_MEMORY_STAT) } else { (&MEMORY_CURRENT, &MEMORY_STAT) };
        let specs = if io_is_v1 {
            [Some(&V1_BYTES), Some(&V1_IOS), None, Some(usage), Some(stat), None]
        } else {
            [Some(&IO_STAT), None, Some(&IO_PRESSURE), Some(usage), Some(stat), Some(&CGROUP_EVENTS)]
        };
        Some(Self { specs, io_is_v1, walked, memory })
    }

    /// The path of a cgroup's directory below the root.
    pub(super) fn dir(&self, path: &CgroupPath) -> Vec<u8> {
        join(&[&self.walked.point, path.as_bytes()])
    }

    fn file(&self, in_memory: bool, path: &CgroupPath, name: &str) -> Vec<u8> {
        let hierarchy = self.memory.as_ref().filter(|_| in_memory).unwrap_or(&self.walked);
        join(&[&hierarchy.point, path.as_bytes(), name.as_bytes()])
    }
}

/// A file that is open, or the reason it is not.
#[derive(Debug)]
enum Slot {
    Open(OwnedFd, &'static str),
    Missing(Gap),
}

/// One cgroup's directory and files, open.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) dir: OwnedFd,
    slots: [Slot; SLOTS],
    own_only: bool,
}

/// A file of a cgroup is gone: the cgroup was removed, or a controller was switched off.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileGone;

impl Files {
    /// Opens the files of the cgroup whose directory is `dir`.
    pub(super) fn open(reader: &mut Reader, layout: &Layout, path: &CgroupPath, dir: OwnedFd) -> Self {
        let slots = [const { Slot::Missing(Gap::NotInKernel) }; SLOTS];
        let mut files = Self { dir, slots, own_only: false };
        files.open_missing(reader, layout, path);
        files
    }

    /// Tries again what is missing: a controller may have been enabled since.
    pub(super) fn open_missing(&mut self, reader: &mut Reader, layout: &Layout, path: &CgroupPath) {
        // The directory in the memory hierarchy is looked for once and only where it is needed.
        let needs_memory = layout
            .specs
            .iter()
            .zip(&self.slots)
            .any(|(spec, slot)| spec.is_some_and(|spec| spec.in_memory) && matches!(slot, Slot::Missing(_)));
        let memory = layout.memory.as_ref().filter(|_| needs_memory);
        let memory = memory.and_then(|memory| reader.open_dir(&join(&[&memory.point, path.as_bytes()])).ok());
        for (spec, slot) in layout.specs.iter().zip(&mut self.slots) {
            let (Some(spec), Slot::Missing(_)) = (spec, &*slot) else { continue };
            let dir = if spec.in_memory { memory.as_ref() } else { Some(&self.dir) };
            let Some(dir) = dir else {
                *slot = Slot::Missing(Gap::ControllerOff);
                continue;
            };
            let mut open =
                |name: &str| reader.open_in(dir, name.as_bytes(), || layout.file(spec.in_memory, path, name));
            *slot = match open(spec.name) {
                Ok(file) => Slot::Open(file, spec.name),
                Err(errno) => match spec.own_only.map(|name| (open(name), name)) {
                    Some((Ok(file), name)) => {
                        self.own_only = true;
                        Slot::Open(file, name)
                    }
                    _ => Slot::Missing(why(reader, gap(errno), spec, dir, |name| {
                        layout.file(spec.in_memory, path, name)
                    })),
                },
            };
        }
    }

    /// Closes the files, and opens those that are still there.
    pub(super) fn reopen(&mut self, reader: &mut Reader, layout: &Layout, path: &CgroupPath) {
        self.slots = [const { Slot::Missing(Gap::NotInKernel) }; SLOTS];
        self.open_missing(reader, layout, path);
    }

    /// How many descriptors are held.
    pub(super) fn held(&self) -> usize {
        1 + self.slots.iter().filter(|slot| matches!(slot, Slot::Open(..))).count()
    }

    /// Why those are missing that could not be opened.
    pub(super) fn missing(&self) -> impl Iterator<Item = Gap> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Missing(reason) => Some(*reason),
            Slot::Open(..) => None,
        })
    }

    /// Reads the counters, to the end of `out`. The configuration is another's business.
    pub(super) fn read(
        &self,
        reader: &mut Reader,
        layout: &Layout,
        (path, id): (&CgroupPath, CgroupId),
        rows: &mut Vec<io_stat::Row>,
        gaps: &mut Gaps,
        out: &mut Vec<Cgroup>,
    ) -> Result<(), FileGone> {
        let [io, ios, io_pressure, memory, stat, events] = &self.slots;
        let [io_spec, ios_spec, pressure_spec, memory_spec, stat_spec, events_spec] = layout.specs;
        let mut source = Source { reader, layout, path, gaps };
        let io = if layout.io_is_v1 {
            source.read_v1_io((io, io_spec), (ios, ios_spec), rows)?
        } else {
            source.read_io(io, io_spec, rows)?
        };
        let io_pressure = source.read(io_pressure, pressure_spec, |bytes| one(bytes, pressure::parse))?;
        let memory = source.read(memory, memory_spec, |bytes| one(bytes, single::parse_number).map(Bytes))?;
        let memory_stat = source.read_lines(stat, stat_spec, memory_stat::parse)?;
        let events = source.read_lines(events, events_spec, cgroup_events::parse)?;
        if self.own_only {
            gaps.missing("descendants in blkio.throttle", Of::Cgroup, Gap::NotInKernel, || path.as_bytes());
        }
        let populated = events.and_then(|events| events.populated.ok_or(Gap::NotInKernel));
        out.push(Cgroup { path: path.clone(), id, io, io_pressure, memory, memory_stat, populated, config: None });
        if let Some(cgroup) = out.last() {
            note(cgroup, layout, gaps);
        }
        Ok(())
    }
}

/// Why a file is not there.
fn why(reader: &mut Reader, reason: Gap, spec: &Spec, dir: &OwnedFd, path: impl Fn(&str) -> Vec<u8>) -> Gap {
    if reason != Gap::NotInKernel || spec.in_memory {
        return reason;
    }
    let mut enabled = |of: fn(&controllers::Controllers) -> bool| {
        let name = "cgroup.controllers";
        let on = one(reader.read_in(dir, name.as_bytes(), || path(name)), controllers::parse);
        on.map_or(true, |on| of(&on))
    };
    let is_off = match spec.off {
        Off::Io => !enabled(|on| on.io),
        Off::Memory => !enabled(|on| on.memory),
        Off::Pressure => {
            let name = "cgroup.pressure";
            let on = one(reader.read_in(dir, name.as_bytes(), || path(name)), single::parse_number);
            return if on == Ok(0) { Gap::Disabled } else { reason };
        }
        Off::Never | Off::InRoot => false,
    };
    if is_off { Gap::ControllerOff } else { reason }
}

/// A cgroup whose directory cannot be read.
pub(super) fn unreadable(layout: &Layout, path: &CgroupPath, id: CgroupId, reason: Gap, gaps: &mut Gaps) -> Cgroup {
    let (io, io_pressure, memory) = (Err(reason), Err(reason), Err(reason));
    let (memory_stat, populated) = (Err(reason), Err(reason));
    let cgroup = Cgroup { path: path.clone(), id, io, io_pressure, memory, memory_stat, populated, config: None };
    note(&cgroup, layout, gaps);
    cgroup
}

/// Counts what a cgroup lacks and should have.
fn note(cgroup: &Cgroup, layout: &Layout, gaps: &mut Gaps) {
    let [io, _, io_pressure, memory, memory_stat, events] = layout.specs;
    let reasons = [
        (io, cgroup.io.as_ref().err()),
        (io_pressure, cgroup.io_pressure.as_ref().err()),
        (memory, cgroup.memory.as_ref().err()),
        (memory_stat, cgroup.memory_stat.as_ref().err()),
        (events, cgroup.populated.as_ref().err()),
    ];
    for (spec, reason) in reasons {
        let (Some(spec), Some(&reason)) = (spec, reason) else { continue };
        // The root of version 2 has no `memory.current` and no `cgroup.events`: its numbers are the host's.
        let by_design =
            cgroup.path.is_root() && reason == Gap::NotInKernel && matches!(spec.off, Off::Memory | Off::InRoot);
        if !by_design {
            gaps.missing(spec.name, Of::Cgroup, reason, || shown(&cgroup.path));
        }
    }
}

/// A cgroup's path as it is named among the gaps.
pub(super) fn shown(path: &CgroupPath) -> &[u8] {
    if path.is_root() { b"/" } else { path.as_bytes() }
}

/// Reads slots, and keeps what all of them need.
struct Source<'a> {
    reader: &'a mut Reader,
    layout: &'a Layout,
    path: &'a CgroupPath,
    gaps: &'a mut Gaps,
}

impl Source<'_> {
    fn read<T>(
        &mut self,
        slot: &Slot,
        spec: Option<&'static Spec>,
        parse: impl FnOnce(Result<&[u8], rustix::io::Errno>) -> Known<T>,
    ) -> Result<Known<T>, FileGone> {
        let (file, name) = match slot {
            Slot::Open(file, name) => (file, name),
            Slot::Missing(reason) => return Ok(Err(*reason)),
        };
        let in_memory = spec.is_some_and(|spec| spec.in_memory);
        match self.reader.read_kept(file, || self.layout.file(in_memory, self.path, name)) {
            Err(errno) if is_gone(errno) => Err(FileGone),
            bytes => Ok(parse(bytes)),
        }
    }

    fn read_lines<T>(
        &mut self,
        slot: &Slot,
        spec: Option<&'static Spec>,
        parse: fn(&[u8]) -> quell_kfile::Parsed<T>,
    ) -> Result<Known<T>, FileGone> {
        let mut lost = quell_kfile::Lost::default();
        let value = self.read(slot, spec, |bytes| {
            let (value, lines) = many(bytes, parse);
            lost = lines;
            value
        })?;
        self.lost(spec, &lost);
        Ok(value)
    }

    fn read_io(
        &mut self,
        slot: &Slot,
        spec: Option<&'static Spec>,
        rows: &mut Vec<io_stat::Row>,
    ) -> Result<Known<Vec<io_stat::Row>>, FileGone> {
        let mut lost = quell_kfile::Lost::default();
        let value = self.read(slot, spec, |bytes| {
            lost = io_stat::parse_into(bytes.map_err(gap)?, rows);
            // A copy of just the size: the room to parse into is used for the next cgroup.
            Ok(rows.as_slice().to_vec())
        })?;
        self.lost(spec, &lost);
        Ok(value)
    }

    fn read_v1_io(
        &mut self,
        (bytes, bytes_spec): (&Slot, Option<&'static Spec>),
        (ios, ios_spec): (&Slot, Option<&'static Spec>),
        rows: &mut Vec<io_stat::Row>,
    ) -> Result<Known<Vec<io_stat::Row>>, FileGone> {
        let bytes = self.read_lines(bytes, bytes_spec, blkio::parse_counts)?;
        let ios = self.read_lines(ios, ios_spec, blkio::parse_counts)?;
        Ok(bytes.and_then(|bytes| {
            super::version1::join_counts(&bytes, &ios?, rows);
            Ok(rows.as_slice().to_vec())
        }))
    }

    fn lost(&mut self, spec: Option<&'static Spec>, lost: &quell_kfile::Lost) {
        if let Some(spec) = spec.filter(|_| !lost.is_none()) {
            self.gaps.lost(spec.name, Of::Cgroup, lost, || shown(self.path));
        }
    }
}
