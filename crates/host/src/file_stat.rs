//! What `stat` tells of a file: its identity, its size, when it was written.
//!
//! A capture cannot hold a file of that size and time, nor should it hold the file, so it keeps the numbers in a small
//! file of quell's own beside it. The kernel is asked for what it has in memory alone (`AT_STATX_DONT_SYNC`): the server
//! or program behind a network file system may be what hangs.

use std::os::fd::AsFd;

use quell_units::{Bytes, DevNum, UnixMicros};
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;

/// What the name of a file of quell's own in a capture begins with, that holds what `stat` told of the file beside it.
pub(crate) const STAT: &[u8] = b".stat.";

/// What is kept of a regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) dev: DevNum,
    pub(crate) inode: u64,
    pub(crate) size: Bytes,
    pub(crate) modified: UnixMicros,
}

impl FileStat {
    /// Asks the kernel for an entry of an open directory, links followed; `EINVAL` where it is no regular file.
    pub(crate) fn ask(dir: impl AsFd, name: &[u8]) -> Result<Self, Errno> {
        let stat = ask(dir, name, AtFlags::empty())?;
        if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let seconds = u64::try_from(stat.stx_mtime.tv_sec).unwrap_or(0);
        let usec = seconds.saturating_mul(1_000_000).saturating_add(u64::from(stat.stx_mtime.tv_nsec / 1000));
        Ok(Self {
            dev: DevNum { major: stat.stx_dev_major, minor: stat.stx_dev_minor },
            inode: stat.stx_ino,
            size: Bytes(stat.stx_size),
            modified: UnixMicros(usec),
        })
    }

    /// `MAJ:MIN INODE SIZE MODIFIED`, the last in microseconds since 1970.
    pub(crate) fn render(&self) -> String {
        format!("{} {} {} {}\n", self.dev, self.inode, self.size.get(), self.modified.0)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        // A line counts only with its newline: a torn number is another number.
        let mut fields = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split(' ');
        let dev = fields.next()?.parse().ok()?;
        let mut number = || fields.next()?.parse().ok();
        let (inode, size, modified) = (number()?, number()?, number()?);
        fields.next().is_none().then_some(Self { dev, inode, size: Bytes(size), modified: UnixMicros(modified) })
    }
}

/// What the kernel has in memory of an entry of an open directory.
pub(crate) fn ask(dir: impl AsFd, name: &[u8], flags: AtFlags) -> Result<Statx, Errno> {
    statx(dir, name, flags | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT, StatxFlags::BASIC_STATS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("log"), "0123456789").unwrap();
        let open = std::fs::File::open(dir.path()).unwrap();
        let stat = FileStat::ask(&open, b"log").unwrap();
        assert_eq!(stat.size, Bytes(10));
        assert_eq!(FileStat::parse(stat.render().as_bytes()), Some(stat));
        assert_eq!(FileStat::ask(&open, b"."), Err(Errno::INVAL));
        assert_eq!(FileStat::ask(&open, b"absent"), Err(Errno::NOENT));
    }

    #[test]
    fn a_torn_or_a_longer_line_is_none() {
        for bytes in [&b"8:1 2 3 4"[..], b"8:1 2 3\n", b"8:1 2 3 4 5\n", b"8:1 -2 3 4\n", b"", b"\xff\n"] {
            assert_eq!(FileStat::parse(bytes), None);
        }
    }
}
