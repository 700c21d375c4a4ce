//! `cgroup.stat` of cgroup v2: how many cgroups are below one, and how many removed ones still hold memory.

use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// Descendants of a cgroup. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupStat {
    /// Live cgroups below it.
    pub nr_descendants: Option<u64>,
    /// Removed cgroups below it whose pages, mostly page cache, are not freed yet.
    pub nr_dying_descendants: Option<u64>,
}

/// Parses `cgroup.stat`. Other keys are skipped: from 6.12 there is a pair for each controller.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<CgroupStat> {
    scan::keyed(bytes, b' ', |stat: &mut CgroupStat, key, value| {
        let slot = match key {
            b"nr_descendants" => &mut stat.nr_descendants,
            b"nr_dying_descendants" => &mut stat.nr_dying_descendants,
            _ => return Some(()),
        };
        *slot = Some(scan::number(value)?);
        Some(())
    })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(stat: &CgroupStat) -> String {
    scan::render_keyed([("nr_descendants", stat.nr_descendants), ("nr_dying_descendants", stat.nr_dying_descendants)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_each_controller_are_skipped() {
        let parsed = parse(b"nr_descendants 3\nnr_subsys_io 4\nnr_dying_descendants 1\nnr_dying_subsys_io 0\n");
        assert!(parsed.lost.is_none());
        assert_eq!(parsed.value, CgroupStat { nr_descendants: Some(3), nr_dying_descendants: Some(1) });
        assert_eq!(parse(render(&parsed.value).as_bytes()).value, parsed.value);
    }
}
