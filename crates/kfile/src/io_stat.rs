//! `io.stat` of cgroup v2: one line a device, `MAJ:MIN key=value ...`.

use quell_units::{Bytes, DevNum, Micros};
use serde::{Deserialize, Serialize};

use crate::scan;
use crate::{Lost, Parsed};

/// What one cgroup and its descendants did on one device, since the device's counters were made.
///
/// `ios` are bios before merging, so they can be more than the requests the disk counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The device.
    pub dev: DevNum,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Bytes discarded.
    pub discard_bytes: Bytes,
    /// Read bios.
    pub read_ios: u64,
    /// Write bios.
    pub write_ios: u64,
    /// Discard bios.
    pub discard_ios: u64,
    /// `cost.usage`: device time that iocost charged, in its model's microseconds. Only where iocost is enabled.
    pub cost_usage_usec: Option<Micros>,
    /// `cost.wait`: time held by iocost. Only with `blk_cgroup.blkcg_debug_stats=1`.
    pub cost_wait_usec: Option<Micros>,
    /// `cost.vrate`: iocost's present rate in hundredths of a percent of its model. Only in the root cgroup.
    pub cost_vrate_centipct: Option<u64>,
}

impl Row {
    /// A device that did no I/O: the kernel prints its number alone.
    #[must_use]
    pub const fn idle(dev: DevNum) -> Self {
        Self {
            dev,
            read_bytes: Bytes(0),
            write_bytes: Bytes(0),
            discard_bytes: Bytes(0),
            read_ios: 0,
            write_ios: 0,
            discard_ios: 0,
            cost_usage_usec: None,
            cost_wait_usec: None,
            cost_vrate_centipct: None,
        }
    }
}

/// Parses `io.stat`. See [`parse_into`].
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    let mut value = Vec::new();
    let lost = parse_into(bytes, &mut value);
    Parsed { value, lost }
}

/// Parses `io.stat` into `rows`, which is emptied first.
///
/// Unknown keys are skipped, because each kernel adds some (`cost.*`, `depth=max`). A bare `7:0` is a device that did
/// no I/O, not an error, and some kernels put it in front of the next device's line: `7:0 253:0 rbytes=...`. A line
/// with a value that is no number is lost as a whole, and the other devices are kept.
pub fn parse_into(bytes: &[u8], rows: &mut Vec<Row>) -> Lost {
    rows.clear();
    let mut lost = Lost::default();
    let (mut line_no, mut rest) = (0_u32, bytes);
    while !rest.is_empty() {
        line_no = line_no.saturating_add(1);
        let whole_until = rows.len();
        rest = match push_line(rest, rows) {
            Ok(behind) => behind,
            Err(what) => {
                rows.truncate(whole_until);
                let next = scan::split_once(rest, b'\n');
                lost.line(line_no, if next.is_some() { what } else { scan::NEWLINE });
                next.map_or(&[], |(_, behind)| behind)
            }
        };
    }
    lost
}

/// Adds the rows of the first line, and gives what is behind its newline. After an error some rows are there already.
///
/// In one pass over fields, keys and numbers, which takes half the time of splitting them first: every cgroup has six
/// counters for each disk.
fn push_line<'a>(bytes: &'a [u8], rows: &mut Vec<Row>) -> Result<&'a [u8], &'static str> {
    let mut rest = bytes;
    // The keys before a device's number have no row.
    let mut row: Option<&mut Row> = None;
    loop {
        rest = match rest {
            [] => return Err(scan::NEWLINE),
            [b'\n', behind @ ..] => return Ok(behind),
            [b' ' | b'\t', behind @ ..] => behind,
            _ => {
                if let Some(behind) = row.as_deref_mut().and_then(|row| set_counter(row, rest)) {
                    behind
                } else if let Some((dev, behind)) = scan::leading_device(rest).filter(|(_, behind)| is_end(behind)) {
                    rows.push(Row::idle(dev));
                    row = rows.last_mut();
                    behind
                } else {
                    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
                    let (field, behind) = rest.split_at(end.unwrap_or(rest.len()));
                    let (key, value) = scan::key_value(field).ok_or("MAJ:MIN or key=number")?;
                    let row = row.as_deref_mut().ok_or("MAJ:MIN before the first key")?;
                    set(row, key, value).ok_or("key=number")?;
                    behind
                }
            }
        };
    }
}

