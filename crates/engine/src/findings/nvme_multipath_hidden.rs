//! `nvme-multipath-hidden`: the I/O of a multipath NVMe disk is counted on its hidden paths.

use super::evidence::{disk_subject, evidence, finding};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;
use crate::snapshot::Device;
use quell_units::count;

pub(super) const RULE: Rule = Rule {
    id: "nvme-multipath-hidden",
    explain: Explain {
        means: "The disk that is mounted shows no I/O, and all of it is counted on path devices that have no node in /dev. A \
            tool that looks at the disk sees it idle.",
        kernel: "With native multipath nvmeXnY is the head and nvmeXcYnZ are its paths. Older kernels count I/O on the \
            paths alone. Limits belong on the head all the same.",
        evidence: "A path that has completed requests while its head has completed none, or less than a hundredth of that, since the boot.",
        change: "Read the paths' rows and add them up for the disk; a newer kernel counts on the head.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter_map(|head| hidden(scene, head)).collect()
}

fn hidden(scene: &Scene, head: &Disk) -> Option<Finding> {
    let paths: Vec<&Device> = scene.window.t1.devices.iter().filter(|path| is_path_of(path, head)).collect();
    let by_paths: u64 = paths.iter().map(|path| path.counters.completed()).fold(0, u64::saturating_add);
    let by_head = head.device.counters.completed();
    // A head that counts has as many as its paths: a hundredth of that are its own few, such as flushes.
    if by_paths == 0 || by_head > by_paths / 100 {
        return None;
    }
    let name = paths.iter().max_by_key(|path| path.counters.completed())?.name;
    Some(Finding {
        confidence: 0.95,
        summary: format!("{} counts nothing: its I/O is counted on {name}, which is hidden", head.name),
        evidence: vec![
            evidence(Aspect::Device, "completed by the disk", Value::Number(count(by_head)), "/proc/diskstats"),
            evidence(Aspect::Device, "by its paths", Value::Number(count(by_paths)), "/proc/diskstats"),
        ],
        advice: vec![Advice::text(format!(
            "read {name} for what {} does; set limits on {} itself",
            head.name, head.name
        ))],
        ..finding(RULE.id, disk_subject(head))
    })
}

/// `nvme0c1n2` is a path of `nvme0n2`.
fn is_path_of(path: &Device, head: &Disk) -> bool {
    let split = |name: &str| {
        let (controller, namespace) = name.strip_prefix("nvme")?.rsplit_once('n')?;
        Some((controller.to_owned(), namespace.to_owned()))
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(((path, of), (subsystem, namespace))) = split(path.name.as_str()).zip(split(head.name.as_str())) else {
        return false;
    };
    let parts = path.split_once('c');
    digits(&subsystem) && of == namespace && parts.is_some_and(|(x, y)| x == subsystem && digits(y))
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};

    fn host(path: &str, head_reads: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = |reads| Did { reads, read_bytes: reads * 4096, read_usec: 100, util_pct: 5, ..Did::default() };
        host.disk(0, path, "/sys/devices/pci0000:00/nvme/nvme0/nvme0c0n1", did(500));
        host.disk(1, "nvme0n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", did(head_reads));
        host.ids()
    }

    #[test]
    fn a_head_that_counts_nothing_beside_a_path_that_does_is_named() {
        assert!(host("nvme0c0n1", 0).contains(&"nvme-multipath-hidden"));
    }

    #[test]
    fn a_head_that_counts_and_another_disks_path_are_not() {
        assert!(!host("nvme0c0n1", 500).contains(&"nvme-multipath-hidden"));
        assert!(!host("nvme1c0n1", 0).contains(&"nvme-multipath-hidden"));
        assert!(!host("nvme0n2", 0).contains(&"nvme-multipath-hidden"));
    }
}
