//! `io.cost.qos` of the root cgroup: whether iocost rules a disk, and by what it judges that the disk is saturated.
//!
//! A disk has a line once somebody wrote to the file, so a line alone does not say that iocost is on: `enable` does.

use quell_units::{DevNum, Micros};
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan::{self, DeviceLine};

/// One disk's line. Percentages are in hundredths of a percent, as the kernel prints two decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The disk.
    pub dev: DevNum,
    /// `enable`: whether weights act on this disk.
    pub enabled: bool,
    /// Who chose the numbers below.
    pub ctrl: Ctrl,
    /// `rpct`: the percentile of reads that is held against the target; 0 takes no notice of them.
    pub read_centipct: u64,
    /// `rlat`: the target of reads.
    pub read_latency_usec: Micros,
    /// `wpct`: as `rpct`, for writes.
    pub write_centipct: u64,
    /// `wlat`: the target of writes.
    pub write_latency_usec: Micros,
    /// `min`: the least rate that iocost may go down to, of its model's.
    pub min_centipct: u64,
    /// `max`: the highest rate that iocost may go up to, of its model's. The same as `min` pins it.
    pub max_centipct: u64,
}

/// Who chose the parameters of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ctrl {
    /// The kernel, by `rotational` and the queue: a virtual disk that says it rotates gets a hard disk's.
    Auto,
    /// Somebody wrote them.
    User,
}

impl Ctrl {
    pub(crate) fn parse(field: &[u8]) -> Option<Self> {
        match field {
            b"auto" => Some(Self::Auto),
            b"user" => Some(Self::User),
            _ => None,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::User => "user",
        }
    }
}

/// Parses `io.cost.qos`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    scan::rows(bytes, |line| row(line).ok_or("MAJ:MIN enable= ctrl= rpct= rlat= wpct= wlat= min= max="))
}

fn row(line: &[u8]) -> Option<Row> {
    let line = DeviceLine::new(line)?;
    let centi = |key| scan::centi(line.get(key)?);
    Some(Row {
        dev: line.dev,
        enabled: scan::flag(line.get("enable")?)?,
        ctrl: Ctrl::parse(line.get("ctrl")?)?,
        read_centipct: centi("rpct")?,
        read_latency_usec: Micros(line.number("rlat")?),
        write_centipct: centi("wpct")?,
        write_latency_usec: Micros(line.number("wlat")?),
        min_centipct: centi("min")?,
        max_centipct: centi("max")?,
    })
}

/// The rows as the kernel prints them.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    rows.iter()
        .map(|row| {
            format!(
                "{} enable={} ctrl={} rpct={} rlat={} wpct={} wlat={} min={} max={}\n",
                row.dev,
                u8::from(row.enabled),
                row.ctrl.word(),
                scan::render_centi(row.read_centipct),
                row.read_latency_usec.0,
                scan::render_centi(row.write_centipct),
                row.write_latency_usec.0,
                scan::render_centi(row.min_centipct),
                scan::render_centi(row.max_centipct),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"253:0 enable=1 ctrl=user rpct=95.00 rlat=50000 wpct=0.00 wlat=50000 min=100.00 max=100.00\n";

    #[test]
    fn a_pinned_disk_reads_as_such() {
        let rows = parse(TEXT).value;
        assert!(rows[0].enabled);
        assert_eq!((rows[0].ctrl, rows[0].read_centipct), (Ctrl::User, 9_500));
        assert_eq!(rows[0].min_centipct, rows[0].max_centipct);
        assert_eq!(render(&rows).as_bytes(), TEXT);
    }

    #[test]
    fn a_word_that_is_not_known_costs_its_line() {
        let text =
            [&b"8:0 enable=2 ctrl=user rpct=0.00 rlat=1 wpct=0.00 wlat=1 min=1.00 max=1.00\n"[..], TEXT].concat();
        let parsed = parse(&text);
        assert_eq!((parsed.value.len(), parsed.lost.lines), (1, 1));
    }
}
