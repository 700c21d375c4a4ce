//! `iocost-throttled`: iocost hands out all that its model allows, and somebody waits for more.

use quell_units::CgroupPath;

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Budget, Disk, Engine, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "iocost-throttled",
    explain: Explain {
        means: "The disk's iocost budget is used up, and the workload waits for its share of the next period. It may be \
            meant so: a lighter weight gets less.",
        kernel: "iocost charges each bio by a model (bytes, and a price for sequential and random I/O) and lets a cgroup run \
            up to its share of vrate, the percentage of the model handed out. Who is over waits in ioc_rqos_throttle, above \
            the request queue, where no disk counter sees it.",
        evidence: "io.cost.qos with enable=1 for the disk, and cost.usage of all cgroups together at 85 % of the time or more \
            with a workload stalled for a tenth of it, or at half with a task seen in ioc_rqos_throttle. The kernel counts cost.usage at the present vrate, so a budget that is all \
            handed out reads 100 % whatever vrate is.",
        change: "Give the workload a larger io.weight, or calibrate the model if the disk can do more than it says.",
        undo: "Write the old weight back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.budgets_used_up().iter().map(|budget| throttled(scene, budget)).collect()
}

fn throttled(scene: &Scene, budget: &Budget) -> Finding {
    let Budget { disk, victim, .. } = budget;
    let other = |workload: &&Workload| workload.path != victim.path && !workload.is_kernel();
    let culprit = scene.users(disk).map(|(workload, _)| workload).find(other);
    let beside = culprit.map_or(String::new(), |culprit| format!(", beside {}", culprit.name));
    Finding {
        confidence: 0.9,
        culprit: culprit.map(|culprit| subject(culprit, Some(disk.name))),
        summary: format!("{} waits for its share of iocost's budget on {}{beside}", victim.name, disk.name),
        evidence: of_budget(scene, budget),
        advice: vec![advice(scene, budget, culprit.is_some())],
        stall_ratio: victim.stall_ratio().max(0.25),
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    }
}

/// What iocost charged against what it hands out.
pub(super) fn of_budget(scene: &Scene, budget: &Budget) -> Vec<Evidence> {
    let Budget { disk, victim, .. } = budget;
    let stat = scene.cgroup_file(&CgroupPath::root(), "io.stat");
    let used = Value::Pct(budget.usage_ratio * 100.0);
    let mut out = vec![evidence(Aspect::Limit, "iocost budget used", used, stat.clone())];
    out.extend(budget.vrate_pct.map(|pct| evidence(Aspect::Limit, "vrate", Value::Pct(pct), stat)));
    for (workload, share) in scene.users(disk).filter(|(workload, _)| !workload.is_kernel()).take(3) {
        let usage = share.io.cost_usage_ratio.unwrap_or(0.0);
        let weight = weight(scene, workload, disk).map_or(String::new(), |weight| format!(" at io.weight {weight}"));
        let text = format!("{:.0} % of the budget{weight}", usage * 100.0);
        let source = scene.cgroup_file(&workload.path, "io.stat");
        out.push(evidence(Aspect::Limit, &workload.name, Value::Word(text), source.clone()));
        let wait = share.io.cost_wait_ratio.filter(|_| workload.path == victim.path);
        out.extend(wait.map(|wait| evidence(Aspect::Victim, "cost.wait", Value::Pct(wait * 100.0), source)));
    }
    out.extend(of_stall(scene, victim, Aspect::Victim));
    out.extend(of_disk(disk));
    out
}

fn weight(scene: &Scene, workload: &Workload, disk: &Disk) -> Option<u32> {
    Engine::IoCost.weight(scene.config(&workload.path)?, disk.dev)
}

fn advice(scene: &Scene, budget: &Budget, beside: bool) -> Advice {
    let Budget { disk, victim, pinned, .. } = budget;
    if !beside {
        let how = if *pinned { "raise `min` and `max` of io.cost.qos, which pin it" } else { "calibrate its model" };
        return Advice::text(format!("{} has the budget of {} to itself: {how}", victim.name, disk.name));
    }
    let text = format!("if {} should get more of {}, give it a larger weight", victim.name, disk.name);
    let Some(weight) = weight(scene, victim, disk) else { return Advice::text(text) };
    let more = weight.saturating_mul(4).min(10_000);
    advise::set_weight(scene, &victim.path, disk.dev, weight, more, text).risk("the others get what it takes")
}
