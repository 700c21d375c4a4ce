//! The kernel's log, from `dmesg`, the journal or syslog: commands without an answer, errors, tasks that hang.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::decimal;
use crate::pasted::{Pasted, Statement};

pub(crate) const FORMAT: Format = Format { name: "kernel log", open };

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut log = Log::default();
    log.take(line).then(|| -> Box<dyn Open> { Box::new(log) })
}

#[derive(Default)]
struct Log(Vec<Statement>);

impl Open for Log {
    fn take(&mut self, line: &Line) -> bool {
        let (text, is_kernel) = message(line.text);
        let statement = statement(text);
        let taken = is_kernel || statement.is_some();
        self.0.extend(statement.filter(|statement| !self.0.contains(statement)));
        taken
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.0.into_iter().for_each(|statement| pasted.state(statement));
    }
}

/// A line's message, and whether what stands in front of it says that it is the kernel's: `[   89.895139] `, or
/// `Jan  1 00:00:00 host kernel: `.
fn message(text: &str) -> (&str, bool) {
    if let Some((_, rest)) = text.split_once(" kernel: ") {
        return (message(rest).0, true);
    }
    let stamped = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match stamped {
        Some((stamp, rest)) if is_stamp(stamp) => (rest.trim_start(), true),
        _ => (text.trim_start(), false),
    }
}

/// `   89.895139`, or `Fri Jan  1 00:00:00 2026` of `dmesg -T`.
fn is_stamp(stamp: &str) -> bool {
    let seconds = decimal(stamp.trim()).is_some() && stamp.contains('.');
    let date = stamp.split_ascii_whitespace().count() == 5 && stamp.contains(':');
    seconds || date
}

fn statement(text: &str) -> Option<Statement> {
    if let Some(hung) = hung_task(text) {
        return Some(hung);
    }
    let timed_out = |device: &str, seconds| Some(Statement::CommandTimedOut { device: device.to_owned(), seconds });
    let failed = |device: &str| Some(Statement::IoError { device: device.to_owned() });
    let (first, rest) = text.split_once(' ')?;
    let lower = text.to_lowercase();
    if first == "nvme" {
        let device = rest.split(':').next().unwrap_or(rest);
        let is_timeout = in_order(&lower, &["i/o ", " qid ", "timeout"])
            || lower.contains("controller is down")
            || lower.contains("device not ready");
        return is_timeout.then_some(()).and_then(|()| timed_out(device, None));
    }
    if first.starts_with("ata") && first.ends_with(':') {
        let device = first.trim_end_matches(':');
        // "hard resetting link" is said on hotplug and resume too.
        let is_timeout = lower.contains("(timeout)") || lower.contains("softreset failed");
        return is_timeout.then_some(()).and_then(|()| timed_out(device, None));
    }
    if let Some(disk) = scsi_disk(text) {
        let waited = lower.split_once("waited ").and_then(|(_, rest)| decimal(rest.split('s').next()?));
        if lower.contains("timing out command") || lower.contains("did_time_out") || lower.contains("timed out") {
            return timed_out(disk, waited);
        }
        if lower.contains("rejecting i/o") || lower.contains("medium error") || lower.contains("did_bad_target") {
            return failed(disk);
        }
    }
    if text.starts_with("mmc") && lower.contains("timeout waiting") {
        return timed_out(first.trim_end_matches(':'), None);
    }
    for words in [
        "I/O error, dev ",
        "Buffer I/O error on dev ",
        "Buffer I/O error on device ",
        "Aborting journal on device ",
        "lost async page write on ",
    ] {
        if let Some((_, device)) = text.split_once(words) {
            return failed(word(device));
        }
    }
    if text.starts_with("EXT4-fs error (device ") || text.starts_with("XFS (") && lower.contains("i/o error") {
        return text.split_once('(').and_then(|(_, rest)| failed(word(rest.trim_start_matches("device "))));
    }
    // `nvme0n1: I/O Cmd(0x2) @ LBA 1336320, 32 blocks, I/O Error (sct 0x3 / sc 0x71)`.
    (first.starts_with("nvme") && first.ends_with(':') && text.contains("I/O Error"))
        .then(|| first.trim_end_matches(':'))
        .and_then(failed)
}

