//! Tables of rates, as `iostat` makes them, and their means.

use quell_units::ratio;
use serde::{Deserialize, Serialize};

/// One block of `iostat`: a row a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The time that it covers, where time stamps tell it.
    pub seconds: Option<f64>,
    /// How many more blocks were averaged into this one, to keep a long series bounded.
    pub merged: u32,
    /// Whether the block is of the time since boot: the first below iostat's banner.
    pub since_boot: bool,
    /// Shares of the processors' time, 0 to 100: user and system, waiting for I/O, idle.
    pub cpu_pct: Option<(f64, f64, f64)>,
    /// The devices.
    pub rows: Vec<TableRow>,
}

/// What a device did, as `iostat -x` says it, in quell's units. `None` is a column that the version does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// The device's name as printed.
    pub name: String,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Discards.
    pub discard: Direction,
    /// Flushes: no bytes.
    pub flush: Direction,
    /// Mean time of reads and writes together, of versions that do not tell them apart.
    pub await_usec: Option<f64>,
    /// `aqu-sz`, or `avgqu-sz` of old versions.
    pub queue_length_avg: Option<f64>,
    /// `%util`.
    pub util_pct: Option<f64>,
    /// Bytes a second by the tool's own column over bytes by rate and size, where the two disagree: a fault of the tool.
    pub bytes_over_truth: Option<f64>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Requests per second.
    pub ios_per_sec: Option<f64>,
    /// Bytes per second.
    pub bytes_per_sec: Option<f64>,
    /// Merges per second.
    pub merges_per_sec: Option<f64>,
    /// Mean time.
    pub await_usec: Option<f64>,
    /// Mean size.
    pub size_bytes: Option<f64>,
}

/// Rows of all tables that are kept. Beyond it neighbouring blocks are averaged, two into one: a night of `iostat 1`
/// keeps its shape.
const ROWS_MAX: usize = 1 << 16;

/// Adds a block to a series, and halves the series where it became too long. The first block stays alone: it may be of
/// the time since boot.
pub(crate) fn push(tables: &mut Vec<Table>, table: Table) {
    // Counting all of them at each block would make a long series quadratic.
    const COUNTED_EVERY: usize = 1024;
    tables.push(table);
    if !tables.len().is_multiple_of(COUNTED_EVERY) {
        return;
    }
    let rows: usize = tables.iter().map(|table| table.rows.len().max(1)).sum();
    if rows >= ROWS_MAX {
        let rest = tables.split_off(1);
        tables.extend(rest.chunks(2).map(Table::mean));
    }
}

impl Table {
    /// The time that it covers: what it tells, or a second for each block.
    #[must_use]
    pub fn span_seconds(&self) -> f64 {
        self.seconds.unwrap_or_else(|| f64::from(self.merged) + 1.0)
    }

    /// The mean of several blocks: of each device over those that have it.
    #[must_use]
    pub fn mean(tables: &[Self]) -> Self {
        let seconds: Vec<f64> = tables.iter().filter_map(|table| table.seconds).collect();
        let cpu: Vec<(f64, f64, f64)> = tables.iter().filter_map(|table| table.cpu_pct).collect();
        let of_cpu = |part: fn(&(f64, f64, f64)) -> f64| average(cpu.iter().map(|cpu| (Some(part(cpu)), 1.0)));
        let merged = tables.iter().fold(0_u32, |sum, table| sum.saturating_add(table.merged).saturating_add(1));
        Self {
            seconds: (seconds.len() == tables.len()).then(|| seconds.iter().sum()),
            merged: merged.saturating_sub(1),
            since_boot: tables.iter().any(|table| table.since_boot),
            cpu_pct: of_cpu(|cpu| cpu.0).zip(of_cpu(|cpu| cpu.1)).zip(of_cpu(|cpu| cpu.2)).map(|((a, b), c)| (a, b, c)),
            rows: mean_rows(tables),
        }
    }
}

impl TableRow {
    /// Reads and writes per second.
    #[must_use]
    pub fn ios_per_sec(&self) -> f64 {
        self.read.ios_per_sec.unwrap_or(0.0) + self.write.ios_per_sec.unwrap_or(0.0)
    }

    /// Requests in flight by Little's law: rate times mean time, of all kinds.
    #[must_use]
    pub fn requests_in_flight(&self) -> f64 {
        let of = |direction: &Direction| {
            let usec = direction.await_usec.or(self.await_usec).unwrap_or(0.0);
            direction.ios_per_sec.unwrap_or(0.0) * usec / 1e6
        };
        [&self.read, &self.write, &self.discard, &self.flush].map(of).iter().sum()
    }

