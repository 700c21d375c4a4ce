//! `throttled-by-io-max`: a workload is at its ceiling and waits above the disk, where no disk counter sees it.

use quell_paste::{Copied, Statement};
use quell_units::{Bytes, count};

use super::advise;
use super::evidence::{PASTE, asker, evidence, finding, of_disk, of_stall, safe, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Cap, CapKey, Disk, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "throttled-by-io-max",
    explain: Explain {
        means: "The workload does exactly what its io.max, or that of a cgroup above it, allows, and waits for the rest of \
            the time. The disk is not the reason.",
        kernel: "blk-throttle holds a bio before it becomes a request, so the wait shows in no disk counter, in neither \
            iostat nor the block tracepoints. The budget comes in slices of 100 ms: bursts at full speed, then silence. A \
            limit above the workload holds the sum of all below it.",
        evidence: "The cgroup's own rate in io.stat, within 5 % (or a bio and a half) of the limit, and one sign that \
            somebody waits: pressure, a task seen waiting, page cache that piles up, a disk with time to spare, or a \
            rate within 2 % of the limit. Or four fifths of the limit, a stall of three tenths of the time, and a disk \
            that is idle and busy for much less than that; or two seconds of write-back under way, and far more of it than \
            the requests in the disk's queue hold. In a paste: a copy within 2 % of a limit that was asked for or is set.",
        change: "Raise or lift the limit, at the cgroup where it is set, or leave it and know that the wait is meant.",
        undo: "Write the old value back: the keys not named keep theirs.",
    },
    find,
};

/// The largest portion in which write-back was seen to come.
const PORTION_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for finding in scene.caps.iter().filter_map(|cap| throttled(scene, cap)) {
        // Of several limits that one workload has reached, the first in io.max's order is as good as any.
        if !found.iter().any(|earlier| earlier.subject == finding.subject) {
            found.push(finding);
        }
    }
    found.extend(copied_at_limit(scene));
    found
}

/// A copy that ran at the rate that was asked for as a limit, within 2 %.
fn copied_at_limit(scene: &Scene) -> Option<Finding> {
    let rate = |copied: &Copied| copied.bytes.as_f64() / copied.seconds.max(1e-3);
    let limits = || {
        let asked = scene.statements().iter().filter_map(|said| match said {
            Statement::LimitAsked { by, key, value, .. } => Some((by.clone(), key.clone(), count(*value))),
            _ => None,
        });
        let held =
            scene.caps.iter().map(|cap| (cap.cgroup.to_string(), cap.key.as_str().to_owned(), cap.limit_per_sec));
        asked.chain(held).filter(|(_, key, _)| key.ends_with("bps"))
    };
    scene.copies().find_map(|copied| {
        let fits = |key: &str| copied.writes.is_none_or(|writes| writes == (key == "wbps"));
        let at = |limit: f64| limit > 0.0 && (0.98..=1.02).contains(&(rate(copied) / limit));
        let (by, key, limit) = limits().find(|(_, key, limit)| fits(key) && at(*limit))?;
        let shown = Bytes::rounded(limit);
        Some(Finding {
            confidence: if copied.direct == Some(true) || copied.synced { 0.95 } else { 0.8 },
            summary: format!("the copy runs at its limit: {key} {shown}/s is what was asked for, and what it gets"),
            evidence: vec![
                evidence(Aspect::Limit, &key, Value::BytesPerSec(limit), PASTE),
                evidence(Aspect::Victim, "copied", Value::BytesPerSec(rate(copied)), PASTE),
                evidence(Aspect::Limit, "asked for by", Value::Word(safe(&by)), PASTE),
            ],
            advice: vec![Advice::text(
                "raise or lift the limit where it is set, if the wait is not meant; the disk can do more",
            )],
            stall_ratio: 0.5,
            ..finding(RULE.id, asker(&by))
        })
    })
}