/// Whether a text holds these one after the other.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let rest = parts.iter().try_fold(text, |rest, part| rest.split_once(part).map(|(_, rest)| rest));
    rest.is_some()
}

/// `INFO: task jbd2/sda1-8:213 blocked for more than 120 seconds.`
fn hung_task(text: &str) -> Option<Statement> {
    let (_, rest) = text.split_once("task ")?;
    let (task, rest) = rest.split_once(" blocked for more than ")?;
    let seconds = decimal(rest.split(' ').next()?)?;
    let comm = task.rsplit_once(':').map_or(task, |(comm, _)| comm).to_owned();
    Some(Statement::TaskHung { comm, seconds })
}

/// The disk in `sd 0:0:0:0: [sda] …`.
fn scsi_disk(text: &str) -> Option<&str> {
    text.strip_prefix("sd ")?.split_once('[')?.1.split(']').next()
}

/// The first word, without what ends it.
fn word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | ':' | ';'))
        .next()
        .unwrap_or(text)
        .trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;

    fn timed_out(device: &str) -> Statement {
        Statement::CommandTimedOut { device: device.into(), seconds: None }
    }

    fn failed(device: &str) -> Statement {
        Statement::IoError { device: device.into() }
    }

    #[test]
    fn drivers_of_every_kind_say_what_happened_to_which_device() {
        for (line, said) in [
            ("[   89.895139] nvme nvme0: I/O 900 (I/O Cmd) QID 2 timeout, aborting", timed_out("nvme0")),
            (
                "[ 1.5] nvme nvme0: I/O tag 13 (a00d) opcode 0x1 (I/O Cmd) QID 3 timeout, aborting req_op:WRITE(1) size:4096",
                timed_out("nvme0"),
            ),
            ("[ 1.5] nvme nvme1: controller is down; will reset: CSTS=0xffffffff", timed_out("nvme1")),
            ("[ 1.5] nvme nvme0: Device not ready; aborting reset, CSTS=0x1", timed_out("nvme0")),
            ("[ 1.5] ata1: softreset failed (1st FIS failed)", timed_out("ata1")),
            (
                "Jan  1 00:00:00 host kernel: [  1.000000] blk_update_request: I/O error, dev sda, sector 1 op 0x0:(READ)",
                failed("sda"),
            ),
            (
                "[Fri Jan  1 00:00:00 2026] ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen (timeout)",
                timed_out("ata3.00"),
            ),
            ("sd 2:0:0:0: [sdb] tag#1 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK", timed_out("sdb")),
            ("[ 1.5] nvme0n1: I/O Cmd(0x2) @ LBA 1336320, 32 blocks, I/O Error (sct 0x3 / sc 0x71)", failed("nvme0n1")),
            ("[ 1.5] EXT4-fs error (device dm-0): ext4_find_entry:1455: inode #2: comm ls", failed("dm-0")),
            (
                "[ 363.1] INFO: task jbd2/sda1-8:213 blocked for more than 120 seconds.",
                Statement::TaskHung { comm: "jbd2/sda1-8".into(), seconds: 120.0 },
            ),
        ] {
            assert_eq!(read(&format!("{line}\n")).statements, [said], "{line}");
        }
    }

    #[test]
    fn what_drivers_say_of_healthy_disks_is_no_timeout() {
        for line in [
            "[    1.0] nvme nvme0: Shutdown timeout set to 10 seconds",
            "[    1.0] nvme nvme0: missing or invalid SUBNQN field, I/O timeout is 30 s",
            "[    1.0] ata3: hard resetting link",
            "[    1.0] ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        ] {
            assert_eq!(read(&format!("{line}\n")).statements, [], "{line}");
        }
    }

    #[test]
    fn what_the_kernel_says_besides_is_known_as_its_and_says_nothing() {
        let pasted = read(
            "[    0.000000] Linux version 6.1.0\n[    1.0] nvme nvme0: 2/0/0 default/read/poll queues\nI slept badly\n",
        );
        assert_eq!((pasted.statements.len(), pasted.unread.lines), (0, 1));
    }
}
