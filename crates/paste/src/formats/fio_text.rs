//! fio's report for people.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::{bytes, decimal};
use crate::pasted::{Benchmark, Pasted};
use crate::table::Direction;

pub(crate) const FORMAT: Format = Format { name: "fio", open };

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut report = Report::default();
    let starts = job_line(line.text).is_some() || line.text.contains("(groupid=") || flow_line(line.text).is_some();
    (starts && report.take(line)).then(|| -> Box<dyn Open> { Box::new(report) })
}

/// Whose latencies follow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Of {
    #[default]
    Nothing,
    Read,
    Write,
    Sync,
}

#[derive(Default)]
struct Report {
    jobs: Vec<Benchmark>,
    /// What the lines at the top say of each job: name, pattern, requests in flight.
    asked: Vec<(String, String, Option<f64>)>,
    of: Of,
    /// Microseconds of a unit in the percentiles that follow.
    percentile_usec: Option<f64>,
}

/// The words that lines of a report start with, beside those that are read.
const OTHERS: [&str; 16] = [
    "...",
    "bw",
    "cpu",
    "IO depths",
    "submit",
    "complete",
    "issued",
    "latency",
    "READ:",
    "WRITE:",
    "Run status",
    "Starting",
    "Jobs:",
    "iops",
    "fio-",
    "lat (",
];

impl Open for Report {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if text.is_empty() {
            return true;
        }
        if let Some(asked) = job_line(text) {
            self.asked.push(asked);
            return true;
        }
        if let Some((name, rest)) = text.split_once(": (groupid=") {
            let jobs = rest.split_once("jobs=").and_then(|(_, rest)| decimal(rest.split(')').next()?.trim()));
            let asked = self.asked.iter().find(|asked| asked.0 == name);
            let (pattern, depth) = asked.map(|asked| (asked.1.clone(), asked.2)).unwrap_or_default();
            let in_flight_max = depth.map(|depth| depth * jobs.unwrap_or(1.0));
            self.jobs.push(Benchmark { name: name.to_owned(), pattern, in_flight_max, ..Benchmark::default() });
            return true;
        }
        if let Some((of, flow, seconds)) = flow_line(text) {
            if self.jobs.is_empty() {
                self.jobs.push(Benchmark::default());
            }
            self.of = of;
            if let Some(job) = self.jobs.last_mut() {
                *(if of == Of::Read { &mut job.read } else { &mut job.write }) = flow;
                job.seconds = seconds.or(job.seconds);
            }
            return true;
        }
        self.latency(text)
            || self.disk(text)
            || OTHERS.iter().any(|word| text.starts_with(word))
            || text.contains("Laying out IO file")
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.benchmarks.extend(self.jobs);
    }
}

impl Report {
    /// `lat (usec): min=…, avg=…`, `sync percentiles (msec):` and what stands below.
    fn latency(&mut self, text: &str) -> bool {
        if text.starts_with("fsync/fdatasync") {
            self.of = Of::Sync;
            return true;
        }
        let of = self.of;
        let Some(job) = self.jobs.last_mut() else { return false };
        if let Some(values) = text.strip_prefix('|') {
            let Some(unit) = self.percentile_usec else { return true };
            let percentiles = if of == Of::Sync { &mut job.sync_percentiles_usec } else { &mut job.percentiles_usec };
            for (percent, value) in values.split("],").filter_map(|one| one.split_once("th=[")) {
                let value = decimal(value.trim_matches([' ', ']']));
                percentiles.extend(decimal(percent.trim()).zip(value.map(|value| value * unit)));
            }
            return true;
        }
        if text.contains("percentiles (") {
            self.percentile_usec = unit_usec(text);
            let percentiles = if of == Of::Sync { &mut job.sync_percentiles_usec } else { &mut job.percentiles_usec };
            percentiles.clear();
            return true;
        }
        let Some((kind, rest)) = text.split_once(" (").filter(|(_, rest)| rest.contains("avg=")) else { return false };
        let mean = rest.split_once("avg=").and_then(|(_, rest)| decimal(rest.split(',').next()?.trim()));
        let mean_usec = mean.zip(unit_usec(text)).map(|(mean, unit)| mean * unit);
        match (kind.trim(), of) {
            ("lat" | "clat", Of::Read) => job.read.await_usec = mean_usec,
            ("lat" | "clat", Of::Write) => job.write.await_usec = mean_usec,
            ("sync", Of::Sync) => {
                job.sync.await_usec = mean_usec;
                // The report does not count syncs; `fio` prints their latency only where it made some.
                job.writes_per_sync = job.writes_per_sync.or(Some(1.0));
                job.sync.ios_per_sec = job.write.ios_per_sec;
            }
            ("slat", _) => {}
            _ => return false,
        }
        true
    }

    /// `Disk stats (read/write):` and the line of each disk: `vda: ios=18/1791, …, util=21.73%`.
    fn disk(&mut self, text: &str) -> bool {
        if text.starts_with("Disk stats") {
            return true;
        }
        let Some((name, rest)) = text.split_once(": ios=") else { return false };
        let util = rest.split_once("util=").and_then(|(_, util)| decimal(util.trim_end_matches('%').trim()));
        for job in self.jobs.iter_mut().filter(|job| job.device.is_none()) {
            job.device = Some(name.trim().to_owned());
            job.util_pct = util;
        }
        true
    }
}

