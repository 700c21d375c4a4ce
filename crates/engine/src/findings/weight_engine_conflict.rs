//! `weight-engine-conflict`: iocost and bfq both divide one disk.

use quell_units::CgroupPath;

use super::advise;
use super::evidence::{disk_subject, evidence, finding, of_disk};
use super::finding::{Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Engine, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "weight-engine-conflict",
    explain: Explain {
        means: "Two engines divide this disk by weight, each by its own file and scale. What a cgroup gets is neither's.",
        kernel: "iocost holds bios before they become requests, by io.weight; bfq orders the requests by io.bfq.weight and \
            idles between them, which iocost takes for a slow disk and answers with a lower vrate.",
        evidence: "io.cost.qos with enable=1 for a disk whose scheduler is bfq. A warning where several cgroups use it, else \
            information.",
        change: "Choose one: bfq for a slow disk, iocost with a measured model for a fast one.",
        undo: "`enable=1` in io.cost.qos, or bfq into queue/scheduler again.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter(|disk| scene.engines(disk).len() > 1).map(|disk| conflict(scene, disk)).collect()
}

fn conflict(scene: &Scene, disk: &Disk) -> Finding {
    let busy = scene.users(disk).filter(|(workload, share)| !workload.is_kernel() && share.io.ios_per_sec() >= 5.0);
    let users: Vec<_> = busy.collect();
    let contended = users.len() >= 2 && disk.queue_length_avg() >= 1.0;
    let mut out = vec![
        evidence(
            Aspect::Limit,
            "iocost",
            Value::Word("on".into()),
            scene.cgroup_file(&CgroupPath::root(), "io.cost.qos"),
        ),
        evidence(
            Aspect::Limit,
            "scheduler",
            Value::Word("bfq".into()),
            format!("/sys/block/{}/queue/scheduler", disk.name),
        ),
    ];
    for (workload, _) in users.iter().take(6) {
        let weight = |engine: Engine| {
            let weight = scene.config(&workload.path).and_then(|config| engine.weight(config, disk.dev));
            weight.map_or("none".into(), |weight| weight.to_string())
        };
        let text = format!("io.weight {}, io.bfq.weight {}", weight(Engine::IoCost), weight(Engine::Bfq));
        out.push(evidence(
            Aspect::Limit,
            &workload.name,
            Value::Word(text),
            scene.cgroup_file(&workload.path, "io.weight"),
        ));
    }
    out.extend(of_disk(disk));
    let stall = users.iter().map(|(workload, _)| workload.stall_ratio()).fold(0.5, f64::max);
    Finding {
        severity: if contended { Severity::Warning } else { Severity::Info },
        confidence: 0.95,
        summary: format!("iocost and bfq both divide {} by weight: what a cgroup gets is neither's", disk.name),
        evidence: out,
        advice: vec![
            advise::set_iocost(scene, disk, false, "leave the disk to bfq and its io.bfq.weight")
                .risk("io.weight has no effect on this disk then"),
            advise::set_queue(disk, "scheduler", "none", "bfq", "or leave it to iocost and io.weight")
                .risk("io.bfq.weight has no effect on this disk then, and iocost needs a measured model"),
        ],
        stall_ratio: if contended { stall } else { 0.0 },
        ..finding(RULE.id, disk_subject(disk))
    }
}

#[cfg(test)]
mod tests {
    use quell_kfile::io_cost_qos::{Ctrl, Row};
    use quell_kfile::scheduler::Scheduler;

    use crate::findings::written::{Did, Written, number};

    fn host(bfq: bool, iocost: bool) -> Written {
        let mut host = Written::new();
        let did = Did { reads: 1000, read_bytes: 4_096_000, read_usec: 20_000, util_pct: 99, ..Did::default() };
        host.disk(0, "vda", "/sys/devices/pci0000:00/virtio0/block/vda", did);
        host.cgroup("light", 0.0, &[(0, 100, 0, 409_600)]).cgroup("heavy", 0.0, &[(0, 900, 0, 3_686_400)]);
        if bfq {
            let available = vec!["none".into(), "bfq".into()];
            host.change("vda", |device| {
                let scheduler = Scheduler { active: "bfq".into(), available: available.clone() };
                device.queue.as_mut().unwrap().scheduler = Ok(scheduler);
            });
        }
        if iocost {
            let row = Row { dev: number(0), enabled: true, ..row() };
            host.configure("", |config| config.cost_qos = Ok(vec![row]));
        }
        host
    }

    fn row() -> Row {
        quell_kfile::io_cost_qos::parse(
            b"8:0 enable=1 ctrl=user rpct=0.00 rlat=50000 wpct=0.00 wlat=50000 min=100.00 max=100.00\n",
        )
        .value
        .into_iter()
        .find(|row| row.ctrl == Ctrl::User)
        .unwrap()
    }

    #[test]
    fn two_engines_are_one_too_many_and_one_is_none() {
        assert_eq!(host(true, true).ids(), ["weight-engine-conflict"]);
        assert!(!host(true, false).ids().contains(&"weight-engine-conflict"));
        assert!(!host(false, true).ids().contains(&"weight-engine-conflict"));
    }
}
