//! The tables of `iostat`, of every version and layout.
//!
//! Columns are known by their names, so a version that has more or fewer needs no other code. A block ends where the next
//! begins: at iostat's time stamp, its `avg-cpu:`, a heading that the block has already, or a device that was told
//! already. `--human` and `--pretty` split one block into several headings; their rows are put together by name.

use super::{Format, Open};
use crate::line::Line;
use crate::number;
use crate::pasted::{Pasted, Statement};
use crate::table::{self, Direction, Table, TableRow};

pub(crate) const FORMAT: Format = Format { name: "iostat", open };

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut series = Series::default();
    let starts = banner(line.text).is_some()
        || line.text.starts_with("avg-cpu:")
        || heading(line.text).is_some()
        || is_stamp(line.text)
        || line.time.is_some() && line.is_blank();
    (starts && series.take(line)).then(|| -> Box<dyn Open> { Box::new(series) })
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Column {
    Ios(Kind),
    Merges(Kind),
    /// In units of so many bytes.
    BytesPerSec(Kind, f64),
    AwaitMs(Kind),
    Size(Kind, f64),
    /// Requests of both directions.
    Transfers,
    /// Mean time of both directions.
    BothAwaitMs,
    Queue,
    UtilPct,
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Discard,
    Flush,
}

/// The column of this name; `None` where iostat has none of that name.
pub(super) fn column(name: &str) -> Option<Column> {
    use Column::{BothAwaitMs, Ignored, Merges, Queue, Transfers, UtilPct};
    Some(match name {
        "%util" | "util" => UtilPct,
        "aqu-sz" | "avgqu-sz" => Queue,
        "await" => BothAwaitMs,
        "tps" => Transfers,
        "svctm" | "areq-sz" | "avgrq-sz" | "kB/s" | "MB/s" | "sec/s" | "rqm/s" | "%rqm" => Ignored,
        "rrqm" | "wrqm" | "drqm" | "%rrqm" | "%wrqm" | "%drqm" => Ignored,
        "rrqm/s" => Merges(Kind::Read),
        "wrqm/s" => Merges(Kind::Write),
        "drqm/s" => Merges(Kind::Discard),
        _ if is_total(name) => Ignored,
        _ => return of_kind(name),
    })
}

/// The columns of `iostat` without `-x`: `kB_read/s`, `Blk_wrtn`, `MB_dscd`.
fn is_total(name: &str) -> bool {
    let unit = name.split('_').next().unwrap_or_default();
    matches!(unit, "kB" | "MB" | "GB" | "Blk")
        && (name.contains("_read") || name.contains("_wrtn") || name.contains("_dscd"))
}

/// A column whose first letter says of which requests it is: `r/s`, `wkB/s`, `f_await`, `dareq-sz`.
fn of_kind(name: &str) -> Option<Column> {
    let kind = match name.bytes().next()? {
        b'r' => Kind::Read,
        b'w' => Kind::Write,
        b'd' => Kind::Discard,
        b'f' => Kind::Flush,
        _ => return None,
    };
    Some(match name.get(1..)? {
        "/s" => Column::Ios(kind),
        "_await" => Column::AwaitMs(kind),
        "areq-sz" => Column::Size(kind, 1024.0),
        "kB/s" => Column::BytesPerSec(kind, 1024.0),
        "MB/s" => Column::BytesPerSec(kind, 1024.0 * 1024.0),
        "GB/s" => Column::BytesPerSec(kind, 1024.0 * 1024.0 * 1024.0),
        "sec/s" => Column::BytesPerSec(kind, 512.0),
        _ => return None,
    })
}

/// A row under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    row: TableRow,
    transfers: Option<f64>,
    /// The unit of the byte columns, to know how far their two decimals round.
    unit_bytes: f64,
}

impl Row {
    pub(super) fn named(name: &str) -> Self {
        Self { row: TableRow { name: name.to_owned(), ..TableRow::default() }, ..Self::default() }
    }

