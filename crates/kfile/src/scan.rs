//! Lines, fields and numbers over bytes: what every format here is made of.

use std::str::FromStr;

use quell_units::{Bytes, DevNum, Limit};

use crate::{ParseError, Parsed};

/// The whole lines of a file, numbered from 1, without their newline; then the torn rest, if there is one.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u32, Line<'_>)> {
    let mut rest = bytes;
    let mut line_no = 0_u32;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        line_no = line_no.saturating_add(1);
        let line = match find(rest, b'\n').and_then(|end| rest.split_at_checked(end)) {
            Some((line, tail)) => {
                rest = tail.get(1..).unwrap_or_default();
                Line::Whole(line)
            }
            None => Line::Torn(std::mem::take(&mut rest)),
        };
        Some((line_no, line))
    })
}

/// One line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its newline was read.
    Whole(&'a [u8]),
    /// The file ended in it: its last number may be cut.
    Torn(&'a [u8]),
}

/// What a torn line is reported as.
pub(crate) const NEWLINE: &str = "a newline at the end of the last line";

/// Puts the whole lines into a value one after another; a line that `add` refuses, or a torn one, is lost.
pub(crate) fn fold<T: Default>(
    bytes: &[u8],
    mut add: impl FnMut(&mut T, &[u8]) -> Result<(), &'static str>,
) -> Parsed<T> {
    let mut parsed = Parsed::<T>::default();
    for (line_no, line) in lines(bytes) {
        let added = match line {
            Line::Whole(line) => add(&mut parsed.value, line),
            Line::Torn(_) => Err(NEWLINE),
        };
        if let Err(what) = added {
            parsed.lost.line(line_no, what);
        }
    }
    parsed
}

/// A file with one row a line.
pub(crate) fn rows<T>(bytes: &[u8], row: impl Fn(&[u8]) -> Result<T, &'static str>) -> Parsed<Vec<T>> {
    fold(bytes, |rows: &mut Vec<T>, line| row(line).map(|row| rows.push(row)))
}

/// A file of one fact a line, the key before the first `separator` and the value behind it.
///
/// `set` gets every line: it answers `Some` for a key it does not know and `None` for a value that is wrong. A line
/// without separator is a key with an empty value.
pub(crate) fn keyed<T: Default>(
    bytes: &[u8],
    separator: u8,
    set: impl Fn(&mut T, &[u8], &[u8]) -> Option<()>,
) -> Parsed<T> {
    fold(bytes, |value, line| {
        let (key, rest) = split_once(line, separator).unwrap_or((line, b""));
        set(value, key, rest).ok_or("the key's value")
    })
}

/// The inverse of [`keyed`] with a space and numbers: the keys that have a value.
pub(crate) fn render_keyed<const N: usize>(pairs: [(&str, Option<u64>); N]) -> String {
    pairs.into_iter().filter_map(|(key, value)| value.map(|n| format!("{key} {n}\n"))).collect()
}

/// The one line of a file that has no more than one.
pub(crate) fn one_line(bytes: &[u8]) -> Result<&[u8], ParseError> {
    match bytes.split_last() {
        Some((b'\n', line)) if find(line, b'\n').is_none() => Ok(line),
        Some((b'\n', _)) => Err(ParseError { line_no: 2, what: "no second line" }),
        _ => Err(ParseError { line_no: 1, what: NEWLINE }),
    }
}

/// The fields of a line, split at runs of spaces and tabs.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ' || b == b'\t').filter(|field| !field.is_empty())
}

/// Where a byte is first.
///
/// Eight bytes at a step and inlined: lines and keys are so short here that a call of the `memchr` crate costs more than
/// its work, and `memory.stat`, of which every cgroup has one, takes half the time this way.
pub(crate) fn find(haystack: &[u8], needle: u8) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let (mut at, mut rest) = (0, haystack);
    while let Some((chunk, tail)) = rest.split_first_chunk() {
        // The needle's bytes become zero. The lowest zero byte is the lowest whose top bit the subtraction sets although
        // it was not set before; above it a borrow may set others.
        let differs = u64::from_le_bytes(*chunk) ^ (ONES * u64::from(needle));
        let zeros = differs.wrapping_sub(ONES) & !differs & TOPS;
        if zeros != 0 {
            return Some(at + usize::try_from(zeros.trailing_zeros() / 8).ok()?);
        }
        (at, rest) = (at + chunk.len(), tail);
    }
    rest.iter().position(|&byte| byte == needle).map(|in_rest| at + in_rest)
}

