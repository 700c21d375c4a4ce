//! Cgroups: the walk, kept between samples so that a sample is little more than the reads of its files.
//!
//! The directory of each cgroup stays open with its files, and the number of links of a directory says whether its
//! children changed: the kernel counts 2 and one for each child directory. A removed cgroup says so itself, since its
//! open files answer `ENODEV` (in a tree of files the directory has no links left). So nothing is listed twice unless
//! it changed, and not even the links are asked for while the kernel counts as many descendants as are known.
//! Descriptors are bounded: beyond the budget a cgroup is opened, read and closed at each sample.

mod config;
mod details;
mod files;
mod hierarchies;
mod version1;

pub(crate) use hierarchies::Hierarchies;

use std::os::fd::OwnedFd;

use quell_engine::snapshot::Cgroup;
use quell_kfile::{cgroup_stat, io_stat, single};
use quell_units::{CgroupId, CgroupPath, Gap};
use rustix::io::Errno;

use crate::error::gap;
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, dir_state, join, list_open};
use crate::values::one;
use files::{Files, Layout, unreadable};

/// The file in which a capture keeps a cgroup's inode: a copy of the directory has another one.
pub(crate) const INODE: &str = ".inode";

/// What the table may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Cgroups that are walked. A host has some hundreds; a tree may hold anything.
    pub(crate) cgroups_max: usize,
    /// Descriptors that are kept open.
    pub(crate) kept_max: usize,
}

/// The cgroups that were seen at the last sample, in the order of their paths.
#[derive(Debug)]
pub(crate) struct Table {
    layout: Layout,
    bounds: Bounds,
    entries: Vec<Entry>,
    kept: usize,
    samples: u64,
    /// The room that every cgroup's `io.stat` is parsed into.
    rows: Vec<io_stat::Row>,
}

#[derive(Debug)]
struct Entry {
    path: CgroupPath,
    id: CgroupId,
    /// `None` beyond the budget, and before its first sample.
    files: Option<Files>,
    children: Children,
}

/// What is known of a cgroup's children beside their entries.
#[derive(Debug)]
struct Children {
    /// The links of the directory when they were last listed; 0 where they must be listed again.
    links: u64,
    /// Whether they must be listed in this sample.
    changed: bool,
    /// How many were left out for the bound.
    left_out: u64,
}

impl Entry {
    fn new(path: CgroupPath, id: CgroupId) -> Self {
        Self { path, id, files: None, children: Children { links: 0, changed: true, left_out: 0 } }
    }
}

impl Children {
    /// Asks the directory whether they changed; `false` where the directory itself was removed.
    fn notice(&mut self, dir: &OwnedFd, full: bool) -> bool {
        let Ok(state) = dir_state(dir) else { return false };
        // Below 2 the file system does not count. A full sample trusts nothing and lists all.
        self.changed |= state.links != self.links || state.links < 2 || full;
        self.links = state.links;
        state.links > 0
    }
}

/// How reading a cgroup ended that is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    /// It went away before this sample: nothing is missing.
    Before,
    /// It went away while it was read.
    During,
}

/// What one sample needs beside the table.
struct Sample<'a> {
    reader: &'a mut Reader,
    gaps: &'a mut Gaps,
    full: bool,
    /// Whether directories are asked for changed children.
    check: bool,
    /// Whether files that were missing are looked for again.
    retry: bool,
}

impl Table {
    /// An empty table; `None` where no hierarchy is mounted that could be walked.
    pub(crate) fn new(hierarchies: &Hierarchies, bounds: Bounds) -> Option<Self> {
        let layout = Layout::of(hierarchies)?;
        Some(Self { layout, bounds, entries: Vec::new(), kept: 0, samples: 0, rows: Vec::new() })
    }

    /// Reads the counters of all cgroups, and their configuration for a `full` sample. In the order of their paths.
    pub(crate) fn sample(&mut self, reader: &mut Reader, full: bool, gaps: &mut Gaps) -> Vec<Cgroup> {
        // An enabled controller brings files and changes no link, so missing ones are tried again now and then.
        const SAMPLES_PER_RETRY: u64 = 16;
        let retry = full || self.samples.is_multiple_of(SAMPLES_PER_RETRY);
        self.samples += 1;
        let check = full || !self.is_complete(reader);
        let mut sample = Sample { reader, gaps, full, check, retry };
        let mut out = Vec::with_capacity(self.entries.len());
        let mut vanished = self.visit_known(&mut sample, &mut out);
        let known = self.entries.len();
        if known == 0 {
            vanished += self.visit_root(&mut sample, &mut out);
        }
        vanished += self.visit_new(&mut sample, &mut out, known);
        if self.entries.len() > known {
            self.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        }
        gaps.left_out(Of::Cgroup, Gap::Gone, vanished);
        let left_out = self.entries.iter().map(|entry| entry.children.left_out).sum();
        gaps.left_out(Of::Cgroup, Gap::OverBound, left_out);
        out
    }

