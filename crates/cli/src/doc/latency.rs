//! `quell.latency/1`: where the time of each workload's requests went, a row a device, workload, operation and stage.

use std::collections::{BTreeMap, HashMap};

use quell_engine::identity::{KERNEL, identify, workload_of};
use quell_engine::rates::{BucketEdge, Latency, StageTimes};
use quell_engine::snapshot::{Operation, Snapshot, Stage, Trace};
use quell_units::{CgroupId, CgroupPath, DevNum};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Gap, Host};

/// One report of `quell latency`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell latency")]
pub struct Document {
    /// `quell.latency/1`.
    #[schemars(extend("const" = "quell.latency/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// When it was, in microseconds since 1970.
    pub unix_usec: Option<u64>,
    /// The time over which it was measured.
    pub observed_seconds: Option<f64>,
    /// One for each device, workload, operation and stage in which time was spent.
    pub rows: Vec<Row>,
    /// What could not be counted in its place, since tracing began.
    pub losses: Losses,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
}

/// One stage of what a workload did on a device by one operation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The device's name.
    pub device: String,
    /// The workload's cgroup; null for the flushes that the kernel sends to a disk for whoever asked, and for a cgroup that
    /// is gone.
    pub cgroup: Option<String>,
    /// The inode of the cgroup's directory; null for the disk itself.
    pub cgroup_id: Option<u64>,
    /// The workload's name, as `quell doctor` takes it.
    pub name: String,
    /// `read`, `write` (write-back), `sync write`, `flush` or `discard`.
    pub op: &'static str,
    /// `throttle`, `qos`, `tag`, `queue`, `device`, `flush`, `other`, `total`; `qos+tag` where they cannot be told apart.
    pub stage: &'static str,
    /// Requests that ended, as `/proc/diskstats` counts them, in whatever stage they spent their time.
    pub requests: u64,
    /// Bios that ended with them, as `io.stat` counts them: one or more a request; null where the device alone is traced.
    pub bios: Option<u64>,
    /// Time of all bios, each with its request's; of all requests where the device alone is traced.
    pub sum_usec: f64,
    /// The longest since tracing began; null for `other`.
    pub max_usec: Option<f64>,
    /// How many spent how much: upper edge in microseconds (null for no bound) and count, empty ones left out. What
    /// spent no time here is in none.
    pub buckets: Vec<(f64, u64)>,
    /// How many times there are, those of no length included.
    #[serde(skip)]
    pub ios: u64,
    /// The stage's times, for the page.
    #[serde(skip)]
    pub times: Option<StageTimes>,
    /// The device's number.
    #[serde(skip)]
    pub dev: DevNum,
}

/// What could not be counted in its place.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Losses {
    /// Bios for which there was no room: their requests are counted, with less of their time.
    pub bios: u64,
    /// Requests for which there was no room.
    pub requests: u64,
    /// The time of those.
    pub requests_usec: f64,
    /// Requests that ended without their times: they were under way when tracing began.
    pub unmatched: u64,
}

/// A device, a workload (its cgroup's id and path where they are known) and an operation.
type Key = (DevNum, Option<(Option<CgroupPath>, CgroupId)>, Operation);

