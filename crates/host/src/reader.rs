//! Reads files below a root into one buffer that is used again and again.
//!
//! Every read of the crate goes through here, so this is where quell's own cost is counted and where a capture
//! listens. Two ways to read, because kernel files are of two kinds: a file that is made of many records (`diskstats`)
//! must be read to its end, while a cgroup's file is one record, and one `pread` that did not fill the buffer has all
//! of it.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, fstat, seek, statat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, read, retry_on_intr};

use crate::error::HostError;
use crate::file_stat::{FileStat, STAT};
use crate::recording::Recording;
use crate::root::{Root, link_target};

/// The buffer's first size: more than nearly every file needs.
const BUFFER_BYTES: usize = 64 << 10;

/// The most that is read of one file. `diskstats` of 50,000 devices is below it; a captured tree may hold anything.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The room for one `getdents`.
const LISTING_BYTES: usize = 32 << 10;

/// Reads files below a root.
#[derive(Debug)]
pub(crate) struct Reader {
    root: Root,
    buffer: Vec<u8>,
    files: u64,
    recording: Option<Recording>,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) inode: u64,
    pub(crate) is_dir: bool,
}

/// What tells whether a directory is still there and whether its children changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirState {
    pub(crate) inode: u64,
    /// 2 and the number of child directories; 0 where it was removed. Some file systems always say 1.
    pub(crate) links: u64,
}

impl Reader {
    /// A reader of the live machine.
    pub(crate) fn live() -> Result<Self, HostError> {
        Root::live().map(Self::new)
    }

    /// A reader of a captured tree.
    pub(crate) fn under(path: &Path) -> Result<Self, HostError> {
        Root::under(path).map(Self::new)
    }

    fn new(root: Root) -> Self {
        Self { root, buffer: vec![0; BUFFER_BYTES], files: 0, recording: None }
    }

    /// Whether a tree of files is read and not the live kernel.
    pub(crate) const fn is_captured(&self) -> bool {
        self.root.is_captured()
    }

    /// How many files were read so far.
    pub(crate) const fn files(&self) -> u64 {
        self.files
    }

    /// Starts to keep all that is seen.
    pub(crate) fn record(&mut self) {
        self.recording = Some(Recording::default());
    }

    /// Ends it, and gives what was seen.
    pub(crate) fn recorded(&mut self) -> Recording {
        self.recording.take().unwrap_or_default()
    }

    /// The recording, where one is made.
    pub(crate) fn recording(&mut self) -> Option<&mut Recording> {
        self.recording.as_mut()
    }

    /// Reads a file to its end, by its path below the root.
    pub(crate) fn read(&mut self, path: &[u8]) -> Result<&[u8], Errno> {
        let result = self.root.open(path).and_then(|file| self.fill(&file, FILE_BYTES_MAX));
        self.seen(result, || path.into())
    }

    /// Reads no more than the first bytes of a file.
    pub(crate) fn read_head(&mut self, path: &[u8], bytes_max: usize) -> Result<&[u8], Errno> {
        let result = self.root.open(path).and_then(|file| self.fill(&file, bytes_max));
        self.seen(result, || path.into())
    }

    /// Reads the first bytes of a device's node. Unless it `may_wait`, only what is in memory: else the answer is
    /// `EAGAIN`. No recording keeps them: what of a disk's content may be kept is the caller's to say.
    pub(crate) fn read_device(&mut self, node: &[u8], bytes: usize, may_wait: bool) -> Result<&[u8], Errno> {
        self.files = self.files.saturating_add(1);
        let device = self.root.open(node)?;
        let mut room = [IoSliceMut::new(self.buffer.get_mut(..bytes).unwrap_or_default())];
        // Not every file system of a captured tree knows the flag, and there the node is a plain file.
        let nowait = !may_wait && !self.root.is_captured();
        let flags = if nowait { ReadWriteFlags::NOWAIT } else { ReadWriteFlags::empty() };
        let len = retry_on_intr(|| preadv2(&device, &mut room, 0, flags))?;
        Ok(self.buffer.get(..len).unwrap_or_default())
    }

    /// Reads a file that a recording keeps only if its caller finds it worth keeping, and then by the caller's hand.
    pub(crate) fn read_unkept(&mut self, path: &[u8]) -> Result<&[u8], Errno> {
        self.files = self.files.saturating_add(1);
        let len = self.root.open(path).and_then(|file| self.fill(&file, FILE_BYTES_MAX))?;
        Ok(self.buffer.get(..len).unwrap_or_default())
    }

