//! Two tables side by side: the same text for prepared counters, close to each other for a live device.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};

use super::input::Pair;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cells {
    pub(super) devices: usize,
    /// Cells with the same text in both.
    pub(super) same: usize,
    /// Cells where iostat's 0.00 stands for something else: what that kernel does not count, which quell leaves out, or
    /// ticks that wrapped, from sysstat 12.7.3 on.
    pub(super) zeros: usize,
    /// Devices for which quell says why there are no rates.
    pub(super) gaps: usize,
}

impl Cells {
    pub(super) fn add(&mut self, other: Self) {
        self.devices += other.devices;
        self.same += other.same;
        self.zeros += other.zeros;
        self.gaps += other.gaps;
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, same, zeros, gaps } = self;
        write!(f, "{devices} devices, {same} columns, {zeros} without a number in iostat, {gaps} gaps")
    }
}

/// A table: its titles, and by device its cells.
pub(super) struct Table<'a> {
    titles: Vec<&'a str>,
    rows: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Table<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let titles =
            lines.next().filter(|titles| titles.first() == Some(&"Device")).context("a table without titles")?;
        let rows = lines.map(|mut row| (if row.is_empty() { "" } else { row.remove(0) }, row));
        Ok(Self { titles: titles.into_iter().skip(1).collect(), rows: rows.collect() })
    }

    /// A device's cells, by title.
    fn row(&self, device: &str) -> Option<impl Iterator<Item = (&'a str, &'a str)>> {
        Some(self.titles.iter().copied().zip(self.rows.get(device)?.iter().copied()))
    }
}

/// What a gap looks like on the page.
const RESET: &str = "reset";

/// Whether both tables are the same text, cell by cell.
pub(super) fn same(pair: &Pair, theirs: &str, ours: &str) -> (Cells, Vec<String>) {
    let tables = Table::parse(theirs).and_then(|theirs| Ok((theirs, Table::parse(ours)?)));
    let (theirs, ours) = match tables {
        Ok(tables) => tables,
        Err(error) => return (Cells::default(), vec![error.to_string()]),
    };
    let mut problems = Vec::new();
    if theirs.titles != ours.titles {
        problems.push(format!("titles: iostat {:?}, quell {:?}", theirs.titles, ours.titles));
    }
    if !theirs.rows.keys().eq(ours.rows.keys()) {
        problems.push(format!("devices: iostat {:?}, quell {:?}", theirs.rows.keys(), ours.rows.keys()));
    }
    let mut cells = Cells::default();
    for (device, their_row) in &theirs.rows {
        let Some(our_row) = ours.rows.get(device) else { continue };
        cells.devices += 1;
        if pair.gaps.contains(device) {
            cells.gaps += 1;
            if !our_row.contains(&RESET) {
                problems.push(format!("{device}: expected a reset, quell prints {our_row:?}"));
            }
            continue;
        }
        if our_row.len() != theirs.titles.len() || their_row.len() != theirs.titles.len() {
            problems.push(format!("{device}: iostat {their_row:?}, quell {our_row:?}"));
            continue;
        }
        for ((title, their), our) in theirs.titles.iter().zip(their_row).zip(our_row) {
            match (their, our) {
                (their, our) if their == our => cells.same += 1,
                (&"0.00", &"-") if is_uncounted(title, pair.counters) => cells.zeros += 1,
                (&"0.00", _) if pair.wrapped(device, title) => cells.zeros += 1,
                _ => problems.push(format!("{device} {title}: iostat {their}, quell {our}")),
            }
        }
    }
    (cells, problems)
}

/// Whether a kernel with this many counters a line counts nothing for this column.
fn is_uncounted(title: &str, counters: usize) -> bool {
    let discards = title.trim_start_matches('%').starts_with('d');
    let flushes = title.starts_with('f');
    (discards && counters < 15) || (flushes && counters < 17)
}

