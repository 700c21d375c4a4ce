//! `noisy-neighbour`: one workload fills a disk's queue, another one waits in it.

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_share, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Severity, Value};
use super::scene::{Contention, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "noisy-neighbour",
    explain: Explain {
        means: "One workload fills the disk's queue, and the requests of another one stand in it.",
        kernel: "A disk serves its queue without knowing whose requests these are. Sixty-four deep writes in front of a \
            single read make that read wait for all of them. Only io.max, io.latency, iocost or bfq know cgroups, and \
            without one of these a share of the disk goes to whoever sends the most.",
        evidence: "A disk that queues (see device-saturated), one workload with at least three fifths of the disk's time, \
            and another one that does most of its I/O there and waits: io.pressure full or tasks seen waiting for a \
            fifth of the time, or at least 5 requests a second of a kind that takes three times what it should. An \
            engine that gives the culprit the larger weight excuses it.",
        change: "Cap the culprit on this disk, or give the victim a weight under iocost or bfq, or a latency target.",
        undo: "Write `max` to the same key of io.max, or reset the unit's property.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let cases = scene.contentions();
    cases.iter().filter(|case| !case.is_of_the_host()).map(|case| in_the_way(scene, case, RULE.id)).collect()
}

/// The finding of a contention, by this name.
pub(super) fn in_the_way(scene: &Scene, case: &Contention, id: &'static str) -> Finding {
    let Contention { disk, victim, culprit, share, victims } = case;
    let mut evidence = of_victim(scene, case);
    evidence.extend(of_share(scene, culprit, share, Aspect::Culprit));
    evidence.push(of_limit(scene, case));
    evidence.extend(of_disk(disk));
    if scene.backlog(&culprit.path).is_some_and(|backlog| backlog.bytes() > 64e6) {
        evidence.extend(of_host_backlog(scene));
    }
    let others = if *victims > 1 { format!(" and {} more", victims - 1) } else { String::new() };
    let wait = match victim.pressure_full_pct().filter(|pct| *pct >= 20.0) {
        Some(pct) => format!("spends {pct:.0} % of its time waiting for {}", disk.name),
        None => format!("waits for {}", disk.name),
    };
    let stall = victim.stall_ratio();
    Finding {
        severity: Severity::Critical,
        confidence: if stall >= 0.2 { 0.95 } else { 0.75 },
        culprit: Some(subject(culprit, Some(disk.name))),
        summary: format!("{}{others} {wait}: {} fills the queue", victim.name, culprit.name),
        evidence,
        advice: vec![match culprit.is_kernel() {
            true => Advice::text(
                "no limit reaches the root cgroup: slow what it does (md: sync_speed_max; scrub and fstrim: their timers)",
            ),
            false => advise::cap_at_half(scene, culprit, disk),
        }],
        stall_ratio: stall.max(0.2),
        ..finding(id, subject(victim, Some(disk.name)))
    }
}

fn of_victim(scene: &Scene, case: &Contention) -> Vec<Evidence> {
    let Contention { disk, victim, .. } = case;
    let mut out = of_stall(scene, victim, Aspect::Victim);
    let (Some(rates), Some(io)) = (disk.rates, victim.io_on(disk.dev)) else { return out };
    for (kind, mine, all) in [("read", io.read, rates.read), ("write", io.write, rates.write)] {
        if let Some(await_usec) = all.await_usec.filter(|_| mine.ios_per_sec >= 1.0) {
            let healthy = disk.class.fast_usec(mine.size_bytes_avg.unwrap_or(0.0));
            let text = format!("{} (a healthy disk: about {})", usec(await_usec), usec(healthy));
            out.push(evidence(Aspect::Victim, &format!("{kind} await"), Value::Word(text), "/proc/diskstats"));
        }
    }
    out
}

fn of_limit(scene: &Scene, case: &Contention) -> Evidence {
    let Contention { disk, culprit, .. } = case;
    let file = scene.config(&culprit.path).map(|config| config.io_max.is_ok());
    let caps = scene.caps_over(&culprit.path, disk.dev).count();
    let text = match (file, caps) {
        (Some(true), 0) => "none",
        (Some(true), _) => "set, and not in the way",
        _ => "not there, so no limit can be set",
    };
    evidence(Aspect::Culprit, "io.max", Value::Word(text.into()), scene.cgroup_file(&culprit.path, "io.max"))
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