/// Whether a field ends in front of this.
fn is_end(rest: &[u8]) -> bool {
    matches!(rest, [] | [b' ' | b'\t' | b'\n', ..])
}

/// Sets one of the counters that nearly every line has, and gives what is behind it. `None` for all else.
fn set_counter<'a>(row: &mut Row, field: &'a [u8]) -> Option<&'a [u8]> {
    let (kind, key) = field.split_first()?;
    let (bytes, ios) = match kind {
        b'r' => (&mut row.read_bytes, &mut row.read_ios),
        b'w' => (&mut row.write_bytes, &mut row.write_ios),
        b'd' => (&mut row.discard_bytes, &mut row.discard_ios),
        _ => return None,
    };
    let (slot, number) = match key.strip_prefix(b"bytes=") {
        Some(number) => (&mut bytes.0, number),
        None => (ios, key.strip_prefix(b"ios=")?),
    };
    let (value, rest) = scan::leading_number(number)?;
    if !is_end(rest) {
        return None;
    }
    *slot = value;
    Some(rest)
}

/// Sets what [`set_counter`] did not: a rarer key, or one with a value that is no number. Others are skipped.
fn set(row: &mut Row, key: &[u8], value: &[u8]) -> Option<()> {
    match key {
        b"rbytes" | b"wbytes" | b"dbytes" | b"rios" | b"wios" | b"dios" => return None,
        b"cost.usage" => row.cost_usage_usec = Some(Micros(scan::number(value)?)),
        b"cost.wait" => row.cost_wait_usec = Some(Micros(scan::number(value)?)),
        b"cost.vrate" => row.cost_vrate_centipct = Some(scan::centi(value)?),
        _ => {}
    }
    Some(())
}

/// The rows as the kernel prints them.
#[must_use]
pub fn render(rows: &[Row]) -> String {
    rows.iter().map(render_row).collect()
}

fn render_row(row: &Row) -> String {
    if *row == Row::idle(row.dev) {
        return format!("{} \n", row.dev);
    }
    let mut out = format!(
        "{} rbytes={} wbytes={} rios={} wios={} dbytes={} dios={}",
        row.dev, row.read_bytes.0, row.write_bytes.0, row.read_ios, row.write_ios, row.discard_bytes.0, row.discard_ios
    );
    if let Some(vrate) = row.cost_vrate_centipct {
        out += &format!(" cost.vrate={}", scan::render_centi(vrate));
    }
    for (key, value) in [("usage", row.cost_usage_usec), ("wait", row.cost_wait_usec)] {
        if let Some(Micros(us)) = value {
            out += &format!(" cost.{key}={us}");
        }
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: DevNum = DevNum { major: 253, minor: 0 };

    #[test]
    fn a_root_line_under_iocost_gives_rate_and_usage() {
        let text = b"253:0 rbytes=107325440 wbytes=24576 rios=26204 wios=5 dbytes=0 dios=0 cost.vrate=129.47 cost.usage=12521948\n7:0 \n";
        let parsed = parse(text);
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value[0].cost_vrate_centipct, Some(12_947));
        assert_eq!(parsed.value[0].cost_usage_usec, Some(Micros(12_521_948)));
        assert_eq!(parsed.value[1], Row::idle(DevNum { major: 7, minor: 0 }));
    }

    #[test]
    fn a_bare_device_may_share_the_next_line() {
        let parsed = parse(b"7:0 7:1 253:0 rbytes=4096 rios=1\n");
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value.len(), 3);
        assert_eq!(parsed.value[2].read_bytes, Bytes(4096));
    }

    #[test]
    fn unknown_keys_are_skipped_and_depth_max_is_no_error() {
        let parsed = parse(b"253:0 use_delay=0 depth=max rbytes=1 some.new=thing\n");
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value, [Row { read_bytes: Bytes(1), ..Row::idle(DEV) }]);
    }

    #[test]
    fn a_torn_or_bad_line_keeps_the_other_devices() {
        let parsed = parse(b"(unknown) rbytes=1\n253:0 wbytes=5\n8:0 rbytes=x\n8:16 rbytes=12");
        assert_eq!(parsed.value, [Row { write_bytes: Bytes(5), ..Row::idle(DEV) }]);
        assert_eq!(parsed.lost.lines, 3);
    }
}
