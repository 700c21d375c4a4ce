//! The superblocks of ext2/3/4 and XFS: what a file system is on disk, mounted or not.
//!
//! The only format here that is not the kernel's own text: two fixed layouts that have not moved since they were made.
//! Of each, just the fields that decide how writes become durable are kept; labels, paths and ids of hosts are not, so
//! that what is rendered again may go into a capture. A journal is looked up where the superblock keeps a copy of its
//! inode, which saves reading the inode table.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::ParseError;

/// How much of a device is read: the XFS superblock lies at 0, that of ext4 at 1024, and each fits into 1024 bytes.
pub const READ_BYTES: usize = 2048;

/// Where the superblock of ext4 begins.
const EXT_AT: usize = 1024;

/// A file system as its superblock tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Superblock {
    /// ext2, ext3 or ext4.
    Ext(Ext),
    /// XFS.
    Xfs(Xfs),
}

/// The superblock of ext2, ext3 or ext4 (`struct ext4_super_block`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ext {
    /// The size of a block.
    pub block_bytes: Bytes,
    /// The size of the file system.
    pub size: Bytes,
    /// Where its journal lies.
    pub journal: ExtJournal,
    /// Whether metadata, and with it the journal, carries checksums (`metadata_csum`).
    pub metadata_checksums: bool,
    /// The mount options it has by default (`tune2fs -o`).
    pub default_data_mode: Option<DataMode>,
    /// Whether barriers are off by default (`tune2fs -o nobarrier`).
    pub default_nobarrier: bool,
    /// Whether files belong to projects, which quotas can be set for (`project`).
    pub projects: bool,
    /// Errors that the kernel noted in it since it was last checked.
    pub errors: u32,
}

/// Where the journal of ext3 or ext4 lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtJournal {
    /// There is none: nothing is replayed after a crash.
    #[default]
    Absent,
    /// In the file system; its size where the superblock keeps a copy of its inode.
    Internal(Option<Bytes>),
    /// On another device, by the number it had when that was noted; 0 where it is known by its id alone.
    External(u32),
}

/// How ext4 journals data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataMode {
    /// Data goes through the journal, so every byte is written twice.
    Journal,
    /// Data is on disk before the metadata that points to it.
    Ordered,
    /// No order: after a crash a file may hold what its blocks held before.
    Writeback,
}

/// The superblock of XFS (`xfs_dsb`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xfs {
    /// The size of a block.
    pub block_bytes: Bytes,
    /// The size of the file system's data part.
    pub size: Bytes,
    /// The size of its log.
    pub log: Bytes,
    /// Whether the log is on another device.
    pub external_log: bool,
    /// Whether metadata carries checksums (version 5).
    pub metadata_checksums: bool,
}

/// Parses the first [`READ_BYTES`] of a device.
///
/// # Errors
/// Neither of the two is there, or it says something that cannot be.
pub fn parse(bytes: &[u8]) -> Result<Superblock, ParseError> {
    let unlike = ParseError { line_no: 1, what: "a superblock of ext4 or XFS" };
    if let Some(xfs) = Block(bytes).xfs() {
        return Ok(Superblock::Xfs(xfs));
    }
    let ext = bytes.get(EXT_AT..).and_then(|bytes| Block(bytes).ext());
    ext.map(Superblock::Ext).ok_or(unlike)
}

/// The bytes that read as this superblock, and hold nothing else.
#[must_use]
pub fn render(superblock: &Superblock) -> Vec<u8> {
    let mut bytes = vec![0; READ_BYTES];
    match superblock {
        Superblock::Ext(ext) => render_ext(ext, &mut bytes),
        Superblock::Xfs(xfs) => render_xfs(xfs, &mut bytes),
    }
    bytes
}

// Offsets in `struct ext4_super_block`, fs/ext4/ext4.h.
const EXT_BLOCKS_LO: usize = 0x04;
const EXT_LOG_BLOCK: usize = 0x18;
const EXT_MAGIC: usize = 0x38;
const EXT_COMPAT: usize = 0x5C;
const EXT_INCOMPAT: usize = 0x60;
const EXT_RO_COMPAT: usize = 0x64;
const EXT_JOURNAL_INODE: usize = 0xE0;
const EXT_JOURNAL_DEV: usize = 0xE4;
const EXT_JOURNAL_BACKUP: usize = 0xFD;
const EXT_DEFAULT_OPTIONS: usize = 0x100;
const EXT_JOURNAL_SIZE_HI: usize = 0x148;
const EXT_JOURNAL_SIZE_LO: usize = 0x14C;
const EXT_BLOCKS_HI: usize = 0x150;
const EXT_ERRORS: usize = 0x194;

const EXT_IS: u16 = 0xEF53;
const COMPAT_JOURNAL: u32 = 0x4;
const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
const RO_COMPAT_PROJECT: u32 = 0x2000;
const OPTION_DATA: u32 = 0x60;
const OPTION_NOBARRIER: u32 = 0x100;

