//! `iops-limit-on-buffered`: a limit of write operations on a workload whose writes the page cache puts together.

use quell_paste::Statement;
use quell_units::Bytes;

use super::evidence::{PASTE, asker, evidence, finding, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Cap, CapKey, Scene, Workload};
use super::table::Rule;
use crate::snapshot::Snapshot;

pub(super) const RULE: Rule = Rule {
    id: "iops-limit-on-buffered",
    explain: Explain {
        means: "Writes are limited by number, and this workload writes through the page cache: what is counted is not what \
            it writes, so that the limit holds far more bytes than was meant, or far less.",
        kernel: "Write-back puts neighbouring pages together, up to a megabyte and more in one bio, before blk-throttle \
            counts. On kernels that count split bios, one such counts as often as it was split. The number of the \
            program's own writes appears nowhere.",
        evidence: "wiops in io.max at least half used, a mean bio of 128 KiB or more, and a mebibyte of dirty page cache at \
            either moment. A warning where the workload waits, else information. In a paste: wiops asked for, and a copy \
            through the page cache.",
        change: "Limit bytes, wbps. Keep wiops for programs that write past the page cache.",
        undo: "Write the old wiops back.",
    },
    find,
};

/// A bio that a program's own write hardly makes, and write-back does: 32 pages.
const MERGED_BYTES: f64 = 128.0 * 1024.0;

/// Less dirty page cache is the file system's own.
const DIRTY_BYTES: u64 = 1 << 20;

fn find(scene: &Scene) -> Vec<Finding> {
    let live = scene.caps.iter().filter(|cap| cap.key == CapKey::WriteIos).filter_map(|cap| on_buffered(scene, cap));
    live.chain(asked(scene)).collect()
}

fn on_buffered(scene: &Scene, cap: &Cap) -> Option<Finding> {
    let io = scene.rates.cgroup(&cap.cgroup)?.io.as_ref().ok()?.iter().find(|io| io.dev == cap.dev)?;
    let merged = io.write.size_bytes_avg? >= MERGED_BYTES;
    let used = cap.used_ratio().is_some_and(|used| used >= 0.5);
    let dirty = [&scene.window.t0, &scene.window.t1].iter().any(|moment| is_dirty(moment, cap));
    if !(merged && used && dirty) {
        return None;
    }
    let workload = scene.held_by(cap)?;
    let disk = scene.disk(cap.dev)?;
    let below = scene.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
    let stall = below.map(Workload::stall_ratio).fold(0.0, f64::max);
    let waits = stall >= 0.2;
    let file = super::evidence::cap_file(scene, cap);
    let stat = scene.cgroup_file(&cap.cgroup, "io.stat");
    let rate = Bytes::rounded(io.write.bytes_per_sec);
    let mut out = vec![
        evidence(Aspect::Limit, "wiops", Value::PerSec(cap.limit_per_sec), file),
        evidence(Aspect::Limit, "used", Value::PerSec(io.write.ios_per_sec), stat.clone()),
        evidence(Aspect::Limit, "bytes in one of them", Value::Bytes(io.write.size_bytes_avg?), stat.clone()),
        evidence(Aspect::Victim, "writes", Value::BytesPerSec(io.write.bytes_per_sec), stat),
    ];
    out.extend(of_stall(scene, workload, Aspect::Victim));
    Some(Finding {
        severity: if waits { Severity::Warning } else { Severity::Info },
        confidence: 0.9,
        summary: format!(
            "wiops {:.0} on {} holds {} by write-back's own requests, not by its writes: {rate}/s pass",
            cap.limit_per_sec, disk.name, workload.name
        ),
        evidence: out,
        advice: vec![
            Advice::text("limit bytes instead (wbps), at what was meant, and lift the limit of operations"),
            super::advise::lift(scene, &cap.cgroup, cap.dev, cap.key, "lift the limit of operations"),
        ],
        stall_ratio: if waits { stall } else { 0.0 },
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

fn is_dirty(moment: &Snapshot, cap: &Cap) -> bool {
    let stat = moment.cgroup(&cap.cgroup).and_then(|cgroup| cgroup.memory_stat.ok());
    stat.is_some_and(|stat| {
        let pages = [stat.file_dirty_bytes, stat.file_writeback_bytes];
        pages.into_iter().flatten().map(Bytes::get).fold(0, u64::saturating_add) >= DIRTY_BYTES
    })
}

/// A limit of operations that was asked for, and a copy through the page cache that it was meant to hold.
fn asked(scene: &Scene) -> Option<Finding> {
    let buffered = scene.copies().any(|copied| copied.direct == Some(false) && copied.writes == Some(true));
    let (by, value) = scene.statements().iter().find_map(|said| match said {
        Statement::LimitAsked { by, key, value, .. } if key == "wiops" => Some((by, value)),
        _ => None,
    })?;
    buffered.then(|| Finding {
        confidence: 0.75,
        summary: "a limit of write operations on a copy through the page cache: write-back puts its writes together"
            .into(),
        evidence: vec![evidence(Aspect::Limit, "wiops", Value::PerSec(quell_units::count(*value)), PASTE)],
        advice: vec![Advice::text(
            "limit bytes instead (wbps), or write past the page cache (oflag=direct) to test it",
        )],
        ..finding(RULE.id, asker(by))
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::memory_stat::MemoryStat;
    use quell_units::Bytes;

    use crate::findings::written::{Did, Written, io_max};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    fn ids(limit: u64, bio: u64, dirty: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { writes: 16, write_bytes: 16 * bio, write_usec: 30_000, util_pct: 30, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did).cgroup("app", 0.6, &[(0, 0, 18, 18 * bio)]);
        host.configure("app", |config| config.io_max = Ok(vec![io_max(0, [None, None, None, Some(limit)])]));
        let stat = MemoryStat {
            file_dirty_bytes: Some(Bytes(dirty)),
            file_writeback_bytes: Some(Bytes(0)),
            ..MemoryStat::default()
        };
        host.now("app", |cgroup| cgroup.memory_stat = Ok(stat));
        host.ids()
    }

    #[test]
    fn merged_write_back_under_a_limit_of_operations_is_named_whether_it_reaches_it_or_not() {
        assert_eq!(ids(20, 1 << 20, 8 << 20), ["iops-limit-on-buffered"]);
        assert_eq!(ids(18, 1 << 20, 8 << 20), ["iops-limit-on-buffered"]);
    }

    #[test]
    fn direct_writes_and_a_limit_that_is_far_away_are_not() {
        assert!(!ids(18, 16 << 10, 8 << 20).contains(&"iops-limit-on-buffered"));
        assert!(!ids(18, 1 << 20, 0).contains(&"iops-limit-on-buffered"));
        assert!(!ids(600, 1 << 20, 8 << 20).contains(&"iops-limit-on-buffered"));
    }
}
