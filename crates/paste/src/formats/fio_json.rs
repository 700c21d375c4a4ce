//! `fio --output-format=json`: jobs with their options, latencies and percentiles, and what the disks did.

use serde_json::{Map, Value};

use crate::json::number;
use crate::number::bytes;
use crate::pasted::{Benchmark, Pasted};
use crate::table::Direction;

type Object = Map<String, Value>;

/// Takes a document of fio's.
pub(super) fn take(value: &Value, pasted: &mut Pasted) -> bool {
    let Some(jobs) = value.get("jobs").and_then(Value::as_array) else { return false };
    let of_fio =
        |job: &&Value| job.get("jobname").is_some() && (job.get("read").is_some() || job.get("write").is_some());
    let empty = Object::new();
    let global = value.get("global options").and_then(Value::as_object).unwrap_or(&empty);
    let disks: Vec<&Object> =
        value.get("disk_util").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).collect();
    let before = pasted.benchmarks.len();
    for job in jobs.iter().filter(of_fio).filter_map(Value::as_object) {
        pasted.benchmarks.push(benchmark(job, global, &disks));
    }
    pasted.benchmarks.len() > before
}

fn benchmark(job: &Object, global: &Object, disks: &[&Object]) -> Benchmark {
    let own = job.get("job options").and_then(Value::as_object);
    let option = |key: &str| own.and_then(|own| own.get(key)).or_else(|| global.get(key));
    let text = |key: &str| option(key).and_then(Value::as_str).unwrap_or_default();
    let count = |key: &str| option(key).and_then(number);
    let read = part(job, "read");
    let write = part(job, "write");
    let disk = disks.iter().find(|disk| disk.get("name").and_then(Value::as_str) == node(text("filename")));
    let disk = disk.or(disks.first());
    let more = if write.flow.ios_per_sec > read.flow.ios_per_sec { &write } else { &read };
    // Engines that block keep one request each, whatever depth is asked of them.
    let blocks = matches!(text("ioengine"), "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap");
    let depth = if blocks { Some(1.0) } else { count("iodepth") };
    let jobs = if option("group_reporting").is_some() { count("numjobs").unwrap_or(1.0) } else { 1.0 };
    let sync = job.get("sync").and_then(Value::as_object);
    let runtime = [read.seconds, write.seconds].into_iter().flatten().reduce(f64::max);
    Benchmark {
        name: job.get("jobname").and_then(Value::as_str).unwrap_or_default().to_owned(),
        device: disk.and_then(|disk| disk.get("name")?.as_str()).or(node(text("filename"))).map(ToOwned::to_owned),
        pattern: text("rw").to_owned(),
        in_flight_max: depth.map(|depth| depth * jobs),
        writes_per_sync: count("fdatasync").or_else(|| count("fsync")).filter(|writes| *writes > 0.0),
        seconds: runtime,
        read: read.flow,
        write: write.flow,
        sync: sync.map(|sync| sync_flow(sync, runtime)).unwrap_or_default(),
        percentiles_usec: more.percentiles_usec.clone(),
        sync_percentiles_usec: sync.map(|sync| latency(sync, &["lat_ns"]).1).unwrap_or_default(),
        util_pct: disk.and_then(|disk| disk.get("util").and_then(number)),
    }
}

/// The device in `/dev/sdb`.
fn node(filename: &str) -> Option<&str> {
    filename.strip_prefix("/dev/").map(|name| name.split(':').next().unwrap_or(name)).filter(|name| !name.contains('/'))
}

/// One direction of a job.
#[derive(Default)]
struct Part {
    flow: Direction,
    percentiles_usec: Vec<(f64, f64)>,
    seconds: Option<f64>,
}

