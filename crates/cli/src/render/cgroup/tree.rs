//! The tree: a line a cgroup, and below it what it sets and what it keeps from its children.

use quell_units::count;

use super::{limits, weights};
use crate::doc::cgroup::Cgroup;
use crate::doc::cgroup::tree::{Document, Node};
use crate::render::number::{bytes, usec};
use crate::render::table::{self, Column};
use crate::render::{gap_lines, host_items, text};
use crate::screen::{Screen, Style};

static COLUMNS: &[Column<Cgroup>] = &[
    Column { title: "procs", width: 7, order: 0, cell: |c| c.processes.map_or("-".into(), |n| n.to_string()) },
    Column { title: "has", width: 8, order: 0, cell: has },
    Column { title: "memory", width: 10, order: 1, cell: |c| c.memory_bytes.map_or("-".into(), |n| bytes(count(n))) },
    Column {
        title: "unwritten",
        width: 10,
        order: 0,
        cell: |c| c.backlog_bytes.map_or("-".into(), |n| bytes(count(n))),
    },
    Column { title: "io stall", width: 9, order: 0, cell: |c| c.io_some_usec.map_or("-".into(), |n| usec(count(n))) },
];

/// The tree.
#[must_use]
pub fn page(document: &Document, screen: &Screen) -> String {
    let mut items = host_items(&document.host, None);
    items.truncate(3);
    items.push(text::counted(document.cgroups.len() + document.left_out, "cgroup", "cgroups"));
    let mut out = text::wrap_items(&items, screen.width).join("\n") + "\n\n";
    let names: Vec<String> = document.cgroups.iter().map(name).collect();
    let longest = names.iter().map(|name| text::columns(name)).max().unwrap_or(0);
    let cells: usize = COLUMNS.iter().filter(|column| column.order == 0).map(|column| column.width).sum();
    let first = longest.clamp(16, screen.width.saturating_sub(cells).max(16));
    let columns = table::fitting(COLUMNS, first, screen.width);
    out += &table::head("cgroup", first, &columns, screen);
    for (node, name) in document.cgroups.iter().zip(&names) {
        out += &table::row(name, first, &columns, &node.cgroup);
        for note in notes(&node.cgroup) {
            let indent = " ".repeat(node.depth * 2 + 2);
            for line in text::wrap(&note, screen.width.saturating_sub(indent.len())) {
                out += &format!("{indent}{}\n", screen.paint(Style::Dim, &line));
            }
        }
    }
    if document.left_out > 0 {
        let empty = text::counted(document.left_out, "empty cgroup", "empty cgroups");
        out += &format!("\n{empty} without limits left out; --all shows them\n");
    }
    let gaps = gap_lines(&document.gaps, screen);
    if !gaps.is_empty() {
        out += "\n";
        out += &gaps;
    }
    out
}

fn name(node: &Node) -> String {
    let last = node.cgroup.cgroup.rsplit('/').next().unwrap_or_default();
    match (node.depth, last) {
        (_, "") => "/".into(),
        (0, _) => node.cgroup.cgroup.clone(),
        (depth, last) => format!("{}{}", "  ".repeat(depth), short(node, last)),
    }
}

/// A container's name is its id, which takes the whole line; people call it by a part of that.
fn short<'n>(node: &'n Node, last: &'n str) -> &'n str {
    let name = node.cgroup.name.as_str();
    if text::columns(last) > 40 && text::columns(name) < text::columns(last) { name } else { last }
}

fn has(cgroup: &Cgroup) -> String {
    let Some(on) = &cgroup.controllers else { return "-".into() };
    let words: Vec<&str> = [("io", "io"), ("memory", "mem")]
        .into_iter()
        .filter(|(name, _)| on.contains(name))
        .map(|(_, short)| short)
        .collect();
    if words.is_empty() { "none".into() } else { words.join(" ") }
}

fn notes(cgroup: &Cgroup) -> Vec<String> {
    let mut notes = limits(cgroup);
    notes.extend(weights(cgroup, false));
    if let (Some(kind), Some(told)) = (cgroup.kind.filter(|kind| *kind != "domain"), cgroup.type_told) {
        notes.push(format!("{kind}: {told}"));
    }
    let has = |of: &Option<Vec<&str>>, name: &str| of.as_ref().is_some_and(|on| on.contains(&name));
    if cgroup.children > 0 && has(&cgroup.controllers, "io") && !has(&cgroup.subtree_control, "io") {
        let children = text::counted(cgroup.children, "child has", "children have");
        notes.push(format!("does not pass io on: its {children} no limit, weight or counter of I/O"));
    }
    notes
}
