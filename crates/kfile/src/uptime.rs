//! `/proc/uptime`: the clock of a captured tree.

use quell_units::MonoMicros;

use crate::ParseError;
use crate::scan;

/// Parses the first number: the time since boot, sleep counted, in steps of 10 ms. The second, idle time, is not used.
///
/// # Errors
/// Not one whole line that starts with seconds of two decimals.
pub fn parse(bytes: &[u8]) -> Result<MonoMicros, ParseError> {
    let seconds = scan::fields(scan::one_line(bytes)?).next().unwrap_or_default();
    let micros = scan::centi(seconds).and_then(|centi| centi.checked_mul(10_000));
    micros.map(MonoMicros).ok_or(ParseError { line_no: 1, what: "seconds with two decimals" })
}

/// The file as the kernel prints it, with an idle time of zero; what is under 10 ms is cut off.
#[must_use]
pub fn render(uptime: &MonoMicros) -> String {
    format!("{} 0.00\n", scan::render_centi(uptime.0 / 10_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_microseconds() {
        assert_eq!(parse(b"8.18 4.90\n"), Ok(MonoMicros(8_180_000)));
        assert_eq!(render(&MonoMicros(8_180_000)), "8.18 0.00\n");
        assert!(parse(b"8.18 4.90").is_err());
        assert!(parse(b"8 4\n").is_err());
    }
}
