//! Files that hold one value: `queue/nr_requests`, `wbt_lat_usec`, `memory.max`, `osrelease`, `dm/name`.
//!
//! The file must be that one line and its newline. A second line means that it is another file than the caller
//! thought, and is an error rather than passed over. Text alone may come without the newline: virtio's `serial` does.

use std::fmt;

use quell_units::Limit;

use crate::ParseError;
use crate::scan;

/// Parses a number without sign.
///
/// # Errors
/// Not one whole line with a number of at most 64 bits.
pub fn parse_number(bytes: &[u8]) -> Result<u64, ParseError> {
    one(bytes, "a number", scan::number)
}

/// Parses a number that may be negative, such as `numa_node`, which is -1 where there is none.
///
/// # Errors
/// Not one whole line with a number of at most 64 bits.
pub fn parse_signed(bytes: &[u8]) -> Result<i64, ParseError> {
    one(bytes, "a number", scan::value)
}

/// Parses `max` or a number, as in `memory.max`. The number's unit is the file's.
///
/// # Errors
/// Not one whole line with a number or `max`.
pub fn parse_limit(bytes: &[u8]) -> Result<Limit<u64>, ParseError> {
    one(bytes, "a number or max", |field| scan::limit(field, |n| n))
}

/// Parses a line of text, without the spaces around it: `write back`, a disk's model (padded), a kernel's release.
///
/// The text is empty where the file is: a device without a serial number has such a file.
///
/// # Errors
/// More than one line, or not UTF-8.
pub fn parse_word(bytes: &[u8]) -> Result<&str, ParseError> {
    let line = if bytes.ends_with(b"\n") { scan::one_line(bytes)? } else { bytes };
    match std::str::from_utf8(line) {
        Ok(text) if !text.contains('\n') => Ok(text.trim_ascii()),
        _ => Err(ParseError { line_no: 1, what: "one line of UTF-8" }),
    }
}

fn one<T>(bytes: &[u8], what: &'static str, value: impl Fn(&[u8]) -> Option<T>) -> Result<T, ParseError> {
    value(scan::one_line(bytes)?.trim_ascii()).ok_or(ParseError { line_no: 1, what })
}

/// The file as the kernel prints it, for each of the kinds above.
#[must_use]
pub fn render(value: &impl fmt::Display) -> String {
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_reads_its_own() {
        assert_eq!(parse_number(b"75000\n"), Ok(75_000));
        assert_eq!(parse_signed(b"-1\n"), Ok(-1));
        assert_eq!(parse_limit(b"max\n"), Ok(Limit::Max));
        assert_eq!(parse_limit(b"268435456\n"), Ok(Limit::At(268_435_456)));
        assert_eq!(parse_word(b"write back\n"), Ok("write back"));
        assert_eq!(parse_word(b"QEMU NVMe Ctrl                          \n"), Ok("QEMU NVMe Ctrl"));
        assert_eq!(parse_word(b"\n"), Ok(""));
    }

    #[test]
    fn the_serial_number_of_a_virtio_disk_has_no_newline() {
        assert_eq!(parse_word(b"disk-7"), Ok("disk-7"));
        assert_eq!(parse_word(b""), Ok(""));
        assert!(parse_word(b"two\nlines").is_err());
    }

    #[test]
    fn a_torn_number_is_no_number() {
        assert_eq!(parse_number(b"75").unwrap_err().what, scan::NEWLINE);
        assert!(parse_number(b"").is_err());
        assert!(parse_number(b"\n").is_err());
        assert!(parse_number(b"-1\n").is_err());
        assert!(parse_number(b"1\n2\n").is_err());
        assert!(parse_word(b"\xff\n").is_err());
    }

    #[test]
    fn render_is_the_inverse() {
        assert_eq!(parse_signed(render(&-1).as_bytes()), Ok(-1));
        assert_eq!(parse_limit(render(&Limit::<u64>::Max).as_bytes()), Ok(Limit::Max));
        assert_eq!(parse_word(render(&"domain threaded").as_bytes()), Ok("domain threaded"));
    }
}
