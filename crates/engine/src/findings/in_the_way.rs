//! One workload in another's way, whoever the culprit is: what `noisy-neighbour` and `system-hog` say of it.

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_host_backlog, of_share, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Evidence, Finding, Severity, Value};
use super::scene::{Contention, Scene};

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
    let v1 = scene.window.t1.host.cgroups.io_is_v1();
    let (what, file) = if v1 { ("limit", "blkio.throttle.*") } else { ("io.max", "io.max") };
    evidence(Aspect::Culprit, what, Value::Word(text.into()), scene.cgroup_file(&culprit.path, file))
}