    /// Puts a number in its column. With `--human` a number of bytes has its own unit and is in bytes already.
    pub(super) fn put(&mut self, column: Column, value: Option<f64>, in_bytes: bool) {
        match column {
            Column::Ios(kind) => self.of(kind).ios_per_sec = value,
            Column::Merges(kind) => self.of(kind).merges_per_sec = value,
            Column::BytesPerSec(kind, unit) => {
                self.unit_bytes = unit;
                self.of(kind).bytes_per_sec = value.map(|value| if in_bytes { value } else { value * unit });
            }
            Column::AwaitMs(kind) => self.of(kind).await_usec = value.map(|ms| ms * 1000.0),
            Column::Size(kind, unit) => {
                self.of(kind).size_bytes = value.map(|value| if in_bytes { value } else { value * unit });
            }
            Column::Transfers => self.transfers = value,
            Column::BothAwaitMs => self.row.await_usec = value.map(|ms| ms * 1000.0),
            Column::Queue => self.row.queue_length_avg = value,
            Column::UtilPct => self.row.util_pct = value,
            Column::Ignored => {}
        }
    }

    fn of(&mut self, kind: Kind) -> &mut Direction {
        match kind {
            Kind::Read => &mut self.row.read,
            Kind::Write => &mut self.row.write,
            Kind::Discard => &mut self.row.discard,
            Kind::Flush => &mut self.row.flush,
        }
    }

    /// The row, its bytes set right where the tool's own columns contradict each other.
    ///
    /// Some versions print sectors, or megabytes, in a column of kilobytes (sysstat 12.1.4 in JSON). Rate and size have
    /// no such fault, so where both directions that tell enough disagree with them by the same factor, they are believed.
    pub(super) fn finish(self) -> TableRow {
        let mut row = self.row;
        if row.read.ios_per_sec.is_none() && row.write.ios_per_sec.is_none() {
            // `iostat -s` does not tell reads from writes.
            row.read.ios_per_sec = self.transfers;
        }
        let unit = self.unit_bytes;
        let factors: Vec<f64> = [row.read, row.write].iter().filter_map(|flow| over_truth(flow, unit)).collect();
        let largest = factors.iter().copied().fold(0.0, f64::max);
        let agree = !factors.is_empty() && factors.iter().all(|factor| *factor > 0.9 * largest);
        if agree && !(0.7..1.4).contains(&largest) {
            row.bytes_over_truth = Some(largest);
            for flow in [&mut row.read, &mut row.write, &mut row.discard] {
                flow.bytes_per_sec = flow.bytes_per_sec.map(|bytes| bytes / largest);
            }
        }
        row
    }
}

/// Bytes by their own column over rate times size; `None` where rounding could be what differs.
fn over_truth(flow: &Direction, unit_bytes: f64) -> Option<f64> {
    let (ios, bytes, size) = (flow.ios_per_sec?, flow.bytes_per_sec?, flow.size_bytes?);
    (ios >= 2.0 && size >= 512.0 && bytes >= 0.2 * unit_bytes).then(|| bytes / (ios * size))
}

/// A series of blocks under way.
#[derive(Default)]
struct Series {
    done: Vec<Table>,
    kernel: Option<String>,
    block: Block,
    /// Below the banner: the next block is of the time since boot.
    banner: bool,
    columns: Vec<Column>,
    name_last: bool,
    /// A device's name that stands alone on its line.
    wrapped: Option<String>,
    expects_cpu: bool,
    stamp: Option<f64>,
}

/// One block under way.
#[derive(Default)]
struct Block {
    table: Table,
    rows: Vec<Row>,
    /// The headings that it has had.
    headings: Vec<Vec<Column>>,
}