    /// Reads what is known from the last sample, and drops what is gone. Gives how many went away while they were read.
    fn visit_known(&mut self, sample: &mut Sample<'_>, out: &mut Vec<Cgroup>) -> u64 {
        let mut entries = std::mem::take(&mut self.entries);
        let mut vanished = 0;
        let mut parents = Vec::new();
        entries.retain_mut(|entry| match self.visit(sample, entry, out) {
            Ok(()) => true,
            Err(gone) => {
                vanished += u64::from(gone == Gone::During);
                self.release(sample, entry);
                // Another one may have taken its place: then its parent has as many links as before.
                parents.extend(entry.path.parent());
                false
            }
        });
        self.entries = entries;
        if !(sample.check || parents.is_empty()) {
            for Entry { files, children, .. } in &mut self.entries {
                if let Some(files) = files {
                    // Those that are gone themselves show so at the next sample.
                    let _ = children.notice(&files.dir, false);
                }
            }
        }
        for parent in parents {
            if let Ok(at) = self.find(&parent)
                && let Some(entry) = self.entries.get_mut(at)
            {
                entry.children.changed = true;
            }
        }
        vanished
    }

    /// Whether the kernel counts as many cgroups as are known: then none came, unless one went as well, which shows
    /// when it is read. Version 1 does not count, and neither does a tree of files unless it has the kernel's count.
    fn is_complete(&self, reader: &mut Reader) -> bool {
        let Some(below_root) = self.entries.len().checked_sub(1) else { return false };
        if self.layout.io_is_v1 {
            return false;
        }
        let path = join(&[&self.layout.dir(&CgroupPath::root()), b"cgroup.stat"]);
        let counted = reader.read(&path).ok().and_then(|bytes| cgroup_stat::parse(bytes).value.nr_descendants);
        counted.is_some_and(|counted| u64::try_from(below_root) == Ok(counted))
    }

    fn visit_root(&mut self, sample: &mut Sample<'_>, out: &mut Vec<Cgroup>) -> u64 {
        let path = CgroupPath::root();
        let state = sample.reader.open_dir(&self.layout.dir(&path)).and_then(|dir| dir_state(&dir));
        match state {
            Ok(state) => {
                let id = self.id_of(sample.reader, &path, state.inode);
                self.visit_first(sample, Entry::new(path, id), out)
            }
            Err(errno) => {
                sample.gaps.missing("cgroup root", Of::Host, gap(errno), || "");
                0
            }
        }
    }

    /// Lists again the directories whose children changed, and reads the new ones, down to the last descendant.
    fn visit_new(&mut self, sample: &mut Sample<'_>, out: &mut Vec<Cgroup>, known: usize) -> u64 {
        let mut vanished = 0;
        let mut at = 0;
        while let Some(entry) = self.entries.get_mut(at) {
            if std::mem::take(&mut entry.children.changed) {
                for child in self.new_children(sample, at, known) {
                    vanished += self.visit_first(sample, child, out);
                }
            }
            at += 1;
        }
        vanished
    }

    fn visit_first(&mut self, sample: &mut Sample<'_>, mut entry: Entry, out: &mut Vec<Cgroup>) -> u64 {
        match self.visit(sample, &mut entry, out) {
            Ok(()) => {
                self.entries.push(entry);
                0
            }
            Err(_) => {
                self.release(sample, &entry);
                1
            }
        }
    }

    /// The children of a cgroup that are not in the table. The first `known` entries are in order, the others new.
    fn new_children(&mut self, sample: &mut Sample<'_>, at: usize, known: usize) -> Vec<Entry> {
        let Some(parent) = self.entries.get(at) else { return Vec::new() };
        let listing = match &parent.files {
            Some(files) => list_open(&files.dir),
            None => sample.reader.list(&self.layout.dir(&parent.path)),
        };
        if let Err(reason) = listing.as_ref().map_err(|&errno| gap(errno))
            && !matches!(reason, Gap::NotInKernel | Gap::Gone)
        {
            sample.gaps.missing("children", Of::Cgroup, reason, || files::shown(&parent.path));
        }
        let parent = parent.path.clone();
        let ordered = self.entries.get(..known).unwrap_or_default();
        let is_known = |path: &CgroupPath| ordered.binary_search_by(|entry| entry.path.cmp(path)).is_ok();
        let children = listing.unwrap_or_default().into_iter().filter(|child| child.is_dir);
        let children = children.filter_map(|child| Some((parent.join(&child.name).ok()?, child.inode)));
        let mut new: Vec<_> = children.filter(|(path, _)| !is_known(path)).collect();
        let room = self.bounds.cgroups_max.saturating_sub(self.entries.len());
        let left_out = new.len().saturating_sub(room);
        new.truncate(room);
        if let Some(entry) = self.entries.get_mut(at) {
            entry.children.left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
            if left_out > 0 {
                // Listed again next time: there may be room by then.
                entry.children.links = 0;
            }
        }
        let with_id = |(path, inode)| {
            let id = self.id_of(sample.reader, &path, inode);
            Entry::new(path, id)
        };
        new.into_iter().map(with_id).collect()
    }

