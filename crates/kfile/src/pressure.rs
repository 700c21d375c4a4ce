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
    fn cpu_pressure_of_old_kernels_has_no_full_line() {
        assert_eq!(parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").unwrap().full_usec, None);
    }

    #[test]
    fn a_torn_total_is_an_error_and_not_a_smaller_number() {
        assert_eq!(parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=6463").unwrap_err().what, scan::NEWLINE);
        assert!(parse(b"").is_err());
    }
}
