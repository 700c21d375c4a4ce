//! `io-uring-false-pressure`: the host seems stalled on I/O, and it is a program that waits for nothing.

use super::evidence::{evidence, finding, host_subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::Scene;
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "io-uring-false-pressure",
    explain: Explain {
        means: "io.pressure and iowait are high and no disk is busy: an io_uring program waits for events, and the kernel \
            counts that as waiting for I/O. It is cosmetic.",
        kernel: "Since 6.1.39 a task that waits in io_uring_enter counts as in I/O wait, whatever it waits for, unless it asks \
            with IORING_ENTER_NO_IOWAIT not to. An idle server shows 100 %.",
        evidence: "The host's io.pressure some at 50 % or more, every disk below 20 % busy with a queue below a half, no task \
            in uninterruptible sleep at every look, and a process that holds an io_uring.",
        change: "Nothing. Take pressure per container instead, or update the program's liburing.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    false_pressure(scene).into_iter().collect()
}

fn false_pressure(scene: &Scene) -> Option<Finding> {
    let some_pct = scene.rates.system.io_pressure.ok()?.some_pct;
    let idle = scene.leaf_disks().all(|disk| disk.util_pct < 20.0 && disk.queue_length_avg() < 0.5);
    let blocked = scene.workloads.iter().flat_map(|w| &w.waits).any(|wait| wait.throughout() && !wait.kernel_thread);
    let program = scene.window.t1.tasks.iter().find(|task| task.io_uring)?;
    if some_pct < 50.0 || !idle || blocked {
        return None;
    }
    let name = quell_units::escape(program.comm.as_bytes());
    let busiest = scene.leaf_disks().map(|disk| disk.util_pct).fold(0.0, f64::max);
    Some(Finding {
        severity: Severity::Info,
        confidence: 0.8,
        summary: format!(
            "pressure reads {some_pct:.0} % and no disk is busy: {name} waits in io_uring, which counts as I/O"
        ),
        evidence: vec![
            evidence(Aspect::Tasks, "io.pressure some", Value::Pct(some_pct), "/proc/pressure/io"),
            evidence(
                Aspect::Tasks,
                "holds an io_uring",
                Value::Word(format!("{name} ({})", program.pid)),
                "/proc/PID/fd",
            ),
            evidence(Aspect::Device, "busiest disk", Value::Pct(busiest), "/proc/diskstats"),
        ],
        advice: vec![Advice::text("nothing: do not alert on the host's io.pressure while such a program runs")],
        ..finding(RULE.id, host_subject())
    })
}
