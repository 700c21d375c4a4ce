//! What `quell latency` says of counters that are known: whose they are, what they add up to, how the page reads.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking, as tests do")]

use quell::doc::latency::{Document, Row};
use quell::render::latency::page;
use quell::screen::Screen;
use quell_engine::snapshot::{
    BUCKETS, Operation, Snapshot, Stage, StageCounters, Trace, TraceCounts, TraceGroup, TraceKey, TraceLosses,
};
use quell_host::{Depth, Machine};
use quell_units::{CgroupId, DevNum, Nanos};

/// A host with a disk and two tenants, and the time of ten writes: nine went through, one was held for a while.
fn host() -> (Snapshot, Trace) {
    let packed = format!("{}/../../fixtures/captures/08-noisy-neighbour.tar.xz", env!("CARGO_MANIFEST_DIR"));
    let dir = quell::archive::scratch().unwrap();
    let tree = quell::archive::unpack(&std::fs::read(packed).unwrap(), dir.path()).unwrap();
    let mut snapshot = Machine::under(&tree.join("t1")).unwrap().snapshot(Depth::Full);
    // A captured tree has no inodes.
    for (id, cgroup) in (1..).zip(&mut snapshot.cgroups) {
        cgroup.id = CgroupId(id);
    }
    let victim = snapshot.cgroups.iter().find(|cgroup| cgroup.path.as_bytes() == b"tenants/victim").unwrap().id;
    let times = |usec: u64, buckets: &[(usize, u32)]| {
        let mut counters = StageCounters { buckets: vec![0; BUCKETS], ..StageCounters::default() };
        buckets.iter().for_each(|&(at, n)| counters.buckets[at] = n);
        (counters.sum_nsec, counters.max_nsec) = (Nanos(usec * 1000), Nanos(90_000_000));
        counters
    };
    let none = StageCounters::default;
    let held = times(90_000, &[(66, 1)]);
    let device = times(10_000, &[(40, 10)]);
    let stages = [held, none(), none(), none(), device, none(), times(100_500, &[(40, 9), (67, 1)])];
    let key = |cgroup| TraceKey {
        dev: DevNum { major: 253, minor: 0 },
        cgroup: Some(cgroup),
        operation: Operation::SyncWrite,
    };
    let counts = TraceCounts { requests: 8, bios: 10, ..TraceCounts::default() };
    let group = |cgroup| TraceGroup { key: key(cgroup), counts, stages: stages.clone() };
    let losses = TraceLosses { bios: 3, ..TraceLosses::default() };
    let groups = vec![group(victim), group(CgroupId(9_999_999))];
    (snapshot, Trace { groups, losses, unseen: vec![Stage::Qos], ..Trace::default() })
}

fn document(stage: Option<Stage>, target: Option<&str>) -> Document {
    let (snapshot, trace) = host();
    let wanted = |_: DevNum, path: Option<&quell_units::CgroupPath>| {
        target.is_none_or(|target| path.is_some_and(|path| path.as_bytes() == target.as_bytes()))
    };
    Document::of(&snapshot, Some(10.0), (&Trace::default(), &trace), &wanted, stage).unwrap()
}

#[test]
fn stages_and_what_is_in_none_of_them_add_up_to_the_total() {
    let rows = document(None, Some("tenants/victim")).rows;
    let stages: Vec<&str> = rows.iter().map(|row| row.stage).collect();
    assert_eq!(stages, ["throttle", "device", "other", "total"]);
    let sum = |of: &dyn Fn(&&Row) -> bool| rows.iter().filter(of).map(|row| row.sum_usec).sum::<f64>();
    assert!((sum(&|row| row.stage != "total") - sum(&|row| row.stage == "total")).abs() < 1e-6);
    assert_eq!((rows[0].requests, rows[0].bios, rows[0].name.as_str()), (8, Some(10), "tenants/victim"));
}

#[test]
fn a_cgroup_that_is_gone_keeps_its_time_under_its_number() {
    let rows = document(Some(Stage::Total), None).rows;
    let names: Vec<(&str, Option<u64>)> = rows.iter().map(|row| (row.name.as_str(), row.cgroup_id)).collect();
    assert!(names.contains(&("cgroup 9999999 (gone)", Some(9_999_999))), "{names:?}");
    let gap = document(None, None).gaps.iter().any(|gap| gap.reason == "no room for 3 bios and 0 requests");
    assert!(gap, "what was lost is told");
}

#[test]
fn nine_that_waited_for_nothing_are_in_the_percentiles() {
    let screen = Screen { width: 80, table_width: 80, colour: false };
    let page = page(&document(Some(Stage::Throttle), Some("tenants/victim")), true, &screen);
    let line = page.lines().find(|line| line.trim_start().starts_with("throttle")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    // No total is shown beside it, so no share; the mean is over all ten, the median waited for nothing.
    assert_eq!(words, ["throttle", "-", "9.00", "ms", "0", "us", "0", "us", "90.0", "ms", "90.0", "ms", "90.0", "ms"]);
    assert!(page.contains("8 sync writes of 10 bios"), "{page}");
    assert!(page.contains("up to 131 ms"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}