/// What is before the first `separator`, and what is behind it.
pub(crate) fn split_once(field: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = find(field, separator)?;
    Some((field.get(..at)?, field.get(at + 1..)?))
}

/// `key=value`, split at the first `=`.
pub(crate) fn key_value(field: &[u8]) -> Option<(&[u8], &[u8])> {
    split_once(field, b'=')
}

/// A line `MAJ:MIN key=value ...`, where every key is wanted and may stand anywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLine<'a> {
    /// The device in front.
    pub(crate) dev: DevNum,
    line: &'a [u8],
}

impl<'a> DeviceLine<'a> {
    /// The line, or `None` where it does not start with a device's number.
    pub(crate) fn new(line: &'a [u8]) -> Option<Self> {
        Some(Self { dev: device(fields(line).next()?)?, line })
    }

    /// The value of a key.
    pub(crate) fn get(self, key: &str) -> Option<&'a [u8]> {
        fields(self.line).skip(1).filter_map(key_value).find_map(|(k, value)| (k == key.as_bytes()).then_some(value))
    }

    /// The value of a key that takes a number.
    pub(crate) fn number(self, key: &str) -> Option<u64> {
        number(self.get(key)?)
    }
}

/// A decimal number without sign; `None` where there is anything else in it or it does not fit.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    match leading_number(field) {
        Some((value, [])) => Some(value),
        _ => None,
    }
}

/// The decimal number that a field starts with, and what is behind its digits; `None` without a digit or where it does
/// not fit.
pub(crate) fn leading_number(field: &[u8]) -> Option<(u64, &[u8])> {
    // No number of as many digits overflows, so nearly all go without a check at each digit.
    const DIGITS_SAFE: usize = 19;
    let (mut value, mut rest) = (0_u64, field);
    while let Some((byte, tail)) = rest.split_first() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = if field.len() - rest.len() < DIGITS_SAFE {
            value.wrapping_mul(10).wrapping_add(u64::from(digit))
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        rest = tail;
    }
    if rest.len() == field.len() { None } else { Some((value, rest)) }
}

/// `253:0`: a device's number.
pub(crate) fn device(field: &[u8]) -> Option<DevNum> {
    match leading_device(field) {
        Some((dev, [])) => Some(dev),
        _ => None,
    }
}

/// The device's number that a field starts with, and what is behind it.
pub(crate) fn leading_device(field: &[u8]) -> Option<(DevNum, &[u8])> {
    let (major, rest) = leading_number(field)?;
    let (minor, rest) = leading_number(rest.strip_prefix(b":")?)?;
    Some((DevNum { major: u32::try_from(major).ok()?, minor: u32::try_from(minor).ok()? }, rest))
}

/// As [`number`], for those that the kernel keeps in 32 bits: ids and weights.
pub(crate) fn number_u32(field: &[u8]) -> Option<u32> {
    number(field).and_then(|n| u32::try_from(n).ok())
}

