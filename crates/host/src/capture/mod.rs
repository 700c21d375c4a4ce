//! Captures: a tree of the files that a snapshot was made from, to be read again elsewhere.
//!
//! The snapshot is taken as always while the reader keeps what it sees, so a capture holds what quell reads and
//! nothing else. Four kinds of small files of quell's own are added, because a copy cannot hold what they say: the times of
//! the groups of files, the inode of each cgroup, the size and times of a file that a container writes (`.stat.NAME`), and
//! for a file that could not be read a link to `errno:N`. Both moments are taken before the first byte is written: a
//! capture must not write to the disk whose trouble it records.

mod names;
mod scrub;
mod state;

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use quell_engine::snapshot::{Snapshot, Window};
use quell_kfile::{single, uptime};
use quell_units::{Micros, escape};
use rustix::io::Errno;

use crate::cgroups::INODE;
use crate::clock::{self, CLOCK, UPTIME, UPTIME_END};
use crate::error::HostError;
use crate::machine::{Depth, Machine};
use crate::reader::join;
use crate::recording::{Recording, Seen};
use crate::root::ERRNO_LINK;
use crate::watch::Ticker;
use scrub::Scrub;

/// What a capture wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The two moments as they were read, names and all.
    pub window: Window,
    /// Files written, links included.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files left out of a scrubbed capture, since nothing is known about the names in them. Escaped for display.
    pub left_out: Vec<String>,
}

/// Captures two moments, `span` apart, into `dir/t0` and `dir/t1`, each to be read by [`Machine::under`].
///
/// With `scrub`, names of containers, units, processes, mounts, volumes and the host are replaced by neutral ones, the
/// same name by the same one everywhere; the shapes that quell goes by are kept. An interruption ends the wait early.
///
/// # Errors
/// `dir` cannot be written, or it holds a capture already. The machine's own gaps are no errors: they are captured.
pub fn capture(
    machine: &mut Machine,
    ticker: &mut dyn Ticker,
    span: Micros,
    dir: &Path,
    scrub: bool,
) -> Result<Captured, HostError> {
    let places = [dir.join("t0"), dir.join("t1")];
    // Before the wait, so that a mistake shows at once.
    places.iter().try_for_each(|place| make_new_dir(place))?;
    let begun = ticker.now();
    let (t0, seen_t0) = record(machine);
    ticker.sleep_until(quell_units::MonoMicros(begun.0.saturating_add(span.0)));
    let (t1, seen_t1) = record(machine);
    let mut names = scrub.then(|| Scrub::new(machine.cgroup_points()));
    let mut captured = Captured {
        window: Window { t0, looks: Vec::new(), t1, pasted: None },
        files: 0,
        bytes: 0,
        left_out: Vec::new(),
    };
    for (place, seen) in places.iter().zip([seen_t0, seen_t1]) {
        let seen = match &mut names {
            Some(names) => names.recording(seen),
            None => seen,
        };
        write_tree(place, &seen, &mut captured)?;
    }
    captured.left_out = names.map(Scrub::into_left_out).unwrap_or_default();
    Ok(captured)
}

/// Takes a full snapshot of which all is read anew, and keeps what was read.
fn record(machine: &mut Machine) -> (Snapshot, Recording) {
    machine.forget();
    machine.reader.record();
    let live = !machine.reader.is_captured();
    if live {
        // The snapshot takes its time from the clock itself; other tools want the file. It is no loss where it is
        // missing.
        let _ = machine.reader.read(UPTIME);
    }
    let snapshot = machine.snapshot(Depth::Settings);
    let mut seen = machine.reader.recorded();
    if live {
        seen.file(UPTIME_END.as_bytes(), uptime::render(&clock::boot_time()).as_bytes());
    }
    seen.file(CLOCK.as_bytes(), clock::render(&snapshot.clock).as_bytes());
    for cgroup in &snapshot.cgroups {
        let dir = machine.cgroup_dir(&cgroup.path);
        if !matches!(seen.0.get(&dir), Some(Seen::Failed(_))) {
            seen.file(&join(&[&dir, INODE.as_bytes()]), single::render(&cgroup.id.0).as_bytes());
        }
    }
    (snapshot, seen)
}

/// Makes a directory that must not be there yet. It is the caller's alone: `/proc` shows some things to root only.
fn make_new_dir(dir: &Path) -> Result<(), HostError> {
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    if let Some(parent) = dir.parent() {
        builder.recursive(true).create(parent).map_err(|error| HostError::from_io("mkdir", parent, &error))?;
    }
    builder.recursive(false).create(dir).map_err(|error| HostError::from_io("mkdir", dir, &error))
}

fn write_tree(place: &Path, seen: &Recording, captured: &mut Captured) -> Result<(), HostError> {
    for (path, entry) in &seen.0 {
        let to = place.join(inside(path));
        let (op, written) = match entry {
            Seen::Dir => ("mkdir", fs::create_dir_all(&to)),
            Seen::File(bytes) => ("write", with_parent(&to, || fs::write(&to, bytes))),
            Seen::Link(target) => ("symlink", with_parent(&to, || symlink(target, &to))),
            Seen::Failed(errno) => ("symlink", with_parent(&to, || symlink(errno_link(*errno).as_bytes(), &to))),
        };
        written.map_err(|error| HostError::from_io(op, &to, &error))?;
        if !matches!(entry, Seen::Dir) {
            captured.files += 1;
        }
        if let Seen::File(bytes) = entry {
            captured.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        }
    }
    Ok(())
}

/// The path of a file within a capture. A reader never asks for `..`; this makes it certain.
fn inside(path: &[u8]) -> PathBuf {
    let parts = path.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b"." | b".."));
    parts.map(std::ffi::OsStr::from_bytes).collect()
}

fn with_parent(path: &Path, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    write()
}

fn symlink(target: &[u8], link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), link)
}

fn errno_link(errno: Errno) -> String {
    format!("{ERRNO_LINK}{}", errno.raw_os_error())
}

/// A path as it is named among what was left out.
fn shown(path: &[u8]) -> String {
    escape(path).into_owned()
}
