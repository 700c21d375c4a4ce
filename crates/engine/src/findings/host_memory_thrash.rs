//! `host-memory-thrash`: the whole host waits for memory, and its disk for that.

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "host-memory-thrash",
    explain: Explain {
        means: "For a good part of the time nobody on the host can work, because all wait for memory: pages are thrown out and \
            read again at once. What the disk does is a symptom.",
        kernel: "memory.pressure counts the time in which tasks wait for reclaim, for pages that were just evicted \
            (workingset_refault) and for swap. `full` is the time in which nobody runs.",
        evidence: "/proc/pressure/memory full of at least 20 % of the window; of a paste with one reading, its averages over 10 \
            and 60 s. Where one cgroup's own limit is the cause, memcg-thrash says so instead.",
        change: "Find what grew (memory.current of the cgroups), give the host memory, or limit what need not have it all.",
        undo: "Nothing is changed.",
    },
    find,
};

/// The least share of the time in which nobody runs for want of memory, in percent.
const FULL_PCT: f64 = 20.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let seen = scene.rates.system.memory_pressure.ok().and_then(|pressure| pressure.full_pct);
    let Some(full) = seen.or_else(|| told(scene)).filter(|full| *full >= FULL_PCT) else { return Vec::new() };
    let mut out = vec![evidence(Aspect::Memory, "pressure full", Value::Pct(full), "/proc/pressure/memory")];
    if let Ok(memory) = scene.window.t1.system.meminfo.as_ref()
        && let Some(available) = memory.available_bytes
    {
        out.push(evidence(Aspect::Memory, "available", Value::Bytes(available.as_f64()), "/proc/meminfo"));
    }
    vec![Finding {
        confidence: 0.85,
        summary: format!(
            "{full:.0} % of the time nobody on the host can run for want of memory: it reads again what it just threw out"
        ),
        evidence: out,
        advice: vec![
            super::advise::look(
                "see who has the memory; give the host more, or limit what need not have it all",
                Some("systemd-cgtop --order=memory --iterations=1".into()),
            ),
            Advice::text("no setting of the disk helps: its reads are the symptom"),
        ],
        stall_ratio: (full / 100.0).min(1.0),
        ..finding(RULE.id, host_subject())
    }]
}

/// The averages of a paste with one reading: of the last 10 s, where they last over 60 s.
fn told(scene: &Scene) -> Option<f64> {
    let averages = &scene.window.pasted.as_deref()?.pressures;
    let memory = averages.iter().find(|pressure| pressure.path == "proc/pressure/memory")?;
    let [ten, sixty, _] = memory.full_pct?;
    Some(ten.min(sixty))
}