fn part(job: &Object, name: &str) -> Part {
    let Some(part) = job.get(name).and_then(Value::as_object) else { return Part::default() };
    let of = |key: &str| part.get(key).and_then(number);
    let Some(ios_per_sec) = of("iops").filter(|iops| *iops > 0.0) else { return Part::default() };
    // `bw` is in KiB per second; very old versions print it with its unit.
    let rate = of("bw_bytes").or_else(|| of("bw").map(|kib| kib * 1024.0)).or_else(|| bytes(part.get("bw")?.as_str()?));
    let seconds = of("runtime").map(|ms| ms / 1000.0);
    // Where fio does not tell how long it ran, the requests over their rate do.
    let total = of("total_ios").or_else(|| Some(of("io_bytes")? / (rate? / ios_per_sec)));
    let (await_usec, _) = latency(part, &["lat_ns", "lat", "clat_ns", "clat"]);
    let (_, percentiles_usec) = latency(part, &["clat_ns", "clat"]);
    Part {
        flow: Direction {
            ios_per_sec: Some(ios_per_sec),
            bytes_per_sec: rate,
            merges_per_sec: None,
            await_usec,
            size_bytes: rate.map(|rate| rate / ios_per_sec),
        },
        percentiles_usec,
        seconds: seconds.or_else(|| total.map(|total| total / ios_per_sec)),
    }
}

fn sync_flow(sync: &Object, seconds: Option<f64>) -> Direction {
    let total = sync.get("total_ios").and_then(number).filter(|total| *total > 0.0);
    let ios_per_sec = total.zip(seconds).map(|(total, seconds)| total / seconds);
    Direction {
        ios_per_sec,
        await_usec: latency(sync, &["lat_ns"]).0.filter(|usec| *usec > 0.0),
        ..Direction::default()
    }
}

/// The mean and the percentiles of the first latency that is told, in microseconds: `clat_ns`, or `clat` before 3.0,
/// which is in microseconds.
fn latency(part: &Object, keys: &[&str]) -> (Option<f64>, Vec<(f64, f64)>) {
    let found = keys.iter().find_map(|key| Some((*key, part.get(*key)?.as_object()?)));
    let Some((key, latency)) = found else { return (None, Vec::new()) };
    let scale = if key.ends_with("_ns") { 1e-3 } else { 1.0 };
    let mut percentiles: Vec<(f64, f64)> = latency
        .get("percentile")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(percent, value)| Some((percent.parse().ok()?, number(value)? * scale)))
        .filter(|(percent, _)| *percent > 0.0)
        .collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    (latency.get("mean").and_then(number).map(|mean| mean * scale), percentiles)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    #[test]
    fn a_job_gives_rates_latencies_and_what_it_keeps_in_flight() {
        let text = r#"fio: some note
{
  "fio version" : "fio-3.33",
  "global options" : { "iodepth" : "8", "ioengine" : "libaio", "group_reporting" : "1" },
  "jobs" : [
    {
      "jobname" : "db", "job options" : { "rw" : "randwrite", "numjobs" : "4", "fdatasync" : "1" },
      "read" : { "iops" : 0.0, "runtime" : 0 },
      "write" : { "iops" : 500.0, "bw" : 2000, "runtime" : 2000, "total_ios" : 1000,
        "lat_ns" : { "mean" : 2000000.0 }, "clat_ns" : { "mean" : 1.0, "percentile" : { "99.000000" : 5000000, "0.00" : 0 } } },
      "sync" : { "total_ios" : 1000, "lat_ns" : { "mean" : 1500000.0 } }
    }
  ],
  "disk_util" : [ { "name" : "vda", "util" : 90.5 } ]
}
"#;
        let pasted = read(text);
        let [job] = pasted.benchmarks.as_slice() else { panic!("{pasted:?}") };
        assert_eq!((job.device.as_deref(), job.util_pct, job.in_flight_max), (Some("vda"), Some(90.5), Some(32.0)));
        assert_eq!((job.write.await_usec, job.write.size_bytes), (Some(2000.0), Some(4096.0)));
        assert_eq!(
            (job.sync.ios_per_sec, job.sync.await_usec, job.writes_per_sync),
            (Some(500.0), Some(1500.0), Some(1.0))
        );
        assert_eq!((job.percentiles_usec.as_slice(), job.read.ios_per_sec), (&[(99.0, 5000.0)][..], None));
        assert_eq!(pasted.unread.lines, 1);
    }

    #[test]
    fn a_document_of_nobodys_is_not_read() {
        let pasted = read("{\n  \"colour\": \"red\"\n}\n");
        assert_eq!((pasted.benchmarks.len(), pasted.unread.lines), (0, 3));
    }
}