/// `0` or `1`.
pub(crate) fn flag(field: &[u8]) -> Option<bool> {
    match field {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

/// `max` or a number, which `unit` wraps.
pub(crate) fn limit<T>(field: &[u8], unit: impl Fn(u64) -> T) -> Option<Limit<T>> {
    if field == b"max" { Some(Limit::Max) } else { number(field).map(|n| Limit::At(unit(n))) }
}

/// `129.47` as 12947: a number that the kernel prints with two decimals.
pub(crate) fn centi(value: &[u8]) -> Option<u64> {
    let (whole, part) = split_once(value, b'.')?;
    if part.len() != 2 {
        return None;
    }
    number(whole)?.checked_mul(100)?.checked_add(number(part)?)
}

/// The inverse of [`centi`].
pub(crate) fn render_centi(value: u64) -> String {
    format!("{}.{:02}", value / 100, value % 100)
}

/// A number of KiB, in bytes.
pub(crate) fn kib(field: &[u8]) -> Option<Bytes> {
    number(field)?.checked_mul(1024).map(Bytes)
}

/// `   2030560 kB`, in bytes: the kernel's kB are KiB.
pub(crate) fn kib_with_unit(value: &[u8]) -> Option<Bytes> {
    kib(value.trim_ascii().strip_suffix(b" kB")?)
}

/// Any value that Rust parses from text, such as `i64` and `DevNum`.
pub(crate) fn value<T: FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_its_newline_is_torn() {
        let all: Vec<_> = lines(b"a\n\nb").collect();
        assert_eq!(all, [(1, Line::Whole(b"a")), (2, Line::Whole(b"")), (3, Line::Torn(b"b"))]);
    }

    #[test]
    fn a_byte_is_found_at_every_place_and_the_first_wins() {
        for len in 0..40 {
            assert_eq!(find(&vec![b'a'; len], b'b'), None);
            for at in 0..len {
                // The neighbours of the needle are those that a borrow could mistake for it.
                let mut bytes = vec![b'c'; len];
                bytes[at..].fill(b'b');
                assert_eq!(find(&bytes, b'b'), Some(at));
                assert_eq!(find(&bytes, b'a'), None);
            }
        }
        assert_eq!(find(b"\x80\xff\0\x01\x7f\x81\0\0", 0), Some(2));
    }

    #[test]
    fn numbers_do_not_wrap_and_have_no_sign() {
        for len in 1..=20 {
            let text = "12345678901234567890".get(..len).unwrap();
            assert_eq!(number(text.as_bytes()), text.parse().ok());
            let behind = format!("{text} 7 and more");
            let (value, rest) = leading_number(behind.as_bytes()).unwrap();
            assert_eq!((Some(value), rest), (text.parse().ok(), &b" 7 and more"[..]));
        }
        // What stands next to the digits, and what differs from one in its top bit.
        for other in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..10 {
                let mut bytes = *b"1234567890";
                bytes[at] = other;
                assert_eq!(number(&bytes), None, "{other:#x} at {at}");
                assert_eq!(leading_number(&bytes).map(|(_, rest)| rest.len()), (at > 0).then_some(10 - at));
            }
        }
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for wrong in [&b"18446744073709551616"[..], b"", b"-1", b"+1", b"1 ", b"0x1", b"1.0"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_devices_number_is_two_numbers_of_32_bits_and_nothing_else() {
        assert_eq!(device(b"259:1048575"), Some(DevNum { major: 259, minor: 1_048_575 }));
        for wrong in [&b"8"[..], b"8:", b":0", b"8:0 ", b"8:0:0", b"8:-1", b"4294967296:0"] {
            assert_eq!(device(wrong), None, "{wrong:?}");
        }
        assert_eq!(leading_device(b"8:16 rbytes=1").map(|(_, rest)| rest), Some(&b" rbytes=1"[..]));
    }

    #[test]
    fn two_decimals_are_two_and_do_not_overflow() {
        assert_eq!(centi(b"129.47"), Some(12_947));
        assert_eq!(render_centi(12_907), "129.07");
        for wrong in [&b"129"[..], b"129.4", b"129.470", b".47", b"129.-4", b"18446744073709551615.00"] {
            assert_eq!(centi(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_key_is_found_wherever_it_stands_and_only_whole() {
        let line = DeviceLine::new(b"8:0 ab=1 b=2").unwrap();
        assert_eq!((line.number("b"), line.number("a"), line.number("ab")), (Some(2), None, Some(1)));
        assert!(DeviceLine::new(b"(unknown) b=2").is_none());
    }

    #[test]
    fn a_second_line_is_not_passed_over() {
        assert_eq!(one_line(b"a\n"), Ok(&b"a"[..]));
        assert_eq!(one_line(b"a\nb\n").unwrap_err().line_no, 2);
        assert_eq!(one_line(b"a").unwrap_err().what, NEWLINE);
        assert_eq!(one_line(b"").unwrap_err().what, NEWLINE);
    }
}
