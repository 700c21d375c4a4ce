//! Pressure stall information: `/proc/pressure/*` and a cgroup's `*.pressure`.

use quell_units::Micros;
use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan::{self, Line};

/// Time lost to one resource since boot, or since the cgroup was made.
///
/// Only the totals are kept: the `avg10` columns are the kernel's own moving averages of the same numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Time in which at least one task was stalled.
    pub some_usec: Micros,
    /// Time in which no task could run for being stalled. Absent for the system's cpu before 5.13.
    pub full_usec: Option<Micros>,
}

/// Parses a pressure file.
///
/// # Errors
/// No `some` line, a line that is torn, or one without `total=`.
pub fn parse(bytes: &[u8]) -> Result<Pressure, ParseError> {
    let mut pressure = Pressure::default();
    let mut some_seen = false;
    for (line_no, line) in scan::lines(bytes) {
        let fail = |what| ParseError { line_no, what };
        let Line::Whole(line) = line else { return Err(fail(scan::NEWLINE)) };
        let total = || total(line).ok_or(fail("total=microseconds"));
        if line.starts_with(b"some ") {
            pressure.some_usec = total()?;
            some_seen = true;
        } else if line.starts_with(b"full ") {
            pressure.full_usec = Some(total()?);
        }
    }
    if some_seen { Ok(pressure) } else { Err(ParseError { line_no: 1, what: "a line that starts with `some`" }) }
}

fn total(line: &[u8]) -> Option<Micros> {
    // The last field in every kernel so far, so it is looked for from the end.
    let field = line.rsplit(|&b| b == b' ').find_map(|field| field.strip_prefix(b"total="))?;
    scan::number(field).map(Micros)
}

/// The kernel's own moving averages, 0 to 100: all that a single reading tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Averages {
    /// Of the last ten seconds.
    pub avg10_pct: f64,
    /// Of the last minute.
    pub avg60_pct: f64,
}

/// The averages of both lines; `None` is a line that is not there or not whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AllAverages {
    /// Of the time in which at least one task was stalled.
    pub some: Option<Averages>,
    /// Of the time in which no task could run.
    pub full: Option<Averages>,
}

/// Parses a pressure file's averages. Lines that are torn or strange are left out.
#[must_use]
pub fn parse_averages(bytes: &[u8]) -> AllAverages {
    let mut all = AllAverages::default();
    for (_, line) in scan::lines(bytes) {
        let Line::Whole(line) = line else { continue };
        if line.starts_with(b"some ") {
            all.some = averages(line);
        } else if line.starts_with(b"full ") {
            all.full = averages(line);
        }
    }
    all
}

fn averages(line: &[u8]) -> Option<Averages> {
    let column = |name: &[u8]| {
        let field = line.split(|&b| b == b' ').find_map(|field| field.strip_prefix(name))?;
        let pct: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
        (0.0..=100.0).contains(&pct).then_some(pct)
    };
    Some(Averages { avg10_pct: column(b"avg10=")?, avg60_pct: column(b"avg60=")? })
}

/// The file as the kernel prints it, with averages of zero.
#[must_use]
pub fn render(pressure: &Pressure) -> String {
    let line = |name, Micros(total)| format!("{name} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
    let full = pressure.full_usec.map(|total| line("full", total)).unwrap_or_default();
    line("some", pressure.some_usec) + &full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_and_averages_are_not() {
        let text = b"some avg10=36.35 avg60=9.06 avg300=2.00 total=6463021\nfull avg10=35.62 avg60=8.88 avg300=1.96 total=6374550\n";
        let expected = Pressure { some_usec: Micros(6_463_021), full_usec: Some(Micros(6_374_550)) };
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse(render(&expected).as_bytes()), Ok(expected));
    }

    #[test]
    fn averages_are_read_line_by_line_and_a_torn_one_is_left_out() {
        let text =
            b"some avg10=70.24 avg60=68.52 avg300=69.91 total=1\nfull avg10=57.59 avg60=58.06 avg300=60.38 total=1\n";
        let all = parse_averages(text);
        assert_eq!(all.full, Some(Averages { avg10_pct: 57.59, avg60_pct: 58.06 }));
        assert!(all.some.is_some());
        assert_eq!(parse_averages(&text[..text.len() - 1]).full, None);
        assert_eq!(parse_averages(b"full avg10=x avg60=1.00 total=1\n").full, None);
    }

    #[test]
    fn cpu_pressure_of_old_kernels_has_no_full_line() {
        assert_eq!(parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap().full_usec, None);
    }

    #[test]
    fn a_torn_total_is_an_error_and_not_a_smaller_number() {
        assert_eq!(parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=6463").unwrap_err().what, scan::NEWLINE);
        assert!(parse(b"").is_err());
    }
}