    /// What `stat` tells of a regular file in an open directory, links followed; of a captured tree, what it holds of that.
    /// No recording keeps it: whether the file matters is the caller's to say.
    pub(crate) fn stat_in(&mut self, dir: &OwnedFd, name: &[u8]) -> Result<FileStat, Errno> {
        self.files = self.files.saturating_add(1);
        if !self.root.is_captured() {
            return FileStat::ask(dir, name);
        }
        let kept = self.root.open_in(dir, &[STAT, name].concat())?;
        let len = self.fill(&kept, BUFFER_BYTES)?;
        FileStat::parse(self.buffer.get(..len).unwrap_or_default()).ok_or(Errno::INVAL)
    }

    /// As [`Self::stat_in`], of a file by its path below the root, and kept by a recording.
    pub(crate) fn stat(&mut self, path: &[u8]) -> Result<FileStat, Errno> {
        let at = path.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        let (dir, name) = path.split_at(at);
        let stat = self.root.open_dir(dir).and_then(|open| self.stat_in(&open, name));
        if let Some(recording) = &mut self.recording {
            let kept = [dir, STAT, name].concat();
            match &stat {
                Ok(stat) => recording.file(&kept, stat.render().as_bytes()),
                Err(errno) => recording.failed(&kept, *errno),
            }
        }
        stat
    }

    /// Reads a file that holds more than may be kept, and gives what `reduce` leaves of it. A recording gets no more.
    pub(crate) fn read_reduced(
        &mut self,
        path: &[u8],
        reduce: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Result<Vec<u8>, Errno> {
        let result = self.root.open(path).and_then(|file| self.fill(&file, FILE_BYTES_MAX));
        self.files = self.files.saturating_add(1);
        let reduced = result.map(|len| reduce(self.buffer.get(..len).unwrap_or_default()));
        match (&mut self.recording, &reduced) {
            (Some(recording), Ok(bytes)) => recording.file(path, bytes),
            (Some(recording), Err(errno)) => recording.failed(path, *errno),
            (None, _) => {}
        }
        reduced
    }

    /// Reads a file of one record in an open directory, and closes it again.
    pub(crate) fn read_in(
        &mut self,
        dir: impl AsFd,
        name: &[u8],
        path: impl FnOnce() -> Vec<u8>,
    ) -> Result<&[u8], Errno> {
        let result = self.root.open_in(dir, name).and_then(|file| self.fill_at_once(&file));
        self.seen(result, path)
    }

    /// Reads an open file of one record from its start.
    pub(crate) fn read_kept(&mut self, file: &OwnedFd, path: impl FnOnce() -> Vec<u8>) -> Result<&[u8], Errno> {
        let result = self.fill_at_once(file);
        self.seen(result, path)
    }

    /// Opens a file of an open directory, to be read many times.
    pub(crate) fn open_in(
        &mut self,
        dir: impl AsFd,
        name: &[u8],
        path: impl FnOnce() -> Vec<u8>,
    ) -> Result<OwnedFd, Errno> {
        let result = self.root.open_in(dir, name);
        if let (Err(errno), Some(recording)) = (&result, &mut self.recording) {
            recording.failed(&path(), *errno);
        }
        result
    }

    /// Opens a directory, by its path below the root.
    pub(crate) fn open_dir(&mut self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let result = self.root.open_dir(path);
        match (&mut self.recording, &result) {
            (Some(recording), Ok(_)) => recording.dir(path),
            (Some(recording), Err(errno)) => recording.failed(path, *errno),
            (None, _) => {}
        }
        result
    }

    /// Where a link points to, by the link's path below the root.
    pub(crate) fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let result = self.root.read_link(path);
        match (&mut self.recording, &result) {
            (Some(recording), Ok(target)) => recording.link(path, target),
            (Some(recording), Err(errno)) => recording.failed(path, *errno),
            (None, _) => {}
        }
        result
    }

    /// The entries of a directory without `.` and `..`, by its path below the root.
    pub(crate) fn list(&mut self, path: &[u8]) -> Result<Vec<Entry>, Errno> {
        let dir = self.open_dir(path)?;
        list_open(&dir)
    }

    fn seen(&mut self, result: Result<usize, Errno>, path: impl FnOnce() -> Vec<u8>) -> Result<&[u8], Errno> {
        self.files = self.files.saturating_add(1);
        let bytes = result.map(|len| self.buffer.get(..len).unwrap_or_default());
        if let Some(recording) = &mut self.recording {
            match bytes {
                Ok(bytes) => recording.file(&path(), bytes),
                Err(errno) => recording.failed(&path(), errno),
            }
        }
        bytes
    }

    fn fill(&mut self, file: &OwnedFd, bytes_max: usize) -> Result<usize, Errno> {
        let mut len = 0;
        while len < bytes_max {
            if len == self.buffer.len() {
                self.grow();
            }
            let end = self.buffer.len().min(bytes_max);
            let free = self.buffer.get_mut(len..end).unwrap_or_default();
            match retry_on_intr(|| read(file, &mut *free))? {
                0 => break,
                n => len += n,
            }
        }
        Ok(len)
    }

