//! `quell latency`: where the time of requests goes, by eBPF.

use std::io::Write;
use std::time::Duration;

use quell_engine::snapshot::{Missing, Snapshot, Stage};
use quell_host::Depth;
use quell_trace::{Room, Stages, Tracer};
use quell_units::{CgroupPath, DevNum, Gap, Micros};

use super::{print, print_json, print_json_line};
use crate::args::LatencyArgs;
use crate::doc::latency::Document;
use crate::error::{Exit, Failure};
use crate::render::latency as render;
use crate::screen::Screen;
use crate::source;
use crate::target::{Target, find_disk};
use crate::watching;

/// How long a report watches where nothing was said.
const WATCH: Duration = Duration::from_secs(10);

pub(super) fn run(args: &LatencyArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let words = args.told_apart().map_err(Failure::usage)?;
    let mut machine = source::live()?;
    let mut snapshot = machine.snapshot(Depth::Full);
    let target = words.target.as_ref().map(|text| source::followed(&mut machine, text));
    let target = target.map(|text| Target::find(&text, &snapshot)).transpose()?;
    let device = args.device.as_ref().map(|text| source::followed(&mut machine, text));
    let device = device.map(|text| find_disk(&text, &snapshot)).transpose()?.map(|found| found.dev);
    let stages = if args.stage == Some(Stage::Device) { Stages::Device } else { Stages::All };
    let tracer = Tracer::start(stages, &room(&snapshot)).map_err(|missing| refused(&missing))?;
    let reports = words.count.unwrap_or(1);
    let interval = words.interval.unwrap_or(WATCH);
    let mut pace = watching::Pace::start(watching::clock(), interval);
    let (mut begun, mut was) = (watching::now(), tracer.read());
    for at in 0..reports {
        pace.wait();
        let (ended, now) = (watching::now(), tracer.read());
        // After the wait: a workload that began meanwhile has its name. Its tasks and files are nobody's question here.
        snapshot = with_names(machine.snapshot(Depth::Counters), &snapshot);
        let wanted = |dev: DevNum, path: Option<&CgroupPath>| {
            device.is_none_or(|device| device == dev) && target.as_ref().is_none_or(|target| target.covers(dev, path))
        };
        let seconds = ended.since(begun).map(Micros::seconds);
        let document = Document::of(&snapshot, seconds, (&was, &now), &wanted, args.stage)
            .map_err(|gap| Failure::not_judged(format!("cannot compare two readings of the trace: {gap}")))?;
        if args.json && reports > 1 {
            print_json_line(&document, out)?;
        } else if args.json {
            print_json(&document, out)?;
        } else {
            let page = render::page(&document, args.stage.is_some(), screen);
            print(&format!("{}{page}", if at > 0 { "\n" } else { "" }), out)?;
        }
        (begun, was) = (ended, now);
    }
    Ok(Exit::Done)
}

/// A snapshot that still knows the cgroups which went since the one before.
fn with_names(mut later: Snapshot, earlier: &Snapshot) -> Snapshot {
    let gone: Vec<_> = earlier.cgroups.iter().filter(|cgroup| later.cgroup(&cgroup.path).is_none()).cloned().collect();
    later.cgroups.extend(gone);
    later.cgroups.sort_by(|a, b| a.path.cmp(&b.path));
    later
}

fn room(snapshot: &Snapshot) -> Room {
    let is_whole = |device: &&quell_engine::snapshot::Device| device.partition_of.is_none();
    let used = |device: &&quell_engine::snapshot::Device| device.counters.completed() > 0;
    let devices = snapshot.devices.iter().filter(is_whole).filter(used).count();
    // As many again may come while it runs.
    Room { devices: devices.max(1), cgroups: snapshot.cgroups.len().saturating_mul(2) }
}

/// Nothing can be traced, and what would help.
fn refused(missing: &Missing) -> Failure {
    let hint = match missing.reason {
        Gap::Denied => "root, or CAP_BPF and CAP_PERFMON; kernel lockdown and a container's seccomp refuse it too",
        Gap::NotInKernel => "a kernel with BTF (CONFIG_DEBUG_INFO_BTF), 5.12 or later",
        _ => "quell stat shows the mean time in each device without it",
    };
    Failure::not_judged(format!("cannot see {}: {}", missing.what, missing.reason)).hint(hint)
}
