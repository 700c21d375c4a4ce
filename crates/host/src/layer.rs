//! How much a container has written outside of its volumes: a walk of its writable layer.
//!
//! No counter tells it, so every file is asked for its size, which may read from the disk. That is done for one container
//! that somebody asks for, never in a snapshot, and within bounds of files and of time. What is in the layer is the
//! container's own: no link in it is followed, and no name leads out of it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use quell_units::{Bytes, Gap, Known, Micros, MonoMicros};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat};
use rustix::io::{Errno, retry_on_intr};

use crate::clock;
use crate::error::gap;
use crate::file_stat;
use crate::machine::Machine;
use crate::open_files::host_path;
use crate::reader::{Entry, list_open};

/// Entries that are counted: some seconds from a cold disk, and more than nearly every container writes.
const ENTRIES_MAX: u64 = 200_000;

/// The time that it may take, so that a slow disk does not make a long answer.
const TIME_MAX: Micros = Micros(2_000_000);

/// What lies in a writable layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerUsage {
    /// The space that its files take on the disk.
    pub used: Bytes,
    /// Its files, directories and marks of what was deleted from the image.
    pub inodes: u64,
    /// Whether a bound cut the count short: then there is more.
    pub cut: bool,
}

impl Machine {
    /// Counts what lies in a directory that takes a container's writes, by its path on the host.
    ///
    /// # Errors
    /// It is not there, as in a capture, or may not be read.
    pub fn layer_usage(&mut self, upper_dir: &str) -> Known<LayerUsage> {
        let path = host_path(upper_dir).ok_or(Gap::Malformed)?;
        let top = self.reader.open_dir(&path).map_err(gap)?;
        let end = MonoMicros(clock::boot_time().0.saturating_add(TIME_MAX.0));
        Ok(count(top, ENTRIES_MAX, || clock::boot_time() >= end))
    }
}

/// Counts what lies in an open directory and below it, the directory itself included.
fn count(top: OwnedFd, entries_max: u64, is_late: impl Fn() -> bool) -> LayerUsage {
    let mut usage = LayerUsage { inodes: 1, ..LayerUsage::default() };
    // A file of several names takes its space once.
    let mut seen = HashSet::new();
    // A directory stays open while one in it is to be read, so no more are open than the tree is deep.
    let top = Rc::new(top);
    let mut todo: Vec<(Rc<OwnedFd>, Entry)> = entries(&top, &mut usage);
    while let Some((dir, entry)) = todo.pop() {
        if usage.inodes >= entries_max || is_late() {
            usage.cut = true;
            break;
        }
        let Ok(stat) = file_stat::ask(&*dir, &entry.name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if stat.stx_nlink > 1 && !entry.is_dir && !seen.insert(stat.stx_ino) {
            continue;
        }
        usage.inodes += 1;
        usage.used = usage.used.saturating_add(Bytes(stat.stx_blocks.saturating_mul(512)));
        if FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory {
            match open_in(&dir, &entry.name) {
                Ok(open) => todo.extend(entries(&Rc::new(open), &mut usage)),
                // Deleted meanwhile.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(_) => usage.cut = true,
            }
        }
    }
    usage
}

fn entries(dir: &Rc<OwnedFd>, usage: &mut LayerUsage) -> Vec<(Rc<OwnedFd>, Entry)> {
    let entries = list_open(dir).unwrap_or_else(|_| {
        usage.cut = true;
        Vec::new()
    });
    entries.into_iter().map(|entry| (Rc::clone(dir), entry)).collect()
}

fn open_in(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| openat(dir, name, flags, Mode::empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn layer() -> (tempfile::TempDir, tempfile::TempDir) {
        let (layer, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("big"), vec![1; 1 << 20]).unwrap();
        fs::create_dir_all(layer.path().join("var/log")).unwrap();
        fs::write(layer.path().join("var/log/app.log"), vec![1; 64 << 10]).unwrap();
        fs::hard_link(layer.path().join("var/log/app.log"), layer.path().join("again")).unwrap();
        symlink(outside.path(), layer.path().join("link")).unwrap();
        (layer, outside)
    }

    fn counted(layer: &tempfile::TempDir, entries_max: u64, late: bool) -> LayerUsage {
        count(fs::File::open(layer.path()).unwrap().into(), entries_max, || late)
    }

    #[test]
    fn a_file_of_two_names_counts_once_and_no_link_is_followed() {
        let (layer, _outside) = layer();
        let usage = counted(&layer, 100, false);
        // The layer, `var`, `log`, `app.log` and the link.
        assert_eq!((usage.inodes, usage.cut), (5, false));
        assert!((64 << 10..1 << 20).contains(&usage.used.get()), "{usage:?}");
    }

    #[test]
    fn a_bound_of_entries_or_of_time_is_told() {
        let (layer, _outside) = layer();
        assert!(counted(&layer, 2, false).cut && counted(&layer, 2, false).inodes == 2);
        assert!(counted(&layer, 100, true).cut);
    }

    #[test]
    fn a_layer_is_found_by_its_path_and_one_that_is_not_there_is_a_gap() {
        let (layer, _outside) = layer();
        fs::create_dir(layer.path().join("proc")).unwrap();
        let mut machine = Machine::under(layer.path()).unwrap();
        assert_eq!(machine.layer_usage("/var/log").map(|usage| usage.inodes), Ok(2));
        assert_eq!(machine.layer_usage("/var/lib/docker/overlay2/x/diff"), Err(Gap::NotInKernel));
        assert_eq!(machine.layer_usage("var"), Err(Gap::Malformed));
    }
}
