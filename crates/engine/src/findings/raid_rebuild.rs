//! `raid-rebuild`: an md array is reading or writing all of its members besides its work.

use super::advise;
use super::evidence::{disk_subject, evidence, finding, of_disk};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "raid-rebuild",
    explain: Explain {
        means: "An md array is being checked, resynced, recovered or reshaped: each member is read or written from end to \
            end, and everybody else's requests go between.",
        kernel: "md gives way to other I/O down to speed_limit_min (1,000 KiB/s a member by default) and takes up to \
            speed_limit_max (200,000 KiB/s). On spinning disks the head goes back and forth between the two.",
        evidence: "md/sync_action of the array is neither idle nor frozen; in a paste the progress line of /proc/mdstat.",
        change: "Lower dev.raid.speed_limit_max, or the array's own md/sync_speed_max, while the work matters more; move \
            the monthly check (mdcheck, checkarray) to a quiet night.",
        undo: "Write the old limit back. A check may be stopped (idle) and loses nothing; a recovery should go on.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter_map(|disk| rebuild(scene, disk)).collect()
}

fn rebuild(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let array = disk.queue()?.multi_disk.as_ref()?;
    let action = array.sync_action.as_ref().ok().filter(|action| !matches!(action.as_str(), "idle" | "frozen" | ""))?;
    let source = format!("/sys/block/{}/md/sync_action", disk.name);
    let mut out = vec![evidence(Aspect::Device, "doing", Value::Word(action.clone()), source)];
    if let Some(progress) = progress(scene, disk) {
        out.push(evidence(Aspect::Device, "done", Value::Word(progress), "/proc/mdstat"));
    }
    let slowest = scene.leaves(disk.dev).max_by(|a, b| a.queue_length_avg().total_cmp(&b.queue_length_avg()));
    out.extend(slowest.filter(|leaf| leaf.rates.is_some()).into_iter().flat_map(of_disk));
    let waits = scene.workloads.iter().map(super::scene::Workload::stall_ratio).fold(0.0, f64::max);
    let name = disk.name;
    let command = advise::plain(name.as_str()).map(|name| format!("echo 20000 > /sys/block/{name}/md/sync_speed_max"));
    let undo = advise::plain(name.as_str()).map(|name| format!("echo system > /sys/block/{name}/md/sync_speed_max"));
    let advice = advise::look(format!("hold the {action} to 20 MB/s a member while others need the disks"), command);
    Some(Finding {
        confidence: 0.9,
        summary: format!("{name} is busy with a {action}: every member is gone through from end to end"),
        evidence: out,
        advice: vec![
            super::Advice { undo, ..advice }.risk("it takes longer; a degraded array stays so that much longer"),
        ],
        stall_ratio: waits.max(0.3),
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// How far it is, where a paste tells.
fn progress(scene: &Scene, disk: &Disk) -> Option<String> {
    let facts = &scene.window.pasted.as_deref()?.devices;
    facts.iter().find(|fact| fact.name == disk.name.as_str())?.sync.as_ref()?.1.clone()
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};
    use crate::snapshot::MultiDisk;

    #[test]
    fn an_array_that_resyncs_is_told_and_an_idle_one_is_not() {
        for (action, found) in [("resync", true), ("check", true), ("idle", false), ("frozen", false)] {
            let mut host = Written::new();
            host.disk(0, "md0", "/sys/devices/virtual/block/md0", Did::default());
            host.change("md0", |device| {
                let array = MultiDisk { level: Ok("raid1".into()), sync_action: Ok(action.into()) };
                device.queue.as_mut().unwrap().multi_disk = Some(array);
            });
            assert_eq!(host.ids().contains(&"raid-rebuild"), found, "{action}");
        }
    }
}
