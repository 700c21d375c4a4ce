//! The files that containers write.

use quell_units::{Bytes, CgroupPath, DevNum, UnixMicros};
use serde::{Deserialize, Serialize};

/// A regular file that a process of a container has open for writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// The process.
    pub pid: u32,
    /// Its descriptor.
    pub fd: u32,
    /// The process's cgroup.
    pub cgroup: CgroupPath,
    /// The path as the container sees it, escaped for display; it ends in ` (deleted)` where nothing names it any more.
    pub path: String,
    /// The type of the file system that it was opened through: `overlay` is the container's writable layer.
    pub fs_type: String,
    /// The number of that file system; `0:NN` is no disk.
    pub dev: DevNum,
    /// The file's number there: with the device's, what identifies it.
    pub inode: u64,
    /// Its size.
    pub size: Bytes,
    /// When it was written last, by the wall clock.
    pub modified: UnixMicros,
    /// Where the descriptor stands in it. Calls that name their own place (`pwrite`) do not move it.
    pub pos: Bytes,
    /// Whether the descriptor cannot read: then only writing moves it.
    pub write_only: bool,
}

impl OpenFile {
    /// Whether it lies in the container's writable layer, which its engine keeps by an overlay.
    #[must_use]
    pub fn is_in_layer(&self) -> bool {
        // Rootless podman has a program of its own serve it.
        matches!(&*self.fs_type, "overlay" | "fuse.fuse-overlayfs")
    }
}
