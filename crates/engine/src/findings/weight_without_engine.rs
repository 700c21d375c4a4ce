//! `weight-without-engine`: weights are set, and nothing on this disk heeds them.

use std::collections::BTreeMap;

use quell_kfile::io_cost_qos::Ctrl;
use quell_paste::Statement;
use quell_units::CgroupPath;

use super::advise;
use super::evidence::{PASTE, asker, evidence, finding, of_disk, safe, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, Engine, Scene, Workload};
use super::table::Rule;
use crate::shares::{bfq_weight_of_systemd, io_weight_of_runtime};

pub(super) const RULE: Rule = Rule {
    id: "weight-without-engine",
    explain: Explain {
        means: "Cgroups that share this disk were given different weights, and the disk is shared as if they had not been.",
        kernel: "io.weight is heeded by iocost alone, where io.cost.qos says enable=1 for the disk; io.bfq.weight by the \
            bfq scheduler alone. The files take any value without an engine and without an error.",
        evidence: "Siblings with unequal weights that both use a disk for which requests queue, while iocost is off there \
            and its scheduler is not bfq; or bfq is on and only io.weight differs, or the other way round. Or a runtime that says that the \
            kernel has no weights, or a weight that was asked for and is not in the file.",
        change: "Turn on one engine on this disk: iocost with a model that was measured, or bfq on a disk slow enough for \
            it. Or use io.max, which needs none.",
        undo: "`enable=0` for the disk in io.cost.qos; the old name into queue/scheduler.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let live = scene.leaf_disks().filter(|disk| is_contended(scene, disk)).filter_map(|disk| inert(scene, disk));
    live.chain(scene.statements().iter().find_map(|said| unheld(scene, said))).collect()
}

/// A weight that a runtime cannot set, or that was asked for and is not in the cgroup's file.
fn unheld(scene: &Scene, said: &Statement) -> Option<Finding> {
    let (by, what, summary) = match said {
        Statement::KnobMissing { by, knob } if knob.contains("weight") => {
            (by, knob.clone(), "this kernel has no weights for block I/O: no engine is there to heed one".to_owned())
        }
        Statement::WeightAsked { by, device, weight } if is_lost(scene, by, device, *weight) => {
            let asked = format!("{weight} {device}").trim_end().to_owned();
            (by, asked, format!("the weight {weight} of {} did not arrive: no engine there takes it", safe(by)))
        }
        _ => return None,
    };
    Some(Finding {
        confidence: 0.8,
        summary,
        evidence: vec![evidence(Aspect::Limit, "asked for", Value::Word(safe(&what)), PASTE)],
        advice: vec![
            Advice::text(
                "set the disk's scheduler to bfq, which has weights of its own; cfq, which had them once, is gone",
            ),
            Advice::text(
                "or turn on iocost in io.cost.qos, with a measured model; or use io.max, which needs no engine",
            ),
        ],
        ..finding(RULE.id, asker(by))
    })
}

/// Whether the files of whom a weight was asked for were read, and hold neither it nor what it is converted to.
fn is_lost(scene: &Scene, by: &str, device: &str, asked: u64) -> bool {
    let config = scene.cgroup_of(by).and_then(|cgroup| cgroup.config.as_deref());
    let files = config.into_iter().flat_map(|config| [&config.io_weight, &config.bfq_weight]).flatten();
    let scales = [asked, bfq_weight_of_systemd(asked), io_weight_of_runtime(asked)];
    let mut read = 0;
    let held = files.inspect(|_| read += 1).any(|weights| {
        let named = weights.devices.iter().map(|(_, weight)| *weight);
        let default = device.is_empty().then_some(weights.default);
        named.chain(default).any(|weight| scales.contains(&u64::from(weight)))
    });
    read > 0 && !held
}

/// A weight matters only where somebody waits for a turn.
fn is_contended(scene: &Scene, disk: &Disk) -> bool {
    disk.is_queueing()
        || (disk.queue_length_avg() >= 1.0 && scene.users(disk).any(|(workload, _)| workload.stall_ratio() >= 0.3))
}

fn inert(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let active = scene.engine(disk);
    let unheeded = [Engine::IoCost, Engine::Bfq].into_iter().filter(|engine| active != Some(*engine));
    let (kind, siblings) = unheeded
        .filter(|engine| active.is_none_or(|active| unequal(scene, disk, active).is_none() && active != *engine))
        .find_map(|engine| Some((engine, unequal(scene, disk, engine)?)))?;
    let (heaviest, most) = siblings.last()?;
    let file = kind.file();
    let mut out: Vec<Evidence> =
        siblings.iter().map(|(workload, weight)| of_weight(scene, workload, *weight, file, disk)).collect();
    let scheduler = disk.scheduler().unwrap_or("unknown").to_owned();
    let queue_file = format!("/sys/block/{}/queue/scheduler", disk.name);
    out.push(evidence(Aspect::Device, "scheduler", Value::Word(scheduler.clone()), queue_file));
    let iocost = if active == Some(Engine::IoCost) { "on" } else { "off" };
    let qos = scene.cgroup_file(&CgroupPath::root(), "io.cost.qos");
    out.push(evidence(Aspect::Device, "iocost", Value::Word(iocost.into()), qos));
    out.extend(of_disk(disk));
    Some(Finding {
        confidence: 0.9,
        summary: format!("{file} {most} of {} does nothing on {}: no engine there heeds it", heaviest.name, disk.name),
        evidence: out,
        advice: advice(scene, disk, kind, &scheduler),
        stall_ratio: siblings.iter().map(|(workload, _)| workload.stall_ratio()).fold(0.5, f64::max),
        ..finding(RULE.id, subject(heaviest, Some(disk.name)))
    })
}

/// The first set of siblings that use the disk and differ in weight, the lightest first.
fn unequal<'s>(scene: &'s Scene, disk: &Disk, engine: Engine) -> Option<Vec<(&'s Workload, u32)>> {
    let mut families: BTreeMap<CgroupPath, Vec<(&Workload, u32)>> = BTreeMap::new();
    for (workload, share) in scene.users(disk) {
        let busy = share.io.read.ios_per_sec + share.io.write.ios_per_sec >= 5.0;
        // Weights are compared among siblings, on every level up to the root.
        for at in workload.path.ancestors().filter(|_| busy) {
            let Some(weight) = scene.config(&at).and_then(|config| engine.weight(config, disk.dev)) else { continue };
            if let Some(parent) = at.parent() {
                families.entry(parent).or_default().push((workload, weight));
            }
        }
    }
    families.into_values().find_map(|mut family| {
        family.sort_by_key(|(_, weight)| *weight);
        let differ = family.first().map(|(_, weight)| weight) != family.last().map(|(_, weight)| weight);
        differ.then_some(family)
    })
}

