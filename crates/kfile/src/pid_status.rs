//! `/proc/PID/status`: a process's name, owner and swap, `Key:\tvalue` a line.
//!
//! Unlike in `stat`, the kernel escapes a newline in the name here (`\n`, and `\\` for a backslash), so every fact is
//! one line whatever a program calls itself.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::pid_stat::TaskState;
use crate::scan;
use crate::{Parsed, names};

/// The part of a process's `status` that quell uses. `None` where there is no such line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidStatus {
    /// `Name`, with the kernel's escapes undone.
    #[serde(with = "names::option")]
    pub name: Option<Box<[u8]>>,
    /// `State`.
    pub state: Option<TaskState>,
    /// `Tgid`: the process that this thread belongs to.
    pub tgid: Option<u32>,
    /// `PPid`: the process that started it.
    pub ppid: Option<u32>,
    /// `Uid`: the real one, which is the first of four.
    pub uid: Option<u32>,
    /// `VmSwap`: its anonymous memory that is swapped out. Kernel threads have no such line.
    pub swap_bytes: Option<Bytes>,
}

/// Parses `status`. Other keys are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<PidStatus> {
    scan::keyed(bytes, b':', |status: &mut PidStatus, key, value| {
        let first = || scan::fields(value).next();
        let id = || first().and_then(scan::number_u32);
        match key {
            b"Name" => status.name = Some(unescape(value.strip_prefix(b"\t")?)),
            b"State" => status.state = Some(TaskState::parse(first()?)?),
            b"Tgid" => status.tgid = Some(id()?),
            b"PPid" => status.ppid = Some(id()?),
            b"Uid" => status.uid = Some(id()?),
            b"VmSwap" => status.swap_bytes = Some(scan::kib_with_unit(value)?),
            _ => {}
        }
        Some(())
    })
}

fn unescape(name: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next_if(|&next| next == b'n' || next == b'\\') } else { None };
        out.push(match escaped {
            Some(b'n') => b'\n',
            _ => byte,
        });
    }
    out.into()
}

/// The file as the kernel prints it, with the known lines alone.
#[must_use]
pub fn render(status: &PidStatus) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(name) = &status.name {
        out.extend_from_slice(b"Name:\t");
        for &byte in name {
            match byte {
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                _ => out.push(byte),
            }
        }
        out.push(b'\n');
    }
    let lines = [
        status.state.map(|state| format!("State:\t{}\n", state.letter())),
        status.tgid.map(|id| format!("Tgid:\t{id}\n")),
        status.ppid.map(|id| format!("PPid:\t{id}\n")),
        status.uid.map(|id| format!("Uid:\t{id}\t{id}\t{id}\t{id}\n")),
        status.swap_bytes.map(|Bytes(n)| format!("VmSwap:\t{:>8} kB\n", n / 1024)),
    ];
    out.extend(lines.into_iter().flatten().flat_map(String::into_bytes));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_quell_uses_are_read() {
        let text = b"Name:\tfio\nUmask:\t0022\nState:\tD (disk sleep)\nTgid:\t84\nPPid:\t81\nUid:\t1000\t0\t0\t0\nVmSwap:\t    1024 kB\n";
        let parsed = parse(text);
        assert!(parsed.lost.is_none());
        let expected = PidStatus {
            name: Some(Box::from(&b"fio"[..])),
            state: Some(TaskState::Uninterruptible),
            tgid: Some(84),
            ppid: Some(81),
            uid: Some(1000),
            swap_bytes: Some(Bytes(1 << 20)),
        };
        assert_eq!(parsed.value, expected);
        assert_eq!(parse(&render(&expected)).value, expected);
    }

    #[test]
    fn a_name_keeps_its_spaces_and_its_newline() {
        let name = |text: &[u8]| parse(text).value.name.unwrap();
        assert_eq!(*name(b"Name:\t a:b \n"), *b" a:b ");
        let odd = name(b"Name:\ta\\nb\\\\n\\x\n");
        assert_eq!(*odd, *b"a\nb\\n\\x");
        let printed = render(&PidStatus { name: Some(odd.clone()), ..PidStatus::default() });
        assert_eq!(name(&printed), odd);
    }

    #[test]
    fn a_kernel_thread_has_no_swap() {
        assert_eq!(parse(b"Name:\tkthreadd\nPPid:\t0\n").value.swap_bytes, None);
    }
}
