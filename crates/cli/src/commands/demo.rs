//! `quell demo`: the doctor on recorded hosts, so that one can see what it says before one needs it.

use std::io::Write;
use std::path::Path;

use super::{doctor, print, print_json};
use crate::archive;
use crate::args::DemoArgs;
use crate::doc::demo::{Demo as DemoDoc, Document};
use crate::error::{Exit, Failure};
use crate::near::{did_you_mean, nearest};
use crate::render::demo as render;
use crate::screen::Screen;
use crate::source::Source;

/// One recording.
struct Demo {
    name: &'static str,
    about: &'static str,
    kernel: &'static str,
    packed: &'static [u8],
}

/// One line of the table: the capture's name, which names its file too, what is wrong in it, and its kernel.
macro_rules! demo {
    ($name:literal, $about:literal, $kernel:literal) => {
        Demo {
            name: $name,
            about: $about,
            kernel: $kernel,
            packed: include_bytes!(concat!("../../../../fixtures/captures/", $name, ".tar.xz")),
        }
    };
}

static DEMOS: [Demo; 8] = [
    demo!("02-healthy-busy", "a busy disk, and nobody waits for it", "6.1.192"),
    demo!("05-throttled-io-max-direct", "its own io.max holds it; no counter shows it", "6.1.192"),
    demo!("08-noisy-neighbour", "a writer fills the queue, a reader waits", "6.1.192"),
    demo!("10-writeback-storm", "bursts of write-back; fsync takes seconds", "6.1.192"),
    demo!("11-memcg-thrash", "too little memory makes the disk busy", "6.1.192"),
    demo!("12-journal-shared-stall", "a capped neighbour stalls every fsync", "6.1.192"),
    demo!("13-fsync-bound", "one commit after another, disk half idle", "6.1.192"),
    demo!("23-device-hung", "one of two disks stopped answering", "6.1.192"),
];

pub(super) fn run(args: &DemoArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    match &args.name {
        None => list(args.json, screen, out),
        Some(name) => show(find(name)?, args, screen, out),
    }
}

fn list(json: bool, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let demos = DEMOS.iter().map(|demo| DemoDoc { name: demo.name, about: demo.about, kernel: demo.kernel }).collect();
    let document = Document { schema: "quell.demo/1", demos };
    if json {
        print_json(&document, out)?
    } else {
        print(&render::list(&document, screen), out)?
    }
    Ok(Exit::Done)
}

/// The recording of this name, with or without its number.
fn find(name: &str) -> Result<&'static Demo, Failure> {
    let is_it = |demo: &&Demo| demo.name == name || demo.name.split_once('-').is_some_and(|(_, rest)| rest == name);
    DEMOS.iter().find(is_it).ok_or_else(|| {
        let hint = did_you_mean(&nearest(name, DEMOS.iter().map(|demo| demo.name)));
        Failure::usage(format!("no such recording: {}", quell_units::escape(name.as_bytes())))
            .hint(hint.unwrap_or_else(|| "quell demo lists them".into()))
    })
}

fn show(demo: &Demo, args: &DemoArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let failed =
        |error: std::io::Error| Failure::io(Exit::NotJudged, "unpack the recording", Path::new(demo.name), &error);
    let dir = archive::scratch().map_err(failed)?;
    let top = archive::unpack(demo.packed, dir.path()).map_err(failed)?;
    if !args.json {
        let text = format!("recorded host {}, not this one: {}", demo.name, demo.about);
        print(&render::said(&text, screen), out)?;
    }
    let source = Source::moments(&top.join("t0"), &top.join("t1"));
    let asked = doctor::Asked { verbose: args.verbose, json: args.json, ..doctor::Asked::default() };
    doctor::examine(&source, &asked, screen, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recording_is_what_its_line_says() {
        for demo in &DEMOS {
            let dir = archive::scratch().unwrap();
            let top = archive::unpack(demo.packed, dir.path()).unwrap();
            let meta = std::fs::read_to_string(top.join("meta.json")).unwrap();
            let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
            assert_eq!((meta["name"].as_str(), meta["kernel"].as_str()), (Some(demo.name), Some(demo.kernel)));
        }
    }
}
