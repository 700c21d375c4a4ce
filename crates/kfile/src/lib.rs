//! The formats of the kernel's files, one module each: bytes to typed values, and back.
//!
//! The second step of the pipeline. Nothing here opens a file, so a captured tree, a paste and a live
//! host meet the same code. Two decisions hold everywhere. A bad line costs that line alone: it is
//! counted in [`Lost`] and the rest is kept. And a line counts only when its newline was read, because
//! a torn `wbytes=12` of `wbytes=1234` is a wrong number and not a short one.
//!
//! Files of rows are parsed by `parse(bytes) -> Parsed<Vec<Row>>`, and the hot ones also by
//! `parse_into`, which reuses the caller's rows; files of one fact a line by `parse(bytes) ->
//! Parsed<T>`, where what the kernel has no line for is `None`; files that make sense only as a whole
//! by `parse(bytes) -> Result<T, ParseError>`. `render` is the inverse: `parse(render(x)) == x`.

pub mod blkio;
pub mod cgroup_events;
pub mod cgroup_stat;
pub mod cgroup_type;
pub mod controllers;
pub mod cpu_times;
pub mod diskstats;
pub mod inflight;
pub mod io_cost_model;
pub mod io_cost_qos;
pub mod io_latency;
pub mod io_max;
pub mod io_stat;
pub mod io_weight;
pub mod jbd2_info;
pub mod meminfo;
pub mod memory_events;
pub mod memory_stat;
pub mod mountinfo;
mod names;
pub mod pid_cgroup;
pub mod pid_fdinfo;
pub mod pid_io;
pub mod pid_stat;
pub mod pid_status;
pub mod pressure;
mod scan;
pub mod scheduler;
pub mod single;
pub mod superblock;
pub mod swaps;
pub mod uptime;
pub mod vmstat;
pub mod wbt;
pub mod wchan;

use std::fmt;

/// What a file of rows gave: all that could be read, and what could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The rows that were whole.
    pub value: T,
    /// The rows that were not.
    pub lost: Lost,
}

/// The lines of a file that could not be read: how many, and the first of them.
///
/// Bounded on purpose: a file of a million bad lines must not cost a million errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many lines were lost.
    pub lines: u32,
    /// The first of them.
    pub first: Option<ParseError>,
}

impl Lost {
    /// Counts one more lost line.
    pub(crate) fn line(&mut self, line_no: u32, what: &'static str) {
        self.lines = self.lines.saturating_add(1);
        self.first.get_or_insert(ParseError { line_no, what });
    }

    /// Whether every line was read.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.lines == 0
    }
}

/// Where the bytes are not of the format, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line_no}: expected {what}")]
pub struct ParseError {
    /// The line's number, from 1.
    pub line_no: u32,
    /// What the format wants in its place.
    pub what: &'static str,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.first, self.lines) {
            (None, _) => f.write_str("nothing lost"),
            (Some(first), 1) => first.fmt(f),
            (Some(first), n) => write!(f, "{first}, and {} more lines", n - 1),
        }
    }
}