impl Open for Series {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text;
        if let Some(release) = banner(text) {
            self.end_block();
            self.kernel = Some(release.to_owned());
            self.banner = true;
            return true;
        }
        if text.trim().is_empty() {
            if let Some(time) = line.time {
                self.end_block();
                self.at(time);
            }
            return true;
        }
        if std::mem::take(&mut self.expects_cpu) && self.cpu(text) {
            return true;
        }
        if text.starts_with("avg-cpu:") {
            self.end_block();
            self.expects_cpu = true;
            return true;
        }
        if let Some((columns, name_last)) = heading(text) {
            self.heading(columns, name_last);
            if let Some(time) = line.time {
                self.at(time);
            }
            return true;
        }
        if is_stamp(text) {
            self.end_block();
            if let Some(time) = clock(text) {
                self.at(time);
            }
            return true;
        }
        self.row(text)
    }

    fn close(mut self: Box<Self>, pasted: &mut Pasted) {
        self.end_block();
        self.done.into_iter().for_each(|table| table::push(&mut pasted.tables, table));
        pasted.statements.extend(self.kernel.map(Statement::Kernel));
    }
}

impl Series {
    /// The stamp of the block that begins: the time since the one before is its length.
    fn at(&mut self, time: f64) {
        const DAY_SECONDS: f64 = 86_400.0;
        if let Some(before) = self.stamp.replace(time) {
            let seconds = (time - before).rem_euclid(DAY_SECONDS);
            // A block of each line would be of no time: a logger that stamps lines tells nothing then.
            self.block.table.seconds = (0.5..=3600.0).contains(&seconds).then_some(seconds);
        }
    }

    fn heading(&mut self, columns: Vec<Column>, name_last: bool) {
        if self.block.headings.contains(&columns) {
            self.end_block();
        }
        self.block.headings.push(columns.clone());
        self.columns = columns;
        self.name_last = name_last;
        self.wrapped = None;
    }

    /// The shares of the processors' time below `avg-cpu:`: user, nice, system, iowait, steal, idle.
    fn cpu(&mut self, text: &str) -> bool {
        let shares: Option<Vec<f64>> =
            text.split_ascii_whitespace().map(|field| number::decimal(field.trim_end_matches('%'))).collect();
        let Some([user, nice, system, iowait, _, idle]) = shares.as_deref() else { return false };
        self.block.table.cpu_pct = Some((user + nice + system, *iowait, *idle));
        true
    }

    fn row(&mut self, text: &str) -> bool {
        if self.columns.is_empty() {
            return false;
        }
        let count = text.split_ascii_whitespace().count();
        let mut fields = text.split_ascii_whitespace();
        if count == self.columns.len() && self.wrapped.is_some() {
            let name = self.wrapped.take().unwrap_or_default();
            return self.values(&name, fields);
        }
        if count == 1 {
            self.wrapped = fields.next().filter(|name| is_name(name)).map(ToOwned::to_owned);
            return self.wrapped.is_some();
        }
        if count != self.columns.len() + 1 {
            return false;
        }
        let name = if self.name_last { fields.next_back() } else { fields.next() };
        name.filter(|name| is_name(name)).is_some_and(|name| self.values(name, fields))
    }

    fn values<'a>(&mut self, name: &str, fields: impl Iterator<Item = &'a str> + Clone) -> bool {
        if !fields.clone().all(is_value) {
            return false;
        }
        let told_already = |row: &Row| row.row.name == name;
        // A row of a device again, below no other heading, is the next block of an output that was filtered.
        if self.block.headings.len() <= 1 && self.block.rows.iter().any(told_already) {
            self.end_block();
        }
        let at = match self.block.rows.iter().position(told_already) {
            Some(at) => at,
            None => {
                self.block.rows.push(Row::named(name));
                self.block.rows.len() - 1
            }
        };
        let Some(row) = self.block.rows.get_mut(at) else { return false };
        for (column, field) in self.columns.iter().zip(fields) {
            let (value, in_bytes) = value(field);
            row.put(*column, value, in_bytes);
        }
        true
    }

    fn end_block(&mut self) {
        self.wrapped = None;
        let block = std::mem::take(&mut self.block);
        if block.rows.is_empty() && block.table.cpu_pct.is_none() {
            // A stamp alone is of the block that follows.
            self.block.table.seconds = block.table.seconds;
            return;
        }
        let rows = block.rows.into_iter().map(Row::finish).collect();
        let since_boot = std::mem::take(&mut self.banner);
        table::push(&mut self.done, Table { rows, since_boot, ..block.table });
    }
}

