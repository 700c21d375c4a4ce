//! `cgroup.events` of cgroup v2: whether anything lives in a cgroup.

use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// The state of a cgroup. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupEvents {
    /// Whether it or a descendant holds a live process.
    pub populated: Option<bool>,
    /// Whether all its processes are frozen. From 5.2.
    pub frozen: Option<bool>,
}

/// Parses `cgroup.events`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<CgroupEvents> {
    scan::keyed(bytes, b' ', |events: &mut CgroupEvents, key, value| {
        let slot = match key {
            b"populated" => &mut events.populated,
            b"frozen" => &mut events.frozen,
            _ => return Some(()),
        };
        *slot = Some(scan::flag(value)?);
        Some(())
    })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(events: &CgroupEvents) -> String {
    scan::render_keyed([("populated", events.populated.map(u64::from)), ("frozen", events.frozen.map(u64::from))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_cgroup_is_populated() {
        let parsed = parse(b"populated 1\nfrozen 0\n");
        assert_eq!(parsed.value, CgroupEvents { populated: Some(true), frozen: Some(false) });
        assert_eq!(render(&parsed.value), "populated 1\nfrozen 0\n");
    }

    #[test]
    fn neither_yes_nor_no_is_lost() {
        let parsed = parse(b"populated 2\nfrozen 0\n");
        assert_eq!((parsed.value.populated, parsed.lost.lines), (None, 1));
    }
}
