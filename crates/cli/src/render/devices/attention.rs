//! What to look at: wrong first, one entry for all disks that have the same in common.

use super::{painted, text};
use crate::doc::devices::{Document, Setting};
use crate::screen::{Screen, Style};

/// The width of a judgement's column.
const HEAD: usize = 14;
const LABEL: usize = 16;

/// One thing to look at, and where it is so.
struct Entry<'d> {
    setting: &'d Setting,
    at: Vec<&'d str>,
    sources: Vec<&'d str>,
}

pub(super) fn page(document: &Document, screen: &Screen) -> String {
    let entries = entries(document);
    if entries.is_empty() {
        return String::new();
    }
    let mut out = String::from("\n");
    for entry in &entries {
        out += &block(entry, screen);
    }
    let room = screen.width.saturating_sub(HEAD);
    if entries.iter().any(|entry| entry.setting.better.is_some()) {
        let note = "what is written so holds until the next boot; a udev rule by class keeps it";
        for line in text::wrap(note, room) {
            out += &format!("{}{}\n", " ".repeat(HEAD), screen.paint(Style::Dim, &line));
        }
    }
    out
}

fn entries(document: &Document) -> Vec<Entry<'_>> {
    let of_devices = document.devices.iter().flat_map(|device| device.settings.iter().map(|one| (&*device.name, one)));
    let of_filesystems = document.filesystems.iter().flat_map(|filesystem| {
        let name = filesystem.mount_points.first().or(filesystem.devices.first());
        filesystem.settings.iter().map(move |one| (name.map_or("", String::as_str), one))
    });
    let mut entries: Vec<Entry> = Vec::new();
    for (name, setting) in of_devices.chain(of_filesystems) {
        if !matches!(setting.judgement, "wrong" | "questionable") {
            continue;
        }
        let same = |entry: &&mut Entry| {
            let known = entry.setting;
            (&known.name, &known.value, &known.why, &known.better)
                == (&setting.name, &setting.value, &setting.why, &setting.better)
        };
        match entries.iter_mut().find(same) {
            Some(entry) => {
                entry.at.push(name);
                entry.sources.push(&setting.source);
            }
            None => entries.push(Entry { setting, at: vec![name], sources: vec![&setting.source] }),
        }
    }
    entries.sort_by_key(|entry| entry.setting.judgement != "wrong");
    entries
}

fn block(entry: &Entry, screen: &Screen) -> String {
    let Setting { name, value, judgement, why, better, .. } = entry.setting;
    let head = format!("{}: {name} is {value}", entry.at.join(", "));
    let mut out = String::new();
    let mut label = painted(judgement, HEAD, screen);
    for line in text::wrap(&head, screen.width.saturating_sub(HEAD)) {
        out += &format!("{label}{}\n", screen.paint(Style::Bold, &line));
        label = " ".repeat(HEAD);
    }
    for line in text::wrap(why, screen.width.saturating_sub(LABEL)) {
        out += &format!("{}{line}\n", " ".repeat(LABEL));
    }
    if let Some(better) = better {
        for source in &entry.sources {
            // Whole and on a line of its own: half a command is worse than none.
            out +=
                &format!("{}{}\n", " ".repeat(LABEL), screen.paint(Style::Bold, &format!("echo {better} > {source}")));
        }
        if name == "scheduler" {
            let note = "a switch drains the requests in flight first: the disk stands still for that long";
            for line in text::wrap(note, screen.width.saturating_sub(LABEL)) {
                out += &format!("{}{}\n", " ".repeat(LABEL), screen.paint(Style::Dim, &line));
            }
        }
    }
    out
}
