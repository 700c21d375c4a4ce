//! What is mounted, down to the devices: every mount, the ones without a disk too, since a path may lie on any of them.

use quell_kfile::superblock::Superblock;
use quell_units::{Bytes, DevNum, Known};
use serde::{Deserialize, Serialize};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where, escaped for display.
    pub mount_point: String,
    /// The directory of the file system that is seen there: `/` unless it is a bind mount or a subvolume.
    pub root: String,
    /// The number its files have; `0:NN` is no disk.
    pub dev: DevNum,
    /// The file system's type, such as `overlay`.
    pub fs_type: String,
    /// What was mounted, escaped for display: a node, a pool, a server.
    pub source: String,
    /// Its own options, such as `rw,noatime`.
    pub options: String,
    /// The file system's options without those that name a path, such as `rw,data=ordered`.
    pub fs_options: String,
    /// The directory that an overlay writes to.
    pub upper_dir: Option<String>,
    /// The block devices that the file system lies on; several for btrfs, none where there is none or none is told.
    pub on: Vec<DevNum>,
}

/// Where a partition lies on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The partition.
    pub dev: DevNum,
    /// Where it begins.
    pub start: Known<Bytes>,
    /// Its size.
    pub size: Known<Bytes>,
}

/// What the superblock on a device says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnDisk {
    /// The device.
    pub dev: DevNum,
    /// Its superblock.
    pub superblock: Known<Superblock>,
}
