//! `io.cost.model` of the root cgroup: what iocost believes a disk can do.
//!
//! There is one model, `linear`. A line that names another is lost: its numbers would mean something else.

use quell_units::{Bytes, DevNum};
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::io_cost_qos::Ctrl;
use crate::scan::{self, DeviceLine};

/// One disk's model: the rates at which each kind of I/O alone would fill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The disk.
    pub dev: DevNum,
    /// Who chose the numbers below.
    pub ctrl: Ctrl,
    /// `rbps`: sequential read bytes a second.
    pub read_bytes_per_sec: Bytes,
    /// `rseqiops`: sequential 4 KiB reads a second.
    pub read_seq_ios_per_sec: u64,
    /// `rrandiops`: random 4 KiB reads a second, random being more than 16 MiB from the last.
    pub read_rand_ios_per_sec: u64,
    /// `wbps`: sequential written bytes a second.
    pub write_bytes_per_sec: Bytes,
    /// `wseqiops`: sequential 4 KiB writes a second.
    pub write_seq_ios_per_sec: u64,
    /// `wrandiops`: random 4 KiB writes a second.
    pub write_rand_ios_per_sec: u64,
}

/// Parses `io.cost.model`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    const FORM: &str = "MAJ:MIN ctrl= model=linear rbps= rseqiops= rrandiops= wbps= wseqiops= wrandiops=";
    scan::rows(bytes, |line| row(line).ok_or(FORM))
}

fn row(line: &[u8]) -> Option<Row> {
    let line = DeviceLine::new(line)?;
    line.get("model").filter(|&model| model == b"linear")?;
    Some(Row {
        dev: line.dev,
        ctrl: Ctrl::parse(line.get("ctrl")?)?,
        read_bytes_per_sec: Bytes(line.number("rbps")?),
        read_seq_ios_per_sec: line.number("rseqiops")?,
        read_rand_ios_per_sec: line.number("rrandiops")?,
        write_bytes_per_sec: Bytes(line.number("wbps")?),
        write_seq_ios_per_sec: line.number("wseqiops")?,
        write_rand_ios_per_sec: line.number("wrandiops")?,
    })
}

/// The rows as the kernel prints them.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    rows.iter()
        .map(|row| {
            format!(
                "{} ctrl={} model=linear rbps={} rseqiops={} rrandiops={} wbps={} wseqiops={} wrandiops={}\n",
                row.dev,
                row.ctrl.word(),
                row.read_bytes_per_sec.0,
                row.read_seq_ios_per_sec,
                row.read_rand_ios_per_sec,
                row.write_bytes_per_sec.0,
                row.write_seq_ios_per_sec,
                row.write_rand_ios_per_sec,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_disk_model_reads_back() {
        let text = b"253:0 ctrl=auto model=linear rbps=174019176 rseqiops=41708 rrandiops=370 wbps=178075866 wseqiops=42705 wrandiops=378\n";
        let rows = parse(text).value;
        assert_eq!((rows[0].ctrl, rows[0].read_rand_ios_per_sec), (Ctrl::Auto, 370));
        assert_eq!(render(&rows).as_bytes(), text);
    }

    #[test]
    fn another_model_is_not_read_as_the_linear_one() {
        let parsed = parse(b"8:0 ctrl=user model=cubic rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1\n");
        assert_eq!((parsed.value.len(), parsed.lost.lines), (0, 1));
    }
}
