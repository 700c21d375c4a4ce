//! What a paste says, in facts that no longer know which tool printed them.

use quell_units::{Bytes, DevNum};
use serde::{Deserialize, Serialize};

use crate::table::{Direction, Table};

/// All that was recognised in a paste, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pasted {
    /// Kernel files, in the order in which they were first pasted.
    pub files: Vec<File>,
    /// Tables of rates, a block of `iostat` each, in the order in which they were pasted.
    pub tables: Vec<Table>,
    /// What block devices there are, and how they lie above each other.
    pub devices: Vec<DeviceFact>,
    /// Tasks and what they did.
    pub tasks: Vec<TaskFact>,
    /// Runs of a load generator.
    pub benchmarks: Vec<Benchmark>,
    /// What programs and the kernel said, and what somebody asked for.
    pub statements: Vec<Statement>,
    /// What was recognised, in order.
    pub pieces: Vec<Piece>,
    /// What was not.
    pub unread: Unread,
}

/// A kernel file, as its content was pasted: its first reading and its last. Those between are counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Its path without the leading `/`, such as `proc/diskstats`. A cgroup file whose place was not told is
    /// `sys/fs/cgroup/pasted/…`.
    pub path: String,
    /// The first reading's bytes, every line with its newline.
    pub first: Vec<u8>,
    /// The last reading's, where there was more than one.
    pub last: Option<Vec<u8>>,
    /// How often it was read.
    pub readings: u32,
    /// The time of the first and of the last reading, in seconds of a day, where a logger stamped them.
    pub stamps: Option<(f64, f64)>,
}

/// What is said of a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFact {
    /// Its name, such as `sda4`.
    pub name: String,
    /// Its number.
    pub dev: Option<DevNum>,
    /// What it is: lsblk's TYPE (`disk`, `part`, `lvm`, `crypt`, `raid6`, `loop`), or `char` for a character device.
    pub kind: Option<String>,
    /// The devices directly below it, or the disk it is a partition of, by name.
    pub below: Vec<String>,
    /// Where it is mounted.
    pub mounts: Vec<String>,
    /// What an md array is doing besides serving: `check`, `resync`, `recovery`, `reshape`, and how far it is in percent.
    pub sync: Option<(String, Option<String>)>,
    /// How many members of an md array are there, and how many it wants.
    pub members: Option<(u32, u32)>,
    /// Whether the kernel takes it for a spinning disk (lsblk's ROTA).
    pub rotational: Option<bool>,
    /// The scheduler (lsblk's SCHED).
    pub scheduler: Option<String>,
    /// Its model.
    pub model: Option<String>,
}

/// What a task did, as iotop and pidstat say it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskFact {
    /// Its thread or process.
    pub id: u32,
    /// Its name, such as `jbd2/md6-8`.
    pub comm: String,
    /// Whether it is a thread of the kernel's.
    pub kernel_thread: bool,
    /// Bytes read per second.
    pub read_bytes_per_sec: Option<f64>,
    /// Bytes written per second.
    pub write_bytes_per_sec: Option<f64>,
    /// Share of the time that it waited for I/O, 0 to 100.
    pub io_wait_pct: Option<f64>,
    /// Share of the time that it waited for swap, 0 to 100.
    pub swap_wait_pct: Option<f64>,
}

/// One group of jobs of a load generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// The job's name.
    pub name: String,
    /// The disk, where the tool names one.
    pub device: Option<String>,
    /// What it did: fio's `rw`, such as `randread`; empty where it is not told.
    pub pattern: String,
    /// Requests that it keeps in flight: depth times jobs.
    pub in_flight_max: Option<f64>,
    /// Writes between two syncs: 1 for `fdatasync=1`.
    pub writes_per_sync: Option<f64>,
    /// How long it ran.
    pub seconds: Option<f64>,
    /// Reads, with their completion latency as await.
    pub read: Direction,
    /// Writes, likewise.
    pub write: Direction,
    /// Syncs per second and their mean time.
    pub sync: Direction,
    /// Latency in microseconds at percentiles (50.0, 99.0 ...), of the direction with more requests.
    pub percentiles_usec: Vec<(f64, f64)>,
    /// The same of the syncs.
    pub sync_percentiles_usec: Vec<(f64, f64)>,
    /// The disk's own `%util` in the run.
    pub util_pct: Option<f64>,
}

