//! Which blocks of a table of rates are judged.

use std::fmt;

use quell_paste::{Table, TableRow};
use quell_units::whole;

/// A stretch of blocks, averaged.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The devices, each with its mean over the blocks.
    pub(super) rows: Vec<TableRow>,
    /// The time that the blocks cover.
    pub(super) seconds: f64,
    /// Whether the blocks told how long they are.
    timed: bool,
    /// The first and the last block, from 1, and how many there are.
    blocks: (usize, usize, usize),
    /// Whether the first block is of the time since boot and was left out, or is all there is.
    since_boot: bool,
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last, all) = self.blocks;
        match (first == last, all) {
            (_, 1) if self.since_boot => return f.write_str("the only block, the mean since boot"),
            (_, 1) => f.write_str("one block")?,
            (true, _) => write!(f, "block {first} of {all}")?,
            (false, _) => write!(f, "blocks {first} to {last} of {all}")?,
        }
        if self.since_boot {
            f.write_str(" (the first is the mean since boot)")?;
        }
        if !self.timed {
            f.write_str(", taken as 1 s each")?;
        }
        Ok(())
    }
}

/// The worst stretch: of all neighbouring pairs the one in which most requests wait in both blocks, and with it the
/// blocks beside it in which at least three fifths as many do.
///
/// A trouble that lasts one block alone is no state of the disk. The first block is left out where it is the mean since
/// boot.
pub(super) fn worst(tables: &[Table]) -> Option<Stretch> {
    let skipped = usize::from(first_is_since_boot(tables));
    let blocks = tables.get(skipped..)?;
    let waiting: Vec<f64> = blocks.iter().map(waiting).collect();
    let lasting = |at: usize| Some(waiting.get(at)?.min(*waiting.get(at + 1)?));
    let worst = (0..blocks.len().saturating_sub(1))
        .filter_map(|at| Some((at, lasting(at)?)))
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    let (first, last) = match worst {
        None => (0, 0),
        Some((at, level)) => {
            let like = |at: &usize| waiting.get(*at).is_some_and(|queue| *queue >= 0.6 * level);
            let first = (0..at).rev().take_while(like).last().unwrap_or(at);
            (first, (at + 1..blocks.len()).take_while(like).last().unwrap_or(at + 1))
        }
    };
    let judged = blocks.get(first..=last)?;
    Some(Stretch {
        rows: Table::mean(judged).rows,
        seconds: judged.iter().map(Table::span_seconds).sum(),
        timed: judged.iter().all(|table| table.seconds.is_some()),
        blocks: (skipped + first + 1, skipped + last + 1, tables.len()),
        since_boot: skipped > 0 || tables.len() == 1 && blocks.first().is_some_and(|table| table.since_boot),
    })
}

/// Whether the first of several blocks is the mean since boot: iostat's banner is above it, or it does not look like the
/// others, in that it lies outside of two thirds to one and a half times what they span.
fn first_is_since_boot(tables: &[Table]) -> bool {
    let Some((first, rest)) = tables.split_first().filter(|(_, rest)| !rest.is_empty()) else { return false };
    let ios = |table: &Table| table.rows.iter().map(TableRow::ios_per_sec).sum::<f64>();
    let low = rest.iter().map(ios).fold(f64::INFINITY, f64::min);
    let high = rest.iter().map(ios).fold(0.0, f64::max);
    first.since_boot || ios(first) < low / 1.5 || ios(first) > high * 1.5 || has_fractions_alone(first, rest)
}

/// Whether a block has fractions of requests per second and no other has, and is less busy than some: intervals of one
/// second have whole numbers. A busy block with fractions may be an interval of 1.01 s.
fn has_fractions_alone(first: &Table, rest: &[Table]) -> bool {
    let util = |table: &Table| table.rows.iter().filter_map(|row| row.util_pct).fold(0.0, f64::max);
    let whole = |table: &Table| {
        let rates = table.rows.iter().flat_map(|row| [row.read.ios_per_sec, row.write.ios_per_sec]);
        rates.flatten().all(|rate| (rate - rate.round()).abs() < 0.001)
    };
    let busiest = rest.iter().map(util).fold(0.0, f64::max);
    !whole(first) && rest.iter().all(whole) && util(first) < 0.9 * busiest
}

/// The requests that wait or are served, on the mean: the queues of all devices.
fn waiting(table: &Table) -> f64 {
    table.rows.iter().map(|row| row.queue_length_avg.unwrap_or_else(|| row.requests_in_flight())).sum()
}

/// The number of requests that a rate makes in a time.
pub(super) fn requests(ios_per_sec: f64, seconds: f64) -> u64 {
    whole(ios_per_sec * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quell_paste::Direction;

    fn block(writes: f64, queue: f64) -> Table {
        let write = Direction { ios_per_sec: Some(writes), await_usec: Some(1000.0), ..Direction::default() };
        let row = TableRow { name: "sda".into(), write, queue_length_avg: Some(queue), ..TableRow::default() };
        Table { rows: vec![row], ..Table::default() }
    }

    fn judged(blocks: &[(f64, f64)]) -> (usize, usize, usize) {
        let tables: Vec<Table> = blocks.iter().map(|&(writes, queue)| block(writes, queue)).collect();
        worst(&tables).unwrap().blocks
    }

    #[test]
    fn the_worst_pair_is_judged_with_what_is_like_it_beside() {
        let quiet = (100.0, 0.1);
        let bad = (400.0, 9.0);
        assert_eq!(judged(&[quiet, quiet, bad, bad, bad, quiet]), (3, 5, 6));
        assert_eq!(judged(&[quiet, quiet, (400.0, 90.0), quiet]), (1, 4, 4), "one block alone is no state");
        assert_eq!(judged(&[bad]), (1, 1, 1));
    }

    #[test]
    fn the_block_since_boot_is_left_out_and_one_like_the_others_is_not() {
        assert_eq!(judged(&[(11.4, 0.2), (90.0, 1.0), (72.0, 1.0)]), (2, 3, 3), "far below the others");
        let mut tables = vec![block(85.5, 1.0), block(90.0, 1.0), block(72.0, 1.0)];
        tables.iter_mut().zip([15.0, 98.0, 98.0]).for_each(|(table, util)| table.rows[0].util_pct = Some(util));
        assert_eq!(worst(&tables).unwrap().blocks, (2, 3, 3), "it alone has fractions");
        tables[0].rows[0].util_pct = Some(97.0);
        assert_eq!(worst(&tables).unwrap().blocks, (1, 3, 3), "an interval of a little more than a second");
        assert_eq!(judged(&[(132.67, 7.5), (156.2, 6.2), (65.3, 6.3)]), (1, 3, 3), "like the others");
        assert_eq!(judged(&[(13_526.0, 1.4), (4380.0, 1.4)]), (2, 2, 2), "three times the other");
    }
}
