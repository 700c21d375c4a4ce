//! Version 1 in the words of version 2: counters of `blkio.throttle`, its limits, and memory's.

use quell_kfile::{blkio, io_max, io_stat};
use quell_units::{Bytes, DevNum, Limit};

/// What version 1 prints for a memory limit that nobody set: the largest count of pages, in bytes. By page size.
const NO_MEMORY_LIMIT: u64 = 0x7fff_ffff_ffff_0000;

/// Rows of `io.stat` from the counts of bytes and of bios, into `rows`, which is emptied first.
///
/// A device that only one of the two files names is left out: half of its numbers would be zeros that nobody measured.
pub(super) fn join_counts(bytes: &[blkio::CountRow], ios: &[blkio::CountRow], rows: &mut Vec<io_stat::Row>) {
    rows.clear();
    rows.extend(bytes.iter().filter_map(|bytes| {
        let ios = ios.iter().find(|ios| ios.dev == bytes.dev)?;
        Some(io_stat::Row {
            read_bytes: Bytes(bytes.read?),
            write_bytes: Bytes(bytes.write?),
            // Before 4.18 a discard counted as a write.
            discard_bytes: Bytes(bytes.discard.unwrap_or(0)),
            read_ios: ios.read?,
            write_ios: ios.write?,
            discard_ios: ios.discard.unwrap_or(0),
            ..io_stat::Row::idle(bytes.dev)
        })
    }));
}

/// The limits of the four files, in the order of `rbps wbps riops wiops`, as rows of `io.max`.
pub(super) fn join_limits(limits: [&[blkio::LimitRow]; 4]) -> Vec<io_max::Row> {
    let mut devs: Vec<DevNum> = limits.iter().flat_map(|rows| rows.iter().map(|row| row.dev)).collect();
    devs.sort_unstable();
    devs.dedup();
    let [read_bytes, write_bytes, read_ios, write_ios] = limits;
    let of = |rows: &[blkio::LimitRow], dev: DevNum| rows.iter().find(|row| row.dev == dev).map(|row| row.per_sec);
    let at = |rows: &[blkio::LimitRow], dev: DevNum| of(rows, dev).map_or(Limit::Max, Limit::At);
    let bytes_at = |rows: &[blkio::LimitRow], dev: DevNum| of(rows, dev).map_or(Limit::Max, |n| Limit::At(Bytes(n)));
    devs.into_iter()
        .map(|dev| io_max::Row {
            dev,
            read_bytes_per_sec: bytes_at(read_bytes, dev),
            write_bytes_per_sec: bytes_at(write_bytes, dev),
            read_ios_per_sec: at(read_ios, dev),
            write_ios_per_sec: at(write_ios, dev),
        })
        .collect()
}

/// The limit of `memory.limit_in_bytes`.
pub(super) fn memory_limit(bytes: u64) -> Limit<Bytes> {
    if bytes >= NO_MEMORY_LIMIT { Limit::Max } else { Limit::At(Bytes(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VDA: DevNum = DevNum { major: 253, minor: 0 };
    const VDB: DevNum = DevNum { major: 253, minor: 16 };

    #[test]
    fn bytes_and_bios_make_one_row() {
        let bytes = blkio::parse_counts(
            b"253:0 Read 1\n253:0 Write 2\n253:0 Total 3\n253:16 Read 9\n253:16 Write 9\nTotal 3\n",
        );
        let ios = blkio::parse_counts(b"253:0 Read 4\n253:0 Write 5\n253:0 Discard 6\n");
        let mut rows = vec![io_stat::Row::idle(VDB)];
        join_counts(&bytes.value, &ios.value, &mut rows);
        let expected = io_stat::Row {
            read_bytes: Bytes(1),
            write_bytes: Bytes(2),
            read_ios: 4,
            write_ios: 5,
            discard_ios: 6,
            ..io_stat::Row::idle(VDA)
        };
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn four_files_of_limits_make_one_row_a_device() {
        let limits = |text: &str| blkio::parse_limits(text.as_bytes()).value;
        let (wbps, riops) = (limits("253:16 5\n253:0 10\n"), limits("253:16 7\n"));
        let rows = join_limits([&[], &wbps, &riops, &[]]);
        assert_eq!(rows.iter().map(|row| row.dev).collect::<Vec<_>>(), [VDA, VDB]);
        assert_eq!(rows[1].write_bytes_per_sec, Limit::At(Bytes(5)));
        assert_eq!((rows[1].read_ios_per_sec, rows[1].read_bytes_per_sec), (Limit::At(7), Limit::Max));
    }

    #[test]
    fn the_largest_count_of_pages_is_no_limit() {
        assert_eq!(memory_limit(9_223_372_036_854_771_712), Limit::Max);
        assert_eq!(memory_limit(9_223_372_036_854_710_272), Limit::Max, "pages of 64 KiB");
        assert_eq!(memory_limit(1 << 30), Limit::At(Bytes(1 << 30)));
    }
}