/// Whether the numbers of one device are within `pct` of each other, or a step of their scale apart. Gives how many.
pub(super) fn close(theirs: &Table<'_>, ours: &Table<'_>, device: &str, pct: f64) -> Result<(usize, Vec<String>)> {
    const STEP: f64 = 0.011;
    // The kernel adds to the busy time by whole jiffies, of 10 ms at most: so much may fall between the two readings.
    const JIFFY_PCT: f64 = 1.0;
    let their_row = theirs.row(device).with_context(|| format!("iostat does not show {device}"))?;
    let our_row: BTreeMap<_, _> = ours.row(device).with_context(|| format!("quell does not show {device}"))?.collect();
    let mut problems = Vec::new();
    let mut cells = 0;
    for (title, their) in their_row {
        let our = our_row.get(title).with_context(|| format!("quell has no {title}"))?;
        let (their, our): (f64, f64) = (their.parse()?, our.parse().with_context(|| format!("{title}: {our}"))?);
        cells += 1;
        let step = if title == "%util" { JIFFY_PCT } else { STEP };
        if (their - our).abs() > (pct / 100.0 * their.abs()).max(step) {
            problems.push(format!("{title}: iostat {their}, quell {our}"));
        }
    }
    ensure!(cells > 0, "no column was compared");
    Ok((cells, problems))
}

#[cfg(test)]
mod tests {
    use super::super::input;
    use super::*;

    const THEIRS: &str = "Device  r/s  d/s %drqm  f/s\nsda 1.00 0.00 0.00 0.00\nsdb 9.00 0.00 0.00 0.00\n";

    fn problems(counters: usize, gaps: &[&'static str], ours: &str) -> (Cells, usize) {
        let pair = Pair { counters, gaps: gaps.into(), ..input::pairs().remove(0) };
        let (cells, problems) = same(&pair, THEIRS, ours);
        (cells, problems.len())
    }

    #[test]
    fn the_same_text_is_counted_and_other_text_is_refused() {
        assert_eq!(problems(17, &[], THEIRS), (Cells { devices: 2, same: 8, ..Cells::default() }, 0));
        assert_eq!(problems(17, &[], &THEIRS.replace("1.00", "1.01")).1, 1);
        assert_eq!(problems(17, &[], &THEIRS.replace("d/s", "D/s")).1, 1, "a title");
        assert_eq!(problems(17, &[], &THEIRS.replace("sdb", "sdc")).1, 1, "a device");
        assert_eq!(problems(17, &[], &THEIRS.replace("9.00 0.00 0.00", "9.00 0.00")).1, 1, "a column less");
        assert_eq!(problems(17, &[], "no table").1, 1);
    }

    #[test]
    fn what_a_kernel_does_not_count_may_be_left_out_and_nothing_else() {
        let ours = "Device  r/s  d/s %drqm  f/s\nsda 1.00 - - -\nsdb 9.00 - - -\n";
        assert_eq!(problems(11, &[], ours), (Cells { devices: 2, same: 2, zeros: 6, gaps: 0 }, 0));
        assert_eq!(problems(15, &[], ours).1, 4, "this one counts discards");
        assert_eq!(problems(17, &[], ours).1, 6);
        assert_eq!(problems(11, &[], &ours.replace("1.00", "-")).1, 1);
    }

    #[test]
    fn iostat_may_say_nothing_of_ticks_that_wrapped() {
        let pairs = input::pairs();
        let wrapped = pairs.iter().find(|pair| pair.wrapped("vda", "%util")).unwrap();
        let table = |util: &str| format!("Device %util\nvda {util}\n");
        assert_eq!(same(wrapped, &table("0.00"), &table("95.00")).1, Vec::<String>::new());
        assert_eq!(same(wrapped, &table("1.00"), &table("95.00")).1.len(), 1);
        assert_eq!(same(&pairs[0], &table("0.00"), &table("95.00")).1.len(), 1, "it did not wrap");
    }

    #[test]
    fn a_gap_must_be_told_where_it_is_expected_and_nowhere_else() {
        let ours = "Device  r/s  d/s %drqm  f/s\nsda 1.00 0.00 0.00 0.00\nsdb counter was reset\n";
        assert_eq!(problems(17, &["sdb"], ours), (Cells { devices: 2, same: 4, gaps: 1, zeros: 0 }, 0));
        assert_eq!(problems(17, &["sdb"], THEIRS).1, 1, "a number where a gap is due");
        assert_eq!(problems(17, &[], ours).1, 1, "a gap where a number is due");
    }

    #[test]
    fn close_numbers_are_close() {
        let ours = THEIRS.replace("9.00", "9.17");
        let (theirs, ours) = (Table::parse(THEIRS).unwrap(), Table::parse(&ours).unwrap());
        assert_eq!(close(&theirs, &ours, "sdb", 2.0).unwrap(), (4, vec![]));
        assert_eq!(close(&theirs, &ours, "sdb", 1.0).unwrap().1.len(), 1);
        assert!(close(&theirs, &ours, "sdz", 2.0).is_err());
    }
}
