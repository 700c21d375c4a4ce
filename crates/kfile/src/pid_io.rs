//! `/proc/PID/io` and `/proc/PID/task/TID/io`: what a task read and wrote.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// A task's I/O since it started. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidIo {
    /// `rchar`: returned by read calls, from the page cache, sockets and pipes too.
    pub called_read_bytes: Option<Bytes>,
    /// `wchar`: handed to write calls, to sockets and pipes too.
    pub called_write_bytes: Option<Bytes>,
    /// `read_bytes`: fetched from block devices.
    pub read_bytes: Option<Bytes>,
    /// `write_bytes`: made dirty, or written directly. It counts the task that dirtied, when it did so, not the write-back.
    pub write_bytes: Option<Bytes>,
    /// `cancelled_write_bytes`: dirty page cache that this task dropped before it was written, its own or another's.
    pub cancelled_write_bytes: Option<Bytes>,
}

/// Parses `io`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<PidIo> {
    scan::keyed(bytes, b':', |io: &mut PidIo, key, value| {
        let slot = match key {
            b"rchar" => &mut io.called_read_bytes,
            b"wchar" => &mut io.called_write_bytes,
            b"read_bytes" => &mut io.read_bytes,
            b"write_bytes" => &mut io.write_bytes,
            b"cancelled_write_bytes" => &mut io.cancelled_write_bytes,
            _ => return Some(()),
        };
        *slot = Some(Bytes(scan::number(value.trim_ascii())?));
        Some(())
    })
}

/// The file as the kernel prints it, without the numbers of calls.
#[must_use]
pub fn render(io: &PidIo) -> String {
    let bytes = |value: Option<Bytes>| value.map(Bytes::get);
    scan::render_keyed([
        ("rchar:", bytes(io.called_read_bytes)),
        ("wchar:", bytes(io.called_write_bytes)),
        ("read_bytes:", bytes(io.read_bytes)),
        ("write_bytes:", bytes(io.write_bytes)),
        ("cancelled_write_bytes:", bytes(io.cancelled_write_bytes)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_calls_skipped() {
        let parsed = parse(b"rchar: 7929\nwchar: 3\nsyscr: 161\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 0\n");
        assert!(parsed.lost.is_none());
        assert_eq!((parsed.value.read_bytes, parsed.value.cancelled_write_bytes), (Some(Bytes(4096)), None));
        assert_eq!(parse(render(&parsed.value).as_bytes()).value, parsed.value);
    }
}
