//! `dirty-throttled`: a writer is stopped because too much of the page cache is dirty.

use quell_units::{Bytes, CgroupPath, Limit, count};

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_stall, of_wait, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, Scene, Wait, WaitKind, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "dirty-throttled",
    explain: Explain {
        means: "A buffered writer is paused inside write(), because it dirties pages faster than they are written and the \
            limit for dirty pages is near.",
        kernel: "Up to half-way between the background threshold and the limit writers run free; above it \
            balance_dirty_pages() pauses them, 10 to 200 ms at a time, down to the speed of write-back. Each memory cgroup \
            has a domain of its own: a container of 1 GiB is paused near 150 MiB though the host is clean.",
        evidence: "A task seen in balance_dirty_pages (in a tenth of the looks, or with a stall of a fifth), with dirty pages and those under write-back above half-way between \
            the two thresholds of the host or of its memory cgroup; or, without such a look, that backlog most of \
            the times, mostly this workload's, and a workload stalled for a fifth of the time.",
        change: "Usually nothing: the pauses match the writer to the disk. Where the limit is small on purpose, raise it \
            (vm.dirty_bytes, or the container's memory); where the disk is slow, see why.",
        undo: "Write the old values back with sysctl.",
    },
    find,
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
    // Of many looks a tenth, or a stall beside it: a pause now and then is how the kernel works, and no finding.
    let felt = |wait: &Wait| wait.seen * 10 >= wait.looks || workload.stall_ratio() >= 0.2;
    let wait = workload.waits.iter().find(|wait| wait.kind == WaitKind::DirtyPause && felt(wait));
    let host = host_backlog(scene);
    let memcg = memcg_limit(scene, workload).filter(|memcg| memcg.backlog.as_f64() >= 0.75 * memcg.limit.as_f64());
    let seen = wait.is_some() && (host != HostBacklog::Below || memcg.is_some());
    let inferred =
        || host == HostBacklog::AboveMostly && owns_the_backlog(scene, workload) && workload.stall_ratio() >= 0.2;
    if !seen && !inferred() {
        return None;
    }
    let memcg = memcg.filter(|_| host == HostBacklog::Below);
    let disk = scene.leaf_disks().max_by(|a, b| written(workload, a).total_cmp(&written(workload, b)))?;
    let mut out: Vec<Evidence> = wait.into_iter().map(|wait| of_wait(wait, Aspect::Victim)).collect();
    out.extend(of_stall(scene, workload, Aspect::Victim).into_iter().take(1));
    match &memcg {
        Some(memcg) => out.extend(of_memcg(scene, workload, memcg)),
        None => out.extend(of_host_backlog(scene)),
    }
    out.extend(of_disk(disk));
    let whose = if memcg.is_some() { "its memory cgroup's" } else { "the host's" };
    Some(Finding {
        confidence: if seen { 0.9 } else { 0.6 },
        summary: format!("{} is paused in write(): {whose} limit for dirty pages is reached", workload.name),
        evidence: out,
        advice: vec![advice(scene, memcg.is_some())],
        stall_ratio: workload.stall_ratio().max(0.25),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

fn written(workload: &Workload, disk: &Disk) -> f64 {
    workload.io_on(disk.dev).map_or(0.0, |io| io.write.bytes_per_sec)
}

/// The host's backlog against the point up to which writers run free, half-way between the two limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostBacklog {
    Below,
    AboveAtTimes,
    AboveMostly,
}

fn host_backlog(scene: &Scene) -> HostBacklog {
    let Some(limits) = scene.dirty_limits() else { return HostBacklog::Below };
    let free_run_pages = limits.background_pages.midpoint(limits.limit_pages);
    let pages = scene.host_backlog_pages();
    let above = pages.iter().filter(|pages| **pages >= free_run_pages).count();
    // Of two moments alone that is both.
    match above {
        0 => HostBacklog::Below,
        _ if above * 2 > pages.len() => HostBacklog::AboveMostly,
        _ => HostBacklog::AboveAtTimes,
    }
}

/// A memory cgroup's own dirty domain.
struct MemcgDirty {
    limit: Bytes,
    backlog: Bytes,
}

/// The dirty domain of the workload's memory cgroup, where a memory limit makes it one of its own.
///
/// As `mdtc_calc_avail` and `domain_dirty_limits` (mm/page-writeback.c) have it: the ratio of the page cache and of what
/// the memory limit leaves free.
fn memcg_limit(scene: &Scene, workload: &Workload) -> Option<MemcgDirty> {
    let backlog = scene.backlog(&workload.path)?;
    let (limit, used) = workload.path.ancestors().find_map(|at| memory_limit(scene, &at))?;
    let file = scene.cgroup(&workload.path)?.memory_stat.ok()?.file_bytes?;
    let available = file.saturating_add(limit.saturating_sub(used)).as_f64();
    let ratio_pct = scene.window.t1.system.dirty_ratio_pct.ok().filter(|pct| *pct > 0).unwrap_or(20);
    Some(MemcgDirty {
        limit: Bytes::rounded(available * count(ratio_pct) / 100.0),
        backlog: backlog.dirty.saturating_add(backlog.writeback),
    })
}

fn memory_limit(scene: &Scene, at: &CgroupPath) -> Option<(Bytes, Bytes)> {
    let Ok(Limit::At(limit)) = scene.config(at)?.memory_max else { return None };
    Some((limit, scene.cgroup(at)?.memory.ok()?))
}

fn owns_the_backlog(scene: &Scene, workload: &Workload) -> bool {
    let host = scene.host_backlog_pages().into_iter().max().map_or(0.0, |pages| count(pages) * scene.page_bytes());
    scene.backlog(&workload.path).is_some_and(|backlog| backlog.bytes() >= host / 2.0)
}

fn of_memcg(scene: &Scene, workload: &Workload, memcg: &MemcgDirty) -> [Evidence; 2] {
    let source = scene.cgroup_file(&workload.path, "memory.stat");
    let value = |bytes: Bytes| Value::Bytes(bytes.as_f64());
    [
        evidence(Aspect::Memory, "dirty and under write-back", value(memcg.backlog), source.clone()),
        evidence(Aspect::Memory, "limit of its memory cgroup, about", value(memcg.limit), source),
    ]
}

fn advice(scene: &Scene, memcg: bool) -> Advice {
    if memcg {
        return Advice::text(
            "the limit grows with the container's memory; else the pauses match the writer to the disk",
        );
    }
    let text = "the pauses match the writer to the disk; raise the limit only if bursts should be absorbed in memory";
    match scene.window.t1.system.dirty_bytes.ok().filter(|bytes| bytes.0 > 0) {
        Some(Bytes(bytes)) => advise::set_vm("dirty_bytes", bytes.saturating_mul(4), ("dirty_bytes", bytes), text)
            .risk("a longer fsync: more is dirty when it comes, and more is lost in a crash"),
        None => Advice::text(text),
    }
}
