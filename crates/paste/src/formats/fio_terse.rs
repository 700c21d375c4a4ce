//! fio's terse line, versions 3 to 5: fields at fixed places behind `3;fio-3.32;`, and the disks' at the end.
//!
//! The places are those of fio's `show_thread_status_terse_v3` and its successors: 4 adds trims, 5 more of bandwidth and
//! IOPS to each direction, all of it behind what is read here or of one length.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::decimal;
use crate::pasted::{Benchmark, Pasted};
use crate::table::Direction;

pub(crate) const FORMAT: Format = Format { name: "fio terse", open };

/// Fields of one direction in version 3, and in 5.
const FIELDS_V3: usize = 41;
const FIELDS_V5: usize = 47;

/// Percentiles of one direction.
const PERCENTILES: usize = 20;

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let benchmark = parse(line.text.trim())?;
    Some(Box::new(Terse(benchmark)))
}

struct Terse(Benchmark);

impl Open for Terse {
    fn take(&mut self, _: &Line) -> bool {
        false
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.benchmarks.push(self.0);
    }
}

fn parse(text: &str) -> Option<Benchmark> {
    let fields: Vec<&str> = text.split(';').collect();
    let version: u32 = fields.first()?.parse().ok().filter(|version| (3..=5).contains(version))?;
    fields.get(1).filter(|program| program.starts_with("fio"))?;
    let length = if version >= 5 { FIELDS_V5 } else { FIELDS_V3 };
    const READ_AT: usize = 5;
    let read = part(fields.get(READ_AT..)?, length)?;
    let write = part(fields.get(READ_AT + length..)?, length)?;
    let (device, util_pct) = disk(&fields).unzip();
    let more = if write.flow.ios_per_sec > read.flow.ios_per_sec { &write } else { &read };
    Some(Benchmark {
        name: (*fields.get(2)?).to_owned(),
        device: device.map(ToOwned::to_owned),
        in_flight_max: depth_one(&fields),
        seconds: more.seconds,
        read: read.flow,
        write: write.flow,
        percentiles_usec: more.percentiles_usec.clone(),
        util_pct,
        ..Benchmark::default()
    })
}

/// One direction of a job.
#[derive(Default)]
struct Part {
    flow: Direction,
    percentiles_usec: Vec<(f64, f64)>,
    seconds: Option<f64>,
}

/// One direction's fields: KiB, KiB per second, IOPS, milliseconds, three latencies of four fields with the percentiles
/// behind the second, and bandwidth.
fn part(fields: &[&str], length: usize) -> Option<Part> {
    let fields = fields.get(..length)?;
    let number = |at: usize| fields.get(at).and_then(|field| decimal(field.trim_end_matches('%')));
    let ios_per_sec = number(2)?;
    if ios_per_sec <= 0.0 {
        return Some(Part::default());
    }
    const PERCENTILES_AT: usize = 12;
    let bytes_per_sec = number(1).map(|kib| kib * 1024.0);
    let percentile = |field: &&str| {
        let (percent, usec) = field.split_once("%=")?;
        Some((decimal(percent)?, decimal(usec)?)).filter(|(percent, _)| *percent > 0.0)
    };
    let percentiles_usec = fields.iter().skip(PERCENTILES_AT).take(PERCENTILES).filter_map(percentile).collect();
    // The mean of submission and completion together stands behind the percentiles.
    let await_usec = number(PERCENTILES_AT + PERCENTILES + 2);
    let size_bytes = bytes_per_sec.map(|bytes| bytes / ios_per_sec);
    let flow =
        Direction { ios_per_sec: Some(ios_per_sec), bytes_per_sec, merges_per_sec: None, await_usec, size_bytes };
    Some(Part { flow, percentiles_usec, seconds: number(3).map(|ms| ms / 1000.0) })
}

/// The first disk behind the fixed fields: a name, seven counters, its share of busy time.
fn disk<'a>(fields: &[&'a str]) -> Option<(&'a str, f64)> {
    const OF_DISK: usize = 9;
    let is_disk = |window: &&[&str]| {
        window.first().is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
            && window.iter().skip(1).take(7).all(|field| field.bytes().all(|b| b.is_ascii_digit()) && !field.is_empty())
    };
    let disk = fields.windows(OF_DISK).skip(5).find(is_disk)?;
    Some((disk.first()?, decimal(disk.last()?.trim().trim_end_matches('%'))?))
}

/// One request in flight, where fio's shares of depths say that there never were two.
fn depth_one(fields: &[&str]) -> Option<f64> {
    // The seven depths follow the five numbers about the processor: the first fields with a `%` and one decimal.
    let is_share =
        |field: &str| field.strip_suffix('%').is_some_and(|n| n.split('.').nth(1).is_some_and(|d| d.len() == 1));
    let first = fields.windows(7).find(|window| window.iter().all(|field| is_share(field)))?.first()?;
    (decimal(first.trim_end_matches('%'))? >= 99.0).then_some(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that fio 3.33 printed, its percentiles cut.
    fn line() -> String {
        let percentiles = |p99: &str| format!("{}99.000000%={p99};{}", "0%=0;".repeat(16), "0%=0;".repeat(3));
        format!(
            "3;fio-3.33;x;0;0;968;29333;7333;33;51;5087;121.3;387.3;11;5217;202.5;554.3;{}77;5285;323.9;671.3;0;0;0.0%;0.0;0.0;\
             1080;32727;8181;33;2;73;6.1;5.6;1;5248;179.3;390.4;{}7;5251;185.4;390.4;0;0;0.0%;0.0;0.0;\
             15.6%;15.6%;244;0;13;100.0%;0.0%;0.0%;0.0%;0.0%;0.0%;0.0%;0.20%;vda;1;2;0;0;7;8;15;93.61%",
            percentiles("3457"),
            percentiles("929")
        )
    }

    #[test]
    fn both_directions_and_the_disk_are_read() {
        let job = parse(&line()).unwrap();
        assert_eq!((job.read.ios_per_sec, job.write.ios_per_sec), (Some(7333.0), Some(8181.0)));
        assert_eq!((job.read.await_usec, job.write.await_usec), (Some(323.9), Some(185.4)));
        assert_eq!((job.device.as_deref(), job.util_pct, job.in_flight_max), (Some("vda"), Some(93.61), Some(1.0)));
        assert_eq!(job.percentiles_usec.last(), Some(&(99.0, 929.0)));
        assert!(parse("3;not fio;x").is_none() && parse(&line()[..60]).is_none());
    }
}
