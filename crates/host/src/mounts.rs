//! Mounts: which device a file lies on, and the file systems that have a block device below them.

use quell_engine::snapshot::{Filesystem, Mount};
use quell_kfile::{jbd2_info, mountinfo};
use quell_units::{DevNum, Gap, Known, escape};

use crate::devices::{Place, by_node, find, resolve};
use crate::gaps::{Gaps, Of};
use crate::reader::{Entry, Reader, join};
use crate::values::{many, many_of_host, word};

/// Reads all mounts.
pub(crate) fn read_mounts(reader: &mut Reader, gaps: &mut Gaps) -> Vec<mountinfo::Row> {
    many_of_host(reader.read(b"proc/self/mountinfo"), "mountinfo", gaps, mountinfo::parse).unwrap_or_default()
}

/// The device that a mount's files lie on; `None` where there is no block device, or none that can be told.
fn device_of_mount(mount: &mountinfo::Row, places: &[Place]) -> Option<DevNum> {
    // btrfs shows a number of no device (`0:NN`); its source names one of its disks.
    if mount.dev.major == 0 { by_node(places, &mount.source) } else { Some(mount.dev) }
}

/// The device that a file lies on: that of the mount with the longest mount point above it.
pub(crate) fn device_of_file(mounts: &[mountinfo::Row], places: &[Place], file: &[u8]) -> Option<DevNum> {
    let above = |mount: &&mountinfo::Row| is_below(file, &mount.mount_point);
    // Of two mounts on one point the later one is seen: `max_by_key` gives the last of equals.
    let mount = mounts.iter().filter(above).max_by_key(|mount| mount.mount_point.len())?;
    device_of_mount(mount, places)
}

fn is_below(file: &[u8], dir: &[u8]) -> bool {
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    file.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Reads the file systems with a block device below them: each once, as it was mounted first.
pub(crate) fn read_filesystems(
    reader: &mut Reader,
    mounts: &[mountinfo::Row],
    places: &[Place],
    gaps: &mut Gaps,
) -> Vec<Filesystem> {
    let journals = reader.list(b"proc/fs/jbd2").unwrap_or_default();
    let mut filesystems: Vec<Filesystem> = Vec::new();
    for mount in mounts {
        let Some(dev) = device_of_mount(mount, places) else { continue };
        if filesystems.iter().any(|known| known.dev == dev) {
            continue;
        }
        let disk =
            find(places, dev).and_then(|place| place.dir.as_deref()).and_then(|dir| dir.rsplit(|&b| b == b'/').next());
        let own = disk.filter(|_| mount.fs_type.starts_with(b"ext")).and_then(|disk| read_ext4_options(reader, disk));
        let journal_dir = disk.and_then(|disk| journal_dir(&journals, disk));
        let journal_file = journal_dir.map(|dir| join(&[b"proc/fs/jbd2", dir, b"info"]));
        let journal = journal_file.as_deref().ok_or(Gap::NotInKernel);
        let journal = journal.and_then(|file| read_journal(reader, file, disk.unwrap_or_default(), gaps));
        filesystems.push(Filesystem {
            dev,
            fs_type: escape(&mount.fs_type).into_owned(),
            mount_point: escape(&mount.mount_point).into_owned(),
            options: own.unwrap_or_else(|| escape(&mount.super_options).into_owned()),
            journal_file: journal_file.filter(|_| journal.is_ok()).map(|file| format!("/{}", escape(&file))),
            journal,
        });
    }
    filesystems
}

/// The most mounts that are kept. A host of many containers has thousands; a tree may hold anything.
const MOUNTS_MAX: usize = 20_000;

/// Every mount, with the devices it lies on.
pub(crate) fn mounted(reader: &mut Reader, mounts: &[mountinfo::Row], places: &[Place], gaps: &mut Gaps) -> Vec<Mount> {
    let pools = if mounts.iter().any(|mount| &*mount.fs_type == b"btrfs") { read_btrfs(reader) } else { Vec::new() };
    let left_out = mounts.len().saturating_sub(MOUNTS_MAX);
    gaps.left_out(Of::Filesystem, Gap::OverBound, u64::try_from(left_out).unwrap_or(u64::MAX));
    let mount = |row: &mountinfo::Row| {
        let one = device_of_mount(row, places);
        // A pool is known by any of its devices; where `/sys` does not tell the others, this one is what is known.
        let pool = pools.iter().find(|pool| one.is_some_and(|dev| pool.contains(&dev)));
        let pool = pool.filter(|_| &*row.fs_type == b"btrfs");
        Mount {
            mount_point: escape(&row.mount_point).into_owned(),
            root: escape(&row.root).into_owned(),
            dev: row.dev,
            fs_type: escape(&row.fs_type).into_owned(),
            source: escape(&row.source).into_owned(),
            options: escape(&row.options).into_owned(),
            fs_options: without_paths(&row.super_options),
            upper_dir: row.super_option("upperdir").map(|path| escape(&path).into_owned()),
            on: pool.cloned().unwrap_or_else(|| one.into_iter().collect()),
        }
    };
    mounts.iter().take(MOUNTS_MAX).map(mount).collect()
}

/// An overlay names every one of its layers, which may be a page of text.
fn without_paths(options: &[u8]) -> String {
    let kept = options.split(|&b| b == b',').filter(|option| !option.contains(&b'/'));
    kept.map(escape).collect::<Vec<_>>().join(",")
}

/// The devices of each btrfs file system.
fn read_btrfs(reader: &mut Reader) -> Vec<Vec<DevNum>> {
    let pools = reader.list(b"sys/fs/btrfs").unwrap_or_default();
    // Beside the file systems, which are named by their ids, lie two directories of the kernel's own.
    let own = |name: &[u8]| matches!(name, b"features" | b"debug");
    let pools: Vec<Vec<u8>> = pools.into_iter().map(|pool| pool.name).filter(|name| !own(name)).collect();
    pools
        .iter()
        .map(|pool| {
            let dir = join(&[b"sys/fs/btrfs", pool, b"devices"]);
            let devices = reader.list(&dir).unwrap_or_default();
            let mut devices: Vec<DevNum> = devices
                .iter()
                .filter_map(|device| {
                    let device = resolve(reader, &join(&[&dir, &device.name])).ok()?;
                    word(reader, &join(&[&device, b"dev"])).ok()?.parse().ok()
                })
                .collect();
            devices.sort_unstable();
            devices
        })
        .collect()
}

/// The options that are in force, defaults included: a mount shows only those that differ from the default, so that it
/// never says `data=ordered` or `dioread_nolock`.
fn read_ext4_options(reader: &mut Reader, disk: &[u8]) -> Option<String> {
    let bytes = reader.read(&join(&[b"proc/fs/ext4", disk, b"options"])).ok()?;
    let lines: Vec<_> = bytes.trim_ascii_end().split(|&b| b == b'\n').map(escape).collect();
    Some(lines.join(","))
}

/// The folder of a disk's journal among those of all: it is named by the disk and the journal's inode, `dm-0-8`.
fn journal_dir<'a>(journals: &'a [Entry], disk: &[u8]) -> Option<&'a [u8]> {
    let is_of_disk = |name: &[u8]| {
        let inode = name.strip_prefix(disk).and_then(|rest| rest.strip_prefix(b"-"));
        inode.is_some_and(|inode| !inode.is_empty() && inode.iter().all(u8::is_ascii_digit))
    };
    journals.iter().map(|journal| journal.name.as_slice()).find(|name| is_of_disk(name))
}

