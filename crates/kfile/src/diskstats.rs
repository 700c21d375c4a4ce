//! `/proc/diskstats`, one line a device, and `/sys/block/*/stat`, the same counters without the names.
//!
//! Both come in three generations: 11 counters, 15 with discards (4.18) and 17 with flushes (5.5), so
//! diskstats has 14, 18 or 20 columns. Later kernels may add more; what is unknown is skipped.

use quell_units::{DevName, DevNum, Millis, Sectors};
use serde::{Deserialize, Serialize};

use crate::scan::{self, Line};
use crate::{Lost, ParseError, Parsed};

/// One device's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The device's number.
    pub dev: DevNum,
    /// The device's name.
    pub name: DevName,
    /// Its counters since boot.
    pub counters: Counters,
}

/// A device's counters since it appeared, as the kernel prints them.
///
/// The ticks are milliseconds that the kernel prints modulo 2^32, so they wrap after 49.7 days of accumulated time;
/// the other counters are 64 bits wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Reads.
    pub read: Direction,
    /// Writes, without flushes.
    pub write: Direction,
    /// Requests that were issued and are not complete.
    pub in_flight: u64,
    /// Time with at least one request in flight, wrapping. Field 10, `io_ticks`.
    pub busy_ms: Millis,
    /// Sum over all completed requests of their time, wrapping. Field 11, `rq_ticks`.
    pub weighted_ms: Millis,
    /// Discards, from 4.18.
    pub discard: Option<Direction>,
    /// Flushes, from 5.5.
    pub flush: Option<Flushes>,
}

/// What was completed of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// Completed requests.
    pub ios: u64,
    /// Bios that were merged into a request already queued.
    pub merges: u64,
    /// Sectors of 512 bytes.
    pub sectors: Sectors,
    /// Sum of the requests' times from insertion to completion, wrapping.
    pub ticks_ms: Millis,
}

/// Completed flushes, which count neither as reads nor as writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushes {
    /// Completed flush requests.
    pub ios: u64,
    /// Sum of their times, wrapping.
    pub ticks_ms: Millis,
}

impl Counters {
    /// All that was completed: reads, writes, discards and flushes.
    #[must_use]
    pub fn completed(&self) -> u64 {
        let rarer = [self.discard.map(|discard| discard.ios), self.flush.map(|flush| flush.ios)];
        [self.read.ios, self.write.ios].into_iter().chain(rarer.into_iter().flatten()).fold(0, u64::saturating_add)
    }
}

const COUNTERS: &str = "11, 15 or 17 counters";

/// Parses `/proc/diskstats`.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    let mut value = Vec::new();
    let lost = parse_into(bytes, &mut value);
    Parsed { value, lost }
}

/// Parses `/proc/diskstats` into `rows`, which is emptied first.
pub fn parse_into(bytes: &[u8], rows: &mut Vec<Row>) -> Lost {
    rows.clear();
    let mut lost = Lost::default();
    for (line_no, line) in scan::lines(bytes) {
        match line {
            Line::Torn(_) => lost.line(line_no, scan::NEWLINE),
            Line::Whole(line) => match row(line) {
                Ok(row) => rows.push(row),
                Err(what) => lost.line(line_no, what),
            },
        }
    }
    lost
}

/// Parses `/sys/block/*/stat`: the counters alone, on one line.
///
/// # Errors
/// Not a whole line of counters.
pub fn parse_stat(bytes: &[u8]) -> Result<Counters, ParseError> {
    match scan::lines(bytes).next() {
        Some((_, Line::Whole(line))) => counters(scan::fields(line)).map_err(|what| ParseError { line_no: 1, what }),
        _ => Err(ParseError { line_no: 1, what: scan::NEWLINE }),
    }
}

fn row(line: &[u8]) -> Result<Row, &'static str> {
    let mut fields = scan::fields(line);
    let mut dev_part = || fields.next().and_then(scan::number).and_then(|n| u32::try_from(n).ok());
    let (Some(major), Some(minor)) = (dev_part(), dev_part()) else {
        return Err("a device's major and minor number");
    };
    let name = fields.next().and_then(DevName::new).ok_or("a device's name of at most 31 bytes")?;
    Ok(Row { dev: DevNum { major, minor }, name, counters: counters(fields)? })
}

