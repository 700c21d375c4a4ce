//! Answers for people. A renderer takes a document or findings and gives text; it reads nothing and decides nothing.

pub mod capture;
pub mod cgroup;
pub mod demo;
pub mod devices;
pub mod doctor;
pub mod explain;
pub mod iostat;
pub mod latency;
pub mod number;
pub mod progress;
pub mod stat;
mod table;
pub mod text;

use crate::doc::{Gap, Host};
use crate::screen::{Screen, Style};

/// What the head line says of a host, an item each.
fn host_items(host: &Host, observed_seconds: Option<f64>) -> Vec<String> {
    let name = host.name.as_deref().unwrap_or("(name not known)");
    let mut items = vec![format!("host {name}")];
    items.push(host.kernel.as_ref().map_or("kernel not known".into(), |release| format!("Linux {release}")));
    items.push(match host.cgroup {
        "none" => "no cgroups".into(),
        "hybrid-io-v1" => "cgroup v1 (hybrid)".into(),
        "hybrid-io-v2" => "cgroup v2 (hybrid)".into(),
        version => format!("cgroup {version}"),
    });
    items.push(observed_seconds.map_or("one moment".into(), |s| format!("{} observed", number::usec(s * 1e6))));
    items
}

/// What is not known, a line each, dimmed.
fn gap_lines<'a>(gaps: impl IntoIterator<Item = &'a Gap>, screen: &Screen) -> String {
    const LABEL: &str = "gap       ";
    let mut out = String::new();
    for gap in gaps {
        for (at, line) in
            text::wrap(&format!("{}: {}", gap.what, gap.reason), screen.width - LABEL.len()).iter().enumerate()
        {
            let label = if at == 0 { LABEL } else { "          " };
            out += &format!("{}{}\n", screen.paint(Style::Dim, label), screen.paint(Style::Dim, line));
        }
    }
    out
}