fn of_weight(scene: &Scene, workload: &Workload, weight: u32, file: &str, disk: &Disk) -> Evidence {
    let ios = workload.io_on(disk.dev).map_or(0.0, |io| io.read.ios_per_sec + io.write.ios_per_sec);
    let text = format!("{weight}, and gets {ios:.0} I/O/s");
    evidence(Aspect::Limit, &workload.name, Value::Word(text), scene.cgroup_file(&workload.path, file))
}

fn advice(scene: &Scene, disk: &Disk, kind: Engine, scheduler: &str) -> Vec<Advice> {
    let bfq = if scheduler == "bfq" {
        Advice::text("set the weights in io.bfq.weight: bfq divides this disk, and heeds no other file")
    } else {
        advise::set_queue(disk, "scheduler", "bfq", scheduler, "let bfq divide the disk, by io.bfq.weight")
            .risk("bfq costs CPU on fast disks and gives the light one a p99 of a second under load")
    };
    match kind {
        Engine::Bfq => vec![bfq],
        Engine::IoCost if scheduler != "bfq" && is_measured(scene, disk) => {
            vec![
                advise::set_iocost(scene, disk, true, "turn on iocost for this disk, by the model that it was given"),
                bfq,
            ]
        }
        // The built-in model follows `rotational`: a fast virtual disk that says it rotates is cut to a tenth.
        Engine::IoCost => vec![
            bfq,
            Advice::text(
                "or measure the disk's model, write it to io.cost.model, and only then turn on iocost in io.cost.qos: the \
                 built-in model can cut a virtual disk to a tenth",
            ),
        ],
    }
}

