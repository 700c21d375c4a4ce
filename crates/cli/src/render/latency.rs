//! `quell latency` for people: for each device and workload a line a stage, and with one stage its histogram.

use quell_units::{count, ratio};

use super::number::{three, usec};
use super::{gap_lines, host_items, text};
use crate::doc::latency::{Document, Row};
use crate::screen::{Screen, Style};

/// The percentiles, and their titles.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The report; `histogram` where one stage alone is shown.
#[must_use]
pub fn page(document: &Document, histogram: bool, screen: &Screen) -> String {
    let items = host_items(&document.host, document.observed_seconds);
    let mut out = text::wrap_items(&items, screen.width).join("\n") + "\n";
    if document.rows.is_empty() {
        out += "\nno request ended in this time\n";
    }
    let same = |a: &Row, b: &Row| (a.dev, a.cgroup_id, &a.name, a.op) == (b.dev, b.cgroup_id, &b.name, b.op);
    for rows in document.rows.chunk_by(same) {
        out += &block(rows, screen);
        if histogram {
            rows.iter().for_each(|row| out += &bars(row, screen));
        }
    }
    let gaps = gap_lines(&document.gaps, screen);
    if gaps.is_empty() { out } else { format!("{out}\n{gaps}") }
}

/// What one workload did on one device by one operation.
fn block(rows: &[Row], screen: &Screen) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let merged = first.bios.filter(|bios| *bios > first.requests);
    let merged = merged.map_or_else(String::new, |bios| format!(" of {} bios", three(count(bios))));
    let many = if first.op == "flush" { "flushes".into() } else { format!("{}s", first.op) };
    let head = format!("{} · {} · {} {many}{merged}", first.device, first.name, three(count(first.requests)));
    let titles: String = PERCENTILES.iter().map(|(title, _)| format!("{title:>10}")).collect();
    let titles = format!("  {:9}{:>8}{:>10}{titles}{:>10}", "stage", "share", "mean", "max");
    let whole = rows.iter().find(|row| row.stage == "total").map(|row| row.sum_usec);
    let mut out = format!("\n{}\n{}\n", screen.paint(Style::Bold, &head), screen.paint(Style::Dim, &titles));
    for row in rows {
        let share = whole.map_or_else(|| "-".into(), |whole| format!("{:.0} %", 100.0 * ratio(row.sum_usec, whole)));
        let mean = usec(ratio(row.sum_usec, count(row.ios)));
        let at = |share: f64| row.times.as_ref().and_then(|times| times.percentile_usec(share, row.ios));
        let shown = |time: Option<f64>| time.map_or_else(|| "-".into(), usec);
        let percentiles: String = PERCENTILES.iter().map(|(_, share)| format!("{:>10}", shown(at(*share)))).collect();
        out += &format!("  {:9}{share:>8}{mean:>10}{percentiles}{:>10}\n", row.stage, shown(row.max_usec));
    }
    out
}

/// The histogram of a stage, a line an octave.
fn bars(row: &Row, screen: &Screen) -> String {
    const LABEL: usize = 32;
    let mut octaves: Vec<(f64, u64)> = Vec::new();
    for (edge, n) in &row.buckets {
        let upper = edge.log2().ceil().exp2();
        match octaves.last_mut().filter(|(last, _)| *last >= upper) {
            Some((_, sum)) => *sum += n,
            None => octaves.push((upper, *n)),
        }
    }
    let most = octaves.iter().map(|(_, n)| *n).max().unwrap_or(1);
    let room = count(u64::try_from(screen.width.saturating_sub(LABEL)).unwrap_or(0));
    let mut out = String::new();
    for (upper, n) in octaves {
        let columns = (room * ratio(count(n), count(most))).ceil();
        let bar: String = std::iter::repeat_n('▇', usize::try_from(quell_units::whole(columns)).unwrap_or(0)).collect();
        let label = if upper.is_finite() { format!("up to {}", usec(upper)) } else { "more".into() };
        out += &format!("  {label:>16}{:>10}  {bar}\n", three(count(n)));
    }
    out
}
