//! `noisy-neighbour`: one workload fills a disk's queue, another one waits in it.

use super::advise;
use super::device_saturated::usec;
use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_share, of_stall, subject};
use super::finding::{Aspect, Evidence, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, Share, Workload};
use super::table::Rule;
use super::workload::WorkloadKind;

pub(super) const RULE: Rule = Rule {
    id: "noisy-neighbour",
    explain: Explain {
        means: "One workload fills the disk's queue, and the requests of another one stand in it.",
        kernel: "A disk serves its queue without knowing whose requests these are. Sixty-four deep writes in front of a \
            single read make that read wait for all of them. Only io.max, io.latency, iocost or bfq know cgroups, and \
            without one of these a share of the disk goes to whoever sends the most.",
        evidence: "A disk that queues (see device-saturated), one workload with at least three fifths of the disk's time, \
            and another one that waits: io.pressure full or tasks seen waiting for a fifth of the time, or requests of \
            its kind that take three times what they should.",
        change: "Cap the culprit on this disk, or give the victim a weight under iocost or bfq, or a latency target.",
        undo: "Write `max` to the same key of io.max, or reset the unit's property.",
    },
    find,
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    let found = contentions(scene).into_iter().filter(|case| !case.is_of_the_host());
    found.map(|case| case.finding(scene, RULE.id)).collect()
}

/// One workload in another's way on a disk.
pub(super) struct Contention<'s> {
    disk: &'s Disk<'s>,
    victim: &'s Workload,
    culprit: &'s Workload,
    share: &'s Share,
    victims: usize,
}

/// The disks where one workload fills the queue and another waits; the one that waits most stands for all.
pub(super) fn contentions<'s>(scene: &'s Scene) -> Vec<Contention<'s>> {
    scene.leaf_disks().filter(|disk| disk.is_queueing()).filter_map(|disk| contention(scene, disk)).collect()
}

fn contention<'s>(scene: &'s Scene, disk: &'s Disk<'s>) -> Option<Contention<'s>> {
    let (culprit, share) = scene.users(disk).next().filter(|(_, share)| share.ratio >= 0.6)?;
    let mut victims: Vec<&Workload> = scene
        .users(disk)
        .filter(|(workload, share)| {
            !workload.is_kernel() && workload.path != culprit.path && waits(disk, workload, share)
        })
        .map(|(workload, _)| workload)
        .filter(|victim| !means_it(scene, disk, victim, culprit))
        .collect();
    victims.sort_by(|a, b| b.stall_ratio().total_cmp(&a.stall_ratio()));
    Some(Contention { disk, victim: victims.first()?, culprit, share, victims: victims.len() })
}

/// Whether a workload waits at a disk that queues: by its stall, or by what its requests take.
fn waits(disk: &Disk, workload: &Workload, share: &Share) -> bool {
    let slow = |await_usec: Option<f64>, size: Option<f64>, ios: f64| {
        ios >= 1.0 && await_usec.is_some_and(|usec| usec >= 3.0 * disk.class.fast_usec(size.unwrap_or(0.0)))
    };
    let Some(rates) = disk.rates else { return false };
    workload.stall_ratio() >= 0.2
        || slow(rates.read.await_usec, share.io.read.size_bytes_avg, share.io.read.ios_per_sec)
        || slow(rates.write.await_usec, share.io.write.size_bytes_avg, share.io.write.ios_per_sec)
}

/// Whether somebody set it up so: an engine is at work on the disk and gives the culprit the larger weight.
fn means_it(scene: &Scene, disk: &Disk, victim: &Workload, culprit: &Workload) -> bool {
    let weight = |workload: &Workload| super::weight_without_engine::weight_in_force(scene, disk, &workload.path);
    matches!((weight(culprit), weight(victim)), (Some(culprit), Some(victim)) if culprit > victim)
}

