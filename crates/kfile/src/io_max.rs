//! `io.max` of cgroup v2: the limits of one cgroup, `MAJ:MIN rbps=N wbps=N riops=N wiops=N` a device.
//!
//! A device without a limit has no line, and a line always has all four keys. One that lacks a key is therefore lost and
//! not filled up with `max`: to call a cgroup unlimited that is not would hide the cause the tool looks for.

use quell_units::{Bytes, DevNum, Limit};
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan::{self, DeviceLine};

/// The limits of one cgroup on one device. Those of the cgroups above it hold as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The device.
    pub dev: DevNum,
    /// `rbps`: bytes read a second.
    pub read_bytes_per_sec: Limit<Bytes>,
    /// `wbps`: bytes written a second.
    pub write_bytes_per_sec: Limit<Bytes>,
    /// `riops`: read bios a second.
    pub read_ios_per_sec: Limit<u64>,
    /// `wiops`: write bios a second, those that the kernel split counted each.
    pub write_ios_per_sec: Limit<u64>,
}

/// Parses `io.max`. Other keys are skipped: old kernels print `idle` and `latency` in `io.low`, which has this format.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    scan::rows(bytes, |line| row(line).ok_or("MAJ:MIN rbps= wbps= riops= wiops=, each a number or max"))
}

fn row(line: &[u8]) -> Option<Row> {
    let line = DeviceLine::new(line)?;
    Some(Row {
        dev: line.dev,
        read_bytes_per_sec: scan::limit(line.get("rbps")?, Bytes)?,
        write_bytes_per_sec: scan::limit(line.get("wbps")?, Bytes)?,
        read_ios_per_sec: scan::limit(line.get("riops")?, |n| n)?,
        write_ios_per_sec: scan::limit(line.get("wiops")?, |n| n)?,
    })
}

/// The rows as the kernel prints them.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    let bytes = |limit: Limit<Bytes>| limit.at().map_or(Limit::Max, |Bytes(n)| Limit::At(n));
    rows.iter()
        .map(|row| {
            format!(
                "{} rbps={} wbps={} riops={} wiops={}\n",
                row.dev,
                bytes(row.read_bytes_per_sec),
                bytes(row.write_bytes_per_sec),
                row.read_ios_per_sec,
                row.write_ios_per_sec
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_leaves_the_others_at_max() {
        let text = b"253:16 rbps=max wbps=2097152 riops=max wiops=max\n";
        let rows = parse(text).value;
        assert_eq!(rows[0].write_bytes_per_sec, Limit::At(Bytes(2_097_152)));
        assert_eq!(rows[0].read_ios_per_sec, Limit::Max);
        assert_eq!(render(&rows).as_bytes(), text);
    }

    #[test]
    fn the_keys_of_io_low_are_skipped() {
        let parsed = parse(b"8:0 rbps=max wbps=1 riops=max wiops=max idle=100 latency=max\n");
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value.len(), 1);
    }

    #[test]
    fn a_line_that_lacks_a_key_is_lost_and_not_unlimited() {
        let keys = ["rbps=1", "wbps=1", "riops=1", "wiops=1"];
        for missing in keys {
            let others = keys.into_iter().filter(|key| *key != missing).collect::<Vec<_>>().join(" ");
            let parsed = parse(format!("8:0 {others}\n").as_bytes());
            assert_eq!((parsed.value.len(), parsed.lost.lines), (0, 1), "{missing}");
        }
        assert_eq!(parse(b"(unknown) rbps=1 wbps=1 riops=1 wiops=1\n").lost.lines, 1);
    }
}
