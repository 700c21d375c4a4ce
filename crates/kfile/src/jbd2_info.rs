//! `/proc/fs/jbd2/DEV-8/info`: the journal of an ext4 file system, its commits and where their time went.
//!
//! The kernel prints averages since the mount, cut to whole numbers, and not totals. They are kept as printed: times
//! their count they give a total that is short by up to one unit (a tick, for times) a transaction.

use quell_units::{Micros, Millis};
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// A journal since it was mounted. The averages are `None` until the first commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jbd2Info {
    /// Transactions that were committed.
    pub transactions: Option<u64>,
    /// Those that somebody waited for, mostly by fsync; the others were due by time or size.
    pub requested: Option<u64>,
    /// The most blocks that a transaction may have.
    pub max_blocks: Option<u64>,
    /// `waiting for transaction`: the longest that an operation waited to join one. Per transaction.
    pub wait_ms_avg: Option<Millis>,
    /// `request delay`: from the request until the commit began. Per requested transaction, unlike all the others.
    pub request_delay_ms_avg: Option<Millis>,
    /// `running transaction`: while it could be joined. Per transaction.
    pub running_ms_avg: Option<Millis>,
    /// `transaction was being locked`: until the last that had joined was done. Per transaction.
    pub locked_ms_avg: Option<Millis>,
    /// `flushing data (in ordered mode)`: writing file data that must be on disk before the commit. Per transaction.
    pub flushing_ms_avg: Option<Millis>,
    /// `logging transaction`: writing the journal. Per transaction.
    pub logging_ms_avg: Option<Millis>,
    /// `average transaction commit time`: a moving average, of which the last commit is a quarter.
    pub commit_usec_avg: Option<Micros>,
    /// `handles per transaction`: operations that shared a commit.
    pub handles_avg: Option<u64>,
    /// `blocks per transaction`: metadata blocks changed.
    pub blocks_avg: Option<u64>,
    /// `logged blocks per transaction`: blocks written to the journal.
    pub logged_blocks_avg: Option<u64>,
}

/// Parses `info`. Other lines are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Jbd2Info> {
    scan::fold(bytes, |info, line| set(info, line).ok_or("a number, its unit and what it is"))
}

fn set(info: &mut Jbd2Info, line: &[u8]) -> Option<()> {
    // `  16ms waiting for transaction`, and `231 transactions (230 requested), each up to 1024 blocks` on top.
    let line = line.trim_ascii();
    let (number, what) = scan::split_once(line, b' ').unwrap_or((line, b""));
    let plain = || scan::number(number).map(Some);
    let millis = || number.strip_suffix(b"ms").and_then(scan::number).map(|n| Some(Millis(n)));
    match what {
        b"waiting for transaction" => info.wait_ms_avg = millis()?,
        b"request delay" => info.request_delay_ms_avg = millis()?,
        b"running transaction" => info.running_ms_avg = millis()?,
        b"transaction was being locked" => info.locked_ms_avg = millis()?,
        b"flushing data (in ordered mode)" => info.flushing_ms_avg = millis()?,
        b"logging transaction" => info.logging_ms_avg = millis()?,
        b"average transaction commit time" => {
            info.commit_usec_avg = Some(Micros(number.strip_suffix(b"us").and_then(scan::number)?));
        }
        b"handles per transaction" => info.handles_avg = plain()?,
        b"blocks per transaction" => info.blocks_avg = plain()?,
        b"logged blocks per transaction" => info.logged_blocks_avg = plain()?,
        _ => {
            if let Some(rest) = what.strip_prefix(b"transactions (") {
                let (requested, rest) = scan::split_once(rest, b' ')?;
                let max_blocks = rest.strip_prefix(b"requested), each up to ")?.strip_suffix(b" blocks")?;
                let (transactions, requested) = (plain()?, scan::number(requested)?);
                info.max_blocks = Some(scan::number(max_blocks)?);
                (info.transactions, info.requested) = (transactions, Some(requested));
            }
        }
    }
    Some(())
}

/// The file as the kernel prints it.
///
/// The first line has three numbers and is left out where one of them is missing.
#[must_use]
pub fn render(info: &Jbd2Info) -> String {
    let mut out = String::new();
    if let (Some(transactions), Some(requested), Some(max)) = (info.transactions, info.requested, info.max_blocks) {
        out = format!("{transactions} transactions ({requested} requested), each up to {max} blocks\n");
    }
    let millis = |value: Option<Millis>| value.map(Millis::get);
    let averages = [
        ("ms waiting for transaction", millis(info.wait_ms_avg)),
        ("ms request delay", millis(info.request_delay_ms_avg)),
        ("ms running transaction", millis(info.running_ms_avg)),
        ("ms transaction was being locked", millis(info.locked_ms_avg)),
        ("ms flushing data (in ordered mode)", millis(info.flushing_ms_avg)),
        ("ms logging transaction", millis(info.logging_ms_avg)),
        ("us average transaction commit time", info.commit_usec_avg.map(Micros::get)),
        (" handles per transaction", info.handles_avg),
        (" blocks per transaction", info.blocks_avg),
        (" logged blocks per transaction", info.logged_blocks_avg),
    ];
    if averages.iter().any(|(_, value)| value.is_some()) {
        out += "average: \n";
    }
    out.extend(averages.into_iter().filter_map(|(what, value)| value.map(|n| format!("  {n}{what}\n"))));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "231 transactions (230 requested), each up to 1024 blocks\naverage: \n  16ms waiting for transaction\n  0ms request delay\n  52ms running transaction\n  0ms transaction was being locked\n  0ms flushing data (in ordered mode)\n  8ms logging transaction\n  15293us average transaction commit time\n  87 handles per transaction\n  3 blocks per transaction\n  5 logged blocks per transaction\n";

    #[test]
    fn every_line_is_read_and_printed_back() {
        let parsed = parse(TEXT.as_bytes());
        assert!(parsed.lost.is_none());
        let info = parsed.value;
        assert_eq!((info.transactions, info.requested, info.max_blocks), (Some(231), Some(230), Some(1024)));
        assert_eq!((info.wait_ms_avg, info.commit_usec_avg), (Some(Millis(16)), Some(Micros(15_293))));
        assert_eq!((info.blocks_avg, info.logged_blocks_avg), (Some(3), Some(5)));
        assert_eq!(render(&info), TEXT);
    }

    #[test]
    fn before_the_first_commit_there_are_no_averages() {
        let parsed = parse(b"0 transactions (0 requested), each up to 1024 blocks\n");
        assert!(parsed.lost.is_none());
        assert_eq!((parsed.value.transactions, parsed.value.wait_ms_avg), (Some(0), None));
    }

    #[test]
    fn a_number_in_another_unit_is_lost() {
        let parsed = parse(b"  16us waiting for transaction\n  8ms logging transaction\n");
        assert_eq!((parsed.value.wait_ms_avg, parsed.lost.lines), (None, 1));
        assert_eq!(parsed.value.logging_ms_avg, Some(Millis(8)));
    }
}
