//! `/proc/PID/stat` and `/proc/PID/task/TID/stat`: one task on one line, by the position of its fields.
//!
//! The second field is the name in parentheses, and a program may put spaces, parentheses and newlines into its name. The
//! name therefore ends at the file's last `)`, and the file at its last newline.

use serde::{Deserialize, Serialize};

use crate::scan;
use crate::{ParseError, names};

/// The part of a task's line that quell uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidStat {
    /// The process's id, or the thread's.
    pub pid: u32,
    /// Its name: at most 15 bytes, longer for kernel workers, which append what they work on.
    #[serde(with = "names")]
    pub comm: Box<[u8]>,
    /// What it is doing.
    pub state: TaskState,
    /// The process that started it; 0 for the first ones.
    pub ppid: u32,
    /// Whether it is the kernel's own.
    pub kernel_thread: bool,
    /// When it started, in ticks of 10 ms since boot: with the pid it tells a task from a later one of the same id.
    pub start_ticks: u64,
    /// Time it waited for block I/O, in ticks of 10 ms. Always 0 where `kernel.task_delayacct` is off, the default from 5.14.
    pub blkio_delay_ticks: u64,
}

/// What a task is doing, by the kernel's letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// `R`: running, or waiting for a CPU.
    Running,
    /// `S`: waits and can be interrupted.
    Sleeping,
    /// `D`: waits and cannot be interrupted, mostly for I/O or a lock held over I/O.
    Uninterruptible,
    /// `I`: a kernel thread that has nothing to do. Before 4.14 these were `S` or `D`.
    Idle,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a debugger.
    Tracing,
    /// `Z`: ended and not yet waited for.
    Zombie,
    /// `X`: about to vanish.
    Dead,
    /// `P`: a kernel thread put aside.
    Parked,
    /// A letter of another kernel.
    Other(char),
}

impl TaskState {
    /// The letters that have a meaning of their own.
    const LETTERS: [(char, Self); 9] = [
        ('R', Self::Running),
        ('S', Self::Sleeping),
        ('D', Self::Uninterruptible),
        ('I', Self::Idle),
        ('T', Self::Stopped),
        ('t', Self::Tracing),
        ('Z', Self::Zombie),
        ('X', Self::Dead),
        ('P', Self::Parked),
    ];

    /// The state of a letter.
    #[must_use]
    pub fn from_letter(letter: char) -> Self {
        Self::LETTERS.into_iter().find(|(known, _)| *known == letter).map_or(Self::Other(letter), |(_, state)| state)
    }

    /// The letter of the state.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Other(letter) => letter,
            _ => Self::LETTERS.into_iter().find(|(_, state)| *state == self).map_or('?', |(letter, _)| letter),
        }
    }

    /// The state of a field of one letter.
    pub(crate) fn parse(field: &[u8]) -> Option<Self> {
        match field {
            [letter] if letter.is_ascii_alphabetic() => Some(Self::from_letter(char::from(*letter))),
            _ => None,
        }
    }
}

/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Parses one task's `stat`.
///
/// # Errors
/// Not a whole line of at least 42 fields.
pub fn parse(bytes: &[u8]) -> Result<PidStat, ParseError> {
    let fail = |what| ParseError { line_no: 1, what };
    let line = bytes.strip_suffix(b"\n").ok_or(fail(scan::NEWLINE))?;
    let (pid, comm, rest) = split_name(line).ok_or(fail("PID (NAME)"))?;
    // Numbered as in proc_pid_stat(5), where the pid is field 1 and the state field 3.
    let mut fields = scan::fields(rest);
    let state = fields.next().and_then(TaskState::parse).ok_or(fail("the state, field 3"))?;
    let ppid = fields.next().and_then(scan::number_u32).ok_or(fail("the parent, field 4"))?;
    let flags = fields.nth(9 - 5).and_then(scan::number).ok_or(fail("the flags, field 9"))?;
    let start_ticks = fields.nth(22 - 10).and_then(scan::number).ok_or(fail("the start, field 22"))?;
    let blkio_delay_ticks = fields.nth(42 - 23).and_then(scan::number).ok_or(fail("the block I/O delay, field 42"))?;
    Ok(PidStat {
        pid,
        comm: comm.into(),
        state,
        ppid,
        kernel_thread: flags & KERNEL_THREAD != 0,
        start_ticks,
        blkio_delay_ticks,
    })
}

fn split_name(line: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (pid, _) = scan::split_once(line, b' ')?;
    let open = scan::find(line, b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    Some((scan::number_u32(pid)?, line.get(open + 1..close)?, line.get(close + 1..)?))
}

/// The file as the kernel prints it, with zeros for what is not known.
#[must_use]
pub fn render(stat: &PidStat) -> Vec<u8> {
    let zeros = |n| " 0".repeat(n);
    let flags = if stat.kernel_thread { KERNEL_THREAD } else { 0 };
    let mut out = format!("{} (", stat.pid).into_bytes();
    out.extend_from_slice(&stat.comm);
    out.extend(format!(") {} {}{} {flags}", stat.state.letter(), stat.ppid, zeros(4)).into_bytes());
    out.extend(format!("{} {}", zeros(12), stat.start_ticks).into_bytes());
    out.extend(format!("{} {}{}\n", zeros(19), stat.blkio_delay_ticks, zeros(10)).into_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIO: &str = "S 81 0 0 0 -1 4194304 861 0 0 0 6 41 0 0 20 0 2 0 692 217411584 1134 18446744073709551615 4198400 5457757 140736815479696 0 0 0 0 4 16898 0 0 0 17 1 0 0 7 0 0 5851952 6801904 286281728 140736815484609 140736815484863 140736815484863 140736815484911 0\n";

    #[test]
    fn fields_are_found_by_their_number() {
        let stat = parse(format!("84 (fio) {FIO}").as_bytes()).unwrap();
        assert_eq!((stat.pid, &*stat.comm, stat.state, stat.ppid), (84, &b"fio"[..], TaskState::Sleeping, 81));
        assert_eq!((stat.start_ticks, stat.blkio_delay_ticks, stat.kernel_thread), (692, 7, false));
        assert_eq!(parse(&render(&stat)), Ok(stat));
    }

    #[test]
    fn a_name_may_hold_parentheses_spaces_and_newlines() {
        let stat = parse(format!("84 (a) R (\n) {FIO}").as_bytes()).unwrap();
        assert_eq!(*stat.comm, *b"a) R (\n");
        assert_eq!(stat.state, TaskState::Sleeping);
    }

    #[test]
    fn kernel_threads_are_told_by_their_flag() {
        let text = "7 (kworker/u4:1-writeback) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 4 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        let stat = parse(text.as_bytes()).unwrap();
        assert!(stat.kernel_thread);
        assert_eq!((stat.state, stat.start_ticks), (TaskState::Idle, 4));
    }

    #[test]
    fn a_torn_line_is_an_error() {
        for end in [0, 3, 8, 40, FIO.len()] {
            let whole = format!("84 (fio) {FIO}");
            assert!(parse(&whole.as_bytes()[..end]).is_err(), "{end}");
        }
        assert!(parse(b"84 )fio( S 1\n").is_err());
    }
}
