//! From the bytes of a file to a value or the reason it is missing: the same three steps for every file.

use quell_kfile::{Lost, ParseError, Parsed, single};
use quell_units::{Gap, Known};
use rustix::io::Errno;

use crate::error::gap;
use crate::gaps::{Gaps, Of};
use crate::reader::Reader;

/// The value of a file that is one value.
pub(crate) fn one<T>(bytes: Result<&[u8], Errno>, parse: impl FnOnce(&[u8]) -> Result<T, ParseError>) -> Known<T> {
    parse(bytes.map_err(gap)?).map_err(|_| Gap::Malformed)
}

/// The value of a file of lines, and the lines that were lost.
pub(crate) fn many<T>(bytes: Result<&[u8], Errno>, parse: impl FnOnce(&[u8]) -> Parsed<T>) -> (Known<T>, Lost) {
    match bytes {
        Ok(bytes) => {
            let parsed = parse(bytes);
            (Ok(parsed.value), parsed.lost)
        }
        Err(errno) => (Err(gap(errno)), Lost::default()),
    }
}

/// The value of one of the host's files of lines. What is lost or missing is noted under the file's name.
pub(crate) fn many_of_host<T>(
    bytes: Result<&[u8], Errno>,
    file: &'static str,
    gaps: &mut Gaps,
    parse: impl FnOnce(&[u8]) -> Parsed<T>,
) -> Known<T> {
    let (value, lost) = many(bytes, parse);
    gaps.lost(file, Of::Host, &lost, || "");
    gaps.note(file, value)
}

/// A file that is one number.
pub(crate) fn number(reader: &mut Reader, path: &[u8]) -> Known<u64> {
    one(reader.read(path), single::parse_number)
}

/// A file that is one line of text.
pub(crate) fn word(reader: &mut Reader, path: &[u8]) -> Known<String> {
    one(reader.read(path), |bytes| single::parse_word(bytes).map(str::to_owned))
}
