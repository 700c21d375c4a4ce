//! `quell capture`: two moments of this host, as files.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use quell_engine::rates::Rates;
use quell_host::Captured;

use super::{print, print_json};
use crate::args::CaptureArgs;
use crate::doc;
use crate::doc::capture::Document;
use crate::error::{Exit, Failure, path_text};
use crate::render::capture as render;
use crate::screen::Screen;
use crate::{source, watching};

pub(super) fn run(args: &CaptureArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    must_be_free(&args.dir)?;
    let captured = watching::capture(&mut source::live()?, args.watch, &args.dir, args.scrub)?;
    let document = document(args, &captured);
    if args.json {
        print_json(&document, out)?
    } else {
        print(&render::page(&document, screen), out)?
    }
    Ok(Exit::Done)
}

/// A capture gets a directory of its own: mixed with other files nobody could tell what may be handed on.
fn must_be_free(dir: &Path) -> Result<(), Failure> {
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::usage(format!("not an empty directory: {}", path_text(dir)))
            .hint("a capture wants a directory of its own")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::io(Exit::Usage, "write a capture", dir, &error)),
    }
}

fn document(args: &CaptureArgs, captured: &Captured) -> Document {
    let window = &captured.window;
    let rates = Rates::of(window);
    Document {
        schema: "quell.capture/1",
        dir: path_text(&args.dir),
        observed_seconds: rates.seconds.ok(),
        files: captured.files,
        bytes: captured.bytes,
        scrubbed: args.scrub,
        left_out: captured.left_out.clone(),
        gaps: doc::gaps(window, &rates),
    }
}