/// `x: (g=0): rw=randwrite, bs=…, ioengine=psync, iodepth=1`: name, pattern, what one job keeps in flight.
fn job_line(text: &str) -> Option<(String, String, Option<f64>)> {
    let (name, options) = text.split_once(": (g=")?;
    let of = |key: &str| {
        let (_, rest) = options.split_once(key)?;
        rest.split([',', ' ']).next().map(str::trim)
    };
    let engine = of("ioengine=").unwrap_or_default();
    let blocks = matches!(engine, "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap");
    let depth = if blocks { Some(1.0) } else { of("iodepth=").and_then(decimal) };
    Some((name.trim().to_owned(), of("rw=")?.to_owned(), depth))
}

/// `write: IOPS=463, BW=1853KiB/s (1898kB/s)(2048KiB/1105msec)`, or of fio 2 `read : io=…, bw=190624KB/s, iops=47656,
/// runt= 60014msec`.
fn flow_line(text: &str) -> Option<(Of, Direction, Option<f64>)> {
    let (kind, rest) = text.trim().split_once(':')?;
    let of = match kind.trim() {
        "read" => Of::Read,
        "write" => Of::Write,
        _ => return None,
    };
    let word = |key: &str| {
        let (_, tail) = rest.split_once(key)?;
        tail.trim_start().split([',', ' ', '(']).next()
    };
    let (iops, rate) = match word("IOPS=") {
        Some(iops) => (iops, word("BW=")),
        None => (word("iops=")?, word("bw=")),
    };
    // `47.7k` counts in thousands.
    let ios_per_sec = decimal(iops).or_else(|| Some(decimal(iops.strip_suffix('k')?)? * 1000.0))?;
    // fio 2 wrote KB and meant KiB.
    let bytes_per_sec = rate.and_then(|rate| bytes(&rate.replace("KB/s", "KiB/s")));
    let ms = rest.rsplit_once("msec").and_then(|(before, _)| {
        let start = before.rfind(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(0, |at| at + 1);
        decimal(before.get(start..)?)
    });
    let size_bytes = bytes_per_sec.map(|rate| rate / ios_per_sec).filter(|_| ios_per_sec > 0.0);
    let ios = (ios_per_sec > 0.0).then_some(ios_per_sec);
    let flow = Direction { ios_per_sec: ios, bytes_per_sec, merges_per_sec: None, await_usec: None, size_bytes };
    Some((of, flow, ms.map(|ms| ms / 1000.0)))
}

/// Microseconds of the unit in parentheses.
fn unit_usec(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once('(')?;
    match rest.split(')').next()? {
        "nsec" => Some(1e-3),
        "usec" => Some(1.0),
        "msec" => Some(1e3),
        "sec" => Some(1e6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    /// Of fio 3.33, cut.
    const REPORT: &str = "x: (g=0): rw=randwrite, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=psync, iodepth=1
fio-3.33
Starting 1 process

x: (groupid=0, jobs=1): err= 0: pid=20912: Tue Dec  1 03:05:40 2026
  write: IOPS=463, BW=1853KiB/s (1898kB/s)(2048KiB/1105msec); 0 zone resets
    clat (usec): min=6, max=2357, avg=39.25, stdev=144.88
     lat (usec): min=7, max=2358, avg=40.64, stdev=144.89
    clat percentiles (usec):
     |  1.00th=[    9],  5.00th=[   11], 99.00th=[  371]
  lat (usec)   : 10=3.71%, 20=41.99%
  fsync/fdatasync/sync_file_range:
    sync (msec): min=1, max=26, avg=2.10, stdev=2.42
    sync percentiles (usec):
     | 99.00th=[10814], 99.50th=[19006]
  cpu          : usr=0.36%, sys=7.97%, ctx=2083, majf=0, minf=13
     issued rwts: total=0,512,0,0 short=511,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
  WRITE: bw=1853KiB/s (1898kB/s), 1853KiB/s-1853KiB/s (1898kB/s-1898kB/s), io=2048KiB (2097kB), run=1105-1105msec

Disk stats (read/write):
  vda: ios=18/1791, merge=0/0, ticks=4/344, in_queue=530, util=21.73%
";

    #[test]
    fn a_report_gives_rates_latencies_syncs_and_the_disk() {
        let pasted = read(REPORT);
        let [job] = pasted.benchmarks.as_slice() else { panic!("{pasted:?}") };
        assert_eq!((job.pattern.as_str(), job.in_flight_max, job.seconds), ("randwrite", Some(1.0), Some(1.105)));
        assert_eq!((job.write.ios_per_sec, job.write.await_usec), (Some(463.0), Some(40.64)));
        assert_eq!((job.sync.await_usec, job.writes_per_sync), (Some(2100.0), Some(1.0)));
        assert_eq!(job.sync_percentiles_usec, [(99.0, 10_814.0), (99.5, 19_006.0)]);
        assert_eq!((job.device.as_deref(), job.util_pct, pasted.unread.lines), (Some("vda"), Some(21.73), 0));
    }

    #[test]
    fn the_line_of_version_2_is_read_too() {
        let pasted = read("  read : io=11172MB, bw=190624KB/s, iops=47656, runt= 60014msec\n");
        let read = pasted.benchmarks[0].read;
        assert_eq!((read.ios_per_sec, read.bytes_per_sec), (Some(47_656.0), Some(190_624.0 * 1024.0)));
    }
}