impl Document {
    /// The report on what was traced between two readings; only on what lies within `target` and on `device`, where they
    /// are given, and on one stage.
    ///
    /// # Errors
    /// The readings are of two traces.
    pub fn of(
        snapshot: &Snapshot,
        seconds: Option<f64>,
        (was, now): (&Trace, &Trace),
        wanted: &dyn Fn(DevNum, Option<&CgroupPath>) -> bool,
        stage: Option<Stage>,
    ) -> Result<Self, quell_units::Gap> {
        let paths: HashMap<CgroupId, &CgroupPath> =
            snapshot.cgroups.iter().map(|cgroup| (cgroup.id, &cgroup.path)).collect();
        let mut sums: BTreeMap<Key, Latency> = BTreeMap::new();
        for latency in Latency::between(was, now)? {
            let path = latency.key.cgroup.and_then(|id| paths.get(&id)).map(|path| workload_of(path, snapshot));
            if !wanted(latency.key.dev, path.as_ref()) {
                continue;
            }
            let id = |id| path.as_ref().and_then(|path| snapshot.cgroup(path)).map_or(id, |cgroup| cgroup.id);
            let whose = latency.key.cgroup.map(|one| (path.clone(), id(one)));
            let key = (latency.key.dev, whose, latency.key.operation);
            sums.entry(key).and_modify(|sum| sum.add(&latency)).or_insert(latency);
        }
        let shown = |one: Stage| stage.is_none_or(|stage| stage == one);
        let rows = sums.iter().flat_map(|(key, latency)| rows(key, latency, now, snapshot, &shown)).collect();
        let gap = |what: &str, reason: String| Gap { what: what.to_owned(), reason };
        let mut gaps: Vec<Gap> =
            now.missing.iter().map(|missing| gap(&missing.what, missing.reason.to_string())).collect();
        if now.losses.bios > 0 || now.losses.requests > 0 {
            let losses = now.losses;
            let text = format!("no room for {} bios and {} requests", losses.bios, losses.requests);
            gaps.push(gap("some of the time", text));
        }
        Ok(Self {
            schema: "quell.latency/1",
            host: Host::of(&snapshot.host),
            unix_usec: snapshot.clock.wall.map(|wall| wall.0),
            observed_seconds: seconds,
            rows,
            losses: Losses {
                bios: now.losses.bios,
                requests: now.losses.requests,
                requests_usec: now.losses.requests_nsec.usec(),
                unmatched: now.losses.unmatched,
            },
            gaps,
        })
    }
}

fn rows(
    (dev, whose, operation): &Key,
    latency: &Latency,
    trace: &Trace,
    snapshot: &Snapshot,
    shown: &dyn Fn(Stage) -> bool,
) -> Vec<Row> {
    let device = snapshot.device(*dev).map_or_else(|| dev.to_string(), |device| device.name.to_string());
    let path = whose.as_ref().and_then(|(path, _)| path.as_ref());
    let name = match (whose, path) {
        (None, _) => format!("{device} itself"),
        (_, Some(path)) if path.is_root() => KERNEL.into(),
        (_, Some(path)) => identify(path, snapshot).1,
        (Some((_, id)), None) => format!("cgroup {} (gone)", id.0),
    };
    let row = |stage: &'static str, sum_usec: f64, times: Option<&StageTimes>| Row {
        device: device.clone(),
        cgroup: path.map(CgroupPath::to_string),
        cgroup_id: whose.as_ref().map(|(_, id)| id.0),
        name: name.clone(),
        op: operation.as_str(),
        stage,
        requests: latency.counts.requests,
        bios: Some(latency.counts.bios).filter(|bios| *bios > 0),
        ios: latency.ios(),
        sum_usec,
        max_usec: times.map(|times| times.max_usec),
        buckets: times.map(buckets).unwrap_or_default(),
        times: times.cloned(),
        dev: *dev,
    };
    let word = |stage: Stage| match stage {
        Stage::Tag if trace.unseen.contains(&Stage::Qos) => "qos+tag",
        stage => stage.as_str(),
    };
    let mut out = Vec::new();
    for stage in Stage::ALL {
        if stage == Stage::Total {
            // Less than a nanosecond each is the rounding of sums.
            let other = latency.other_usec().filter(|usec| usec * 1e3 > quell_units::count(latency.ios()));
            out.extend(other.filter(|_| shown(Stage::Total)).map(|usec| row("other", usec, None)));
        }
        let times = latency.stage(stage);
        if times.ios > 0 && shown(stage) {
            out.push(row(word(stage), times.sum_usec, Some(times)));
        }
    }
    out
}

fn buckets(times: &StageTimes) -> Vec<(f64, u64)> {
    let all = times.buckets.iter().enumerate();
    all.filter(|(_, n)| **n > 0).map(|(at, n)| (BucketEdge(at).usec(), *n)).collect()
}
