//! `rotational-misreported`: a disk that does what no spinning disk can says that it spins.

use quell_kfile::io_cost_qos::Ctrl;

use super::evidence::{disk_subject, evidence, finding, of_disk};
use super::finding::{Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "rotational-misreported",
    explain: Explain {
        means: "queue/rotational says that the disk spins, and its requests say that it does not. What goes by the flag goes \
            wrong: the scheduler, read-ahead, iocost's model, bfq's waiting for the next request.",
        kernel: "RAID cards, SAN and cloud volumes and emulated disks report no rotation rate, and the kernel then takes them \
            for spinning ones. With the flag bfq idles for a reader's next request, iocost picks a model of a hard disk, and \
            write-back throttling aims at 75 ms in place of 2.",
        evidence: "rotational is 1 and small requests (16 KiB and less) come at more than 500 a second or take less than 2 ms. A \
            warning where bfq, iocost with ctrl=auto or write-back throttling acts on the disk.",
        change: "Set the flag by a udev rule that goes by the model: ATTR{queue/rotational}=\"0\".",
        undo: "Write 1 again, and take the rule away.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(|disk| misreported(scene, disk)).collect()
}

fn misreported(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let queue = disk.queue()?;
    let is_nvme = disk.name.as_str().starts_with("nvme");
    if queue.rotational != Ok(true) || !disk.rate_gate() || !(disk.is_surely_flash() || is_nvme) {
        return None;
    }
    let acts = acts_on_it(scene, disk);
    let source = format!("/sys/block/{}/queue/rotational", disk.name);
    let mut out = vec![evidence(Aspect::Device, "rotational", Value::Number(1.0), source)];
    out.extend(acts.map(|what| evidence(Aspect::Device, "goes by it", Value::Word(what.into()), "/sys/block")));
    out.extend(of_disk(disk));
    let because = acts.map_or_else(String::new, |what| format!(", and {what} goes by that"));
    let advice = super::advise::set_queue(
        disk,
        "rotational",
        "0",
        "1",
        "tell the kernel that it does not spin; a udev rule keeps it so",
    );
    Some(Finding {
        severity: if acts.is_some() { Severity::Warning } else { Severity::Info },
        confidence: 0.8,
        summary: format!("{} says that it spins, and it does not{because}", disk.name),
        evidence: out,
        advice: vec![advice],
        stall_ratio: 0.2,
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// What goes by the flag on this disk.
fn acts_on_it(scene: &Scene, disk: &Disk) -> Option<&'static str> {
    let cost = scene.root_config().and_then(|root| root.cost_qos.as_ref().ok());
    let auto =
        cost.is_some_and(|rows| rows.iter().any(|row| row.dev == disk.dev && row.enabled && row.ctrl == Ctrl::Auto));
    let wbt = disk.queue().is_some_and(|queue| queue.wbt_target_usec.is_ok_and(|usec| usec > 0));
    match disk.scheduler() {
        Some("bfq") => Some("bfq"),
        _ if auto => Some("iocost's model"),
        _ if wbt => Some("write-back throttling"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::{Did, Written};

    fn disk(scheduler: &str, reads: u64, usec: u64) -> Option<Severity> {
        let mut host = Written::new();
        let did = Did { reads, read_bytes: reads * 4096, read_usec: usec, util_pct: 50, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda", did);
        host.change("sda", |device| {
            let queue = device.queue.as_mut().unwrap();
            queue.rotational = Ok(true);
            queue.wbt_target_usec = Err(quell_units::Gap::NotInKernel);
            queue.scheduler =
                Ok(quell_kfile::scheduler::Scheduler { active: scheduler.into(), available: vec![scheduler.into()] });
        });
        host.findings().into_iter().find(|finding| finding.id == RULE.id).map(|finding| finding.severity)
    }

    #[test]
    fn what_no_spinning_disk_does_is_told_and_is_a_warning_where_something_goes_by_it() {
        assert_eq!(disk("mq-deadline", 4000, 200), Some(Severity::Info));
        assert_eq!(disk("bfq", 4000, 200), Some(Severity::Warning));
        assert_eq!(disk("bfq", 120, 8000), None, "a disk that spins");
    }
}