// Offsets in `struct xfs_dsb`, fs/xfs/libxfs/xfs_format.h; big-endian.
const XFS_BLOCK_SIZE: usize = 4;
const XFS_BLOCKS: usize = 8;
const XFS_LOG_START: usize = 48;
const XFS_LOG_BLOCKS: usize = 96;
const XFS_VERSION: usize = 100;
const XFS_IS: &[u8; 4] = b"XFSB";

/// A block of a device.
struct Block<'a>(&'a [u8]);

impl Block<'_> {
    fn at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn le32(&self, at: usize) -> Option<u32> {
        self.at(at).map(u32::from_le_bytes)
    }

    fn be32(&self, at: usize) -> Option<u32> {
        self.at(at).map(u32::from_be_bytes)
    }

    fn ext(&self) -> Option<Ext> {
        let magic = self.at(EXT_MAGIC).map(u16::from_le_bytes)?;
        let block_log = self.le32(EXT_LOG_BLOCK)?;
        let incompat = self.le32(EXT_INCOMPAT)?;
        // A journal device has the same superblock and no file system. Blocks are 1 KiB to 64 KiB.
        if magic != EXT_IS || block_log > 6 || incompat & INCOMPAT_JOURNAL_DEVICE != 0 {
            return None;
        }
        let block_bytes = 1024_u64.checked_shl(block_log)?;
        let high = if incompat & INCOMPAT_64BIT == 0 { 0 } else { self.le32(EXT_BLOCKS_HI)? };
        let blocks = u64::from(high) << 32 | u64::from(self.le32(EXT_BLOCKS_LO)?);
        let ro_compat = self.le32(EXT_RO_COMPAT)?;
        let options = self.le32(EXT_DEFAULT_OPTIONS)?;
        Some(Ext {
            block_bytes: Bytes(block_bytes),
            size: Bytes(blocks.checked_mul(block_bytes)?),
            journal: self.ext_journal()?,
            metadata_checksums: ro_compat & RO_COMPAT_METADATA_CSUM != 0,
            default_data_mode: match (options & OPTION_DATA) >> 5 {
                0 => None,
                1 => Some(DataMode::Journal),
                2 => Some(DataMode::Ordered),
                _ => Some(DataMode::Writeback),
            },
            default_nobarrier: options & OPTION_NOBARRIER != 0,
            projects: ro_compat & RO_COMPAT_PROJECT != 0,
            errors: self.le32(EXT_ERRORS)?,
        })
    }

    fn ext_journal(&self) -> Option<ExtJournal> {
        if self.le32(EXT_COMPAT)? & COMPAT_JOURNAL == 0 {
            return Some(ExtJournal::Absent);
        }
        if self.le32(EXT_JOURNAL_INODE)? == 0 {
            return self.le32(EXT_JOURNAL_DEV).map(ExtJournal::External);
        }
        // 1 says that the copy of the journal's inode is there.
        if self.0.get(EXT_JOURNAL_BACKUP) != Some(&1) {
            return Some(ExtJournal::Internal(None));
        }
        let size = u64::from(self.le32(EXT_JOURNAL_SIZE_HI)?) << 32 | u64::from(self.le32(EXT_JOURNAL_SIZE_LO)?);
        Some(ExtJournal::Internal(Some(Bytes(size))))
    }

    fn xfs(&self) -> Option<Xfs> {
        if self.0.get(..4)? != XFS_IS {
            return None;
        }
        let block_bytes = self.be32(XFS_BLOCK_SIZE)?;
        let blocks = u64::from_be_bytes(self.at(XFS_BLOCKS)?);
        if !block_bytes.is_power_of_two() || !(512..=65_536).contains(&block_bytes) {
            return None;
        }
        let block_bytes = u64::from(block_bytes);
        Some(Xfs {
            block_bytes: Bytes(block_bytes),
            size: Bytes(blocks.checked_mul(block_bytes)?),
            log: Bytes(u64::from(self.be32(XFS_LOG_BLOCKS)?).checked_mul(block_bytes)?),
            external_log: u64::from_be_bytes(self.at(XFS_LOG_START)?) == 0,
            metadata_checksums: u16::from_be_bytes(self.at(XFS_VERSION)?) & 0xF == 5,
        })
    }
}