/// Whether somebody gave iocost a model of this disk.
fn is_measured(scene: &Scene, disk: &Disk) -> bool {
    let models = scene.root_config().and_then(|config| config.cost_model.as_deref().ok()).unwrap_or_default();
    models.iter().any(|row| row.dev == disk.dev && row.ctrl == Ctrl::User)
}

#[cfg(test)]
mod tests {
    use quell_kfile::io_weight::Weights;
    use quell_paste::{Pasted, Statement};

    use crate::findings::Advice;
    use crate::findings::written::{Did, Written, number};

    fn says(said: Statement, weights: Weights) -> bool {
        let mut host = Written::new();
        host.cgroup("system.slice", 0.0, &[]).cgroup("system.slice/app.service", 0.0, &[]);
        host.configure("system.slice/app.service", |config| config.io_weight = Ok(weights.clone()));
        host.window.pasted = Some(Box::new(Pasted { statements: vec![said], ..Pasted::default() }));
        host.ids().contains(&"weight-without-engine")
    }

    fn asked(device: &str) -> Statement {
        Statement::WeightAsked { by: "unit/app.service".into(), device: device.into(), weight: 123 }
    }

    /// The advice for unequal io.weight on a full disk, iocost being off and having this model.
    fn advice(ctrl: &str) -> Vec<Advice> {
        let mut host = Written::new();
        let did = Did { reads: 1000, read_bytes: 4_096_000, read_usec: 20_000, util_pct: 99, ..Did::default() };
        host.disk(0, "vda", "/sys/devices/pci0000:00/virtio0/block/vda", did);
        for (path, weight) in [("light", 100), ("heavy", 800)] {
            host.cgroup(path, 0.5, &[(0, 500, 0, 2_048_000)]);
            host.configure(path, |config| config.io_weight = Ok(Weights { default: weight, devices: Vec::new() }));
        }
        let line =
            format!("8:0 ctrl={ctrl} model=linear rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1\n");
        let model = quell_kfile::io_cost_model::parse(line.as_bytes()).value;
        assert_eq!(model.len(), 1);
        host.configure("", |config| config.cost_model = Ok(model.clone()));
        let found = host.findings().into_iter().find(|finding| finding.id == "weight-without-engine");
        found.unwrap().advice
    }

    #[test]
    fn iocost_is_turned_on_only_with_a_model_of_the_disk() {
        let commands = |ctrl| -> Vec<Option<String>> { advice(ctrl).into_iter().map(|one| one.command).collect() };
        let bfq = Some("echo bfq > /sys/block/vda/queue/scheduler".to_owned());
        assert_eq!(commands("auto"), [bfq.clone(), None]);
        assert_eq!(commands("user"), [Some("echo '8:0 enable=1' > /sys/fs/cgroup/io.cost.qos".to_owned()), bfq]);
    }

    #[test]
    fn a_weight_that_did_not_arrive_is_named_and_one_that_did_is_not() {
        let none = Weights { default: 100, devices: Vec::new() };
        assert!(says(asked("/"), none.clone()));
        assert!(says(asked(""), none));
        assert!(!says(asked("/"), Weights { default: 100, devices: vec![(number(0), 123)] }));
        assert!(!says(asked(""), Weights { default: 123, devices: Vec::new() }));
    }

    #[test]
    fn a_runtime_that_misses_the_weight_is_believed() {
        let missing = |knob: &str| Statement::KnobMissing { by: "docker".into(), knob: knob.into() };
        assert!(says(missing("blkio weight"), Weights { default: 100, devices: Vec::new() }));
        assert!(!says(missing("throttle.read_bps_device"), Weights { default: 100, devices: Vec::new() }));
    }
}
