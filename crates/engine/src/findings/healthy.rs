//! `healthy`: no workload waits for a disk longer than it should.

use super::evidence::{evidence, finding, host_subject, usec};
use super::finding::{Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "healthy",
    explain: Explain {
        means: "No rule found anything of warning or above. It is a statement about the host in this window, not a promise.",
        kernel: "A disk may be busy and healthy: what counts is whether somebody waits longer than the disk needs.",
        evidence: "Every rule was tried; what could not be read is listed as a gap and was not judged.",
        change: "Nothing.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let busiest = scene.leaf_disks().max_by(|a, b| a.queue_length_avg().total_cmp(&b.queue_length_avg()));
    let Some(busiest) = busiest.filter(|_| scene.rates.seconds.is_ok()) else { return Vec::new() };
    let disks = scene.leaf_disks().count();
    let workloads = scene.workloads.iter().filter(|workload| !workload.is_kernel()).count();
    let mut out = Vec::new();
    if let Some(rates) = busiest.rates {
        let text = match rates.await_usec() {
            None => "none: no disk completed an I/O".to_owned(),
            Some(await_usec) => format!(
                "{}: {:.0} I/O/s, await {}, aqu-sz {:.2}",
                busiest.name,
                rates.ios_per_sec(),
                usec(await_usec),
                rates.queue_length_avg
            ),
        };
        out.push(evidence(Aspect::Device, "busiest", Value::Word(text), "/proc/diskstats"));
    }
    vec![Finding {
        severity: Severity::Info,
        confidence: 0.9,
        summary: format!(
            "nobody waits longer than the disks need: {}, {}",
            plural(disks, "disk"),
            plural(workloads, "workload")
        ),
        evidence: out,
        ..finding(RULE.id, host_subject())
    }]
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}