/// What a program or the kernel said, or somebody asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// A limit or weight could not be set.
    Refused {
        /// Who tried, such as `docker` or `runc`; empty where it is not told.
        by: String,
        /// The file that was written or not found, such as `io.max` or `blkio.throttle.read_bps_device`.
        file: String,
        /// The path to it, where it is told.
        path: Option<String>,
        /// The device's number in what was written.
        dev: Option<DevNum>,
        /// What was written.
        value: Option<String>,
        /// How the kernel refused.
        refusal: Refusal,
    },
    /// A limit was asked for: an option of docker's, a line of a unit.
    LimitAsked {
        /// By whom: `docker`, `unit/app.service`, a container's name.
        by: String,
        /// The device as it was named: `/dev/sda2`, `8:4`, or a mount point; empty where the setting names none.
        device: String,
        /// The key in the words of io.max: `rbps`, `wbps`, `riops`, `wiops`.
        key: String,
        /// Bytes or I/Os per second; 0 is what somebody wrote who meant no limit.
        value: u64,
    },
    /// A weight was asked for.
    WeightAsked {
        /// By whom.
        by: String,
        /// The device it is for; empty for all.
        device: String,
        /// The weight, in the scale of who asked.
        weight: u64,
    },
    /// A controller of cgroups is not there for who wants it.
    ControllerMissing {
        /// Who wants it.
        by: String,
        /// The controller.
        controller: String,
    },
    /// A runtime says that this kernel or host has no such knob: `blkio weight`, `throttle.read_bps_device`.
    KnobMissing {
        /// Who says it.
        by: String,
        /// What is missing.
        knob: String,
    },
    /// A program wants another version of cgroups.
    WantsCgroup {
        /// Who.
        by: String,
        /// The version it wants.
        version: u8,
    },
    /// The version of cgroups of the host, as a runtime or a mount tells it.
    CgroupVersion(u8),
    /// The kernel's release, as a tool tells it.
    Kernel(String),
    /// Reading the pressure files was refused.
    PressureRefused,
    /// A device did not answer a command in time, or was reset for it.
    CommandTimedOut {
        /// The device or controller.
        device: String,
        /// How long the kernel waits, where it is told.
        seconds: Option<f64>,
    },
    /// The kernel gave an I/O error.
    IoError {
        /// The device.
        device: String,
    },
    /// The kernel's own message of a task that hangs.
    TaskHung {
        /// The task's name.
        comm: String,
        /// For how long.
        seconds: f64,
    },
    /// A sync took long, by a program's own log.
    SlowSync {
        /// The program.
        by: String,
        /// How long it took.
        usec: f64,
    },
    /// A write has not returned, by a program's own log.
    StuckWrite {
        /// The program.
        by: String,
        /// For how long.
        seconds: f64,
    },
    /// A copy, as dd tells it.
    Copied(Copied),
    /// Bytes of block I/O that a runtime tells of a container.
    BlockIo {
        /// The container.
        container: String,
        /// Bytes read.
        read: Bytes,
        /// Bytes written.
        write: Bytes,
    },
}

/// A copy, as dd tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Bytes copied.
    pub bytes: Bytes,
    /// The time it took.
    pub seconds: f64,
    /// Whether past the page cache; `None` where the command is not told.
    pub direct: Option<bool>,
    /// Whether it synced before it ended.
    pub synced: bool,
    /// Whether it wrote to a disk; `None` where the command is not told.
    pub writes: Option<bool>,
}

/// How the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// ENODEV: no whole disk of this number.
    NoDevice,
    /// ERANGE: 0 where `max` is meant.
    OutOfRange,
    /// EINVAL.
    Invalid,
    /// ENOENT: no such file.
    NoFile,
    /// EOPNOTSUPP.
    NotSupported,
    /// EACCES or EPERM.
    Denied,
    /// EBUSY.
    Busy,
}

/// A stretch of a paste that was recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// What it is, for people: `iostat`, `io.stat`, `fio JSON`.
    pub format: String,
    /// Its first line, from 1.
    pub line_no: u32,
    /// How many lines it took.
    pub lines: u32,
}

impl File {
    /// The last reading's bytes.
    #[must_use]
    pub fn latest(&self) -> &[u8] {
        self.last.as_deref().unwrap_or(&self.first)
    }
}

/// Bytes of kernel files that are kept.
const FILES_BYTES_MAX: usize = 64 << 20;

impl Pasted {
    /// Adds a reading of a kernel file; whether there was room for it.
    pub(crate) fn add_reading(&mut self, path: &str, bytes: Vec<u8>, stamp: Option<f64>) -> bool {
        let kept: usize = self.files.iter().map(|file| file.first.len() + file.last.as_ref().map_or(0, Vec::len)).sum();
        if kept + bytes.len() > FILES_BYTES_MAX {
            return false;
        }
        let Some(known) = self.files.iter_mut().find(|file| file.path == path) else {
            let stamps = stamp.map(|stamp| (stamp, stamp));
            self.files.push(File { path: path.to_owned(), first: bytes, last: None, readings: 1, stamps });
            return true;
        };
        known.last = Some(bytes);
        known.readings = known.readings.saturating_add(1);
        known.stamps = known.stamps.zip(stamp).map(|((first, _), stamp)| (first, stamp));
        true
    }
    /// Adds a statement, once, and not without end: a log says the same again and again.
    pub(crate) fn state(&mut self, statement: Statement) {
        const STATEMENTS_MAX: usize = 1000;
        if self.statements.len() < STATEMENTS_MAX && !self.statements.contains(&statement) {
            self.statements.push(statement);
        }
    }

    /// Adds what is said of a device to what was said of it before.
    pub(crate) fn add_device(&mut self, fact: DeviceFact) {
        let Some(known) = self.devices.iter_mut().find(|known| known.name == fact.name) else {
            self.devices.push(fact);
            return;
        };
        for below in fact.below {
            if !known.below.contains(&below) {
                known.below.push(below);
            }
        }
        known.dev = known.dev.or(fact.dev);
        known.kind = known.kind.take().or(fact.kind);
        known.sync = known.sync.take().or(fact.sync);
        known.members = known.members.or(fact.members);
        known.rotational = known.rotational.or(fact.rotational);
        known.scheduler = known.scheduler.take().or(fact.scheduler);
        known.model = known.model.take().or(fact.model);
        known.mounts.extend(fact.mounts);
    }
}

/// Lines that no format took, kept to be shown.
const UNREAD_SHOWN: usize = 3;

/// Characters of such a line that are kept.
const UNREAD_CHARS: usize = 120;

impl Unread {
    /// Counts lines that start with this one.
    pub(crate) fn add(&mut self, line_no: u32, lines: u32, text: &str) {
        self.lines = self.lines.saturating_add(lines);
        if self.first.len() < UNREAD_SHOWN {
            let line = text.trim().lines().next().unwrap_or_default();
            self.first.push((line_no, line.chars().take(UNREAD_CHARS).collect()));
        }
    }
}

/// The lines that no format took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// How many; blank ones do not count.
    pub lines: u32,
    /// The first few: number and text, cut after 120 characters.
    pub first: Vec<(u32, String)>,
}