fn read_journal(reader: &mut Reader, file: &[u8], disk: &[u8], gaps: &mut Gaps) -> Known<jbd2_info::Jbd2Info> {
    let (info, lost) = many(reader.read(file), jbd2_info::parse);
    gaps.lost("jbd2 info", Of::Filesystem, &lost, || disk);
    if let Err(reason) = info {
        gaps.missing("jbd2 info", Of::Filesystem, reason, || disk);
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use quell_units::DevName;

    const VDB: DevNum = DevNum { major: 253, minor: 16 };
    const DM: DevNum = DevNum { major: 252, minor: 0 };

    fn places() -> Vec<Place> {
        let place = |dev, name: &str, mapper: Option<&str>| Place {
            dev,
            name: DevName::new(name.as_bytes()).unwrap(),
            dir: None,
            partition_of: None,
            slaves: Vec::new(),
            mapper: mapper.map(str::to_owned),
            backing_file: None,
        };
        vec![place(DM, "dm-0", Some("vg0-data")), place(VDB, "vdb", None)]
    }

    fn mounts() -> Vec<mountinfo::Row> {
        let text = "1 1 0:2 / / rw - rootfs rootfs rw\n\
                    2 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n\
                    3 1 0:19 / /srv/a\\040b rw - btrfs /dev/vdb rw\n\
                    4 1 0:20 / /srv/c rw - btrfs /dev/mapper/vg0-data rw\n\
                    5 1 8:2 / /srv/c rw - xfs /dev/sda2 rw\n";
        mountinfo::parse(text.as_bytes()).value
    }

    #[test]
    fn a_file_lies_on_the_mount_with_the_longest_path_above_it() {
        let on = |file: &str| device_of_file(&mounts(), &places(), file.as_bytes());
        assert_eq!(on("/srv/x.img"), Some(DevNum { major: 8, minor: 1 }));
        assert_eq!(on("/srv/a b/x.img"), Some(VDB));
        assert_eq!(on("/srv/a bc/x.img"), Some(DevNum { major: 8, minor: 1 }));
        assert_eq!(on("/srv/c/x.img"), Some(DevNum { major: 8, minor: 2 }), "the later mount hides the earlier");
        assert_eq!(on("/x.img"), None, "the root is no block device");
    }

    #[test]
    fn a_node_is_found_by_name_and_by_mapper_name() {
        assert_eq!(by_node(&places(), b"/dev/mapper/vg0-data"), Some(DM));
        assert_eq!(by_node(&places(), b"/dev/vdb"), Some(VDB));
        assert_eq!(by_node(&places(), b"/dev/vg0-data"), None);
        assert_eq!(by_node(&places(), b"tmpfs"), None);
    }
}
