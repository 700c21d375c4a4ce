//! `/proc/meminfo`: how much memory, page cache and swap the host has.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// The part of `/proc/meminfo` that quell uses. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemInfo {
    /// `MemTotal`: usable memory.
    pub total_bytes: Option<Bytes>,
    /// `MemAvailable`: what programs could have without swapping, by the kernel's estimate. From 3.14.
    pub available_bytes: Option<Bytes>,
    /// `Cached`: page cache, with shared memory and without swap cache.
    pub cached_bytes: Option<Bytes>,
    /// `Mapped`: pages of files that a process maps.
    pub mapped_bytes: Option<Bytes>,
    /// `Dirty`: page cache modified and not under write-back yet.
    pub dirty_bytes: Option<Bytes>,
    /// `Writeback`: page cache being written back.
    pub writeback_bytes: Option<Bytes>,
    /// `SwapTotal`: all swap; 0 where there is none.
    pub swap_total_bytes: Option<Bytes>,
    /// `SwapFree`: swap not in use.
    pub swap_free_bytes: Option<Bytes>,
}

/// Parses `/proc/meminfo`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<MemInfo> {
    scan::keyed(bytes, b':', |info: &mut MemInfo, key, value| {
        let slot = match key {
            b"MemTotal" => &mut info.total_bytes,
            b"MemAvailable" => &mut info.available_bytes,
            b"Cached" => &mut info.cached_bytes,
            b"Mapped" => &mut info.mapped_bytes,
            b"Dirty" => &mut info.dirty_bytes,
            b"Writeback" => &mut info.writeback_bytes,
            b"SwapTotal" => &mut info.swap_total_bytes,
            b"SwapFree" => &mut info.swap_free_bytes,
            _ => return Some(()),
        };
        *slot = Some(scan::kib_with_unit(value)?);
        Some(())
    })
}

/// The file as the kernel prints it, with the known lines alone.
#[must_use]
pub fn render(info: &MemInfo) -> String {
    [
        ("MemTotal:", info.total_bytes),
        ("MemAvailable:", info.available_bytes),
        ("Cached:", info.cached_bytes),
        ("SwapTotal:", info.swap_total_bytes),
        ("SwapFree:", info.swap_free_bytes),
        ("Dirty:", info.dirty_bytes),
        ("Writeback:", info.writeback_bytes),
        ("Mapped:", info.mapped_bytes),
    ]
    .into_iter()
    .filter_map(|(key, value)| value.map(|Bytes(n)| format!("{key:<15} {:>8} kB\n", n / 1024)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_kb_are_kib() {
        let text = b"MemTotal:        2030560 kB\nWriteback:             0 kB\n";
        let parsed = parse(text);
        assert_eq!(parsed.value.total_bytes, Some(Bytes(2_079_293_440)));
        assert_eq!(parsed.value.writeback_bytes, Some(Bytes(0)));
        assert_eq!(render(&parsed.value).as_bytes(), text);
    }

    #[test]
    fn keys_that_only_begin_alike_are_skipped_and_a_missing_unit_is_lost() {
        let parsed = parse(b"WritebackTmp: 5 kB\nSwapCached: 6 kB\nDirty: 7\n");
        assert_eq!((parsed.value, parsed.lost.lines), (MemInfo::default(), 1));
    }
}
