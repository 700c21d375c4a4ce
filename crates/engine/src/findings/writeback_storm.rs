//! `writeback-storm`: the flusher empties the page cache in bursts, and others stand in the queue behind it.

use quell_units::{count, whole};

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_share, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "writeback-storm",
    explain: Explain {
        means: "A buffered writer fills the page cache, the flusher writes it out in large requests that fill the disk's \
            queue, and everybody else's small requests wait behind them.",
        kernel: "Write-back starts when dirty pages pass the background threshold and then sends as much as the disk takes. \
            The threshold is a share of memory, 10 % by default: gigabytes on a large host, and minutes of a small disk's \
            time.",
        evidence: "Dirty pages and those under write-back at or above the background threshold, writes of at least \
            256 KiB with aqu-sz of at least 4, a writer without a limit in force, and a second workload that waits.",
        change: "Start write-back earlier and in smaller portions: vm.dirty_background_bytes at what the disk writes in a \
            second or two; cap the writer.",
        undo: "Write the old value back with sysctl; setting the ratio takes the bytes out of force, and the other way round.",
    },
    find,
};

/// memory.stat's counters lag by as much: the kernel keeps up to 64 pages to itself on each processor
/// (`MEMCG_CHARGE_BATCH`).
const STAT_PAGES: f64 = 64.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let Some(limits) = scene.dirty_limits() else { return Vec::new() };
    let over = scene.host_backlog_pages().into_iter().any(|pages| pages >= limits.background_pages);
    if over { scene.leaf_disks().filter_map(|disk| storm(scene, disk)).collect() } else { Vec::new() }
}

fn storm(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let rates = disk.rates?;
    let large = rates.write.size_bytes_avg.is_some_and(|bytes| bytes >= 256.0 * 1024.0);
    if !large || rates.queue_length_avg < 4.0 || !disk.rate_gate() {
        return None;
    }
    let backlog = |workload: &Workload| scene.backlog(&workload.path).map_or(0.0, |backlog| backlog.bytes());
    let (writer, share) = scene
        .users(disk)
        .filter(|(workload, _)| !workload.is_kernel() && backlog(workload) >= STAT_PAGES * scene.page_bytes())
        // An inner cgroup's backlog is that of its children too, so that one of these goes before it.
        .max_by(|(a, _), (b, _)| b.inner.cmp(&a.inner).then(backlog(a).total_cmp(&backlog(b))))?;
    let capped = scene.caps_over(&writer.path, disk.dev).any(|cap| cap.key.is_write() && cap.reached());
    let victim = scene
        .workloads
        .iter()
        .filter(|other| other.path != writer.path && !other.is_kernel() && !other.inner && other.stall_ratio() >= 0.1)
        .filter(|other| !other.io_counted || other.io_on(disk.dev).is_some())
        .max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()))?;
    if capped {
        return None;
    }
    let mut out = of_stall(scene, victim, Aspect::Victim);
    out.extend(of_share(scene, writer, share, Aspect::Culprit));
    let source = scene.cgroup_file(&writer.path, "memory.stat");
    out.push(evidence(Aspect::Culprit, "waits to be written", Value::Bytes(backlog(writer)), source));
    out.extend(of_host_backlog(scene));
    out.extend(of_disk(disk));
    if let Some(bytes) = rates.write.size_bytes_avg {
        out.push(evidence(Aspect::Device, "write size", Value::Bytes(bytes), "/proc/diskstats"));
    }
    Some(Finding {
        confidence: 0.85,
        culprit: Some(subject(writer, Some(disk.name))),
        summary: format!(
            "{} waits behind the write-back of {}, which fills {}'s queue with {:.0} large writes",
            victim.name, writer.name, disk.name, rates.queue_length_avg
        ),
        evidence: out,
        advice: advice(scene, writer, disk),
        stall_ratio: victim.stall_ratio(),
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    })
}

fn advice(scene: &Scene, writer: &Workload, disk: &Disk) -> Vec<Advice> {
    const MIB: f64 = 1_048_576.0;
    let per_sec = disk.rates.map_or(0.0, |rates| rates.write.bytes_per_sec);
    // What the disk writes in a second, in whole MiB: enough to merge in, short enough to wait for.
    let mib = (per_sec / MIB).round().max(4.0);
    let mut out = vec![advise::cap_at_half(scene, writer, disk)];
    let background = scene.dirty_limits().map_or(0.0, |limits| count(limits.background_pages) * scene.page_bytes());
    if mib * MIB < background {
        let system = &scene.window.t1.system;
        let before = match system.dirty_background_bytes.ok().filter(|bytes| bytes.0 > 0) {
            Some(bytes) => ("dirty_background_bytes", bytes.0),
            None => ("dirty_background_ratio", system.dirty_background_ratio_pct.unwrap_or(10)),
        };
        let text = format!("start write-back at what {} writes in a second, {mib:.0} MiB", disk.name);
        let advice = advise::set_vm("dirty_background_bytes", whole(mib * MIB), before, text);
        out.push(advice.risk("smaller writes, a little less throughput; it holds for all disks of the host"));
    }
    out
}