    /// Reads one cgroup, to the end of `out`.
    fn visit(&mut self, sample: &mut Sample<'_>, entry: &mut Entry, out: &mut Vec<Cgroup>) -> Result<(), Gone> {
        // In its place: moving the files out and back would cost as much as parsing one.
        let Entry { path, id, files: Some(files), children } = entry else {
            return self.visit_unkept(sample, entry, out);
        };
        let held = files.held();
        if sample.retry {
            files.open_missing(sample.reader, &self.layout, path);
        }
        let result = self.read(sample, (path, *id), files, children, Gone::Before, out);
        self.kept = self.kept - held + files.held();
        if self.kept > self.bounds.kept_max {
            self.kept -= files.held();
            entry.files = None;
        }
        result
    }

    fn visit_unkept(&mut self, sample: &mut Sample<'_>, entry: &mut Entry, out: &mut Vec<Cgroup>) -> Result<(), Gone> {
        let dir = match sample.reader.open_dir(&self.layout.dir(&entry.path)) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NODEV) => return Err(Gone::Before),
            Err(errno) => {
                entry.children.changed = false;
                self.heed(gap(errno));
                out.push(unreadable(&self.layout, &entry.path, entry.id, gap(errno), sample.gaps));
                return Ok(());
            }
        };
        if let (Ok(state), false) = (dir_state(&dir), sample.reader.is_captured()) {
            // Nothing was open that would have told of another cgroup under the same path.
            entry.id = CgroupId(state.inode);
        }
        let mut files = Files::open(sample.reader, &self.layout, &entry.path, dir);
        let Entry { path, id, children, .. } = &mut *entry;
        let result = self.read(sample, (path, *id), &mut files, children, Gone::During, out);
        files.missing().for_each(|reason| self.heed(reason));
        self.keep(entry, files);
        result
    }

    /// Keeps the files of a cgroup open, if there is room for them.
    fn keep(&mut self, entry: &mut Entry, files: Files) {
        if self.kept + files.held() <= self.bounds.kept_max {
            self.kept += files.held();
            entry.files = Some(files);
        }
    }

    /// Makes room where the process ran out of descriptors: others in it opened more than was left to them.
    fn heed(&mut self, reason: Gap) {
        if reason == Gap::Errno(Errno::MFILE.raw_os_error()) {
            self.bounds.kept_max = self.kept / 2;
        }
    }

    /// Reads the open files of a cgroup, and finds out whether its children changed.
    fn read(
        &mut self,
        sample: &mut Sample<'_>,
        cgroup: (&CgroupPath, CgroupId),
        files: &mut Files,
        children: &mut Children,
        gone: Gone,
        out: &mut Vec<Cgroup>,
    ) -> Result<(), Gone> {
        let ask = sample.check || children.links == 0;
        if ask && !children.notice(&files.dir, sample.full) {
            return Err(gone);
        }
        let ((path, _), rows) = (cgroup, &mut self.rows);
        let nothing_open = files.held() == 1;
        if files.read(sample.reader, &self.layout, cgroup, rows, sample.gaps, out).is_err() {
            // Either the cgroup went away or just a file of it, with its controller. The path tells.
            if !is_alive(sample.reader, &self.layout, path, &files.dir) {
                return Err(gone);
            }
            files.reopen(sample.reader, &self.layout, path);
            let again = files.read(sample.reader, &self.layout, cgroup, rows, sample.gaps, out);
            again.map_err(|_| Gone::During)?;
        }
        if nothing_open && !is_alive(sample.reader, &self.layout, path, &files.dir) {
            out.pop();
            return Err(gone);
        }
        if let (true, Some(cgroup)) = (sample.full, out.last_mut()) {
            let config = config::read_config(sample.reader, &self.layout, path, &files.dir, sample.gaps);
            cgroup.config = Some(Box::new(config));
        }
        Ok(())
    }

    /// Gives back what a dropped cgroup held, and takes it out of a recording.
    fn release(&mut self, sample: &mut Sample<'_>, entry: &Entry) {
        self.kept -= entry.files.as_ref().map_or(0, Files::held);
        if let Some(recording) = sample.reader.recording() {
            recording.forget(&self.layout.dir(&entry.path));
        }
    }

    fn find(&self, path: &CgroupPath) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.path.cmp(path))
    }

    /// The identity of a cgroup: its inode. A capture has other inodes at each moment, so there it is the one that was
    /// kept in a file, or else a number made from the path.
    fn id_of(&self, reader: &mut Reader, path: &CgroupPath, inode: u64) -> CgroupId {
        if !reader.is_captured() {
            return CgroupId(inode);
        }
        let kept = one(reader.read(&join(&[&self.layout.dir(path), INODE.as_bytes()])), single::parse_number);
        CgroupId(kept.unwrap_or_else(|_| fnv1a(path.as_bytes()) >> 11))
    }
}

/// Whether the cgroup at a path is still the one whose directory is open.
fn is_alive(reader: &mut Reader, layout: &Layout, path: &CgroupPath, open: &OwnedFd) -> bool {
    let inode = |dir: &OwnedFd| dir_state(dir).map(|state| state.inode);
    let there = reader.open_dir(&layout.dir(path)).and_then(|dir| inode(&dir));
    there.is_ok_and(|there| inode(open) == Ok(there))
}

/// The FNV-1a hash of 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests;
