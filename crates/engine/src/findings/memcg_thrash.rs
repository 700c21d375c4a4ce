//! `memcg-thrash`: a memory limit makes a workload read the same pages again and again.

use quell_units::{Bytes, CgroupPath, Limit, ratio};

use super::advise;
use super::evidence::{evidence, finding, of_stall, subject};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "memcg-thrash",
    explain: Explain {
        means: "The workload's memory limit is smaller than the files it works with: pages are evicted and read again, and \
            what looks like a disk problem is a memory problem.",
        kernel: "Page cache is charged to the cgroup that reads it. At memory.max or memory.high the kernel reclaims the \
            cgroup's own cache first; a page that comes back while it was still needed counts as a refault. \
            memory.pressure can stay near zero all the while (1.8 % beside 72 % of io.pressure was measured).",
        evidence: "Refaulted file pages of at least three tenths of all bytes the workload reads, at least 50 a second, \
            with its memory at nine tenths of its limit or of one above it, and a stall of a tenth of the time.",
        change: "Raise the limit, by as much as the working set is larger; or shrink what the program keeps reading.",
        undo: "Write the old limit back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.workloads.iter().filter_map(|workload| thrash(scene, workload)).collect()
}

fn thrash(scene: &Scene, workload: &Workload) -> Option<Finding> {
    let refaults = workload.memory?.refault_file_pages_per_sec?;
    let read: f64 =
        scene.leaf_disks().filter_map(|disk| workload.io_on(disk.dev)).map(|io| io.read.bytes_per_sec).sum();
    let share = ratio(refaults * scene.page_bytes(), read);
    if refaults < 50.0 || share < 0.3 || workload.stall_ratio() < 0.1 {
        return None;
    }
    let (at, file, limit, used) = full_limit(scene, &workload.path)?;
    let disk = scene.leaf_disks().max_by(|a, b| read_on(workload, a.dev).total_cmp(&read_on(workload, b.dev)))?;
    let limit_file = scene.cgroup_file(&at, file);
    let stat = scene.cgroup_file(&workload.path, "memory.stat");
    let mut out = vec![
        evidence(Aspect::Memory, "used", Value::Bytes(used.as_f64()), scene.cgroup_file(&at, "memory.current")),
        evidence(Aspect::Memory, file, Value::Bytes(limit.as_f64()), limit_file),
        evidence(Aspect::Memory, "refaults", Value::PerSec(refaults), stat.clone()),
        evidence(Aspect::Memory, "share of its reads", Value::Pct(share.min(1.0) * 100.0), stat),
    ];
    out.extend(of_stall(scene, workload, Aspect::Victim));
    out.extend(super::evidence::of_disk(disk));
    let double = Bytes(limit.0.saturating_mul(2));
    let text = "give it more memory: double the limit and look again";
    Some(Finding {
        confidence: 0.9,
        summary: format!(
            "{} reads the same pages over and over: its memory limit of {limit} is too small",
            workload.name
        ),
        evidence: out,
        advice: vec![
            advise::set_memory(scene, &at, file, limit, double, text).risk("the host must have that memory to give"),
        ],
        stall_ratio: workload.stall_ratio(),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

fn read_on(workload: &Workload, dev: quell_units::DevNum) -> f64 {
    workload.io_on(dev).map_or(0.0, |io| io.read.bytes_per_sec)
}

/// The limit on the way up that is full to nine tenths: where, which file, how much, how much of it used.
fn full_limit(scene: &Scene, path: &CgroupPath) -> Option<(CgroupPath, &'static str, Bytes, Bytes)> {
    path.ancestors().find_map(|at| {
        let used = scene.cgroup(&at)?.memory.ok()?;
        let config = scene.config(&at)?;
        [("memory.high", config.memory_high), ("memory.max", config.memory_max)].into_iter().find_map(
            |(file, limit)| {
                let Ok(Limit::At(limit)) = limit else { return None };
                (used.as_f64() >= 0.9 * limit.as_f64()).then(|| (at.clone(), file, limit, used))
            },
        )
    })
}
