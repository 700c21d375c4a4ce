//! `quell stat`: rates of devices and of the workloads on them, once or every so often.

use std::io::Write;
use std::time::Duration;

use quell_engine::findings::Scene;
use quell_engine::rates::Rates;
use quell_engine::snapshot::{Snapshot, Window};
use quell_host::Depth;

use super::{print, print_json, print_json_line};
use crate::args::StatArgs;
use crate::doc::device::Device;
use crate::doc::stat::Document;
use crate::error::{Exit, Failure};
use crate::render::{iostat, stat as render};
use crate::screen::Screen;
use crate::source::{self, Source};
use crate::target::find_disk;
use crate::watching;

/// What was asked: as it was typed, and the device with its links followed.
#[derive(Clone, Copy)]
struct Asked<'a> {
    args: &'a StatArgs,
    device: Option<&'a str>,
}

/// The time of one report where no interval was given.
const ONE_REPORT: Duration = Duration::from_secs(1);

pub(super) fn run(args: &StatArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    match Source::of(&args.root.roots)? {
        Source::Live => live(args, screen, out),
        Source::Moments(t0, t1) => {
            let asked = Asked { args, device: args.device.as_deref() };
            report(&source::between(&t0, &t1)?, asked, false, screen, out)
        }
        Source::Moment(dir) => {
            let what = format!("one moment has no rates: {}", crate::error::path_text(&dir));
            Err(Failure::not_judged(what).hint("give --root twice, or a DIR with t0 and t1 in it"))
        }
    }
}

/// One report after the other, each from where the last one ended, so that nothing falls in between.
fn live(args: &StatArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut machine = source::live()?;
    // Once in full, for what does not change: what a disk is and what lies below it.
    let settings = machine.snapshot(Depth::Full);
    let device = args.device.as_ref().map(|device| source::followed(&mut machine, device));
    if let Some(device) = &device {
        find_disk(device, &settings)?;
    }
    let asked = Asked { args, device: device.as_deref() };
    let interval = args.interval.unwrap_or(ONE_REPORT);
    let reports = args.count.or(args.interval.is_none().then_some(1));
    let mut earlier = with_settings(machine.snapshot(Depth::Counters), &settings);
    let mut pace = watching::Pace::start(watching::clock(), interval);
    let mut exit = Exit::Done;
    for at in 0..reports.unwrap_or(u64::MAX) {
        pace.wait();
        let later = with_settings(machine.snapshot(Depth::Counters), &settings);
        let window = Window { t0: earlier, looks: Vec::new(), t1: later, pasted: None };
        exit = report(&window, asked, at > 0, screen, out)?;
        earlier = window.t1;
    }
    Ok(exit)
}

/// A snapshot of counters, with what is known of its devices from a full one.
fn with_settings(mut counters: Snapshot, settings: &Snapshot) -> Snapshot {
    for device in &mut counters.devices {
        let known = settings.device(device.dev).filter(|known| known.name == device.name);
        device.queue = known.and_then(|known| known.queue.clone());
    }
    counters.filesystems.clone_from(&settings.filesystems);
    counters.mounts.clone_from(&settings.mounts);
    counters
}

/// One report; `follows` where it is not the first.
fn report(
    window: &Window,
    Asked { args, device }: Asked,
    follows: bool,
    screen: &Screen,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let rates = Rates::of(window);
    let scene = Scene::of(window, &rates);
    let mut document = Document::of(&scene);
    if let Some(device) = device {
        let found = find_disk(device, &window.t1)?;
        document.devices.retain(|device| device.dev == found.dev.to_string());
        document.device = found.steps;
    }
    let many = args.interval.is_some() && args.count != Some(1);
    if args.json && many {
        print_json_line(&document, out)?;
    } else if args.json {
        print_json(&document, out)?;
    } else {
        let page = if args.extended {
            iostat::page(&document, args.all, screen.table_width)
        } else {
            render::page(&document, render::View { by: args.by, all: args.all, follows }, screen)
        };
        print(&format!("{}{page}", if follows { "\n" } else { "" }), out)?;
    }
    let nothing = !document.devices.iter().any(Device::has_rates);
    Ok(if nothing { Exit::NotJudged } else { Exit::Done })
}
