//! `quell devices` for people: the stacks, the disks, what to look at; and of one device every setting with its reason.

mod attention;
mod detail;
mod tree;

use super::number::bytes;
use super::table::{self, Column};
use super::{gap_lines, host_items, text};
use crate::doc::devices::{Device, Document};
use crate::screen::{Screen, Style};

/// The page.
#[must_use]
pub fn page(document: &Document, screen: &Screen) -> String {
    let mut items = host_items(&document.host, None);
    // One moment is all that is asked for here.
    items.truncate(3);
    let disks = disks(document).len();
    items.push(text::counted(disks, "disk", "disks"));
    let mut out = text::wrap_items(&items, screen.width).join("\n") + "\n";
    out += &detail::asked(document, screen);
    out += &tree::page(document, screen);
    out += &table_of_disks(document, screen);
    out += &attention::page(document, screen);
    if document.asked.is_some() {
        out += &detail::page(document, screen);
    }
    let gaps = gap_lines(&document.gaps, screen);
    if !gaps.is_empty() {
        out += "\n";
        out += &gaps;
    }
    out
}

/// The devices with requests of their own.
fn disks(document: &Document) -> Vec<&Device> {
    let is_disk = |device: &&Device| !matches!(device.layer, "partition" | "memory") && device.over.is_empty();
    document.devices.iter().filter(is_disk).collect()
}

fn setting<'d>(device: &'d Device, name: &str) -> &'d str {
    device.settings.iter().find(|setting| setting.name == name).map_or("-", |setting| &setting.value)
}

fn judged(device: &Device) -> String {
    let count = |word: &str| device.settings.iter().filter(|setting| setting.judgement == word).count();
    match (count("wrong"), count("questionable")) {
        (0, 0) => "fine".into(),
        (0, n) => format!("{n} questionable"),
        (n, 0) => format!("{n} wrong"),
        (wrong, n) => format!("{wrong} wrong, {n} q."),
    }
}

static COLUMNS: &[Column<Device>] = &[
    Column { title: "class", width: 8, order: 0, cell: |d| d.class.into() },
    Column { title: "size", width: 10, order: 0, cell: |d| d.size_bytes.map_or("-".into(), size) },
    Column { title: "scheduler", width: 12, order: 0, cell: |d| setting(d, "scheduler").into() },
    Column { title: "requests", width: 9, order: 1, cell: |d| setting(d, "nr_requests").into() },
    Column { title: "ahead KiB", width: 10, order: 1, cell: |d| setting(d, "read_ahead_kb").into() },
    Column { title: "cache", width: 14, order: 2, cell: |d| setting(d, "write_cache").into() },
    Column { title: "judged", width: 16, order: 0, cell: judged },
];

fn table_of_disks(document: &Document, screen: &Screen) -> String {
    let disks = disks(document);
    if disks.is_empty() {
        return String::new();
    }
    let longest = disks.iter().map(|disk| text::columns(&disk.name)).max().unwrap_or(0);
    let first = longest.clamp("disk".len(), 16);
    let columns = table::fitting(COLUMNS, first, screen.width);
    let rows: String = disks.iter().map(|disk| table::row(&disk.name, first, &columns, *disk)).collect();
    format!("\n{}{rows}", table::head("disk", first, &columns, screen))
}

/// A size as people say it.
fn size(size_bytes: u64) -> String {
    bytes(quell_units::count(size_bytes))
}

/// A word for a judgement, in its colour.
fn painted(judgement: &str, width: usize, screen: &Screen) -> String {
    let style = match judgement {
        "wrong" => Style::Red,
        "questionable" => Style::Yellow,
        "fine" => Style::Green,
        _ => Style::Dim,
    };
    let padding = " ".repeat(width.saturating_sub(text::columns(judgement)));
    screen.paint(style, judgement) + &padding
}
