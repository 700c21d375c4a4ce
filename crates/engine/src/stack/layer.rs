//! What kind of layer a device is, from what the kernel says of it and not from its number.

use crate::snapshot::{Device, DeviceMapper, Snapshot};

/// What kind of layer a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A disk, or what looks like one from here.
    Disk,
    /// A part of a disk.
    Partition,
    /// A logical volume.
    Lvm,
    /// A logical volume that takes its blocks from a thin pool.
    LvmThin,
    /// A thin pool, or a part of one.
    LvmThinPool,
    /// An encrypted volume.
    Crypt,
    /// A disk reached over several paths, joined by device-mapper.
    Multipath,
    /// Any other device-mapper target.
    Mapper,
    /// An md array.
    Raid,
    /// A file that is used as a disk.
    Loop,
    /// A disk with a cache in front.
    Bcache,
    /// An NVMe namespace reached over several controllers.
    NvmeMultipath,
    /// Memory that is used as a disk.
    Memory,
}

impl Layer {
    /// What a device is.
    #[must_use]
    pub fn of(device: &Device, snapshot: &Snapshot) -> Self {
        let name = device.name.as_str();
        let numbered = |prefix: &str| {
            name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let queue = device.queue.as_deref();
        if device.partition_of.is_some() {
            return Self::Partition;
        }
        if let Some(mapper) = queue.and_then(|queue| queue.device_mapper.as_ref()) {
            let pool = |dev: &quell_units::DevNum| {
                let below = snapshot.device(*dev).and_then(|below| below.queue.as_deref()?.device_mapper.as_ref());
                below.is_some_and(|below| Self::of_mapper(below) == Self::LvmThinPool)
            };
            return match Self::of_mapper(mapper) {
                Self::Lvm if device.slaves.iter().any(pool) => Self::LvmThin,
                layer => layer,
            };
        }
        match queue {
            Some(queue) if queue.multi_disk.is_some() => Self::Raid,
            Some(queue) if queue.sysfs_path.contains("/nvme-subsystem/") => Self::NvmeMultipath,
            _ if numbered("loop") => Self::Loop,
            _ if numbered("bcache") => Self::Bcache,
            _ if numbered("zram") || numbered("ram") => Self::Memory,
            _ => Self::Disk,
        }
    }

    /// The uuid begins with the subsystem that made the node; LVM ends it with the part that the node plays.
    fn of_mapper(mapper: &DeviceMapper) -> Self {
        let uuid = mapper.uuid.as_deref().unwrap_or_default();
        let made_by = |prefix: &str| uuid.starts_with(prefix);
        if made_by("LVM-") {
            let pool = ["-tpool", "-tdata", "-tmeta", "-pool"].iter().any(|part| uuid.ends_with(part));
            return if pool { Self::LvmThinPool } else { Self::Lvm };
        }
        match () {
            () if made_by("CRYPT-") => Self::Crypt,
            () if made_by("mpath-") => Self::Multipath,
            // kpartx makes a node for each partition of a node.
            () if made_by("part") => Self::Partition,
            () => Self::Mapper,
        }
    }

    /// The word people use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::Lvm => "lvm",
            Self::LvmThin => "lvm-thin",
            Self::LvmThinPool => "lvm-thin-pool",
            Self::Crypt => "crypt",
            Self::Multipath => "multipath",
            Self::Mapper => "dm",
            Self::Raid => "md",
            Self::Loop => "loop",
            Self::Bcache => "bcache",
            Self::NvmeMultipath => "nvme-multipath",
            Self::Memory => "memory",
        }
    }

    /// Whether it orders requests of its own: then a scheduler and a depth mean something. The others hand bios on.
    #[must_use]
    pub const fn has_requests(self) -> bool {
        matches!(self, Self::Disk | Self::Multipath | Self::Loop)
    }
}
