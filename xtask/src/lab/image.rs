//! The disks' first contents: made once, kept, and only read from then on.
//!
//! All file systems are made on the host. In the VM that would take its emulated processor half a minute a run, and a
//! scenario would begin with a disk whose caches and write-back are still busy with its own preparation.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tempfile::{NamedTempFile, TempDir};

use super::disk::Content;
use crate::command::output;
use crate::needs;

/// The number of the recipes below: other ones make images in a folder of their own.
const RECIPES: &str = "images-2";

const MIB: u64 = 1 << 20;

/// A disk's first contents. Scenarios name them in kebab-case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Image {
    /// Two partitions: ext4 with a small journal and `data/{big,a,b}` of 256, 64 and 64 MiB, and room for swap, which
    /// the VM makes.
    Data,
    /// ext4 with `f` of 150 MiB, on the whole disk.
    Ext4,
    /// ext4 with a journal of 192 MiB, empty.
    Ext4BigJournal,
    /// XFS, empty.
    Xfs,
    /// btrfs with `f` of 100 MiB.
    Btrfs,
    /// Two blank partitions for a RAID.
    Raid,
    /// Nothing at all.
    Blank,
}

/// A partition of an MBR.
struct Partition {
    start_bytes: u64,
    bytes: u64,
    kind: u8,
}

const DATA: [Partition; 2] = [
    Partition { start_bytes: MIB, bytes: 640 * MIB, kind: 0x83 },
    Partition { start_bytes: 641 * MIB, bytes: 220 * MIB, kind: 0x82 },
];

const RAID: [Partition; 2] = [
    Partition { start_bytes: MIB, bytes: 200 * MIB, kind: 0xfd },
    Partition { start_bytes: 201 * MIB, bytes: 200 * MIB, kind: 0xfd },
];

impl Image {
    fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ext4 => "ext4",
            Self::Ext4BigJournal => "ext4-big-journal",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Raid => "raid",
            Self::Blank => "blank",
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Data => 861 * MIB,
            Self::Xfs => 768 * MIB,
            Self::Ext4 | Self::Ext4BigJournal | Self::Btrfs | Self::Raid | Self::Blank => 512 * MIB,
        }
    }

    /// Fills a file of zeros; `beside` has room for what goes in.
    fn fill(self, image: &mut NamedTempFile, beside: &Path) -> Result<()> {
        let path = image.path().to_path_buf();
        match self {
            Self::Data => {
                let dirs = ["tenant-a", "tenant-b"];
                let files = [("data/big", 256), ("data/a", 64), ("data/b", 64)];
                let content = content(&dirs, &files, beside)?;
                mke2fs(&path, &format!("offset={MIB},"), content.path(), &["-J", "size=8"], Some("640M"))?;
                write_mbr(image, &DATA)
            }
            Self::Ext4 => mke2fs(&path, "", content(&[], &[("f", 150)], beside)?.path(), &[], None),
            Self::Ext4BigJournal => mke2fs(&path, "", content(&[], &[], beside)?.path(), &["-J", "size=192"], None),
            Self::Xfs => mkfs("mkfs.xfs", &["-q", "-f"], &path),
            Self::Btrfs => {
                let content = content(&[], &[("f", 100)], beside)?;
                let root = content.path().to_str().context("a folder that is not UTF-8")?;
                mkfs("mkfs.btrfs", &["-q", "-f", "--rootdir", root], &path)
            }
            Self::Raid => write_mbr(image, &RAID),
            Self::Blank => Ok(()),
        }
    }
}

/// What a disk with this image starts with; the image is made where it is not kept yet.
pub(crate) fn open(image: Image, cache: &Path) -> Result<Content> {
    if image == Image::Blank {
        return Ok(Content { base: None, bytes: image.bytes() });
    }
    let path = cache.join(RECIPES).join(format!("{}.img", image.name()));
    if !path.is_file() {
        make(image, &path).with_context(|| format!("make the image `{}`", image.name()))?;
    }
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    Ok(Content { base: Some(file), bytes: image.bytes() })
}

/// Makes it beside its place: only what is complete gets the name.
fn make(image: Image, path: &Path) -> Result<()> {
    let folder = path.parent().context("an image without a folder")?;
    std::fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.as_file().set_len(image.bytes())?;
    image.fill(&mut file, folder)?;
    file.persist(path)?;
    Ok(())
}

/// A folder of these folders and files, sizes in MiB, that is to become a file system.
fn content(dirs: &[&str], files: &[(&str, usize)], beside: &Path) -> Result<TempDir> {
    let mib: usize = files.iter().map(|(_, mib)| mib).sum();
    let folder = TempDir::new_in(roomy(mib, beside))?;
    for dir in dirs {
        std::fs::create_dir_all(folder.path().join(dir))?;
    }
    // A block of zeros would become a hole, and a read of a hole never reaches the disk.
    let pattern: Vec<u8> = (1..=u8::MAX).cycle().take(1 << 20).collect();
    for (name, mib) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        let mut file = File::create(&path).with_context(|| path.display().to_string())?;
        (0..*mib).try_for_each(|_| file.write_all(&pattern))?;
    }
    Ok(folder)
}

