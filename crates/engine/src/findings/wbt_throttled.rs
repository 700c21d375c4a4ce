//! `wbt-throttled`: write-back throttling keeps buffered writes at a depth far below what the disk takes.

use quell_units::count;

use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Wait, WaitKind, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "wbt-throttled",
    explain: Explain {
        means: "Buffered writes wait because the kernel's write-back throttling thinks that reads suffer, and keeps writes at \
            a depth of one or a few.",
        kernel: "wbt watches read latency against queue/wbt_lat_usec (2 ms on flash, 75 ms on a spinning disk). While it is \
            missed, the depth for buffered writes is halved, down to 1. With a target below what the disk can do it is \
            always missed, and the depth never grows again. Direct writes are not held.",
        evidence: "A task in rq_qos_wait or wbt_wait throughout, or at some look with wbt's requests in flight at their \
            live limit in debugfs; wbt on for the disk, no io.latency on it, and no queue.",
        change: "Set wbt_lat_usec to what the disk can keep: two or three times its read latency; -1 gives the default, 0 \
            turns it off.",
        undo: "Write the old value back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(|disk| throttled(scene, disk)).collect()
}

fn throttled(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let target_usec = disk.queue()?.wbt_target_usec.ok().filter(|usec| *usec > 0)?;
    if disk.is_queueing() || has_latency_targets(scene, disk) {
        return None;
    }
    let (writer, wait) = scene
        .users(disk)
        .filter(|(workload, share)| !workload.is_kernel() && share.io.write.bytes_per_sec > 0.0)
        .find_map(|(workload, _)| Some((workload, held(disk, workload)?)))?;
    let mut out = of_stall(scene, writer, Aspect::Victim);
    let rate = writer.io_on(disk.dev).map_or(0.0, |io| io.write.bytes_per_sec);
    out.push(evidence(Aspect::Victim, "writes", Value::BytesPerSec(rate), scene.cgroup_file(&writer.path, "io.stat")));
    let file = format!("/sys/block/{}/queue/wbt_lat_usec", disk.name);
    let target = u64::try_from(target_usec).map_or(0.0, count);
    out.push(evidence(Aspect::Limit, "wbt target", Value::Usec(target), file));
    if let Ok(wbt) = disk.queue()?.wbt {
        let source = format!("/sys/kernel/debug/block/{}/rqos/wbt", disk.name);
        out.push(evidence(Aspect::Limit, "depth", Value::Number(count(wbt.normal_depth)), source.clone()));
        out.push(evidence(Aspect::Limit, "in flight", Value::Number(count(wbt.in_flight.iter().sum())), source));
    }
    out.extend(of_disk(disk));
    let read_usec = disk.rates.and_then(|rates| rates.read.await_usec).unwrap_or(target);
    // Whole milliseconds, and never a target that is hardly larger than the one that is missed.
    let better = format!("{:.0}", ((read_usec * 3.0).max(target * 2.0) / 1000.0).ceil() * 1000.0);
    let text = format!("set the target to what {} can keep: three times its read latency", disk.name);
    let advice = super::advise::set_queue(disk, "wbt_lat_usec", &better, &target_usec.to_string(), text);
    Some(Finding {
        confidence: if wait.throughout() { 0.9 } else { 0.7 },
        summary: format!("{}'s buffered writes to {} are held by write-back throttling", writer.name, disk.name),
        evidence: out,
        advice: vec![advice.risk("reads may wait longer behind write-back")],
        stall_ratio: writer.stall_ratio().max(0.5),
        ..finding(RULE.id, subject(writer, Some(disk.name)))
    })
}

/// The wait that shows that wbt holds the workload.
fn held<'w>(disk: &Disk, workload: &'w Workload) -> Option<&'w Wait> {
    let at_limit = disk
        .queue()
        .and_then(|queue| queue.wbt.ok())
        .is_some_and(|wbt| wbt.normal_depth > 0 && wbt.in_flight.iter().sum::<u64>() >= wbt.normal_depth);
    workload.waits.iter().find(|wait| wait.kind == WaitKind::QueueQos && (wait.throughout() || at_limit))
}

/// `io.latency` makes its peers wait in the same place.
fn has_latency_targets(scene: &Scene, disk: &Disk) -> bool {
    scene
        .window
        .t1
        .cgroups
        .iter()
        .filter_map(|cgroup| cgroup.config.as_deref())
        .any(|config| config.io_latency.as_ref().is_ok_and(|rows| rows.iter().any(|row| row.dev == disk.dev)))
}
