//! `io.latency` of cgroup v2: `MAJ:MIN target=N` a device.
//!
//! The target is in microseconds. A device without a target has no line, and a kernel without the policy has no file.

use quell_units::{DevNum, Micros};
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan::{self, DeviceLine};

/// One cgroup's target on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The device.
    pub dev: DevNum,
    /// What a request may take before siblings with a looser target, or none, are slowed: by the mean of a window on a disk
    /// that rotates, else by a tenth of its requests that took longer (blk-iolatency.c, `latency_sum_ok`).
    pub target_usec: Micros,
}

/// Parses `io.latency`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    scan::rows(bytes, |line| row(line).ok_or("MAJ:MIN target=microseconds"))
}

fn row(line: &[u8]) -> Option<Row> {
    let line = DeviceLine::new(line)?;
    Some(Row { dev: line.dev, target_usec: Micros(line.number("target")?) })
}

/// The rows as the kernel prints them.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{} target={}\n", row.dev, row.target_usec.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_in_microseconds() {
        let text = b"253:0 target=4000\n";
        let rows = parse(text).value;
        assert_eq!(rows, [Row { dev: DevNum { major: 253, minor: 0 }, target_usec: Micros(4000) }]);
        assert_eq!(render(&rows).as_bytes(), text);
    }

    #[test]
    fn a_line_without_target_is_lost_alone() {
        let parsed = parse(b"8:0 goal=1\n253:0 target=4000\n8:16 target=40");
        assert_eq!((parsed.value.len(), parsed.lost.lines), (1, 2));
    }
}
