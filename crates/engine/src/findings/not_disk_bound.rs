//! `not-disk-bound`: the host is short of something, and it is no disk.

use quell_units::Known;

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;
use crate::rates::PressureRates;

pub(super) const RULE: Rule = Rule {
    id: "not-disk-bound",
    explain: Explain {
        means: "Programs wait, and not for a disk: the disks have time left, and processors or memory do not.",
        kernel: "Pressure counts apart what tasks wait for: a processor, memory, or I/O. A program that gets no processor is \
            slow like one that waits for a disk, and its requests come late.",
        evidence: "The host's cpu.pressure some at 25 % or its memory.pressure some at 10 % and more, io.pressure some below \
            5 %, every disk below 20 % busy with less than half a request in the queue.",
        change: "Nothing about disks: more processors, fewer programs, or limits for those that take most.",
        undo: "Nothing is changed.",
    },
    find,
};

const CPU_PCT: f64 = 25.0;
const MEMORY_PCT: f64 = 10.0;
const IO_PCT: f64 = 5.0;

fn find(scene: &Scene) -> Vec<Finding> {
    not_disk_bound(scene).into_iter().collect()
}

fn not_disk_bound(scene: &Scene) -> Option<Finding> {
    let system = &scene.rates.system;
    let some_pct = |pressure: Known<PressureRates>| pressure.ok().map(|pressure| pressure.some_pct);
    let io_pct = some_pct(system.io_pressure)?;
    let cpu_pct = some_pct(system.cpu_pressure).filter(|pct| *pct >= CPU_PCT);
    let memory_pct = some_pct(system.memory_pressure).filter(|pct| *pct >= MEMORY_PCT);
    let mut disks = scene.leaf_disks().peekable();
    disks.peek()?;
    let idle = disks.all(|disk| disk.util_pct < 20.0 && disk.queue_length_avg() < 0.5);
    if !idle || io_pct >= IO_PCT {
        return None;
    }
    let (what, pct, file) = match (cpu_pct, memory_pct) {
        (_, Some(pct)) => ("memory", pct, "/proc/pressure/memory"),
        (Some(pct), None) => ("a processor", pct, "/proc/pressure/cpu"),
        (None, None) => return None,
    };
    let busiest = scene.leaf_disks().map(|disk| disk.util_pct).fold(0.0, f64::max);
    Some(Finding {
        severity: Severity::Info,
        confidence: 0.8,
        summary: format!("the disks are idle; for {pct:.0} % of the time somebody waits for {what}"),
        evidence: vec![
            evidence(Aspect::Tasks, "pressure some", Value::Pct(pct), file),
            evidence(Aspect::Tasks, "io.pressure some", Value::Pct(io_pct), "/proc/pressure/io"),
            evidence(Aspect::Device, "busiest disk", Value::Pct(busiest), "/proc/diskstats"),
        ],
        advice: vec![Advice::text(format!("look at who takes {what}, and not at the disks"))],
        ..finding(RULE.id, host_subject())
    })
}

#[cfg(test)]
mod tests {
    use quell_kfile::pressure::Pressure;
    use quell_units::Micros;

    use crate::findings::written::{Did, SECONDS, Written};

    fn host(cpu_pct: u64, util_pct: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { reads: 20, read_bytes: 20 * 4096, read_usec: 10 * util_pct, util_pct, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", did);
        let some_usec = Micros(cpu_pct * SECONDS * 10_000);
        host.window.t1.system.cpu_pressure = Ok(Pressure { some_usec, full_usec: Some(Micros(0)) });
        host.ids()
    }

    #[test]
    fn idle_disks_beside_programs_that_want_a_processor_say_where_to_look() {
        assert!(host(80, 2).contains(&"not-disk-bound"));
    }

    #[test]
    fn a_quiet_host_and_one_with_a_busy_disk_are_not_sent_elsewhere() {
        assert!(!host(5, 2).contains(&"not-disk-bound"));
        assert!(!host(80, 60).contains(&"not-disk-bound"));
    }
}