fn throttled(scene: &Scene, cap: &Cap) -> Option<Finding> {
    let disk = scene.disk(cap.dev)?;
    let workload = held(scene, cap)?;
    let below = || scene.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
    let stall = below().map(Workload::stall_ratio).fold(0.0, f64::max);
    let backlog = scene.backlog(&cap.cgroup).map(|backlog| backlog.bytes()).filter(|_| cap.key.is_bytes());
    let drain_seconds = backlog.map(|bytes| bytes / cap.limit_per_sec);
    let idle = scene.leaves(cap.dev).all(|leaf| leaf.util_pct < 50.0 && leaf.queue_length_avg() < 2.0);
    let drains = drain_seconds.is_some_and(|seconds| seconds >= 1.0);
    let reached = cap.reached() && (stall >= 0.1 || drains || idle || cap.pins());
    let near = idle && waits_for_more_than_the_disk(scene, cap, stall);
    if !(reached || near || holds_write_back(scene, cap)) {
        return None;
    }
    let own = cap.cgroup == workload.path;
    let whose = if own { "its own".to_owned() } else { format!("{}'s", scene.name_of(&cap.cgroup)) };
    let mut evidence = of_limit(scene, cap);
    evidence.extend(of_stall(scene, workload, Aspect::Victim));
    evidence.extend(of_disk(disk));
    if let (Some(bytes), Some(seconds)) = (backlog, drain_seconds) {
        evidence.extend(of_backlog(scene, cap, bytes, seconds));
    }
    Some(Finding {
        confidence: if stall >= 0.1 { 0.95 } else { 0.85 },
        summary: format!(
            "{} is held at {whose} limit on {}: {} {}",
            workload.name,
            disk.name,
            cap.key.as_str(),
            shown(cap)
        ),
        evidence,
        advice: vec![lift(scene, cap, disk)],
        stall_ratio: if stall >= 0.1 { stall } else { 0.5 },
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

/// Whether somebody waits far more than the disk is busy, at four fifths of the limit and more.
///
/// A writer that fills the page cache and then syncs leaves the limit unused in between, so that its mean stays below it;
/// its waits are the limit's all the same, since the disk does not account for them.
fn waits_for_more_than_the_disk(scene: &Scene, cap: &Cap, stall_ratio: f64) -> bool {
    let busiest_pct = scene.leaves(cap.dev).map(|leaf| leaf.util_pct).fold(0.0, f64::max);
    let near = cap.used_ratio().is_some_and(|used| used >= 0.8);
    near && stall_ratio >= 0.3 && stall_ratio >= busiest_pct / 100.0 + 0.1
}

/// Whether seconds of write-back are under way, and several times what the disk's queue holds: then they are held above it.
///
/// The rate alone says little: write-back under a limit comes in portions of 8 MiB on ext4 and 16 MiB on XFS (measured on
/// 6.1 and 6.12), each counted whole when it is let through. So what was used may lack one portion, and no more: a limit
/// that is far away holds nothing.
fn holds_write_back(scene: &Scene, cap: &Cap) -> bool {
    let under_way = scene.backlog(&cap.cgroup).map_or(0.0, |backlog| backlog.writeback.as_f64());
    let queued: f64 = scene.leaves(cap.dev).map(Disk::queued_write_bytes).sum();
    let portion_ratio = PORTION_BYTES / (cap.limit_per_sec * cap.seconds);
    let may_be_used_up = cap.used_ratio().is_some_and(|used| used + portion_ratio >= 0.95);
    cap.key == CapKey::WriteBytes && may_be_used_up && under_way >= 2.0 * cap.limit_per_sec && under_way >= 4.0 * queued
}

/// The workload that the limit holds: of those below it that do a part of what it limits the one that waits most, and
/// of those that wait alike the one that does most.
pub(super) fn held<'s>(scene: &'s Scene, cap: &Cap) -> Option<&'s Workload> {
    let rate = |workload: &Workload| {
        let io = workload.io_on(cap.dev);
        io.map_or(0.0, |io| if cap.key.is_write() { io.write.bytes_per_sec } else { io.read.bytes_per_sec })
    };
    let below = || scene.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
    let all: f64 = below().map(rate).sum();
    below()
        .filter(|workload| rate(workload) >= all / 50.0)
        .max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()).then(rate(a).total_cmp(&rate(b))))
}

fn of_limit(scene: &Scene, cap: &Cap) -> Vec<Evidence> {
    let per_sec = |n: f64| if cap.key.is_bytes() { Value::BytesPerSec(n) } else { Value::PerSec(n) };
    let v1 = scene.window.t1.host.cgroups.io_is_v1();
    let limit_file = scene.cgroup_file(&cap.cgroup, if v1 { cap.key.v1_file() } else { "io.max" });
    let rate_file = scene.cgroup_file(&cap.cgroup, super::evidence::io_file(scene));
    let used = cap.used_per_sec.unwrap_or(0.0);
    vec![
        evidence(Aspect::Limit, "set at", Value::Word(cap.cgroup.to_string()), limit_file.clone()),
        evidence(Aspect::Limit, cap.key.as_str(), per_sec(cap.limit_per_sec), limit_file),
        evidence(Aspect::Limit, "used", per_sec(used), rate_file.clone()),
        evidence(Aspect::Limit, "of the limit", Value::Pct(100.0 * used / cap.limit_per_sec), rate_file),
    ]
}

fn of_backlog(scene: &Scene, cap: &Cap, bytes: f64, seconds: f64) -> Vec<Evidence> {
    if seconds < 1.0 {
        return Vec::new();
    }
    let source = scene.cgroup_file(&cap.cgroup, "memory.stat");
    vec![
        evidence(Aspect::Memory, "waits to be written", Value::Bytes(bytes), source.clone()),
        evidence(Aspect::Memory, "time to write it at the limit", Value::Usec(seconds * 1e6), source),
    ]
}

fn shown(cap: &Cap) -> String {
    if cap.key.is_bytes() {
        format!("{}/s", Bytes::rounded(cap.limit_per_sec))
    } else {
        format!("{:.0}/s", cap.limit_per_sec)
    }
}

fn lift(scene: &Scene, cap: &Cap, disk: &Disk) -> Advice {
    let text = format!("raise or lift the limit at {}, if the wait is not meant", cap.cgroup);
    let risk = format!("the others on {} lose what this limit kept for them", disk.name);
    advise::lift(scene, &cap.cgroup, cap.dev, cap.key, text).risk(risk)
}

#[cfg(test)]
mod tests {
    use quell_paste::{Copied, Pasted, Statement};
    use quell_units::Bytes;

    use crate::findings::written::Written;

    fn says(bytes_per_sec: u64, writes: Option<bool>) -> bool {
        let mut host = Written::new();
        let (by, device, key) = ("workspace".into(), String::new(), "wbps".into());
        let asked = Statement::LimitAsked { by, device, key, value: 10 << 20 };
        let copied = Copied { bytes: Bytes(bytes_per_sec * 10), seconds: 10.0, writes, ..Copied::default() };
        host.window.pasted =
            Some(Box::new(Pasted { statements: vec![asked, Statement::Copied(copied)], ..Pasted::default() }));
        host.ids().contains(&"throttled-by-io-max")
    }

    #[test]
    fn a_copy_at_the_rate_that_was_asked_for_is_held_by_it() {
        assert!(says(10_584_300, Some(true)));
        assert!(says(10_584_300, None));
        assert!(!says(10_584_300, Some(false)), "the limit is for writes");
        assert!(!says(9_900_000, Some(true)), "a twentieth below it is another reason");
    }
}