/// The kernel's release in `Linux 5.15.0-46-generic (host1)  09/16/2022  _x86_64_  (16 CPU)`.
fn banner(text: &str) -> Option<&str> {
    let mut fields = text.strip_prefix("Linux ")?.split_ascii_whitespace();
    let release = fields.next()?;
    fields.next().filter(|host| host.starts_with('(') && host.ends_with(')')).map(|_| release)
}

/// The columns of a heading, and whether the device's name stands behind them.
fn heading(text: &str) -> Option<(Vec<Column>, bool)> {
    let is_device = |field: &str| matches!(field, "Device" | "Device:");
    if !text.contains("Device") {
        return None;
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let (columns, name_last) = match fields.as_slice() {
        [first, columns @ ..] if is_device(first) => (columns, false),
        [columns @ .., last] if is_device(last) => (columns, true),
        _ => return None,
    };
    let columns: Option<Vec<Column>> = columns.iter().map(|name| column(name)).collect();
    columns.filter(|columns| !columns.is_empty()).map(|columns| (columns, name_last))
}

/// A number, with whether `--human` gave it a unit and it is in bytes therefore.
fn value(field: &str) -> (Option<f64>, bool) {
    match number::decimal(field.trim_end_matches('%')) {
        Some(value) => (Some(value), false),
        None => (number::bytes(field), true),
    }
}

/// Whether a field can be a number of iostat's, a missing one (`-nan`) included.
fn is_value(field: &str) -> bool {
    value(field).0.is_some() || matches!(field, "nan" | "-nan" | "inf" | "-inf")
}

/// Whether a field can be a device's name.
fn is_name(field: &str) -> bool {
    field.len() <= 128 && number::decimal(field).is_none() && !field.ends_with(':') && !field.starts_with(['$', '#'])
}

/// Whether a line is a time stamp of `iostat -t` and nothing else: `03/23/2020 04:54:35 PM`, `12/01/26 02:51:35`.
fn is_stamp(text: &str) -> bool {
    let is_date = |field: &str| {
        let mut parts = field.split(['/', '-', '.']);
        field.len() >= 8 && parts.clone().count() == 3 && parts.all(|part| part.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut fields = text.split_ascii_whitespace();
    fields.next().is_some_and(is_date) && clock(text).is_some() && fields.count() <= 2
}

/// The time of a stamp, in seconds of its day.
fn clock(text: &str) -> Option<f64> {
    let time = text.split_ascii_whitespace().nth(1)?;
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let noon = match text.split_ascii_whitespace().nth(2) {
        Some("PM") if hours < 12.0 => 12.0,
        Some("AM") if hours >= 12.0 => -12.0,
        _ => 0.0,
    };
    Some((hours + noon) * 3600.0 + minutes * 60.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    const NEW: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm \
        w_await wareq-sz     f/s f_await  aqu-sz  %util";

    #[test]
    fn a_row_of_each_age_gives_the_same_numbers() {
        let new =
            format!("{NEW}\nsda 10.00 40.00 0.00 0.00 2.00 4.00 5.00 20.00 1.00 16.67 4.00 4.00 3.00 1.50 0.04 3.00\n");
        let old = "Device:  rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util\n\
            sda 0,00 1,00 10,00 5,00 80,00 40,00 8,00 0,04 2,67 1,00 3,00\n";
        let human = "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n   10.00     40.0k     0.00   0.0%    2.00     \
            4.0k sda\n\n     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n    5.00     20.0k     1.00  16.7%    \
            4.00     4.0k sda\n\n  aqu-sz  %util Device\n    0.04   3.0% sda\n";
        for text in [new.as_str(), old, human] {
            let pasted = read(text);
            let [table] = pasted.tables.as_slice() else { panic!("{text}: {:?}", pasted.tables) };
            let [row] = table.rows.as_slice() else { panic!("{text}") };
            assert_eq!(
                (row.name.as_str(), row.read.ios_per_sec, row.write.ios_per_sec),
                ("sda", Some(10.0), Some(5.0))
            );
            assert_eq!((row.read.bytes_per_sec, row.write.bytes_per_sec), (Some(40_960.0), Some(20_480.0)), "{text}");
            assert_eq!((row.queue_length_avg, row.util_pct), (Some(0.04), Some(3.0)), "{text}");
            assert_eq!((row.bytes_over_truth, pasted.unread.lines), (None, 0));
        }
        assert_eq!(read(&new).tables[0].rows[0].flush.await_usec, Some(1500.0));
        assert_eq!(read(old).tables[0].rows[0].await_usec, Some(2670.0));
    }

    #[test]
    fn blocks_are_told_apart_with_and_without_headings() {
        let row = "sda 1 4 0 0 2 4 5 20 1 0 4 4 3 1 0.04 3\n";
        assert_eq!(read(&format!("{NEW}\n{row}\n{NEW}\n{row}")).tables.len(), 2);
        assert_eq!(read(&format!("{NEW}\n{row}{row}{row}")).tables.len(), 3, "one device, filtered");
        let banner = "Linux 5.15.0-46-generic (host1) \t09/16/2022 \t_x86_64_\t(16 CPU)\n\n";
        let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n 5.73 0.00 2.69 8.76 0.00 82.82\n\n";
        let pasted = read(&format!("{banner}{cpu}{NEW}\n{row}\n{cpu}{NEW}\n{row}"));
        let told: Vec<(bool, usize)> = pasted.tables.iter().map(|table| (table.since_boot, table.rows.len())).collect();
        assert_eq!(told, [(true, 1), (false, 1)]);
        assert_eq!(pasted.tables[0].cpu_pct, Some((8.42, 8.76, 82.82)));
        assert_eq!(pasted.statements, [Statement::Kernel("5.15.0-46-generic".into())]);
    }

    #[test]
    fn stamps_give_the_length_of_a_block() {
        let row = "sda 1 4 0 0 2 4 5 20 1 0 4 4 3 1 0.04 3\n";
        let text = format!("12/01/26 11:59:58 AM\n{NEW}\n{row}\n12/01/26 12:00:03 PM\n{NEW}\n{row}");
        let seconds: Vec<Option<f64>> = read(&text).tables.iter().map(|table| table.seconds).collect();
        assert_eq!(seconds, [None, Some(5.0)]);
        let iso = format!("2026-12-01T02:51:36+0000\n{NEW}\n{row}\n2026-12-01T02:51:46+0000\n{NEW}\n{row}");
        assert_eq!(read(&iso).tables[1].seconds, Some(10.0));
    }

    #[test]
    fn a_name_on_a_line_of_its_own_belongs_to_the_next() {
        let pasted = read(&format!("{NEW}\na-long-name\n   1 4 0 0 2 4 5 20 1 0 4 4 3 1 0.04 3\n"));
        assert_eq!(pasted.tables[0].rows[0].name, "a-long-name");
    }

    #[test]
    fn sectors_in_a_column_of_kilobytes_are_noticed_and_set_right() {
        let pasted = read(&format!("{NEW}\nsda 100 800 0 0 2 4 50 400 1 0 4 4 3 1 0.04 3\n"));
        let row = &pasted.tables[0].rows[0];
        assert_eq!((row.bytes_over_truth, row.read.bytes_per_sec), (Some(2.0), Some(409_600.0)));
    }

    #[test]
    fn values_that_are_no_number_are_missing_and_lines_that_are_no_row_are_left() {
        let pasted = read(&format!("{NEW}\nsda -nan 4 0 0 2 4 5 20 1 0 4 4 3 1 0.04 3\nso it was slow\n"));
        assert_eq!(pasted.tables[0].rows[0].read.ios_per_sec, None);
        assert_eq!(pasted.unread.first, [(3, "so it was slow".to_owned())]);
    }
}
