//! What is on the disk: the blocks that were written since its start, above an image that is only read.
//!
//! The writes live in anonymous memory and end with the disk: no file is left behind, and guests can share an image.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};

const BLOCK: u64 = 4096;
const SECTOR: u64 = 512;

/// What a disk starts with.
#[derive(Debug)]
pub(crate) struct Content {
    /// The image below; only read. Without one, and past its end, the disk is zeros.
    pub(crate) base: Option<File>,
    /// The size of the disk, whatever that of the image: whole sectors of 512 bytes.
    pub(crate) bytes: u64,
}

/// The bytes of a disk.
#[derive(Debug)]
pub(super) struct Store {
    content: Content,
    /// As large as the disk; holds memory only for what was written.
    memory: File,
    /// Which blocks are in `memory`.
    written: Vec<bool>,
}

impl Store {
    /// A disk that holds its image.
    pub(super) fn new(name: &str, content: Content) -> Result<Self> {
        let bytes = content.bytes;
        ensure!(bytes > 0 && bytes.is_multiple_of(SECTOR), "{bytes} bytes are not whole sectors of {SECTOR}");
        let memory = memfd_create(name, MemfdFlags::CLOEXEC).context("memfd_create")?;
        ftruncate(&memory, bytes).context("resize the memfd")?;
        let blocks = usize::try_from(bytes.div_ceil(BLOCK)).context("more blocks than memory can address")?;
        Ok(Self { content, memory: memory.into(), written: vec![false; blocks] })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.content.bytes
    }

    /// Whether a request stays within the disk.
    pub(super) fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.content.bytes)
    }

    /// Fills all of `into` with what is at an offset.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = offset + size(into);
        let (mut at, mut rest) = (offset, into);
        while at < end {
            let run_end = self.run_end(at, end);
            let run = usize::try_from(run_end - at).map_err(io::Error::other)?;
            let (part, after) = rest.split_at_mut(run);
            if self.is_written(at) {
                self.memory.read_exact_at(part, at)?;
            } else {
                self.read_base(at, part)?;
            }
            (at, rest) = (run_end, after);
        }
        Ok(())
    }

    /// Writes bytes at an offset.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + size(bytes);
        self.keep_the_rest(offset, end)?;
        self.memory.write_all_at(bytes, offset)?;
        self.mark_written(offset, end);
        Ok(())
    }

    /// Makes bytes zero, and gives the memory of whole blocks back.
    pub(super) fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(()); // which fallocate refuses
        }
        self.keep_the_rest(offset, offset + bytes)?;
        fallocate(&self.memory, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes)?;
        self.mark_written(offset, offset + bytes);
        Ok(())
    }

    /// Brings the blocks at both ends of a write into memory where it covers them in part.
    fn keep_the_rest(&mut self, offset: u64, end: u64) -> io::Result<()> {
        for edge in [offset, end] {
            if edge.is_multiple_of(BLOCK) || edge == self.content.bytes || self.is_written(edge) {
                continue;
            }
            let begin = edge - edge % BLOCK;
            let mut block = [0; 4096];
            self.read_base(begin, &mut block)?;
            // The disk may end within the block.
            let inside = usize::try_from(self.content.bytes - begin).unwrap_or(usize::MAX);
            self.memory.write_all_at(block.get(..inside).unwrap_or(&block), begin)?;
            self.mark_written(begin, begin + 1);
        }
        Ok(())
    }

    fn read_base(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (mut at, mut rest) = (offset, into);
        if let Some(base) = &self.content.base {
            while !rest.is_empty() {
                let count = match base.read_at(rest, at) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                rest = rest.split_at_mut(count).1;
                at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            }
        }
        rest.fill(0);
        Ok(())
    }

    /// Where the bytes from `at` on stop to come from the same place.
    fn run_end(&self, at: u64, end: u64) -> u64 {
        let written = self.is_written(at);
        let mut run_end = at - at % BLOCK + BLOCK;
        while run_end < end && self.is_written(run_end) == written {
            run_end += BLOCK;
        }
        run_end.min(end)
    }

    fn is_written(&self, offset: u64) -> bool {
        block_of(offset).and_then(|block| self.written.get(block)).copied().unwrap_or(false)
    }

    fn mark_written(&mut self, offset: u64, end: u64) {
        let blocks = block_of(offset).zip(block_of(end.div_ceil(BLOCK) * BLOCK));
        if let Some(marks) = blocks.and_then(|(first, after)| self.written.get_mut(first..after)) {
            marks.fill(true);
        }
    }
}