impl Contention<'_> {
    /// Whether the culprit belongs to the host and the victim does not: then it is the host's own doing.
    pub(super) fn is_of_the_host(&self) -> bool {
        let of_host = |workload: &Workload| workload.kind == WorkloadKind::Unit || workload.is_kernel();
        of_host(self.culprit) && !of_host(self.victim)
    }

    pub(super) fn finding(&self, scene: &Scene, id: &'static str) -> Finding {
        let Self { disk, victim, culprit, share, victims } = self;
        let mut evidence = self.of_victim(scene);
        evidence.extend(of_share(scene, culprit, share, Aspect::Culprit));
        evidence.push(self.of_limit(scene));
        evidence.extend(of_disk(disk));
        if scene.backlog(&culprit.path).is_some_and(|backlog| backlog.bytes() > 64e6) {
            evidence.extend(of_host_backlog(scene));
        }
        let others = if *victims > 1 { format!(" and {} more", victims - 1) } else { String::new() };
        let stall = victim.stall_ratio();
        let wait = if stall >= 0.2 {
            format!("spends {:.0} % of its time waiting for {}", stall * 100.0, disk.name)
        } else {
            format!("waits for {}", disk.name)
        };
        Finding {
            severity: Severity::Critical,
            confidence: if stall >= 0.2 { 0.95 } else { 0.75 },
            culprit: Some(subject(culprit, Some(disk.name))),
            summary: format!("{}{others} {wait}: {} fills the queue", victim.name, culprit.name),
            evidence,
            advice: if culprit.is_kernel() { Vec::new() } else { vec![advise::cap_at_half(scene, culprit, disk)] },
            stall_ratio: stall.max(0.2),
            ..finding(id, subject(victim, Some(disk.name)))
        }
    }

    fn of_victim(&self, scene: &Scene) -> Vec<Evidence> {
        let mut out = of_stall(scene, self.victim, Aspect::Victim);
        let (Some(rates), Some(io)) = (self.disk.rates, self.victim.io_on(self.disk.dev)) else { return out };
        for (kind, mine, all) in [("read", io.read, rates.read), ("write", io.write, rates.write)] {
            if let Some(await_usec) = all.await_usec.filter(|_| mine.ios_per_sec >= 1.0) {
                let healthy = self.disk.class.fast_usec(mine.size_bytes_avg.unwrap_or(0.0));
                let text = format!("{} (a healthy disk: below {})", usec(await_usec), usec(healthy));
                out.push(evidence(Aspect::Victim, &format!("{kind} await"), Value::Word(text), "/proc/diskstats"));
            }
        }
        out
    }

    fn of_limit(&self, scene: &Scene) -> Evidence {
        let caps = scene.caps_over(&self.culprit.path, self.disk.dev).count();
        let text = if caps == 0 { "none" } else { "set, and not reached" };
        let source = scene.cgroup_file(&self.culprit.path, "io.max");
        evidence(Aspect::Culprit, "io.max", Value::Word(text.into()), source)
    }
}

#[cfg(test)]
mod tests {
    use quell_kfile::io_cost_qos::{Ctrl, Row};
    use quell_kfile::io_weight::Weights;
    use quell_units::Micros;

    use crate::findings::written::{Did, Written, number};

    const SATA: &str = "/sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";

    fn contended() -> Written {
        let mut host = Written::new();
        let did = Did { reads: 1900, read_bytes: 1900 * 4096, read_usec: 16_000, util_pct: 100, ..Did::default() };
        host.disk(0, "sda", SATA, did);
        host.cgroup("heavy", 0.0, &[(0, 1700, 0, 1700 * 4096)]).cgroup("light", 0.6, &[(0, 200, 0, 200 * 4096)]);
        host
    }

    #[test]
    fn a_neighbour_that_was_given_the_larger_weight_is_not_blamed_for_it() {
        assert_eq!(contended().ids(), ["noisy-neighbour"]);
        let mut weighed = contended();
        weighed.change("sda", |device| {
            device.queue.as_mut().unwrap().scheduler.as_mut().unwrap().active = "bfq".into();
        });
        for (path, weight) in [("heavy", 900), ("light", 100)] {
            weighed.configure(path, |config| config.bfq_weight = Ok(Weights { default: weight, devices: Vec::new() }));
        }
        assert_eq!(weighed.ids(), ["device-saturated"]);
    }

    #[test]
    fn weights_of_an_engine_that_is_not_on_excuse_nobody() {
        let mut host = contended();
        for (path, weight) in [("heavy", 900), ("light", 100)] {
            host.configure(path, |config| config.io_weight = Ok(Weights { default: weight, devices: Vec::new() }));
        }
        assert_eq!(host.ids(), ["noisy-neighbour", "weight-without-engine"]);
        host.configure("", |config| {
            config.cost_qos = Ok(vec![Row {
                dev: number(0),
                enabled: true,
                ctrl: Ctrl::User,
                read_centipct: 0,
                read_latency_usec: Micros(0),
                write_centipct: 0,
                write_latency_usec: Micros(0),
                min_centipct: 10_000,
                max_centipct: 10_000,
            }]);
        });
        assert_eq!(host.ids(), ["device-saturated"]);
    }
}
