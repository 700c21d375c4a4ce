//! The stacks: from each file system down to its disks, then what nothing is mounted from.

use super::{size, text};
use crate::doc::devices::{Device, Document, Filesystem, Overlay};
use crate::screen::{Screen, Style};

/// Mount points that are told of one file system; a host of many containers binds one a hundred times.
const MOUNTS_MAX: usize = 3;

/// No stack is deeper.
const DEPTH_MAX: usize = 16;

pub(super) fn page(document: &Document, screen: &Screen) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for filesystem in &document.filesystems {
        lines.push((filesystem_name(filesystem), about_filesystem(filesystem)));
        branches(&filesystem.devices, "", document, &mut lines);
        lines.extend(overlays(filesystem, document));
    }
    for unseen in &document.unseen {
        let about = format!("{} on {}: {}", unseen.fs_type, unseen.source, unseen.why);
        lines.push((unseen.mount_point.clone(), about));
    }
    let free: Vec<&Device> = document.devices.iter().filter(|device| is_free(device, document)).collect();
    for (at, device) in free.iter().enumerate() {
        let used = if device.swap { "swap" } else { "not mounted" };
        lines.push((device_name(device), format!("{}, {used}", about_device(device))));
        // The partitions of one disk stand together over it.
        let next = free.get(at + 1).filter(|next| next.over == device.over);
        if next.is_none() {
            branches(&device.over, "", document, &mut lines);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let longest = lines.iter().map(|(left, _)| text::columns(left)).max().unwrap_or(0);
    let first = longest.min(screen.width / 2);
    let row = |(left, right): &(String, String)| {
        let room = screen.width.saturating_sub(first + 2);
        let mut out = String::new();
        let mut left = match text::columns(left) > first {
            true => {
                out += &format!("{left}\n");
                " ".repeat(first)
            }
            false => text::pad(left, first),
        };
        for line in text::wrap(right, room) {
            out += &format!("{left}  {}\n", screen.paint(Style::Dim, &line));
            left = " ".repeat(first);
        }
        out
    };
    format!("\n{}", lines.iter().map(row).collect::<String>())
}

fn filesystem_name(filesystem: &Filesystem) -> String {
    match filesystem.mount_points.first() {
        Some(point) => point.clone(),
        None => format!("({} not mounted)", filesystem.fs_type),
    }
}

fn about_filesystem(filesystem: &Filesystem) -> String {
    let mut items = vec![filesystem.fs_type.clone()];
    items.extend(filesystem.size_bytes.map(size));
    let told = |name: &str| filesystem.settings.iter().find(|setting| setting.name == name);
    items.extend(told("journal").map(|setting| format!("journal {}", setting.value)));
    items.extend(told("log").map(|setting| format!("log {}", setting.value)));
    items.extend(told("data").map(|setting| format!("data={}", setting.value)));
    items.extend(told("commit").map(|setting| format!("commit {}", setting.value)));
    items.extend(told("barrier").filter(|setting| setting.value == "off").map(|_| "no barriers".to_owned()));
    let others = filesystem.mount_points.get(1..).unwrap_or_default();
    let shown: Vec<&str> = others.iter().take(MOUNTS_MAX).map(String::as_str).collect();
    if let (false, more) = (shown.is_empty(), others.len().saturating_sub(MOUNTS_MAX)) {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        items.push(format!("also at {}{more}", shown.join(", ")));
    }
    items.join(", ")
}

/// The overlays on a file system, one line for all with the same answer.
fn overlays(filesystem: &Filesystem, document: &Document) -> Vec<(String, String)> {
    let on_it = |overlay: &&Overlay| overlay.devices == filesystem.devices;
    let all: Vec<&Overlay> = document.overlays.iter().filter(on_it).collect();
    let mut told: Vec<&str> = all.iter().map(|overlay| overlay.quota_told).collect();
    told.sort_unstable();
    told.dedup();
    let line = |quota: &str| {
        let count = all.iter().filter(|overlay| overlay.quota_told == quota).count();
        (format!("+ {}", text::counted(count, "overlay", "overlays")), quota.to_owned())
    };
    told.into_iter().map(line).collect()
}

/// A device that nothing lies on: no file system, no layer, no partition.
fn is_free(device: &Device, document: &Document) -> bool {
    let holds_fs = document.filesystems.iter().any(|filesystem| filesystem.devices.contains(&device.name));
    let holds_layer = document.devices.iter().any(|other| other.over.contains(&device.name));
    !holds_fs && !holds_layer
}

fn branches(names: &[String], indent: &str, document: &Document, lines: &mut Vec<(String, String)>) {
    if indent.len() > DEPTH_MAX * 2 {
        return;
    }
    for name in names {
        let device = document.devices.iter().find(|device| device.name == *name);
        let (left, right) = match device {
            Some(device) => (device_name(device), about_device(device)),
            None => (name.clone(), String::new()),
        };
        lines.push((format!("{indent}└ {left}"), right));
        if let Some(device) = device {
            branches(&device.over, &format!("{indent}  "), document, lines);
        }
    }
}

fn device_name(device: &Device) -> String {
    format!("{} {}", device.name, device.dev)
}

fn about_device(device: &Device) -> String {
    let mut items = vec![device.layer.to_owned()];
    if device.layer == "disk" {
        items.push(device.class.into());
    }
    items.extend(device.raid_level.clone());
    items.extend(device.mapper_name.as_ref().map(|name| format!("\"{name}\"")));
    items.extend(device.backing_file.clone());
    items.extend(device.size_bytes.map(size));
    items.extend(device.model.clone());
    let paths = device.nvme_paths.iter().map(|path| {
        let state = [&path.transport, &path.state, &path.ana_state].into_iter().flatten().map(String::as_str);
        format!("{} over {} ({})", path.name, path.controller, state.collect::<Vec<_>>().join(" "))
    });
    items.extend(paths);
    items.join(", ")
}
