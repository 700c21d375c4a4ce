//! `raid-rebuild`: an md array reads or writes its members from end to end beside its users.

use super::advise;
use super::evidence::{disk_subject, evidence, finding, host_subject, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "raid-rebuild",
    explain: Explain {
        means: "The array is being rebuilt, checked or reshaped: its disks work for that and for you, and each request \
            stands behind large ones.",
        kernel: "md reads every member from end to end (check, resync) or writes one (recovery), as fast as \
            sync_speed_max lets it and never slower than sync_speed_min, whoever else wants the disks. Its thread is in \
            the root cgroup, where no io.max and no weight reaches it.",
        evidence: "md/sync_action of an array that says anything but idle or frozen, and at least a fifth of its members' \
            bytes that are not the array's own. A warning where a user of it waits or its members queue.",
        change: "Lower sync_speed_max of this array while people work, and let it run at night. A lower speed makes a \
            recovery last longer, and until its end the array has less or no redundancy.",
        undo: "Write back what sync_speed_max held; `system` has the limit of the whole host count.",
    },
    find,
};

/// What md says when it only serves.
const AT_REST: [&str; 2] = ["idle", "frozen"];

fn find(scene: &Scene) -> Vec<Finding> {
    let arrays = scene.disks.iter().filter_map(|disk| rebuild(scene, disk, action(disk)?));
    arrays.chain(pasted(scene)).collect()
}

fn action<'d>(disk: &'d Disk<'_>) -> Option<&'d str> {
    let action = disk.queue()?.multi_disk.as_ref()?.sync_action.as_deref().ok()?;
    (!action.is_empty() && !AT_REST.contains(&action)).then_some(action)
}

/// Of the members' bytes: a resync that does less leaves them to their users, as md's own pacing means it to.
const SHARE_RATIO: f64 = 0.2;

/// The members' bytes that are not their users'. A byte of the array is at most one on each member, so this is the least
/// that it can be.
fn share_ratio(scene: &Scene, disk: &Disk) -> Option<f64> {
    let bytes = |disk: &Disk| disk.rates.map_or(0.0, crate::rates::DiskRates::bytes_per_sec);
    let members: Vec<f64> = scene.leaves(disk.dev).map(bytes).collect();
    let all: f64 = members.iter().sum();
    let own: f64 = members.iter().map(|member| (member - bytes(disk)).max(0.0)).sum();
    (all > 0.0).then(|| own / all)
}

fn rebuild(scene: &Scene, disk: &Disk, action: &str) -> Option<Finding> {
    let share = share_ratio(scene, disk);
    if share.is_some_and(|share| share < SHARE_RATIO) {
        return None;
    }
    let user = scene.users(disk).map(|(workload, _)| workload).find(|workload| !workload.is_kernel());
    // Without rates somebody asks because something waits.
    let hurts = share.is_none()
        || user.is_some_and(|workload| workload.stall_ratio() >= 0.05)
        || scene.leaves(disk.dev).any(Disk::is_queueing);
    let source = format!("/sys/block/{}/md/sync_action", disk.name);
    let mut out = vec![evidence(Aspect::Device, "sync_action", Value::Word(action.to_owned()), source)];
    for member in scene.leaves(disk.dev) {
        out.extend(of_disk(member));
    }
    if let Some(workload) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    Some(Finding {
        severity: if hurts { Severity::Warning } else { Severity::Info },
        confidence: 0.9,
        summary: format!("{} does a {action} beside its users' requests", disk.name),
        evidence: out,
        advice: vec![advise::slow_resync(disk)],
        stall_ratio: user.map_or(0.0, Workload::stall_ratio).max(if hurts { 0.3 } else { 0.0 }),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |workload| subject(workload, Some(disk.name))))
    })
}

/// Arrays of a paste that no device of the snapshot stands for.
fn pasted(scene: &Scene) -> Vec<Finding> {
    let Some(pasted) = &scene.window.pasted else { return Vec::new() };
    let told = |name: &str| scene.disks.iter().any(|disk| disk.name.as_str() == name && action(disk).is_some());
    let facts = pasted.devices.iter().filter(|fact| !told(&fact.name));
    facts
        .filter_map(|fact| {
            let (action, done) = fact.sync.as_ref()?;
            let name = quell_units::escape(fact.name.as_bytes()).to_string();
            let mut out = vec![evidence(Aspect::Device, "sync_action", Value::Word(action.clone()), "/proc/mdstat")];
            if let Some(done) = done {
                out.push(evidence(Aspect::Device, "done", Value::Word(done.clone()), "/proc/mdstat"));
            }
            let device = scene.disks.iter().find(|disk| disk.name.as_str() == fact.name);
            Some(Finding {
                confidence: 0.9,
                summary: format!("{name} does a {action} beside its users' requests"),
                evidence: out,
                advice: vec![Advice::text("slow it down while people work: sync_speed_max of the array, in KiB/s")],
                stall_ratio: 0.3,
                ..finding(RULE.id, device.map_or(host_subject(), disk_subject))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written, number};
    use crate::snapshot::MultiDisk;

    fn array(action: &str) -> Written {
        let mut host = Written::new();
        let did = Did { reads: 60, read_bytes: 60 * 500_000, read_usec: 30_000, util_pct: 90, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", did);
        host.disk(1, "sdb", "/sys/devices/pci0000:00/ata2/block/sdb", did);
        host.disk(9, "md0", "/sys/devices/virtual/block/md0", Did::default());
        host.change("md0", |device| {
            device.slaves = vec![number(0), number(1)];
            let sync_action = Ok(action.into());
            device.queue.as_mut().unwrap().multi_disk =
                Some(MultiDisk { level: Ok("raid1".into()), sync_action, sync_speed_max: Ok("20000 (local)".into()) });
        });
        host
    }

    #[test]
    fn an_array_that_is_checked_is_named_with_the_file_that_slows_it() {
        let findings = array("check").findings();
        assert_eq!(findings[0].id, "raid-rebuild");
        let command = findings[0].advice[0].command.as_deref();
        assert_eq!(command, Some("echo 10000 > /sys/block/md0/md/sync_speed_max"));
        let undo = findings[0].advice[0].undo.as_deref();
        assert_eq!(undo, Some("echo 20000 > /sys/block/md0/md/sync_speed_max"), "what was there");
    }

    #[test]
    fn an_array_that_only_serves_is_not() {
        assert!(!array("idle").ids().contains(&"raid-rebuild"));
    }
}
