//! Processes, and the light looks at those that wait.

use quell_kfile::pid_io::PidIo;
use quell_units::{Bytes, CgroupPath, DevNum, Known, MonoMicros};
use serde::{Deserialize, Serialize};

/// One process, or one thread in uninterruptible sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The thread; the same number for the process's first thread.
    pub tid: u32,
    /// Its name, as the kernel keeps it; escape before printing.
    pub comm: String,
    /// Whether it is in uninterruptible sleep (`D`).
    pub blocked: bool,
    /// Whether it is a thread of the kernel's own.
    pub kernel_thread: bool,
    /// The cgroup that carries the I/O controller.
    pub cgroup: Known<CgroupPath>,
    /// The kernel function it sleeps in; `None` where it runs, or the kernel does not tell.
    pub wait_channel: Option<String>,
    /// Bytes its process read and wrote. Only for a process's first thread.
    pub io: Known<PidIo>,
    /// Whether it holds an io_uring.
    pub io_uring: bool,
}

/// A light look between two snapshots: only what moves fast and is cheap to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// When it was taken.
    pub at: MonoMicros,
    /// The threads in uninterruptible sleep.
    pub blocked: Vec<Task>,
    /// Whether the bound on threads cut the list short: then what is not in it may wait all the same.
    pub cut: bool,
    /// Dirty pages of the host, in pages.
    pub dirty_pages: Option<u64>,
    /// Pages under write-back, in pages.
    pub writeback_pages: Option<u64>,
    /// What each whole disk has in flight and has completed.
    pub disks: Vec<DiskLook>,
}

/// One disk at a light look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLook {
    /// The disk.
    pub dev: DevNum,
    /// Requests in flight, its partitions' included.
    pub in_flight: u64,
    /// Requests completed since boot: reads, writes, discards and flushes.
    pub completed: u64,
    /// Bytes read and written since boot; `None` in recordings from before they were kept.
    #[serde(default)]
    pub bytes: Option<Bytes>,
}
