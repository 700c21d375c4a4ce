//! `not-disk-bound`: the disks have time, and something else has none.

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "not-disk-bound",
    explain: Explain {
        means: "No disk queues and nobody waits for one, but tasks wait for processors or memory. What is slow is not storage.",
        kernel: "Pressure tells three waits apart: for I/O, for a processor, for memory.",
        evidence: "Every disk below 30 % util with less than one request in its queue, io pressure some below 5 %, and cpu \
            pressure some of at least 30 % or memory pressure some of at least 20 %; in a paste without pressure, processors \
            idle for less than 5 % and waiting for I/O for less than 2 %.",
        change: "Look at the processors: top, cpu.max and cpu.weight of the cgroups, steal.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let idle = |disk: &super::scene::Disk| disk.util_pct < 30.0 && disk.queue_length_avg() < 1.0;
    let mut disks = scene.leaf_disks().peekable();
    if disks.peek().is_none() || !disks.all(idle) {
        return Vec::new();
    }
    let Some((what, value, source)) = by_pressure(scene).or_else(|| by_processors(scene)) else { return Vec::new() };
    vec![Finding {
        severity: Severity::Info,
        confidence: 0.8,
        summary: format!("the disks have time: what waits here waits for {what}"),
        evidence: vec![evidence(Aspect::Victim, what, Value::Pct(value), source)],
        advice: vec![Advice::text(format!("look at who uses the {what}, and at limits on it"))],
        ..finding(RULE.id, host_subject())
    }]
}

fn by_pressure(scene: &Scene) -> Option<(&'static str, f64, &'static str)> {
    let system = &scene.rates.system;
    system.io_pressure.ok().filter(|io| io.some_pct < 5.0)?;
    let cpu = system.cpu_pressure.ok().map(|cpu| cpu.some_pct).filter(|pct| *pct >= 30.0);
    let memory = system.memory_pressure.ok().map(|memory| memory.some_pct).filter(|pct| *pct >= 20.0);
    let cpu = cpu.map(|pct| ("processors", pct, "/proc/pressure/cpu"));
    cpu.or(memory.map(|pct| ("memory", pct, "/proc/pressure/memory")))
}

/// What iostat's own line on the processors says.
fn by_processors(scene: &Scene) -> Option<(&'static str, f64, &'static str)> {
    let tables = &scene.window.pasted.as_deref()?.tables;
    let (busy, iowait, idle) = tables.iter().rev().find_map(|table| table.cpu_pct)?;
    (idle < 5.0 && iowait < 2.0).then_some(("processors", busy, "avg-cpu"))
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};
    use quell_kfile::pressure::Pressure;
    use quell_units::Micros;

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    #[test]
    fn busy_processors_and_idle_disks_are_told() {
        let of = |cpu_pct: u64, util_pct: u64| {
            let mut host = Written::new();
            host.disk(
                0,
                "vda",
                VIRTIO,
                Did { reads: 20, read_bytes: 81_920, read_usec: 300, util_pct, ..Did::default() },
            );
            let pressure = |usec: u64| Ok(Pressure { some_usec: Micros(usec), full_usec: None });
            (host.window.t0.system.io_pressure, host.window.t1.system.io_pressure) = (pressure(0), pressure(0));
            host.window.t0.system.cpu_pressure = pressure(0);
            host.window.t1.system.cpu_pressure = pressure(cpu_pct * 100_000);
            host.ids().contains(&"not-disk-bound")
        };
        assert!(of(90, 2) && !of(10, 2) && !of(90, 60));
    }
}