fn counters<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Result<Counters, &'static str> {
    let mut numbers = [0_u64; 17];
    let mut found = 0;
    let mut slots = numbers.iter_mut();
    // Columns past the seventeenth are of kernels to come.
    for (field, slot) in fields.zip(&mut slots) {
        *slot = scan::number(field).ok_or("a counter without sign, of at most 64 bits")?;
        found += 1;
    }
    if !matches!(found, 11 | 15 | 17) {
        return Err(COUNTERS);
    }
    let [r_ios, r_mrg, r_sec, r_ms, w_ios, w_mrg, w_sec, w_ms, in_flight, busy, weighted, rest @ ..] = numbers;
    let [d_ios, d_mrg, d_sec, d_ms, f_ios, f_ms] = rest;
    let direction =
        |ios, merges, sectors, ticks| Direction { ios, merges, sectors: Sectors(sectors), ticks_ms: Millis(ticks) };
    Ok(Counters {
        read: direction(r_ios, r_mrg, r_sec, r_ms),
        write: direction(w_ios, w_mrg, w_sec, w_ms),
        in_flight,
        busy_ms: Millis(busy),
        weighted_ms: Millis(weighted),
        discard: (found >= 15).then(|| direction(d_ios, d_mrg, d_sec, d_ms)),
        flush: (found >= 17).then_some(Flushes { ios: f_ios, ticks_ms: Millis(f_ms) }),
    })
}

/// The rows as the kernel prints them.
///
/// A row with flushes and no discards has no form in the kernel; it is printed with discards of zero.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    rows.iter()
        .map(|row| {
            let DevNum { major, minor } = row.dev;
            format!("{major:4} {minor:7} {} {}\n", row.name.as_str(), render_counters(&row.counters))
        })
        .collect()
}

/// One device's counters as `/sys/block/*/stat` prints them.
#[must_use]
pub fn render_stat(counters: &Counters) -> String {
    render_counters(counters) + "\n"
}

fn render_counters(c: &Counters) -> String {
    let direction = |d: Direction| format!("{} {} {} {}", d.ios, d.merges, d.sectors.0, d.ticks_ms.0);
    let mut out =
        format!("{} {} {} {} {}", direction(c.read), direction(c.write), c.in_flight, c.busy_ms.0, c.weighted_ms.0);
    if let Some(discard) = c.discard.or(c.flush.map(|_| Direction::default())) {
        out += &format!(" {}", direction(discard));
    }
    if let Some(flush) = c.flush {
        out += &format!(" {} {}", flush.ios, flush.ticks_ms.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const V6_1: &[u8] = b" 253       0 vda 14 0 100 36 712 705 43992 3793 0 2936 5243 0 0 0 0 462 1414\n";

    #[test]
    fn a_line_of_20_columns_gives_every_counter() {
        let parsed = parse(V6_1);
        assert!(parsed.lost.is_none());
        let [row] = &parsed.value[..] else { panic!("{parsed:?}") };
        assert_eq!((row.dev.major, row.name.as_str()), (253, "vda"));
        assert_eq!(row.counters.write.sectors, Sectors(43992));
        assert_eq!(row.counters.weighted_ms, Millis(5243));
        assert_eq!(row.counters.flush, Some(Flushes { ios: 462, ticks_ms: Millis(1414) }));
    }

    #[test]
    fn older_kernels_have_no_discards_or_flushes() {
        let v4 = parse(b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n").value;
        assert_eq!((v4[0].counters.discard, v4[0].counters.flush), (None, None));
        let v4_18 = parse(b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n").value;
        assert!(v4_18[0].counters.discard.is_some() && v4_18[0].counters.flush.is_none());
    }

    #[test]
    fn a_bad_line_costs_that_line_alone() {
        let text = [V6_1, b"8 0 sda 1 2 -3\n", b"8 16 sdb 1 2 3 4 5 6 7 8 9 10 11 12\n", V6_1, b"8 0 sdc 1 2"].concat();
        let parsed = parse(&text);
        assert_eq!(parsed.value.len(), 2);
        assert_eq!(parsed.lost.lines, 3);
        assert_eq!(parsed.lost.first.unwrap().line_no, 2);
    }

    #[test]
    fn columns_of_kernels_to_come_are_skipped() {
        let parsed = parse(b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n");
        assert_eq!(parsed.value[0].counters.flush, Some(Flushes { ios: 16, ticks_ms: Millis(17) }));
    }

    #[test]
    fn render_is_the_inverse() {
        let rows = parse(V6_1).value;
        assert_eq!(parse(render(&rows).as_bytes()).value, rows);
    }
}
