//! `quell devices`: what lies on which disk, how it is set up, where a limit acts.

use std::io::Write;

use quell_engine::snapshot::Snapshot;
use quell_engine::stack::{Place, locate, locate_cgroup, locate_device};
use quell_host::{Depth, Machine};
use quell_units::escape;

use super::{print, print_json};
use crate::args::DevicesArgs;
use crate::doc::devices::{Document, View};
use crate::error::{Exit, Failure};
use crate::near::{did_you_mean, nearest};
use crate::render::devices as render;
use crate::screen::Screen;
use crate::source::{Source, followed};
use crate::target::Target;

pub(super) fn run(args: &DevicesArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut machine = Source::of(&args.root.roots)?.latest()?;
    let snapshot = machine.snapshot(Depth::Settings);
    let place = match &args.device {
        Some(text) => Some(find(text, &mut machine, &snapshot)?),
        None => None,
    };
    let asked = args.device.as_deref().zip(place.as_ref());
    let document = Document::of(&snapshot, View { asked, all: args.all });
    if args.json {
        print_json(&document, out)?;
    } else {
        print(&render::page(&document, screen), out)?;
    }
    // Something that lies on no disk was judged all the same: the answer is that it does not.
    let judged = !document.devices.is_empty() || document.asked.is_some();
    Ok(if judged { Exit::Done } else { Exit::NotJudged })
}

/// Where what was asked for lies: a device, a path, and else a container, unit, cgroup or process.
fn find(text: &str, machine: &mut Machine, snapshot: &Snapshot) -> Result<Place, Failure> {
    if text.starts_with('/') {
        let real = followed(machine, text);
        let place = locate(&real, snapshot).ok_or_else(|| no_device(text, snapshot))?;
        return Ok(if real.trim_end_matches('/') == text.trim_end_matches('/') {
            place
        } else {
            linked(text, &real, place)
        });
    }
    if let Some(place) = locate(text, snapshot) {
        return Ok(place);
    }
    match Target::find(text, snapshot) {
        Ok(Target::Disk(dev)) => Ok(locate_device(dev, snapshot)),
        Ok(Target::Cgroup(path)) => {
            let place = locate_cgroup(&path, snapshot);
            place.ok_or_else(|| {
                let what = format!("no device is known of {}", escape(text.as_bytes()));
                Failure::not_judged(what).hint("it did no I/O that its cgroup counts, and no mount carries its name")
            })
        }
        Err(failure) => Err(if text.contains('/') { failure } else { no_device(text, snapshot) }),
    }
}

fn linked(text: &str, real: &str, place: Place) -> Place {
    let link = format!("{} leads to {}", escape(text.as_bytes()), escape(real.as_bytes()));
    Place { steps: [vec![link], place.steps].concat(), ..place }
}

fn no_device(text: &str, snapshot: &Snapshot) -> Failure {
    let names: Vec<&str> = snapshot.devices.iter().map(|device| device.name.as_str()).collect();
    let failure = Failure::usage(format!("no such device: {}", escape(text.as_bytes())));
    match did_you_mean(&nearest(text.trim_start_matches("/dev/"), names)) {
        Some(hint) => failure.hint(hint),
        None => failure.hint("quell devices lists them"),
    }
}
