//! `dirty-throttled`: a writer is stopped because too much of the page cache is dirty.

use quell_units::{Bytes, CgroupPath, Limit, count};

use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_stall, of_wait, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, PAGE_BYTES, Scene, WaitKind, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "dirty-throttled",
    explain: Explain {
        means: "A buffered writer is paused inside write(), because it dirties pages faster than they are written and the \
            limit for dirty pages is near.",
        kernel: "Up to half-way between the background threshold and the limit writers run free; above it \
            balance_dirty_pages() pauses them, 10 to 200 ms at a time, down to the speed of write-back. Each memory cgroup \
            has a domain of its own: a container of 1 GiB is paused near 150 MiB though the host is clean.",
        evidence: "A task seen in balance_dirty_pages (in a tenth of many looks), with dirty pages and those under write-back above half-way between \
            the two thresholds of the host or of its memory cgroup; or, without such a look, that backlog at both \
            moments, mostly this workload's, and a workload stalled for a fifth of the time.",
        change: "Usually nothing: the pauses match the writer to the disk. Where the limit is small on purpose, raise it \
            (vm.dirty_bytes, or the container's memory); where the disk is slow, see why.",
        undo: "Write the old values back with sysctl.",
    },
    find,
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene
        .workloads
        .iter()
        .filter(|workload| !workload.is_kernel())
        .filter_map(|workload| throttled(scene, workload))
        .collect()
}

fn throttled(scene: &Scene, workload: &Workload) -> Option<Finding> {
    // Of many looks a tenth: a pause now and then is how the kernel works, and no finding.
    let wait = workload.waits.iter().find(|wait| wait.kind == WaitKind::DirtyPause && wait.seen * 10 >= wait.looks);
    let host = host_is_over(scene);
    let memcg = memcg_limit(scene, workload).filter(|(limit, backlog)| backlog.as_f64() >= 0.75 * limit);
    let seen = wait.is_some() && (host.is_some() || memcg.is_some());
    let inferred = || host == Some(true) && owns_the_backlog(scene, workload) && workload.stall_ratio() >= 0.2;
    if !seen && !inferred() {
        return None;
    }
    let disk = scene.leaf_disks().max_by(|a, b| written(workload, a).total_cmp(&written(workload, b)))?;
    let mut out: Vec<Evidence> = wait.into_iter().map(|wait| of_wait(wait, Aspect::Victim)).collect();
    out.extend(of_stall(scene, workload, Aspect::Victim).into_iter().take(1));
    match memcg.filter(|_| host.is_none()) {
        Some((limit, backlog)) => out.extend(of_memcg(scene, workload, limit, backlog)),
        None => out.extend(of_host_backlog(scene)),
    }
    out.extend(of_disk(disk));
    let whose = if host.is_none() { "its memory cgroup's" } else { "the host's" };
    Some(Finding {
        confidence: if seen { 0.9 } else { 0.6 },
        summary: format!("{} is paused in write(): {whose} limit for dirty pages is reached", workload.name),
        evidence: out,
        advice: advice(scene, host.is_none()),
        stall_ratio: workload.stall_ratio().max(0.25),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

fn written(workload: &Workload, disk: &Disk) -> f64 {
    workload.io_on(disk.dev).map_or(0.0, |io| io.write.bytes_per_sec)
}

/// Whether the host's backlog is above the point where writers run free: at some look, and whether at every one.
fn host_is_over(scene: &Scene) -> Option<bool> {
    let (background, limit) = scene.dirty_limits()?;
    let free_run = background.midpoint(limit);
    let over: Vec<bool> = scene.host_backlogs().into_iter().map(|pages| pages >= free_run).collect();
    over.contains(&true).then(|| over.iter().all(|over| *over))
}

/// The dirty limit of the workload's memory cgroup and its backlog, where a memory limit makes it one of its own.
///
/// As `mdtc_calc_avail` and `domain_dirty_limits` (mm/page-writeback.c) have it: the ratio of the page cache and of what
/// the memory limit leaves free.
fn memcg_limit(scene: &Scene, workload: &Workload) -> Option<(f64, Bytes)> {
    let backlog = scene.backlog(&workload.path)?;
    let (limit, used) = workload.path.ancestors().find_map(|at| memory_limit(scene, &at))?;
    let file = scene.cgroup(&workload.path)?.memory_stat.ok()?.file_bytes?;
    let available = file.as_f64() + limit.saturating_sub(used).as_f64();
    let ratio_pct = scene.window.t1.system.dirty_ratio_pct.ok().filter(|pct| *pct > 0).unwrap_or(20);
    Some((available * count(ratio_pct) / 100.0, backlog.dirty.saturating_add(backlog.writeback)))
}

fn memory_limit(scene: &Scene, at: &CgroupPath) -> Option<(Bytes, Bytes)> {
    let Ok(Limit::At(limit)) = scene.config(at)?.memory_max else { return None };
    Some((limit, scene.cgroup(at)?.memory.ok()?))
}

fn owns_the_backlog(scene: &Scene, workload: &Workload) -> bool {
    let host = scene.host_backlogs().into_iter().max().map_or(0.0, |pages| count(pages) * PAGE_BYTES);
    scene.backlog(&workload.path).is_some_and(|backlog| backlog.bytes() >= host / 2.0)
}

fn of_memcg(scene: &Scene, workload: &Workload, limit: f64, backlog: Bytes) -> [Evidence; 2] {
    let source = scene.cgroup_file(&workload.path, "memory.stat");
    [
        evidence(Aspect::Memory, "dirty and under write-back", Value::Bytes(backlog.as_f64()), source.clone()),
        evidence(Aspect::Memory, "limit of its memory cgroup, about", Value::Bytes(limit), source),
    ]
}

fn advice(scene: &Scene, memcg: bool) -> Vec<Advice> {
    if memcg {
        return vec![Advice::text(
            "the limit grows with the container's memory; else the pauses match the writer to the disk",
        )];
    }
    let set = scene.window.t1.system.dirty_bytes.ok().filter(|bytes| bytes.0 > 0);
    let text = "the pauses match the writer to the disk; raise the limit only if bursts should be absorbed in memory";
    let command = |bytes: u64| Some(format!("sysctl -w vm.dirty_bytes={bytes}"));
    vec![match set {
        Some(Bytes(bytes)) => Advice {
            command: command(bytes.saturating_mul(4)),
            undo: command(bytes),
            ..Advice::text(text).risk("a longer fsync: more is dirty when it comes, and more is lost in a crash")
        },
        None => Advice::text(text),
    }]
}
