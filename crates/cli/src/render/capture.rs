//! `quell capture` for people: what was written, and how to look at it.

use super::{gap_lines, number};
use crate::doc::capture::Document;
use crate::screen::Screen;

/// What was written.
#[must_use]
pub fn page(document: &Document, screen: &Screen) -> String {
    let Document { dir, files, bytes, .. } = document;
    let apart = document.observed_seconds.map_or("no time".into(), |seconds| number::usec(seconds * 1e6));
    let size = number::bytes(quell_units::count(*bytes));
    let mut out = format!("captured two moments, {apart} apart: {files} files, {size} in {dir}\n");
    if document.scrubbed {
        out += "names were replaced; look through it all the same before handing it on\n";
    } else {
        out += "it holds the names of this host; quell capture --scrub replaces them\n";
    }
    for left_out in &document.left_out {
        out += &format!("left out, for names may be in it: {left_out}\n");
    }
    out += &gap_lines(&document.gaps, screen);
    out + &format!("\nquell doctor --root {dir}\n")
}