    fn fill_at_once(&mut self, file: &OwnedFd) -> Result<usize, Errno> {
        loop {
            let len = retry_on_intr(|| pread(file, self.buffer.as_mut_slice(), 0))?;
            if len < self.buffer.len() || len >= FILE_BYTES_MAX {
                return Ok(len);
            }
            // Not the rest behind what was read: the kernel would make the record anew for it, from later numbers.
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.buffer.resize(self.buffer.len().saturating_mul(2).min(FILE_BYTES_MAX), 0);
    }
}

/// The entries of an open directory without `.` and `..`, from its start.
pub(crate) fn list_open(dir: &OwnedFd) -> Result<Vec<Entry>, Errno> {
    seek(dir, SeekFrom::Start(0))?;
    let mut room = Vec::with_capacity(LISTING_BYTES);
    let mut listing = RawDir::new(dir, room.spare_capacity_mut());
    let mut entries = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let file_type = match entry.file_type() {
            // Not every file system tells the type in its listing.
            FileType::Unknown => {
                let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            known => known,
        };
        let is_dir = file_type == FileType::Directory;
        entries.push(Entry { name: name.to_bytes().into(), inode: entry.ino(), is_dir });
    }
    Ok(entries)
}

/// The first link of an open directory whose target is `wanted`, and that target; at most `links_max` are looked at.
pub(crate) fn find_link(dir: &OwnedFd, links_max: usize, wanted: impl Fn(&[u8]) -> bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let entries = list_open(dir).ok()?;
    entries.into_iter().take(links_max).find_map(|entry| {
        let target = link_target(dir, &entry.name).ok()?;
        wanted(&target).then_some((entry.name, target))
    })
}

/// The state of an open directory.
pub(crate) fn dir_state(dir: &OwnedFd) -> Result<DirState, Errno> {
    let stat = fstat(dir)?;
    Ok(DirState { inode: stat.st_ino, links: widen(stat.st_nlink) })
}

/// The count of links is as wide as the architecture made it.
fn widen(n: impl Into<u64>) -> u64 {
    n.into()
}

/// Joins parts of a path with slashes; empty parts are left out.
pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut path = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Seen;
    use std::fs;

    fn reader(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Reader) {
        let tree = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let reader = Reader::under(tree.path()).unwrap();
        (tree, reader)
    }

    #[test]
    fn a_file_larger_than_the_buffer_is_read_whole_both_ways() {
        let large: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let (_tree, mut reader) = reader(&[("d/large", &large)]);
        assert_eq!(reader.read(b"d/large").unwrap(), large);
        let mut reader = Reader::under(_tree.path()).unwrap();
        let file = reader.root.open(b"d/large").unwrap();
        assert_eq!(reader.read_kept(&file, Vec::new).unwrap(), large);
        assert_eq!(reader.read_head(b"d/large", 70_000).unwrap().len(), 70_000);
        assert_eq!(reader.files(), 2);
    }

    #[test]
    fn a_recording_holds_what_was_read_and_what_failed() {
        let (tree, mut reader) = reader(&[("a/file", b"1\n"), ("a/unread", b"2\n")]);
        std::os::unix::fs::symlink("../b", tree.path().join("a/link")).unwrap();
        std::os::unix::fs::symlink("errno:13", tree.path().join("a/denied")).unwrap();
        reader.record();
        assert_eq!(reader.read(b"a/file").unwrap(), b"1\n");
        assert_eq!(reader.read_link(b"a/link").unwrap(), b"../b");
        assert_eq!(reader.read(b"a/denied").unwrap_err(), Errno::ACCESS);
        assert_eq!(reader.read(b"a/absent").unwrap_err(), Errno::NOENT);
        let seen: Vec<_> = reader.recorded().0.into_iter().collect();
        let expected = [
            (b"a/denied".to_vec(), Seen::Failed(Errno::ACCESS)),
            (b"a/file".to_vec(), Seen::File(b"1\n".to_vec())),
            (b"a/link".to_vec(), Seen::Link(b"../b".to_vec())),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_listing_can_be_read_again_and_knows_directories() {
        let (tree, mut reader) = reader(&[("a/file", b""), ("a/sub/file", b"")]);
        let dir = reader.open_dir(b"a").unwrap();
        let dirs = |dir: &OwnedFd| list_open(dir).unwrap().into_iter().filter(|entry| entry.is_dir).count();
        assert_eq!(dirs(&dir), 1);
        fs::create_dir(tree.path().join("a/late")).unwrap();
        assert_eq!(dirs(&dir), 2);
    }
}
