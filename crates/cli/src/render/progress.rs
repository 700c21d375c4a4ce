//! What a watch sees while it lasts, in one line.

use std::time::Duration;

use quell_engine::snapshot::{Device, Look};

use super::text::counted;

/// How long it has lasted, who waits, and at which disks requests are in flight.
#[must_use]
pub fn line(passed: Duration, of: Duration, disks: &[Device], look: &Look) -> String {
    let waiting = look.blocked.iter().filter(|task| !task.kernel_thread).count();
    let mut items = vec![
        format!("watching {:.0} of {:.0} s", passed.as_secs_f64(), of.as_secs_f64()),
        format!("{} waiting", counted(waiting, "task", "tasks")),
    ];
    items.extend(look.disks.iter().filter(|disk| disk.in_flight > 0).filter_map(|look| {
        let disk = disks.iter().find(|disk| disk.dev == look.dev && disk.partition_of.is_none())?;
        Some(format!("{} {} in flight", disk.name, look.in_flight))
    }));
    items.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_host_gives_a_short_line() {
        let line = line(Duration::from_millis(3200), Duration::from_secs(10), &[], &Look::default());
        assert_eq!(line, "watching 3 of 10 s · 0 tasks waiting");
    }
}
