//! `writeback-unattributed`: a workload's buffered writes are nobody's at the disk, so no counter and no limit sees them.

use quell_units::{Bytes, CgroupPath, count};

use super::evidence::{PASTE, evidence, finding, host_subject, io_file, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{CapKey, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "writeback-unattributed",
    explain: Explain {
        means: "This workload writes through the page cache, and what it writes is charged to the root cgroup when it goes to \
            disk. Its own counters stand still, and a limit for writes does not hold it.",
        kernel: "Write-back knows whose page it is only where the io and the memory controller are on for the same cgroup of \
            version 2, on ext4, XFS, btrfs and f2fs. Under version 1 a page that the flusher writes is the root's; only \
            direct I/O and what an fsync writes in the task's own name is the cgroup's.",
        evidence: "A workload whose processes make a megabyte a second and more of writes by /proc/PID/io, three times what \
            its cgroup counts at disks, under version 1 or without the memory controller. A warning where it has a limit \
            for writes or a disk queues, else information. In a paste: a copy that the cgroup's counters of version 1 do \
            not show.",
        change: "Move to cgroup version 2 with the memory controller on; until then write past the page cache.",
        undo: "Boot with the old option again.",
    },
    find,
};

/// Below it, what is not counted matters to nobody.
const WRITES_MIN: f64 = 1e6;

fn find(scene: &Scene) -> Vec<Finding> {
    let live = scene.workloads.iter().filter(|workload| !workload.is_kernel() && workload.io_counted);
    live.filter_map(|workload| unattributed(scene, workload)).chain(copied(scene)).collect()
}

fn unattributed(scene: &Scene, workload: &Workload) -> Option<Finding> {
    let v1 = scene.window.t1.host.cgroups.io_is_v1();
    let controllers = scene.config(&workload.path).and_then(|config| config.controllers.ok());
    let without_memory = controllers.is_some_and(|on| on.io && !on.memory);
    if !v1 && !without_memory {
        return None;
    }
    let made = workload.process_write_bytes_per_sec();
    let counted: f64 = workload.io.iter().map(|io| io.write.bytes_per_sec).sum();
    if made < WRITES_MIN || made < 3.0 * counted {
        return None;
    }
    let cap = scene.caps.iter().find(|cap| cap.key == CapKey::WriteBytes && workload.path.is_within(&cap.cgroup));
    let over = cap.filter(|cap| made >= cap.limit_per_sec);
    let hides = over.is_some() || scene.leaf_disks().any(super::scene::Disk::is_queueing);
    let disk = cap.and_then(|cap| scene.disk(cap.dev));
    let mut out = vec![
        evidence(Aspect::Victim, "its processes write", Value::BytesPerSec(made), "/proc/PID/io"),
        evidence(
            Aspect::Victim,
            "its cgroup counts",
            Value::BytesPerSec(counted),
            scene.cgroup_file(&workload.path, io_file(scene)),
        ),
    ];
    if let Some(cap) = over {
        let file = scene.cgroup_file(&cap.cgroup, if v1 { cap.key.v1_file() } else { "io.max" });
        out.push(evidence(Aspect::Limit, "limit that does not act", Value::BytesPerSec(cap.limit_per_sec), file));
    }
    let why = if v1 { "cgroup version 1" } else { "a cgroup without the memory controller" };
    let rate = Bytes::rounded(made);
    let limit = if over.is_some() { ", and its limit does not hold them" } else { "" };
    Some(Finding {
        severity: if hides { Severity::Warning } else { Severity::Info },
        confidence: 0.85,
        summary: format!("{}'s buffered writes of {rate}/s are the root's under {why}{limit}", workload.name),
        evidence: out,
        advice: vec![if v1 { version_2() } else { with_memory() }],
        stall_ratio: if hides { workload.stall_ratio() } else { 0.0 },
        ..finding(RULE.id, subject(workload, disk.map(|disk| disk.name)))
    })
}

fn version_2() -> Advice {
    Advice::text("boot with systemd.unified_cgroup_hierarchy=1; until then only direct I/O and fsync can be limited")
        .risk("runtimes older than docker 20.10, containerd 1.4 and kubernetes 1.25 do not know version 2")
}

fn with_memory() -> Advice {
    Advice::text(
        "turn the memory controller on for this cgroup: name memory in cgroup.subtree_control of those above it",
    )
}

/// A copy that no counter of the pasted cgroup of version 1 shows.
fn copied(scene: &Scene) -> Option<Finding> {
    if scene.pasted().is_none() || scene.cgroup_version() != Some(1) {
        return None;
    }
    let written = |path: &CgroupPath| scene.written_bytes(path);
    let mut cgroups = scene.window.t1.cgroups.iter().map(|cgroup| &cgroup.path).filter(|path| !path.is_root());
    let (path, counted) = cgroups.find_map(|path| Some((path, written(path)?)))?;
    // Ten megabytes: less is lost in what a file system writes of its own.
    let copy = scene.copies().find(|copied| {
        copied.direct != Some(true)
            && copied.writes != Some(false)
            && copied.bytes.as_f64() >= 1e7
            && count(counted) <= copied.bytes.as_f64() / 10.0
    })?;
    Some(Finding {
        confidence: 0.9,
        summary: format!(
            "{} were written and {path} was charged {}: write-back is the root's",
            copy.bytes,
            Bytes(counted)
        ),
        evidence: vec![
            evidence(Aspect::Victim, "copied", Value::Bytes(copy.bytes.as_f64()), PASTE),
            evidence(
                Aspect::Victim,
                "its cgroup counts",
                Value::Bytes(count(counted)),
                "blkio.throttle.io_service_bytes",
            ),
        ],
        advice: vec![version_2()],
        ..finding(RULE.id, host_subject())
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::pid_io::PidIo;
    use quell_paste::{Copied, Pasted, Statement};
    use quell_units::Bytes;

    use crate::findings::Severity;
    use crate::findings::written::{Did, SECONDS, Written, io_max};
    use crate::snapshot::CgroupMode;

    const MIB: u64 = 1 << 20;
    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    /// A writer of 20 MiB a second, of which its cgroup counts so much.
    fn host(mode: CgroupMode, counted_mib: u64, limited: bool) -> Written {
        let mut host = Written::new();
        let did = Did { writes: 20, write_bytes: 20 * MIB, write_usec: 50_000, util_pct: 60, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did).cgroup("docker/aa", 0.0, &[(0, 0, 1, counted_mib * MIB)]);
        host.waits("docker/aa", 7, "", "");
        for (snapshot, written) in [(&mut host.window.t0, 0), (&mut host.window.t1, 20 * MIB * SECONDS)] {
            snapshot.host.cgroups = mode;
            snapshot.tasks[0].blocked = false;
            snapshot.tasks[0].io =
                Ok(PidIo { read_bytes: Some(Bytes(0)), write_bytes: Some(Bytes(written)), ..PidIo::default() });
        }
        if limited {
            host.configure("docker/aa", |config| {
                config.io_max = Ok(vec![io_max(0, [None, Some(2 * MIB), None, None])])
            });
        }
        host
    }

    fn severity(host: &Written) -> Option<Severity> {
        host.findings().iter().find(|finding| finding.id == "writeback-unattributed").map(|finding| finding.severity)
    }

    #[test]
    fn a_limit_of_version_1_that_buffered_writes_pass_by_is_a_warning() {
        assert_eq!(severity(&host(CgroupMode::V1, 0, true)), Some(Severity::Warning));
        assert_eq!(severity(&host(CgroupMode::V1, 0, false)), Some(Severity::Info));
    }

    #[test]
    fn writes_that_are_counted_are_attributed() {
        assert_eq!(severity(&host(CgroupMode::V1, 19, true)), None);
        assert_eq!(severity(&host(CgroupMode::V2, 0, true)), None, "they may still be on their way");
    }

    #[test]
    fn a_copy_that_the_counters_of_version_1_do_not_show_is_named() {
        let says = |counted_mib: u64, direct| {
            let mut host = Written::new();
            host.cgroup("docker/aa", 0.0, &[(0, 0, 1, counted_mib * MIB)]);
            let copied = Copied { bytes: Bytes(400 * MIB), seconds: 0.2, direct, ..Copied::default() };
            let statements = vec![Statement::CgroupVersion(1), Statement::Copied(copied)];
            host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
            host.ids().contains(&"writeback-unattributed")
        };
        assert!(says(0, None));
        assert!(!says(40, None), "ten seconds of it are the whole copy");
        assert!(!says(0, Some(true)));
    }
}
