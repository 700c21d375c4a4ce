//! `/proc/vmstat`: the host's page counters, and the dirty limits that are in force.
//!
//! Two units in one file: the kernel counts pages everywhere but in `pgpgin` and `pgpgout`, which are KiB.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// The part of `/proc/vmstat` that quell uses, since boot where it is a counter. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmStat {
    /// `nr_dirty`: pages modified and not under write-back yet.
    pub dirty_pages: Option<u64>,
    /// `nr_writeback`: pages being written back.
    pub writeback_pages: Option<u64>,
    /// `nr_mapped`: pages of files that a process maps.
    pub mapped_pages: Option<u64>,
    /// `nr_dirty_threshold`: where writers are stopped, as worked out from the ratio or the bytes.
    pub dirty_threshold_pages: Option<u64>,
    /// `nr_dirty_background_threshold`: where the flushers start.
    pub dirty_background_threshold_pages: Option<u64>,
    /// `pswpin`: pages read from swap.
    pub swapped_in_pages: Option<u64>,
    /// `pswpout`: pages written to swap.
    pub swapped_out_pages: Option<u64>,
    /// `pgpgin`: read from block devices, in bytes.
    pub paged_in_bytes: Option<Bytes>,
    /// `pgpgout`: written to block devices, in bytes.
    pub paged_out_bytes: Option<Bytes>,
    /// `workingset_refault_file`: page cache evicted and read again while still needed. Before 5.9 `workingset_refault`.
    pub refault_file_pages: Option<u64>,
    /// `workingset_refault_anon`: anonymous pages swapped out and read again while still needed. From 5.9.
    pub refault_anon_pages: Option<u64>,
    /// `pgscan_direct`: pages looked at by tasks that needed memory at once.
    pub scan_direct_pages: Option<u64>,
    /// `pgscan_kswapd`: pages looked at in the background.
    pub scan_kswapd_pages: Option<u64>,
    /// `pgmajfault`: page faults that needed I/O.
    pub major_faults: Option<u64>,
    /// `allocstall`: times a task had to reclaim for itself, the sum over all zones.
    pub direct_reclaims: Option<u64>,
    /// `oom_kill`: processes killed for want of memory. From 4.13.
    pub oom_kills: Option<u64>,
}

/// Parses `/proc/vmstat`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<VmStat> {
    scan::keyed(bytes, b' ', set)
}

fn set(stat: &mut VmStat, key: &[u8], value: &[u8]) -> Option<()> {
    let slot = match key {
        b"nr_dirty" => &mut stat.dirty_pages,
        b"nr_writeback" => &mut stat.writeback_pages,
        b"nr_mapped" => &mut stat.mapped_pages,
        b"nr_dirty_threshold" => &mut stat.dirty_threshold_pages,
        b"nr_dirty_background_threshold" => &mut stat.dirty_background_threshold_pages,
        b"pswpin" => &mut stat.swapped_in_pages,
        b"pswpout" => &mut stat.swapped_out_pages,
        b"pgpgin" => return scan::kib(value).map(|bytes| stat.paged_in_bytes = Some(bytes)),
        b"pgpgout" => return scan::kib(value).map(|bytes| stat.paged_out_bytes = Some(bytes)),
        b"workingset_refault_file" | b"workingset_refault" => &mut stat.refault_file_pages,
        b"workingset_refault_anon" => &mut stat.refault_anon_pages,
        b"pgscan_direct" => &mut stat.scan_direct_pages,
        b"pgscan_kswapd" => &mut stat.scan_kswapd_pages,
        b"pgmajfault" => &mut stat.major_faults,
        b"oom_kill" => &mut stat.oom_kills,
        // One line a zone; before 4.8 one line for all.
        _ if key.starts_with(b"allocstall") => {
            let more = scan::number(value)?;
            stat.direct_reclaims = Some(stat.direct_reclaims.unwrap_or(0).saturating_add(more));
            return Some(());
        }
        _ => return Some(()),
    };
    *slot = Some(scan::number(value)?);
    Some(())
}

/// The file as the kernel prints it, with the known lines alone and `allocstall` in one, as before 4.8.
#[must_use]
pub fn render(stat: &VmStat) -> String {
    let kib = |bytes: Option<Bytes>| bytes.map(|Bytes(n)| n / 1024);
    scan::render_keyed([
        ("workingset_refault_anon", stat.refault_anon_pages),
        ("workingset_refault_file", stat.refault_file_pages),
        ("nr_mapped", stat.mapped_pages),
        ("nr_dirty", stat.dirty_pages),
        ("nr_writeback", stat.writeback_pages),
        ("nr_dirty_threshold", stat.dirty_threshold_pages),
        ("nr_dirty_background_threshold", stat.dirty_background_threshold_pages),
        ("pgpgin", kib(stat.paged_in_bytes)),
        ("pgpgout", kib(stat.paged_out_bytes)),
        ("pswpin", stat.swapped_in_pages),
        ("pswpout", stat.swapped_out_pages),
        ("allocstall", stat.direct_reclaims),
        ("pgmajfault", stat.major_faults),
        ("pgscan_kswapd", stat.scan_kswapd_pages),
        ("pgscan_direct", stat.scan_direct_pages),
        ("oom_kill", stat.oom_kills),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_summed_over_the_zones_and_throttles_are_not_scans() {
        let text = b"allocstall_dma32 3\nallocstall_normal 4\npgscan_direct 5\npgscan_direct_throttle 6\n";
        let parsed = parse(text);
        assert!(parsed.lost.is_none());
        assert_eq!((parsed.value.direct_reclaims, parsed.value.scan_direct_pages), (Some(7), Some(5)));
        assert_eq!(parse(render(&parsed.value).as_bytes()).value, parsed.value);
    }

    #[test]
    fn paging_is_in_kib_and_not_in_pages() {
        assert_eq!(parse(b"pgpgin 9618\n").value.paged_in_bytes, Some(Bytes(9_848_832)));
        assert_eq!(parse(b"pgpgin 18446744073709551615\n").lost.lines, 1);
    }
}
