//! `memory.stat` of cgroup v2, and of v1 under its `total_` names: the counters that tell cache trouble from disk trouble.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan::{self, Line};

/// The part of `memory.stat` that quell uses: about 8 of its 50 lines.
///
/// `None` where the kernel has no such line (v1 and old kernels lack some).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStat {
    /// Anonymous memory.
    pub anon_bytes: Option<Bytes>,
    /// Page cache.
    pub file_bytes: Option<Bytes>,
    /// Page cache that was modified and is not under write-back yet.
    pub file_dirty_bytes: Option<Bytes>,
    /// Page cache that is being written back.
    pub file_writeback_bytes: Option<Bytes>,
    /// Pages of the page cache that were evicted and read again while still needed.
    pub refault_file_pages: Option<u64>,
    /// Anonymous pages that were swapped out and read again while still needed.
    pub refault_anon_pages: Option<u64>,
    /// Pages looked at by reclaim.
    pub scan_pages: Option<u64>,
    /// Page faults that needed I/O.
    pub major_faults: Option<u64>,
}

/// Parses `memory.stat`.
///
/// Lines with other keys are passed over without being looked into: every cgroup has fifty of them.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<MemoryStat> {
    let mut parsed = Parsed::<MemoryStat>::default();
    let whole = bytes.ends_with(b"\n");
    for (line_no, line) in scan::lines(bytes) {
        let done = match line {
            Line::Whole(line) => set(&mut parsed.value, line).ok_or("the key's value"),
            Line::Torn(_) => Err(scan::NEWLINE),
        };
        if let Err(what) = done {
            parsed.lost.line(line_no, what);
        }
        // The last of them stands well before the file's end.
        if whole && parsed.value.major_faults.is_some() && parsed.value.is_complete() {
            break;
        }
    }
    parsed
}

impl MemoryStat {
    fn is_complete(&self) -> bool {
        let bytes = [self.anon_bytes, self.file_bytes, self.file_dirty_bytes, self.file_writeback_bytes];
        let pages = [self.refault_file_pages, self.refault_anon_pages, self.scan_pages, self.major_faults];
        bytes.iter().all(Option::is_some) && pages.iter().all(Option::is_some)
    }
}

fn set(stat: &mut MemoryStat, line: &[u8]) -> Option<()> {
    let bytes = |slot: &mut Option<Bytes>, value| scan::number(value).map(|n| *slot = Some(Bytes(n)));
    let pages = |slot: &mut Option<u64>, value| scan::number(value).map(|n| *slot = Some(n));
    // By the first byte and then the rest of the key with its space, which costs half of what finding the space would.
    match line {
        [b'a', rest @ ..] => match rest.strip_prefix(b"non ") {
            Some(value) => bytes(&mut stat.anon_bytes, value),
            None => Some(()),
        },
        [b'f', b'i', b'l', b'e', rest @ ..] => match rest {
            [b' ', value @ ..] => bytes(&mut stat.file_bytes, value),
            [b'_', b'd', b'i', b'r', b't', b'y', b' ', value @ ..] => bytes(&mut stat.file_dirty_bytes, value),
            _ => match rest.strip_prefix(b"_writeback ") {
                Some(value) => bytes(&mut stat.file_writeback_bytes, value),
                None => Some(()),
            },
        },
        [b'w', rest @ ..] => match rest.strip_prefix(b"orkingset_refault") {
            Some([b'_', b'f', b'i', b'l', b'e', b' ', value @ ..]) => pages(&mut stat.refault_file_pages, value),
            Some([b'_', b'a', b'n', b'o', b'n', b' ', value @ ..]) => pages(&mut stat.refault_anon_pages, value),
            // Without a suffix it is of kernels before 5.9, which did not count anonymous ones.
            Some([b' ', value @ ..]) => pages(&mut stat.refault_file_pages, value),
            _ => Some(()),
        },
        [b'p', b'g', b's', rest @ ..] => match rest.strip_prefix(b"can ") {
            Some(value) => pages(&mut stat.scan_pages, value),
            None => Some(()),
        },
        [b'p', b'g', b'm', rest @ ..] => match rest.strip_prefix(b"ajfault ") {
            Some(value) => pages(&mut stat.major_faults, value),
            None => Some(()),
        },
        [b't', b'o', b't', b'a', b'l', b'_', rest @ ..] => match scan::split_once(rest, b' ')? {
            (b"rss", value) => bytes(&mut stat.anon_bytes, value),
            (b"cache", value) => bytes(&mut stat.file_bytes, value),
            (b"dirty", value) => bytes(&mut stat.file_dirty_bytes, value),
            (b"writeback", value) => bytes(&mut stat.file_writeback_bytes, value),
            _ => Some(()),
        },
        _ => Some(()),
    }
}

/// The file as the kernel prints it, with the known lines alone.
#[must_use]
pub fn render(stat: &MemoryStat) -> String {
    let bytes = |value: Option<Bytes>| value.map(Bytes::get);
    scan::render_keyed([
        ("anon", bytes(stat.anon_bytes)),
        ("file", bytes(stat.file_bytes)),
        ("file_dirty", bytes(stat.file_dirty_bytes)),
        ("file_writeback", bytes(stat.file_writeback_bytes)),
        ("workingset_refault_anon", stat.refault_anon_pages),
        ("workingset_refault_file", stat.refault_file_pages),
        ("pgscan", stat.scan_pages),
        ("pgmajfault", stat.major_faults),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_counts() {
        let parsed = parse(b"anon 1\nanon_thp 2\nfile 3\nfile_mapped 4\nfile_dirty 5\nslab 6\n");
        assert!(parsed.lost.is_none());
        let expected = MemoryStat {
            anon_bytes: Some(Bytes(1)),
            file_bytes: Some(Bytes(3)),
            file_dirty_bytes: Some(Bytes(5)),
            ..MemoryStat::default()
        };
        assert_eq!(parsed.value, expected);
        assert_eq!(parse(render(&expected).as_bytes()).value, expected);
    }

    #[test]
    fn every_field_has_its_key() {
        let bytes = |n| Some(Bytes(n));
        let stat = MemoryStat {
            anon_bytes: bytes(1),
            file_bytes: bytes(2),
            file_dirty_bytes: bytes(3),
            file_writeback_bytes: bytes(4),
            refault_file_pages: Some(5),
            refault_anon_pages: Some(6),
            scan_pages: Some(7),
            major_faults: Some(8),
        };
        assert_eq!(parse(render(&stat).as_bytes()).value, stat);
        let v1 = parse(b"total_rss 1\ntotal_cache 2\ntotal_dirty 3\ntotal_writeback 4\nworkingset_refault 5\n");
        let known_to_v1 = MemoryStat { refault_anon_pages: None, scan_pages: None, major_faults: None, ..stat };
        assert_eq!(v1.value, known_to_v1);
    }

    #[test]
    fn version_1_counts_the_whole_subtree_under_total() {
        let parsed = parse(b"cache 1\ndirty 2\ntotal_cache 30\ntotal_dirty 40\n");
        assert_eq!(parsed.value.file_bytes, Some(Bytes(30)));
        assert_eq!(parsed.value.file_dirty_bytes, Some(Bytes(40)));
    }

    #[test]
    fn a_bad_number_is_counted_and_the_rest_kept() {
        let parsed = parse(b"file x\nanon 7\nfile_dirty 12");
        assert_eq!(parsed.value.anon_bytes, Some(Bytes(7)));
        assert_eq!(parsed.lost.lines, 2);
    }
}