fn render_ext(ext: &Ext, bytes: &mut [u8]) {
    let (inode, device, size) = match ext.journal {
        ExtJournal::Absent => (0, 0, None),
        ExtJournal::Internal(size) => (8, 0, size),
        ExtJournal::External(device) => (0, device, None),
    };
    let has_journal = ext.journal != ExtJournal::Absent;
    let blocks = ext.size.get().checked_div(ext.block_bytes.get()).unwrap_or(0);
    let data = match ext.default_data_mode {
        None => 0,
        Some(DataMode::Journal) => 1,
        Some(DataMode::Ordered) => 2,
        Some(DataMode::Writeback) => 3,
    };
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    let fields = [
        (EXT_BLOCKS_LO, low(blocks)),
        (EXT_LOG_BLOCK, ext.block_bytes.get().trailing_zeros().saturating_sub(10)),
        (EXT_COMPAT, flag(has_journal, COMPAT_JOURNAL)),
        (EXT_INCOMPAT, INCOMPAT_64BIT),
        (EXT_RO_COMPAT, flag(ext.metadata_checksums, RO_COMPAT_METADATA_CSUM) | flag(ext.projects, RO_COMPAT_PROJECT)),
        (EXT_JOURNAL_INODE, inode),
        (EXT_JOURNAL_DEV, device),
        (EXT_DEFAULT_OPTIONS, data << 5 | flag(ext.default_nobarrier, OPTION_NOBARRIER)),
        (EXT_JOURNAL_SIZE_HI, size.map_or(0, |size| low(size.get() >> 32))),
        (EXT_JOURNAL_SIZE_LO, size.map_or(0, |size| low(size.get()))),
        (EXT_BLOCKS_HI, low(blocks >> 32)),
        (EXT_ERRORS, ext.errors),
    ];
    put(bytes, EXT_AT + EXT_MAGIC, &EXT_IS.to_le_bytes());
    put(bytes, EXT_AT + EXT_JOURNAL_BACKUP, &[u8::from(size.is_some())]);
    for (at, value) in fields {
        put(bytes, EXT_AT + at, &value.to_le_bytes());
    }
}

fn render_xfs(xfs: &Xfs, bytes: &mut [u8]) {
    let blocks = |size: Bytes| size.get().checked_div(xfs.block_bytes.get()).unwrap_or(0);
    put(bytes, 0, XFS_IS);
    put(bytes, XFS_BLOCK_SIZE, &low(xfs.block_bytes.get()).to_be_bytes());
    put(bytes, XFS_BLOCKS, &blocks(xfs.size).to_be_bytes());
    put(bytes, XFS_LOG_START, &u64::from(!xfs.external_log).to_be_bytes());
    put(bytes, XFS_LOG_BLOCKS, &low(blocks(xfs.log)).to_be_bytes());
    put(bytes, XFS_VERSION, &[0, if xfs.metadata_checksums { 5 } else { 4 }]);
}

/// The lower half.
fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(field) = bytes.get_mut(at..at + value.len()) {
        field.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ext4() -> Ext {
        Ext {
            block_bytes: Bytes(4096),
            size: Bytes(20 << 40),
            journal: ExtJournal::Internal(Some(Bytes(1 << 30))),
            metadata_checksums: true,
            default_data_mode: Some(DataMode::Ordered),
            default_nobarrier: false,
            projects: true,
            errors: 3,
        }
    }

    #[test]
    fn both_read_back_as_they_were() {
        for journal in [ExtJournal::Absent, ExtJournal::Internal(None), ExtJournal::External(0x811)] {
            let ext = Superblock::Ext(Ext { journal, ..ext4() });
            assert_eq!(parse(&render(&ext)), Ok(ext));
        }
        let xfs = Xfs {
            block_bytes: Bytes(4096),
            size: Bytes(1 << 40),
            log: Bytes(512 << 20),
            external_log: true,
            metadata_checksums: true,
        };
        assert_eq!(parse(&render(&Superblock::Xfs(xfs))), Ok(Superblock::Xfs(xfs)));
    }

    #[test]
    fn a_device_that_is_only_a_journal_is_no_file_system() {
        let mut bytes = render(&Superblock::Ext(ext4()));
        bytes[EXT_AT + EXT_INCOMPAT] |= 0x8;
        assert!(parse(&bytes).is_err());
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let bytes = render(&Superblock::Ext(ext4()));
        assert!((0..EXT_AT + EXT_ERRORS + 4).all(|end| parse(&bytes[..end]).is_err()));
        assert!(parse(&bytes[..EXT_AT + EXT_ERRORS + 4]).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..READ_BYTES), ext: bool) {
            // Random bytes never begin as a superblock does.
            let (at, magic): (usize, &[u8]) = if ext { (EXT_AT + EXT_MAGIC, &[0x53, 0xEF]) } else { (0, XFS_IS) };
            put(&mut bytes, at, magic);
            if let Ok(seen) = parse(&bytes) {
                prop_assert_eq!(parse(&render(&seen)), Ok(seen));
            }
        }

        #[test]
        fn any_change_of_a_byte_is_refused_or_reads_back(at in 0..READ_BYTES, byte: u8, xfs: bool) {
            let mut bytes = if xfs { render(&Superblock::Xfs(Xfs { block_bytes: Bytes(512), ..Xfs::default() })) }
                else { render(&Superblock::Ext(ext4())) };
            bytes[at] = byte;
            if let Ok(seen) = parse(&bytes) {
                prop_assert_eq!(parse(&render(&seen)), Ok(seen));
            }
        }
    }
}
