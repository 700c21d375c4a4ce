//! `quell stat` for people: a table of devices, then for each device the workloads on it.

use super::number::{bytes, pct, three, usec};
use super::table::{self, Column};
use super::{gap_lines, host_items, text};
use crate::args::SortBy;
use crate::doc::device::{Device, Use};
use crate::doc::stat::Document;
use crate::screen::Screen;

/// How a report is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// What workloads are sorted by; share of the disk's time where nothing was asked for.
    pub by: Option<SortBy>,
    /// Whether devices and workloads that did nothing are shown.
    pub all: bool,
    /// Whether it follows another one, which told the host.
    pub follows: bool,
}

const UNKNOWN: &str = "-";

fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| UNKNOWN.into(), show)
}

/// A share of a disk: whole percents, and what is too small for one is not called none.
fn share(ratio: f64) -> String {
    if ratio < 0.005 { "<1 %".into() } else { format!("{:.0} %", ratio * 100.0) }
}

static DEVICE_COLUMNS: &[Column<Device>] = &[
    Column { title: "r/s", width: 7, order: 0, cell: |d| known(d.reads_per_sec, three) },
    Column { title: "read/s", width: 10, order: 0, cell: |d| known(d.read_bytes_per_sec, bytes) },
    Column { title: "r_await", width: 9, order: 1, cell: |d| known(d.read_await_usec, usec) },
    Column { title: "w/s", width: 7, order: 0, cell: |d| known(d.writes_per_sec, three) },
    Column { title: "write/s", width: 10, order: 0, cell: |d| known(d.write_bytes_per_sec, bytes) },
    Column { title: "w_await", width: 9, order: 1, cell: |d| known(d.write_await_usec, usec) },
    Column { title: "f/s", width: 7, order: 2, cell: |d| known(d.flushes_per_sec, three) },
    Column { title: "f_await", width: 9, order: 2, cell: |d| known(d.flush_await_usec, usec) },
    Column { title: "inflight", width: 9, order: 3, cell: |d| d.in_flight.to_string() },
    Column { title: "aqu-sz", width: 8, order: 0, cell: |d| known(d.queue_length_avg, three) },
    Column { title: "%busy", width: 7, order: 1, cell: |d| known(d.busy_pct, |v| format!("{v:.1}")) },
];

static USE_COLUMNS: &[Column<Use>] = &[
    Column { title: "share", width: 6, order: 0, cell: |u| share(u.share_ratio) },
    Column { title: "r/s", width: 7, order: 0, cell: |u| three(u.reads_per_sec) },
    Column { title: "read/s", width: 10, order: 0, cell: |u| bytes(u.read_bytes_per_sec) },
    Column { title: "w/s", width: 7, order: 0, cell: |u| three(u.writes_per_sec) },
    Column { title: "write/s", width: 10, order: 0, cell: |u| bytes(u.write_bytes_per_sec) },
    Column { title: "io some", width: 8, order: 2, cell: |u| known(u.io_pressure_some_pct, pct) },
    Column { title: "io full", width: 8, order: 1, cell: |u| known(u.io_pressure_full_pct, pct) },
];

/// The report.
#[must_use]
pub fn page(document: &Document, view: View, screen: &Screen) -> String {
    let mut items = host_items(&document.host, document.observed_seconds);
    if view.follows {
        // The time observed stays: what came late is measured over more than was asked for.
        items.drain(..items.len().saturating_sub(1));
    }
    items.extend(document.unix_usec.map(clock));
    items.extend(document.device.clone().filter(|_| !view.follows));
    let mut out = text::wrap_items(&items, screen.width).join("\n") + "\n\n";
    let shown: Vec<&Device> = document.devices.iter().filter(|device| view.all || device.is_active()).collect();
    if shown.is_empty() {
        let devices = text::counted(document.devices.len(), "device", "devices");
        out += &format!("no I/O in this time on {devices}; --all shows them\n");
    } else {
        out += &devices(&shown, document, screen);
    }
    for device in shown {
        out += &uses(device, view, screen);
    }
    let gaps = gap_lines(&document.gaps, screen);
    if !gaps.is_empty() {
        out += "\n";
        out += &gaps;
    }
    out
}

fn devices(shown: &[&Device], document: &Document, screen: &Screen) -> String {
    let name = |device: &Device| match device.over.as_slice() {
        [] => device.name.clone(),
        below => format!("{} over {}", device.name, below.join(", ")),
    };
    let longest = shown.iter().map(|device| text::columns(&name(device))).max().unwrap_or(0);
    let first = longest.clamp("device".len(), 13);
    let columns = table::fitting(DEVICE_COLUMNS, first, screen.width);
    let row = |device: &Device| match device.has_rates() {
        true => table::row(&name(device), first, &columns, device),
        false => format!("{}  {}\n", text::pad(&name(device), first), device.gap(&document.gaps)),
    };
    let rows: String = shown.iter().copied().map(row).collect();
    table::head("device", first, &columns, screen) + &rows
}

/// The workloads on one device, biggest first.
fn uses(device: &Device, view: View, screen: &Screen) -> String {
    let mut uses: Vec<&Use> = device.workloads.iter().filter(|one| view.all || did_something(one)).collect();
    if uses.is_empty() {
        return String::new();
    }
    let size = |one: &Use| match view.by {
        None => one.share_ratio,
        Some(SortBy::Wbytes) => one.write_bytes_per_sec,
        Some(SortBy::Rbytes) => one.read_bytes_per_sec,
        Some(SortBy::Ios) => one.reads_per_sec + one.writes_per_sec,
        Some(SortBy::Pressure) => one.io_pressure_full_pct.or(one.io_pressure_some_pct).unwrap_or(0.0),
    };
    // A stable sort: of equals the bigger share stays first.
    uses.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let cells: usize = USE_COLUMNS.iter().filter(|column| column.order <= 1).map(|column| column.width).sum();
    let first = screen.width.saturating_sub(cells).clamp(16, 60);
    let columns = table::fitting(USE_COLUMNS, first, screen.width);
    let rows: String = uses.iter().map(|one| table::row(&format!("  {}", one.name), first, &columns, *one)).collect();
    format!("\n{}{rows}", table::head(&format!("on {}", device.name), first, &columns, screen))
}

fn did_something(one: &Use) -> bool {
    one.reads_per_sec + one.writes_per_sec > 0.0
}

/// The time of day, in UTC: it is for putting reports beside a log.
fn clock(unix_usec: u64) -> String {
    let seconds = unix_usec / 1_000_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
