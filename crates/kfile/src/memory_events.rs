//! `memory.events` of cgroup v2: how often a cgroup met its own memory limits.

use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// Events since the cgroup was made, those of its descendants counted too. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEvents {
    /// Times it was reclaimed from although below `memory.low`.
    pub low: Option<u64>,
    /// Times its tasks were made to reclaim for being over `memory.high`.
    pub high: Option<u64>,
    /// Times it was about to go over `memory.max`, most of which reclaim settles.
    pub max: Option<u64>,
    /// Times it was at its limit and an allocation was about to fail.
    pub oom: Option<u64>,
    /// Its processes that the OOM killer killed, whatever the reason. From 4.13.
    pub oom_kill: Option<u64>,
    /// Times the OOM killer took it as a whole. From 5.17.
    pub oom_group_kill: Option<u64>,
}

/// Parses `memory.events`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<MemoryEvents> {
    scan::keyed(bytes, b' ', |events: &mut MemoryEvents, key, value| {
        let slot = match key {
            b"low" => &mut events.low,
            b"high" => &mut events.high,
            b"max" => &mut events.max,
            b"oom" => &mut events.oom,
            b"oom_kill" => &mut events.oom_kill,
            b"oom_group_kill" => &mut events.oom_group_kill,
            _ => return Some(()),
        };
        *slot = Some(scan::number(value)?);
        Some(())
    })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(events: &MemoryEvents) -> String {
    scan::render_keyed([
        ("low", events.low),
        ("high", events.high),
        ("max", events.max),
        ("oom", events.oom),
        ("oom_kill", events.oom_kill),
        ("oom_group_kill", events.oom_group_kill),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_lack_the_last_lines() {
        let parsed = parse(b"low 0\nhigh 0\nmax 618\noom 0\noom_kill 2\n");
        assert!(parsed.lost.is_none());
        assert_eq!((parsed.value.max, parsed.value.oom_kill, parsed.value.oom_group_kill), (Some(618), Some(2), None));
        assert_eq!(parse(render(&parsed.value).as_bytes()).value, parsed.value);
    }
}
