//! `iocost-throttled`: iocost hands out all that its model allows, and somebody waits for more.

use quell_units::{CgroupPath, DevNum, count};

use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, Scene, WaitKind, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "iocost-throttled",
    explain: Explain {
        means: "The disk's iocost budget is used up, and the workload waits for its share of the next period. It may be \
            meant so: a lighter weight gets less.",
        kernel: "iocost charges each bio by a model (bytes, and a price for sequential and random I/O) and lets a cgroup run \
            up to its share of vrate, the percentage of the model handed out. Who is over waits in ioc_rqos_throttle, above \
            the request queue, where no disk counter sees it.",
        evidence: "io.cost.qos with enable=1 for the disk, and cost.usage of all cgroups together at 85 % of the time or more, \
            or a task seen in ioc_rqos_throttle. The kernel counts cost.usage at the present vrate, so a budget that is all \
            handed out reads 100 % whatever vrate is.",
        change: "Give the workload a larger io.weight, or calibrate the model if the disk can do more than it says.",
        undo: "Write the old weight back.",
    },
    find,
    explains: &[],
};

/// A disk under iocost whose budget is used up.
///
/// `cost.usage` is the charge divided by the present rate (`iocg_flush_stat_leaf` in block/blk-iocost.c:
/// `vusage_delta / ioc->vtime_base_rate`), so it is held against the time itself and not against vrate.
pub(super) struct Budget<'s> {
    /// The disk.
    pub(super) disk: &'s Disk<'s>,
    /// The share of its model handed out, the mean of both moments, 0 to 100 and more; `None` where it is not shown.
    vrate_pct: Option<f64>,
    /// What was charged of what was handed out, 1.0 is all of it.
    usage_ratio: f64,
    /// The workload that waits most.
    pub(super) victim: &'s Workload,
}

/// The disks whose iocost budget is used up while somebody waits.
pub(super) fn used_up<'s>(scene: &'s Scene) -> Vec<Budget<'s>> {
    let qos = scene.root_config().and_then(|config| config.cost_qos.as_deref().ok()).unwrap_or_default();
    let enabled = qos.iter().filter(|row| row.enabled).filter_map(|row| scene.disk(row.dev));
    enabled.filter_map(|disk| budget(scene, disk)).collect()
}

fn budget<'s>(scene: &'s Scene, disk: &'s Disk<'s>) -> Option<Budget<'s>> {
    let root = scene.rates.cgroup(&CgroupPath::root())?.io.as_ref().ok()?;
    let usage_ratio = root.iter().find(|row| row.dev == disk.dev)?.cost_usage_ratio.unwrap_or(0.0);
    let in_iocost = |workload: &Workload| workload.waits.iter().any(|wait| wait.kind == WaitKind::IoCost);
    let victim = scene
        .users(disk)
        .map(|(workload, _)| workload)
        .filter(|workload| !workload.is_kernel())
        .max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()).then(in_iocost(a).cmp(&in_iocost(b))))?;
    let full = usage_ratio >= 0.85;
    let waits = scene.users(disk).any(|(workload, _)| in_iocost(workload)) && usage_ratio >= 0.5;
    (full || waits).then_some(Budget { disk, vrate_pct: vrate_pct(scene, disk.dev), usage_ratio, victim })
}

fn vrate_pct(scene: &Scene, dev: DevNum) -> Option<f64> {
    let at = |snapshot: &crate::snapshot::Snapshot| {
        let rows = snapshot.cgroup(&CgroupPath::root())?.io.as_ref().ok()?;
        rows.iter().find(|row| row.dev == dev)?.cost_vrate_centipct.map(count)
    };
    Some((at(&scene.window.t0)? + at(&scene.window.t1)?) / 2.0 / 100.0)
}

impl Budget<'_> {
    /// What iocost charged against what it hands out.
    pub(super) fn evidence(&self, scene: &Scene) -> Vec<Evidence> {
        let stat = scene.cgroup_file(&CgroupPath::root(), "io.stat");
        let mut out =
            vec![evidence(Aspect::Limit, "iocost budget used", Value::Pct(self.usage_ratio * 100.0), stat.clone())];
        out.extend(self.vrate_pct.map(|pct| evidence(Aspect::Limit, "vrate", Value::Pct(pct), stat)));
        for (workload, share) in scene.users(self.disk).filter(|(workload, _)| !workload.is_kernel()).take(3) {
            let usage = share.io.cost_usage_ratio.unwrap_or(0.0);
            let weight =
                scene.config(&workload.path).and_then(|config| Some(config.io_weight.as_ref().ok()?.on(self.disk.dev)));
            let weight = weight.map_or(String::new(), |weight| format!(" at io.weight {weight}"));
            let text = format!("{:.0} % of the disk's time{weight}", usage * 100.0);
            out.push(evidence(
                Aspect::Limit,
                &workload.name,
                Value::Word(text),
                scene.cgroup_file(&workload.path, "io.stat"),
            ));
        }
        out.extend(of_stall(scene, self.victim, Aspect::Victim));
        out.extend(of_disk(self.disk));
        out
    }
}

fn find(scene: &Scene) -> Vec<Finding> {
    used_up(scene).iter().map(|budget| throttled(scene, budget)).collect()
}

fn throttled(scene: &Scene, budget: &Budget) -> Finding {
    let Budget { disk, victim, .. } = budget;
    let culprit = scene
        .users(disk)
        .map(|(workload, _)| workload)
        .find(|workload| workload.path != victim.path && !workload.is_kernel());
    let beside = culprit.map_or(String::new(), |culprit| format!(", beside {}", culprit.name));
    Finding {
        confidence: 0.9,
        culprit: culprit.map(|culprit| subject(culprit, Some(disk.name))),
        summary: format!("{} waits for its share of iocost's budget on {}{beside}", victim.name, disk.name),
        evidence: budget.evidence(scene),
        advice: advice(scene, victim, disk),
        stall_ratio: victim.stall_ratio().max(0.25),
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    }
}

fn advice(scene: &Scene, victim: &Workload, disk: &Disk) -> Vec<Advice> {
    let weight = scene.config(&victim.path).and_then(|config| Some(config.io_weight.as_ref().ok()?.on(disk.dev)));
    let file = super::advise::plain(&scene.cgroup_file(&victim.path, "io.weight"));
    let set = |weight: u32| file.as_ref().map(|file| format!("echo '{} {weight}' > {file}", disk.dev));
    vec![
        Advice {
            command: weight.and_then(|weight| set((weight * 4).min(10_000))),
            undo: weight.and_then(set),
            ..Advice::text(format!("if {} should get more of {}, give it a larger weight", victim.name, disk.name))
        }
        .risk("the others get what it takes"),
    ]
}
