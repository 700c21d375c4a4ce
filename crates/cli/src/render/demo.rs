//! `quell demo` for people: the list of recordings, and the word that what follows is one.

use super::text::{columns, cut, pad, wrap};
use crate::doc::demo::Document;
use crate::screen::{Screen, Style};

/// The list, a line a recording: its name, the kernel it was made on, what is wrong in it.
#[must_use]
pub fn list(document: &Document, screen: &Screen) -> String {
    let width = document.demos.iter().map(|demo| columns(demo.name)).max().unwrap_or(0);
    let mut out = String::new();
    for demo in &document.demos {
        let name = screen.paint(Style::Bold, &pad(demo.name, width));
        let kernel = screen.paint(Style::Dim, demo.kernel);
        out += &format!("{name}  {kernel}  {}\n", cut(demo.about, screen.table_width.saturating_sub(width + 11)));
    }
    out + "\nquell demo NAME runs the doctor on one of them.\n"
}

/// A line of quell's own in front of an answer.
#[must_use]
pub fn said(text: &str, screen: &Screen) -> String {
    wrap(text, screen.width).iter().map(|line| screen.paint(Style::Dim, line) + "\n").collect::<String>() + "\n"
}
