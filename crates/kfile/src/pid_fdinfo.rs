//! `/proc/PID/fdinfo/N`: how a process has a file open, where it stands in it, and through which mount.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// One open file. `None` where the kernel has no such line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidFdInfo {
    /// `pos`: where the next `read` or `write` begins. Calls that name their own place (`pwrite`) do not move it.
    pub pos: Option<Bytes>,
    /// The access mode in `flags`.
    pub access: Option<Access>,
    /// `mnt_id`: the mount in the process's `mountinfo`.
    pub mount_id: Option<u32>,
}

/// What a file was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// `O_RDONLY`.
    Read,
    /// `O_WRONLY`.
    Write,
    /// `O_RDWR`.
    ReadWrite,
}

/// The modes by the number that the last two bits of `flags` make.
const MODES: [Access; 3] = [Access::Read, Access::Write, Access::ReadWrite];

/// Parses `fdinfo/N`. Other keys are skipped: each kind of file has its own.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<PidFdInfo> {
    scan::keyed(bytes, b':', |info: &mut PidFdInfo, key, value| {
        let value = value.trim_ascii();
        match key {
            b"pos" => info.pos = Some(Bytes(scan::number(value)?)),
            // In octal. The mode 3 exists for calls of a driver's own, and neither reads nor writes.
            b"flags" => info.access = MODES.get(usize::from(octal_end(value)? & 3)).copied(),
            b"mnt_id" => info.mount_id = Some(scan::number_u32(value)?),
            _ => {}
        }
        Some(())
    })
}

/// The last digit of a number in octal, which has the lowest three bits.
fn octal_end(digits: &[u8]) -> Option<u8> {
    let last = digits.last()?.checked_sub(b'0')?;
    digits.iter().all(|digit| (b'0'..=b'7').contains(digit)).then_some(last)
}

/// The file as the kernel prints it, with the known lines alone, and of the flags the access mode.
#[must_use]
pub fn render(info: &PidFdInfo) -> String {
    let mode = info.access.and_then(|access| MODES.iter().position(|mode| *mode == access));
    let lines = [
        info.pos.map(|pos| format!("pos:\t{}\n", pos.get())),
        mode.map(|mode| format!("flags:\t0{mode}\n")),
        info.mount_id.map(|id| format!("mnt_id:\t{id}\n")),
    ];
    lines.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_mode_is_the_end_of_the_octal_flags() {
        for (flags, access) in [
            ("0100000", Some(Access::Read)),
            ("0102001", Some(Access::Write)),
            ("0500002", Some(Access::ReadWrite)),
            ("03", None),
        ] {
            let parsed = parse(format!("pos:\t4096\nflags:\t{flags}\nmnt_id:\t27\nino:\t9\n").as_bytes());
            assert!(parsed.lost.is_none());
            assert_eq!(parsed.value, PidFdInfo { pos: Some(Bytes(4096)), access, mount_id: Some(27) });
            assert_eq!(parse(render(&parsed.value).as_bytes()).value, parsed.value);
        }
    }

    #[test]
    fn what_is_no_number_costs_its_line() {
        let parsed = parse(b"pos:\t-1\nflags:\t0108\nmnt_id:\t27\n");
        assert_eq!((parsed.lost.lines, parsed.value), (2, PidFdInfo { mount_id: Some(27), ..PidFdInfo::default() }));
    }
}
