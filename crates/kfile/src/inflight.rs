//! `/sys/block/*/inflight`: requests that were issued and are not complete, at this moment.
//!
//! Two numbers; `stat` and `/proc/diskstats` print their sum.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan;

/// What a device has in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inflight {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
}

/// Parses `inflight`.
///
/// # Errors
/// Not one whole line that starts with two numbers.
pub fn parse(bytes: &[u8]) -> Result<Inflight, ParseError> {
    let mut numbers = scan::fields(scan::one_line(bytes)?).map(scan::number);
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(reads), Some(writes)) => Ok(Inflight { reads, writes }),
        _ => Err(ParseError { line_no: 1, what: "two numbers" }),
    }
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(inflight: &Inflight) -> String {
    format!("{:>8} {:>8}\n", inflight.reads, inflight.writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_come_first() {
        let text = b"       1       34\n";
        let inflight = parse(text).unwrap();
        assert_eq!(inflight, Inflight { reads: 1, writes: 34 });
        assert_eq!(render(&inflight).as_bytes(), text);
        assert!(parse(b"1\n").is_err());
        assert!(parse(b"1 3").is_err());
    }
}
