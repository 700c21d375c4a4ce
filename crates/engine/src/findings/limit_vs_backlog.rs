//! `limit-vs-backlog`: page cache waits behind a limit, and the next fsync will wait for all of it.

use quell_units::Bytes;

use super::evidence::{evidence, finding, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Cap, CapKey, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-vs-backlog",
    explain: Explain {
        means: "The cgroup has more modified pages than its limit lets through in ten seconds. Nobody need wait yet; the next \
            fsync, or the end of a container, waits for all of them.",
        kernel: "A write into the page cache is not limited, write-back is. The limit makes the pages pile up, as many as the \
            cgroup's memory allows.",
        evidence: "file_dirty and file_writeback of memory.stat over wbps of io.max, more than 10 s.",
        change: "Raise the limit, or lower the cgroup's memory.high or the host's vm.dirty_bytes so that less piles up.",
        undo: "Write the old value back.",
    },
    find,
};

/// From how long a wait on it is worth a word.
const LONG_SECONDS: f64 = 10.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.caps.iter().filter(|cap| cap.key == CapKey::WriteBytes).filter_map(|cap| behind(scene, cap)).collect()
}

fn behind(scene: &Scene, cap: &Cap) -> Option<Finding> {
    let backlog = scene.backlog(&cap.cgroup)?.bytes();
    let seconds = backlog / cap.limit_per_sec;
    // Pages for another disk are not held by this limit: it must be what the cgroup writes to.
    let workload = super::throttled_by_io_max::held(scene, cap)?;
    let disk = scene.disk(cap.dev)?;
    if seconds < LONG_SECONDS || cap.used_per_sec.unwrap_or(0.0) <= 0.0 {
        return None;
    }
    let source = scene.cgroup_file(&cap.cgroup, "memory.stat");
    Some(Finding {
        severity: Severity::Info,
        confidence: 0.9,
        summary: format!(
            "{} has {} to write to {} at {}/s: its next fsync waits for up to {seconds:.0} s",
            workload.name,
            Bytes::rounded(backlog),
            disk.name,
            Bytes::rounded(cap.limit_per_sec)
        ),
        evidence: vec![
            evidence(
                Aspect::Limit,
                "wbps",
                Value::BytesPerSec(cap.limit_per_sec),
                scene.cgroup_file(&cap.cgroup, "io.max"),
            ),
            evidence(Aspect::Memory, "waits to be written", Value::Bytes(backlog), source.clone()),
            evidence(Aspect::Memory, "time to write it at the limit", Value::Usec(seconds * 1e6), source),
        ],
        advice: vec![
            super::advise::lift(scene, &cap.cgroup, cap.dev, cap.key, "raise or lift the limit"),
            Advice::text("or let less pile up: a lower memory.high for it, or vm.dirty_bytes for the host"),
        ],
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::memory_stat::MemoryStat;
    use quell_units::Bytes;

    use crate::findings::written::{Did, Written, io_max};

    const MIB: u64 = 1 << 20;

    fn says(dirty: u64, limit: u64) -> bool {
        let mut host = Written::new();
        let did = Did { writes: 1, write_bytes: MIB, write_usec: 1000, util_pct: 1, ..Did::default() };
        host.disk(0, "vda", "/sys/devices/pci0000:00/virtio0/block/vda", did).cgroup("app", 0.0, &[(0, 0, 1, MIB)]);
        host.configure("app", |config| config.io_max = Ok(vec![io_max(0, [None, Some(limit), None, None])]));
        let stat = MemoryStat {
            file_dirty_bytes: Some(Bytes(dirty)),
            file_writeback_bytes: Some(Bytes(0)),
            ..MemoryStat::default()
        };
        host.now("app", |cgroup| cgroup.memory_stat = Ok(stat));
        host.ids().contains(&"limit-vs-backlog")
    }

    #[test]
    fn more_than_ten_seconds_of_dirty_pages_behind_a_limit_are_worth_a_word() {
        assert!(says(210 * MIB, 20 * MIB));
        assert!(!says(190 * MIB, 20 * MIB));
    }
}
