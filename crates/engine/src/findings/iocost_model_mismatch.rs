//! `iocost-model-mismatch`: iocost holds the disk far below what it can do, by a model that is not this disk's.

use quell_kfile::io_cost_qos::Ctrl;
use quell_units::CgroupPath;

use super::advise;
use super::evidence::{evidence, finding, of_budget, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Budget, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "iocost-model-mismatch",
    explain: Explain {
        means: "iocost is on with a model that nobody measured, and holds the workload back while the disk is nearly idle.",
        kernel: "With ctrl=auto the kernel takes one of four built-in models by `rotational` and the queue. A virtual disk \
            says rotational=1 and gets that of a spinning disk: 370 random reads a second, whatever it can do. vrate moves \
            up only slowly.",
        evidence: "io.cost.model with ctrl=auto, the budget used up or tasks in ioc_rqos_throttle, aqu-sz below 1, and a \
            workload stalled for a fifth of the time.",
        change: "Measure the disk and write its own model; or turn iocost off there.",
        undo: "`ctrl=auto` for the disk in io.cost.model; `enable=1` in io.cost.qos.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let models = scene.root_config().and_then(|config| config.cost_model.as_deref().ok()).unwrap_or_default();
    let is_auto = |budget: &&Budget| models.iter().any(|row| row.dev == budget.disk.dev && row.ctrl == Ctrl::Auto);
    let idle = |budget: &&Budget| budget.disk.queue_length_avg() < 1.0 && budget.victim.stall_ratio() >= 0.2;
    scene.budgets_used_up().iter().filter(is_auto).filter(idle).map(|budget| mismatch(scene, budget)).collect()
}

fn mismatch(scene: &Scene, budget: &Budget) -> Finding {
    let Budget { disk, victim, .. } = budget;
    let root = CgroupPath::root();
    let mut out = of_budget(scene, budget);
    out.push(evidence(
        Aspect::Limit,
        "model",
        Value::Word("ctrl=auto".into()),
        scene.cgroup_file(&root, "io.cost.model"),
    ));
    if let Some(Ok(rotational)) = disk.queue().map(|queue| queue.rotational) {
        let source = format!("/sys/block/{}/queue/rotational", disk.name);
        out.push(evidence(Aspect::Device, "rotational", Value::Word(u8::from(rotational).to_string()), source));
    }
    Finding {
        confidence: 0.9,
        summary: format!(
            "iocost holds {} back on {} by a model that is not this disk's: the disk is {:.0} % busy",
            victim.name, disk.name, disk.util_pct
        ),
        evidence: out,
        advice: vec![
            advise::set_iocost(scene, disk, false, "turn iocost off here until the disk is measured")
                .risk("weights have no effect meanwhile"),
            Advice::text(
                "then measure the disk's model and write it to io.cost.model; set queue/rotational right first",
            ),
        ],
        stall_ratio: victim.stall_ratio(),
        ..finding(RULE.id, subject(victim, Some(disk.name)))
    }
}
