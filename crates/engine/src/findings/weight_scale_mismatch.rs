//! `weight-scale-mismatch`: weights say one ratio, and after their conversion the disk is divided by another.

use quell_paste::Statement;
use quell_units::CgroupPath;

use super::evidence::{PASTE, disk_subject, evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::{Disk, Engine, Scene};
use super::table::Rule;
use super::workload::{WorkloadKind, identify};
use crate::shares::{EffectiveShare, bfq_weight_of_systemd, io_weight_of_runtime};
use crate::snapshot::AskedKey;

pub(super) const RULE: Rule = Rule {
    id: "weight-scale-mismatch",
    explain: Explain {
        means: "The weights that were asked for are in different scales, and what arrives in the kernel divides the disk \
            otherwise than the numbers say.",
        kernel: "io.weight goes from 1 to 10000 and io.bfq.weight from 1 to 1000, both with 100 for who asked for none. systemd \
            squeezes IOWeight= above 100 into bfq's scale, so that 200 becomes 109. runc and crun stretch --blkio-weight to \
            io.weight, so that 100 becomes 910, nine times a container that asked for none.",
        evidence: "Two siblings at work on a disk with a queue, whose ratio under its engine is at least 1.5 times off what \
            was asked: IOWeight= squeezed for bfq, or a runtime's weight under iocost beside a plain 100. In a paste: \
            weights asked of a runtime and of systemd.",
        change: "Set all of them in one scale: the engine's own file, or one tool for all.",
        undo: "Write the old weights back.",
    },
    find,
};

/// How far asked and real must be apart.
const APART: f64 = 1.5;

fn find(scene: &Scene) -> Vec<Finding> {
    let live = scene.leaf_disks().filter(|disk| disk.rate_gate() && disk.queue_length_avg() >= 1.0);
    live.filter_map(|disk| mismatch(scene, disk)).chain(asked(scene)).collect()
}

fn mismatch(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let engine = scene.engine(disk)?;
    let rows = scene.effective_shares(disk, engine);
    let (a, b, meant) = rows.iter().find_map(|a| {
        let siblings = rows.iter().filter(|b| b.cgroup != a.cgroup && b.cgroup.parent() == a.cgroup.parent());
        siblings.filter_map(|b| Some((a, b, meant(scene, disk, engine, a, b)?))).find(|(a, b, meant)| {
            let real = f64::from(a.weight) / f64::from(b.weight.max(1));
            real / meant >= APART || meant / real >= APART
        })
    })?;
    let real = f64::from(a.weight) / f64::from(b.weight.max(1));
    let name = |path: &CgroupPath| scene.name_of(path);
    let mut out: Vec<Evidence> = rows.iter().take(8).map(|row| of_share(scene, engine, row)).collect();
    out.push(evidence(Aspect::Limit, "ratio asked for", Value::Number(meant), ""));
    out.push(evidence(Aspect::Limit, "ratio under the engine", Value::Number(real), ""));
    Some(Finding {
        confidence: 0.8,
        summary: format!(
            "{} was given {meant:.1} times the weight of {} and has {real:.2} times on {}: the scales differ",
            name(&a.cgroup),
            name(&b.cgroup),
            disk.name
        ),
        evidence: out,
        advice: vec![Advice::text(format!(
            "set both in {} itself, or by one tool: the same number does not mean the same in systemd, docker and bfq",
            engine.file()
        ))],
        stall_ratio: 0.5,
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// The ratio that the settings of two siblings say, where their tool converts them: `None` where nothing was converted.
fn meant(scene: &Scene, disk: &Disk, engine: Engine, a: &EffectiveShare, b: &EffectiveShare) -> Option<f64> {
    match engine {
        Engine::Bfq => {
            let of = |path: &CgroupPath| Engine::IoCost.weight(scene.config(path)?, disk.dev);
            let (of_a, of_b) = (of(&a.cgroup)?, of(&b.cgroup)?);
            let squeezed = u64::from(a.weight) == bfq_weight_of_systemd(u64::from(of_a)) && a.weight != of_a;
            squeezed.then(|| f64::from(of_a) / f64::from(of_b.max(1)))
        }
        Engine::IoCost => {
            let asked = asked_of_runtime(scene, &a.cgroup, u64::from(a.weight)).filter(|_| b.weight == 100)?;
            Some(quell_units::count(asked) / 100.0)
        }
    }
}

/// The weight that a container's runtime was asked for and stretched to this one: by its own state, and without that by
/// the number, where it is what a multiple of ten becomes.
fn asked_of_runtime(scene: &Scene, path: &CgroupPath, weight: u64) -> Option<u64> {
    let stretched = |asked: &u64| io_weight_of_runtime(*asked) == weight;
    let snapshot = &scene.window.t1;
    if let Some(container) = snapshot.container(path) {
        let weights = container.asked.iter().filter(|asked| asked.key == AskedKey::Weight && asked.device.is_none());
        return weights.map(|asked| asked.value).find(stretched);
    }
    let is_container = identify(path, snapshot).0 == WorkloadKind::Container;
    (1..=100).map(|tens| tens * 10).find(stretched).filter(|_| is_container)
}

fn of_share(scene: &Scene, engine: Engine, row: &EffectiveShare) -> Evidence {
    let text = format!("{} {}, {:.1} % of the disk", engine.file(), row.weight, row.share_ratio * 100.0);
    let source = scene.cgroup_file(&row.cgroup, engine.file());
    evidence(Aspect::Limit, &scene.name_of(&row.cgroup), Value::Word(text), source)
}

/// Weights asked of a runtime and of systemd for one host: the first is stretched, the second is not.
fn asked(scene: &Scene) -> Option<Finding> {
    let weights = scene.statements().iter().filter_map(|said| match said {
        Statement::WeightAsked { by, weight, .. } if *weight > 0 => Some((by.starts_with("unit/"), *weight)),
        _ => None,
    });
    let weights: Vec<(bool, u64)> = weights.collect();
    let of = |unit: bool| weights.iter().find(|(is_unit, _)| *is_unit == unit).map(|(_, weight)| *weight);
    let (unit, runtime) = (of(true)?, of(false)?);
    let count = quell_units::count;
    let (meant, real) = (count(runtime) / count(unit), count(io_weight_of_runtime(runtime)) / count(unit));
    let apart = scene.cgroup_version() != Some(1) && real / meant >= APART;
    apart.then(|| Finding {
        confidence: 0.6,
        summary: format!(
            "a container's weight {runtime} becomes io.weight {}, beside {unit} of a unit: {real:.1} to 1, not {meant:.1}",
            io_weight_of_runtime(runtime)
        ),
        evidence: vec![evidence(Aspect::Limit, "ratio asked for", Value::Number(meant), PASTE)],
        advice: vec![Advice::text("set both in io.weight itself, or both through systemd")],
        ..finding(RULE.id, host_subject())
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::io_weight::Weights;
    use quell_kfile::scheduler::Scheduler;

    use crate::findings::written::{Did, Written};

    /// Two busy siblings under bfq, with their io.weight and io.bfq.weight.
    fn says(weights: [(u32, u32); 2]) -> bool {
        let mut host = Written::new();
        let did = Did { reads: 1000, read_bytes: 4_096_000, read_usec: 3000, util_pct: 99, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", did);
        host.change("sda", |device| {
            let scheduler = Scheduler { active: "bfq".into(), available: vec!["bfq".into()] };
            device.queue.as_mut().unwrap().scheduler = Ok(scheduler);
        });
        for (path, (io, bfq)) in ["a", "b"].into_iter().zip(weights) {
            host.cgroup(path, 0.0, &[(0, 500, 0, 2_048_000)]);
            host.configure(path, |config| {
                config.io_weight = Ok(Weights { default: io, devices: Vec::new() });
                config.bfq_weight = Ok(Weights { default: bfq, devices: Vec::new() });
            });
        }
        host.ids().contains(&"weight-scale-mismatch")
    }

    #[test]
    fn twice_the_weight_that_bfq_makes_hardly_more_of_is_named() {
        assert!(says([(200, 109), (100, 100)]));
        assert!(!says([(200, 200), (100, 100)]), "bfq was told by itself");
        assert!(!says([(100, 100), (100, 100)]));
    }

    #[test]
    fn a_runtimes_weight_beside_a_plain_100_under_iocost_is_named() {
        let says = |path: &str, weight: u32| {
            let mut host = Written::new();
            let did = Did { reads: 1000, read_bytes: 4_096_000, read_usec: 3000, util_pct: 99, ..Did::default() };
            host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", did);
            let qos = b"8:0 enable=1 ctrl=user rpct=0.00 rlat=50000 wpct=0.00 wlat=50000 min=100.00 max=100.00\n";
            host.configure("", |config| config.cost_qos = Ok(quell_kfile::io_cost_qos::parse(qos).value));
            host.cgroup("docker", 0.0, &[(0, 1000, 0, 4_096_000)]);
            host.configure("docker", |config| {
                config.io_weight = Ok(Weights { default: 100, devices: Vec::new() });
            });
            for (path, weight) in [(path, weight), ("docker/bb", 100)] {
                host.cgroup(path, 0.0, &[(0, 500, 0, 2_048_000)]);
                host.configure(path, |config| config.io_weight = Ok(Weights { default: weight, devices: Vec::new() }));
            }
            host.ids().contains(&"weight-scale-mismatch")
        };
        assert!(says("docker/aa", 910), "--blkio-weight 100");
        assert!(!says("docker/aa", 900), "written by hand, and meant");
        assert!(!says("other", 910), "no runtime set it");
    }
}
