//! `nvme-multipath-hidden`: the I/O of an NVMe namespace is counted where no tool looks.

use super::evidence::{evidence, finding};
use super::finding::{Advice, Aspect, Explain, Finding, Subject, SubjectKind, Value};
use super::scene::Scene;
use super::table::Rule;
use crate::snapshot::Device;
use quell_units::count;

pub(super) const RULE: Rule = Rule {
    id: "nvme-multipath-hidden",
    explain: Explain {
        means: "The node that is mounted (nvme0n1) counts nothing, and its hidden path (nvme0c0n1) counts everything: what \
            looks at the node sees an idle disk.",
        kernel: "With native NVMe multipath the node is a head that hands each bio to a path. Until accounting of the head came \
            (5.18 and later) only the path's request queue was counted, and it has no node and on some kernels the number 0:0.",
        evidence: "A path nvmeXcYnZ in /proc/diskstats with requests, and its head nvmeXnZ with none.",
        change: "Read the path's row. A newer kernel counts the head as well; nvme_core.multipath=N at boot does away with heads \
            where there is one path.",
        undo: "Take the option out again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let devices = &scene.window.t1.devices;
    let head_of = |path: &Device| {
        let name = head(path.name.as_str())?;
        devices.iter().find(|device| device.name.as_str() == name)
    };
    devices.iter().filter_map(|path| hidden(path, head_of(path)?)).collect()
}

/// `nvme0n1` for `nvme0c0n1`.
fn head(path: &str) -> Option<String> {
    let rest = path.strip_prefix("nvme")?;
    let (controller, rest) = rest.split_once('c')?;
    let (path, namespace) = rest.split_once('n')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(controller) && digits(path) && digits(namespace)).then(|| format!("nvme{controller}n{namespace}"))
}

fn hidden(path: &Device, head: &Device) -> Option<Finding> {
    let (of_path, of_head) = (path.counters.completed(), head.counters.completed());
    if of_path == 0 || of_head > 0 {
        return None;
    }
    let requests = |device: &Device| {
        let what = format!("requests of {} since boot", device.name);
        evidence(Aspect::Device, &what, Value::Number(count(device.counters.completed())), "/proc/diskstats")
    };
    let subject =
        Subject { kind: SubjectKind::Device, name: head.name.to_string(), cgroup: None, device: Some(head.name) };
    Some(Finding {
        confidence: 0.95,
        summary: format!("{} counts nothing: its I/O is counted at its hidden path {}", head.name, path.name),
        evidence: vec![requests(head), requests(path)],
        advice: vec![Advice::text(format!(
            "read {}'s row for what {} does; believe no zero of the latter",
            path.name, head.name
        ))],
        stall_ratio: 0.1,
        ..finding(RULE.id, subject)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::{Did, Written};

    #[test]
    fn a_head_without_counts_is_told_by_its_path() {
        let busy = Did { reads: 100, read_bytes: 409_600, read_usec: 100, util_pct: 5, ..Did::default() };
        for (head, found) in [(Did::default(), true), (busy, false)] {
            let mut host = Written::new();
            host.disk(1, "nvme0n1", "/sys/devices/virtual/nvme-subsystem/nvme0n1", head).disk(2, "nvme0c0n1", "", busy);
            assert_eq!(host.ids().contains(&"nvme-multipath-hidden"), found);
        }
        assert_eq!((head("nvme0c0n1").as_deref(), head("nvme0n1"), head("sdc")), (Some("nvme0n1"), None, None));
    }
}