    /// Whether how long requests took is in it: without that nothing can be judged.
    #[must_use]
    pub fn tells_waiting(&self) -> bool {
        let times = [self.read.await_usec, self.write.await_usec, self.await_usec, self.queue_length_avg];
        times.iter().any(Option::is_some)
    }
}

fn mean_rows(tables: &[Table]) -> Vec<TableRow> {
    let mut names: Vec<&str> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for row in tables.iter().flat_map(|table| &table.rows) {
        if seen.insert(row.name.as_str()) {
            names.push(&row.name);
        }
    }
    let mut of: std::collections::HashMap<&str, Vec<&TableRow>> = std::collections::HashMap::new();
    for row in tables.iter().flat_map(|table| &table.rows) {
        of.entry(&row.name).or_default().push(row);
    }
    names.into_iter().filter_map(|name| Some(mean_row(name, of.get(name)?))).collect()
}

/// Times and sizes are weighted by the requests they are of.
fn mean_row(name: &str, rows: &[&TableRow]) -> TableRow {
    let plain = |of: fn(&TableRow) -> Option<f64>| average(rows.iter().map(|row| (of(row), 1.0)));
    let direction = |of: fn(&TableRow) -> Direction| {
        let all: Vec<Direction> = rows.iter().map(|row| of(row)).collect();
        let plain = |part: fn(&Direction) -> Option<f64>| average(all.iter().map(|one| (part(one), 1.0)));
        let weighted = |part: fn(&Direction) -> Option<f64>| {
            average(all.iter().map(|one| (part(one), one.ios_per_sec.unwrap_or(0.0))))
        };
        Direction {
            ios_per_sec: plain(|one| one.ios_per_sec),
            bytes_per_sec: plain(|one| one.bytes_per_sec),
            merges_per_sec: plain(|one| one.merges_per_sec),
            await_usec: weighted(|one| one.await_usec),
            size_bytes: weighted(|one| one.size_bytes),
        }
    };
    TableRow {
        name: name.to_owned(),
        read: direction(|row| row.read),
        write: direction(|row| row.write),
        discard: direction(|row| row.discard),
        flush: direction(|row| row.flush),
        await_usec: average(rows.iter().map(|row| (row.await_usec, row.ios_per_sec()))),
        queue_length_avg: plain(|row| row.queue_length_avg),
        util_pct: plain(|row| row.util_pct),
        bytes_over_truth: plain(|row| row.bytes_over_truth),
    }
}

/// The weighted mean of what is there; `None` where nothing is, or nothing has a weight.
fn average(values: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let (sum, weight) = values
        .filter_map(|(value, weight)| Some((value? * weight, weight)))
        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    (weight > 0.0).then(|| ratio(sum, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(writes: f64, await_usec: f64) -> Table {
        let write = Direction { ios_per_sec: Some(writes), await_usec: Some(await_usec), ..Direction::default() };
        Table { rows: vec![TableRow { name: "sda".into(), write, ..TableRow::default() }], ..Table::default() }
    }

    #[test]
    fn means_of_times_are_weighted_by_requests() {
        let mean = Table::mean(&[block(100.0, 1000.0), block(900.0, 2000.0)]);
        assert_eq!(mean.rows[0].write.await_usec, Some(1900.0));
        assert_eq!(mean.rows[0].write.ios_per_sec, Some(500.0));
        assert_eq!((mean.rows[0].read.await_usec, mean.merged, mean.span_seconds()), (None, 1, 2.0));
    }

    #[test]
    fn a_long_series_is_halved_and_keeps_its_first_block_and_its_mean() {
        let mut tables = Vec::new();
        for at in 0..200_000_u32 {
            push(&mut tables, block(if at == 0 { 1.0 } else { 10.0 }, 5.0));
        }
        assert!(tables.len() <= ROWS_MAX && tables.len() > ROWS_MAX / 4, "{}", tables.len());
        assert_eq!(tables[0].rows[0].write.ios_per_sec, Some(1.0));
        assert_eq!(tables[1].rows[0].write.ios_per_sec, Some(10.0));
        assert_eq!(tables.iter().map(|table| u64::from(table.merged) + 1).sum::<u64>(), 200_000);
    }
}