fn block_of(offset: u64) -> Option<usize> {
    usize::try_from(offset / BLOCK).ok()
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A disk over an image of so many bytes of 7.
    fn store(bytes: u64, base_bytes: usize) -> Store {
        let mut base = File::from(memfd_create("base", MemfdFlags::CLOEXEC).unwrap());
        base.write_all(&vec![7; base_bytes]).unwrap();
        Store::new("test", Content { base: Some(base), bytes }).unwrap()
    }

    fn read(store: &Store, offset: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0xee; bytes];
        store.read(offset, &mut into).unwrap();
        into
    }

    fn written(store: &Store) -> Vec<usize> {
        (0..store.written.len()).filter(|&block| store.written[block]).collect()
    }

    #[test]
    fn a_new_disk_is_its_image_and_zeros_past_its_end() {
        let store = store(4 * 4096, 5000);
        let all = read(&store, 0, 4 * 4096);
        assert_eq!((&all[..5000], &all[5000..]), (&[7; 5000][..], &[0; 4 * 4096 - 5000][..]));
        let bare = Store::new("test", Content { base: None, bytes: 4096 }).unwrap();
        assert_eq!(read(&bare, 512, 600), [0; 600]);
    }

    /// Each byte against the plainest store there is.
    #[test]
    fn any_writes_and_zeros_read_back_as_from_an_array() {
        let bytes = 4 * 4096 + 1536;
        let ranges = [(0, 0), (100, 1), (4096, 4096), (4000, 200), (8191, 4098), (17_408, 512), (bytes - 1, 1)];
        for (at, first) in ranges.iter().enumerate() {
            for second in &ranges[at..] {
                let mut store = store(bytes, 9000);
                let mut array = [vec![7; 9000], vec![0; usize::try_from(bytes).unwrap() - 9000]].concat();
                for (value, &(offset, length)) in [(1_u8, first), (0, second), (2, first)] {
                    let begin = usize::try_from(offset).unwrap();
                    array[begin..begin + length].fill(value);
                    match value {
                        0 => store.zero(offset, u64::try_from(length).unwrap()).unwrap(),
                        _ => store.write(offset, &vec![value; length]).unwrap(),
                    }
                    assert_eq!(read(&store, 0, array.len()), array, "{first:?} {second:?}");
                    assert_eq!(read(&store, 4097, 6000), array[4097..10_097]);
                }
            }
        }
    }

    #[test]
    fn only_blocks_that_were_touched_are_in_memory() {
        let mut store = store(8 * 4096, 8 * 4096);
        store.write(4096, &[1; 4096]).unwrap();
        assert_eq!(written(&store), [1]);
        store.write(3 * 4096 + 5, &[1; 4096]).unwrap();
        store.zero(6 * 4096, 4096).unwrap();
        assert_eq!(written(&store), [1, 3, 4, 6]);
    }

    #[test]
    fn a_request_outside_the_disk_is_told_apart() {
        let store = store(8192, 0);
        assert!(store.holds(0, 8192) && store.holds(8192, 0) && store.holds(8191, 1));
        assert!(!store.holds(8191, 2) && !store.holds(u64::MAX, 2) && !store.holds(9000, 0));
    }

    #[test]
    fn a_disk_of_parts_of_sectors_is_refused() {
        for bytes in [0, 511, 4097] {
            let refused = Store::new("test", Content { base: None, bytes }).unwrap_err();
            assert!(refused.to_string().starts_with(&bytes.to_string()), "{refused}");
        }
    }
}