/// Memory where it has the room. A container's `/dev/shm` has 64 MiB.
fn roomy(mib: usize, beside: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    let fits = u64::try_from(mib).is_ok_and(|mib| mib < free / MIB / 2);
    if fits { memory.into() } else { beside.into() }
}

/// ext4 that does all its work now: else the kernel would go on with it in the background of the scenario.
///
/// Without a size it takes the whole image.
fn mke2fs(image: &Path, offset: &str, content: &Path, options: &[&str], size: Option<&str>) -> Result<()> {
    let extended = format!("{offset}lazy_itable_init=0,lazy_journal_init=0");
    let mut command = needs::command("mke2fs")?;
    command.args(["-q", "-F", "-t", "ext4", "-E", &extended, "-d"]).arg(content);
    output(command.args(options).arg(image).args(size)).map(drop)
}

fn mkfs(program: &str, options: &[&str], image: &Path) -> Result<()> {
    output(needs::command(program)?.args(options).arg(image)).map(drop)
}

fn write_mbr(image: &mut NamedTempFile, partitions: &[Partition]) -> Result<()> {
    let sector = mbr(partitions)?;
    let file = image.as_file_mut();
    file.seek(SeekFrom::Start(0))?;
    Ok(file.write_all(&sector)?)
}

/// The disk's first sector: at 440 a signature of the disk, at 446 four entries of 16 bytes, at 510 the mark.
///
/// An entry is a flag, the first sector as cylinder, head and sector, the kind, the last one likewise, then the first
/// sector and the number of sectors as 32-bit numbers. `fe ff ff` says to look only at the latter two.
fn mbr(partitions: &[Partition]) -> Result<Vec<u8>> {
    const ELSEWHERE: [u8; 3] = [0xfe, 0xff, 0xff];
    ensure!(partitions.len() <= 4, "an MBR has four partitions at most");
    let mut sector = vec![0; 440];
    sector.extend(b"qulb\0\0");
    for partition in partitions {
        sector.push(0);
        sector.extend(ELSEWHERE);
        sector.push(partition.kind);
        sector.extend(ELSEWHERE);
        for bytes in [partition.start_bytes, partition.bytes] {
            sector.extend(u32::try_from(bytes / 512)?.to_le_bytes());
        }
    }
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    Ok(sector)
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn an_image_has_one_name_for_scenarios_and_files() {
        use Image::{Blank, Btrfs, Data, Ext4, Ext4BigJournal, Raid, Xfs};
        for image in [Data, Ext4, Ext4BigJournal, Xfs, Btrfs, Raid, Blank] {
            let name: StrDeserializer<'_, Error> = image.name().into_deserializer();
            assert_eq!(Image::deserialize(name), Ok(image));
        }
    }

    #[test]
    fn an_mbr_has_its_partitions_where_the_kernel_looks() {
        let sector = mbr(&RAID).unwrap();
        assert_eq!(sector.len(), 512);
        let first = [0, 0xfe, 0xff, 0xff, 0xfd, 0xfe, 0xff, 0xff, 0, 8, 0, 0, 0, 0x40, 6, 0];
        assert_eq!(sector[446..462], first);
        assert_eq!(sector[462..478][8..12], (201_u32 * 2048).to_le_bytes());
        assert_eq!(sector[478..510], [0; 32]);
        assert_eq!(sector[510..], [0x55, 0xaa]);
    }

    #[test]
    fn partitions_lie_one_behind_the_other_within_the_disk() {
        for (image, partitions) in [(Image::Data, DATA), (Image::Raid, RAID)] {
            let mut end = MIB;
            for partition in partitions {
                assert!(partition.start_bytes >= end);
                end = partition.start_bytes + partition.bytes;
            }
            assert!(end <= image.bytes());
        }
    }

    #[test]
    fn a_blank_disk_needs_no_file() {
        let Content { base: file, bytes } = open(Image::Blank, Path::new("/nowhere")).unwrap();
        assert!(file.is_none());
        assert_eq!(bytes, 512 * MIB);
    }

    #[test]
    fn contents_have_no_block_of_zeros_and_their_size() {
        let beside = TempDir::new().unwrap();
        let folder = content(&["x/y"], &[("z/f", 1)], beside.path()).unwrap();
        assert!(folder.path().join("x/y").is_dir());
        let bytes = std::fs::read(folder.path().join("z/f")).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes.iter().all(|byte| *byte != 0));
    }
}
