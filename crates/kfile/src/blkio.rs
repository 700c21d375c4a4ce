//! The `blkio` controller of cgroup v1: `blkio.throttle.io_serviced`, `io_service_bytes`, and the limits.
//!
//! The counters have a line for each operation, `MAJ:MIN Read N`, so several lines make one row here. Whether a row
//! counts bytes or bios is in the file's name and not in the file; whether descendants are in it, too (`_recursive`).

use quell_units::DevNum;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// What one cgroup did on one device: bytes or bios, by the file it came from. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountRow {
    /// The device.
    pub dev: DevNum,
    /// Reads.
    pub read: Option<u64>,
    /// Writes.
    pub write: Option<u64>,
    /// Of both, those that somebody waits for: reads, direct writes, fsync.
    pub synchronous: Option<u64>,
    /// Of both, the others.
    pub asynchronous: Option<u64>,
    /// Discards, from 4.19.
    pub discard: Option<u64>,
    /// The sum of reads, writes and discards.
    pub total: Option<u64>,
}

/// One device's limit: bytes or bios a second, by the file it came from. A device without a limit has no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitRow {
    /// The device.
    pub dev: DevNum,
    /// The limit, in the unit of its file.
    pub per_sec: u64,
}

impl CountRow {
    const fn new(dev: DevNum) -> Self {
        Self { dev, read: None, write: None, synchronous: None, asynchronous: None, discard: None, total: None }
    }

    fn slot(&mut self, operation: &[u8]) -> Option<&mut Option<u64>> {
        match operation {
            b"Read" => Some(&mut self.read),
            b"Write" => Some(&mut self.write),
            b"Sync" => Some(&mut self.synchronous),
            b"Async" => Some(&mut self.asynchronous),
            b"Discard" => Some(&mut self.discard),
            b"Total" => Some(&mut self.total),
            _ => None,
        }
    }
}

/// Parses `blkio.throttle.io_service_bytes`, `io_serviced`, their `_recursive` forms and the like of bfq.
///
/// A device's lines follow one another. Unknown operations are skipped, and so is the sum over all devices at the end.
#[must_use]
pub fn parse_counts(bytes: &[u8]) -> Parsed<Vec<CountRow>> {
    scan::fold(bytes, add)
}

fn add(rows: &mut Vec<CountRow>, line: &[u8]) -> Result<(), &'static str> {
    const FORM: &str = "MAJ:MIN OPERATION N, or Total N";
    let mut fields = scan::fields(line);
    let dev = fields.next().ok_or(FORM)?;
    if dev == b"Total" {
        return Ok(());
    }
    let dev = scan::value(dev).ok_or(FORM)?;
    let operation = fields.next().ok_or(FORM)?;
    let n = fields.next().and_then(scan::number).ok_or(FORM)?;
    let mut row = rows.pop_if(|last| last.dev == dev).unwrap_or(CountRow::new(dev));
    if let Some(slot) = row.slot(operation) {
        *slot = Some(n);
    }
    // An unknown operation alone makes no row.
    if row != CountRow::new(dev) {
        rows.push(row);
    }
    Ok(())
}

/// Parses `blkio.throttle.read_bps_device` and its three siblings: `MAJ:MIN N` a device.
#[must_use]
pub fn parse_limits(bytes: &[u8]) -> Parsed<Vec<LimitRow>> {
    scan::rows(bytes, |line| limit(line).ok_or("MAJ:MIN N"))
}

fn limit(line: &[u8]) -> Option<LimitRow> {
    let mut fields = scan::fields(line);
    Some(LimitRow { dev: scan::value(fields.next()?)?, per_sec: scan::number(fields.next()?)? })
}

/// The counters as the kernel prints them, with the sum at the end.
#[must_use]
pub fn render_counts(rows: &[CountRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let lines = [
            ("Read", row.read),
            ("Write", row.write),
            ("Sync", row.synchronous),
            ("Async", row.asynchronous),
            ("Discard", row.discard),
            ("Total", row.total),
        ];
        out.extend(lines.into_iter().filter_map(|(op, n)| n.map(|n| format!("{} {op} {n}\n", row.dev))));
    }
    let total = rows.iter().filter_map(|row| row.total).fold(0, u64::saturating_add);
    out + &format!("Total {total}\n")
}

/// The limits as the kernel prints them.
#[must_use]
pub fn render_limits(rows: &[LimitRow]) -> String {
    rows.iter().map(|row| format!("{} {}\n", row.dev, row.per_sec)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VDA: DevNum = DevNum { major: 253, minor: 0 };

    #[test]
    fn the_lines_of_a_device_make_one_row() {
        let text = b"253:0 Read 0\n253:0 Write 130285568\n253:0 Sync 130285568\n253:0 Async 0\n253:0 Discard 0\n253:0 Total 130285568\n7:0 Read 5\nTotal 130285568\n";
        let parsed = parse_counts(text);
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value.len(), 2);
        assert_eq!((parsed.value[0].dev, parsed.value[0].write), (VDA, Some(130_285_568)));
        assert_eq!((parsed.value[1].read, parsed.value[1].write), (Some(5), None));
        assert_eq!(render_counts(&parsed.value).as_bytes(), text);
    }

    #[test]
    fn an_unknown_operation_is_skipped_and_makes_no_row() {
        let parsed = parse_counts(b"7:0 Zap 1\n253:0 Read 2\n253:0 Zap 3\n");
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value, [CountRow { read: Some(2), ..CountRow::new(VDA) }]);
    }

    #[test]
    fn a_cgroup_without_io_prints_the_sum_alone() {
        assert_eq!(parse_counts(b"Total 0\n"), Parsed::default());
    }

    #[test]
    fn a_limit_is_a_device_and_a_number() {
        let parsed = parse_limits(b"253:0 1048576\n(unknown) 5\n");
        assert_eq!(parsed.value, [LimitRow { dev: VDA, per_sec: 1_048_576 }]);
        assert_eq!(parsed.lost.lines, 1);
        assert_eq!(render_limits(&parsed.value), "253:0 1048576\n");
    }
}
