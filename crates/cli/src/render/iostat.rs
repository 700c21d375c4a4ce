//! `quell stat -x`: the columns of `iostat -x`, in its widths and with its two decimals, so that scripts and eyes that
//! know one know the other.
//!
//! Two differences: what the kernel does not count is `-` and not 0.00, and a device whose counters were reset says so.

use crate::doc::device::Device;
use crate::doc::stat::Document;

/// A column: its title, its width with the space in front, and what it shows.
type Column = (&'static str, usize, fn(&Device) -> Option<f64>);

/// iostat's order; on a narrow page each group is a block of its own.
static GROUPS: [&[Column]; 4] = [
    &[
        ("r/s", 8, |d| d.reads_per_sec),
        ("rkB/s", 10, |d| kilo(d.read_bytes_per_sec)),
        ("rrqm/s", 9, |d| d.read_merges_per_sec),
        ("%rrqm", 7, |d| d.read_merged_pct),
        ("r_await", 8, |d| mean(d.reads_per_sec, millis(d.read_await_usec))),
        ("rareq-sz", 9, |d| mean(d.reads_per_sec, kilo(d.read_size_bytes_avg))),
    ],
    &[
        ("w/s", 8, |d| d.writes_per_sec),
        ("wkB/s", 10, |d| kilo(d.write_bytes_per_sec)),
        ("wrqm/s", 9, |d| d.write_merges_per_sec),
        ("%wrqm", 7, |d| d.write_merged_pct),
        ("w_await", 8, |d| mean(d.writes_per_sec, millis(d.write_await_usec))),
        ("wareq-sz", 9, |d| mean(d.writes_per_sec, kilo(d.write_size_bytes_avg))),
    ],
    &[
        ("d/s", 8, |d| d.discards_per_sec),
        ("dkB/s", 10, |d| kilo(d.discard_bytes_per_sec)),
        ("drqm/s", 9, |d| d.discard_merges_per_sec),
        ("%drqm", 7, |d| d.discard_merged_pct),
        ("d_await", 8, |d| mean(d.discards_per_sec, millis(d.discard_await_usec))),
        ("dareq-sz", 9, |d| mean(d.discards_per_sec, kilo(d.discard_size_bytes_avg))),
    ],
    &[
        ("f/s", 8, |d| d.flushes_per_sec),
        ("f_await", 8, |d| mean(d.flushes_per_sec, millis(d.flush_await_usec))),
        ("aqu-sz", 8, |d| d.queue_length_avg),
        ("%util", 7, |d| d.util_pct),
    ],
];

/// The width of the first column; a longer name pushes its row to the right, as in iostat.
const NAME: usize = 13;

fn kilo(bytes: Option<f64>) -> Option<f64> {
    bytes.map(|bytes| bytes / 1024.0)
}

fn millis(usec: Option<f64>) -> Option<f64> {
    usec.map(|usec| usec / 1000.0)
}

/// A mean: iostat shows 0.00 where nothing completed, which is not the same as a kind of request that is not counted.
fn mean(ios_per_sec: Option<f64>, mean: Option<f64>) -> Option<f64> {
    ios_per_sec.map(|_| mean.unwrap_or(0.0))
}

/// The table: on one page width where it fits, else in a block for reads, writes, discards and the rest.
///
/// As with iostat, devices are sorted by name, and one that never did any I/O is left out unless `all` is asked for.
#[must_use]
pub fn page(document: &Document, all: bool, width: usize) -> String {
    let mut devices: Vec<&Device> = document.devices.iter().filter(|device| all || device.ever_used).collect();
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    let whole: Vec<Column> = GROUPS.concat();
    if NAME + whole.iter().map(|(_, width, _)| width).sum::<usize>() <= width {
        return table(&whole, &devices, document);
    }
    GROUPS.iter().map(|group| table(group, &devices, document)).collect::<Vec<_>>().join("\n")
}

fn table(columns: &[Column], devices: &[&Device], document: &Document) -> String {
    let titles: String = columns.iter().map(|(title, width, _)| format!("{title:>width$}")).collect();
    let mut out = format!("{:NAME$}{titles}\n", "Device");
    for device in devices {
        out += &format!("{:NAME$}", device.name);
        out += &cells(columns, device, document);
        out.push('\n');
    }
    out
}

fn cells(columns: &[Column], device: &Device, document: &Document) -> String {
    if !device.has_rates() {
        return format!(" {}", device.gap(&document.gaps));
    }
    // A space in front whatever the number's size: a column too narrow must not run into the one before it.
    let cell = |(_, width, of): &Column| match of(device) {
        Some(value) => format!(" {value:>0$.2}", width - 1),
        None => format!("{:>width$}", "-"),
    };
    columns.iter().map(cell).collect()
}
