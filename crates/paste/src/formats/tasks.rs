//! `iotop` and `pidstat -d`: what tasks read, wrote and waited.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::{bytes, decimal};
use crate::pasted::{Pasted, TaskFact};

pub(crate) const FORMAT: Format = Format { name: "iotop, pidstat", open };

/// Tasks that are kept of one paste.
const TASKS_MAX: usize = 10_000;

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let columns = Columns::of(line.text)?;
    Some(Box::new(Tasks { columns, done: Vec::new() }))
}

struct Tasks {
    columns: Columns,
    done: Vec<TaskFact>,
}

/// Which tool's heading is above.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Columns {
    /// `TID PRIO USER DISK READ DISK WRITE SWAPIN IO> COMMAND`; whether shares of time are in it.
    Iotop { shares: bool },
    /// `UID PID kB_rd/s kB_wr/s kB_ccwr/s iodelay Command`.
    Pidstat { command_at: usize },
}

impl Columns {
    fn of(text: &str) -> Option<Self> {
        if text.contains("DISK READ") && text.contains("DISK WRITE") && text.contains("COMMAND") {
            return Some(Self::Iotop {
                shares: text.contains("IO>") || text.contains("IO ") || text.contains("SWAPIN"),
            });
        }
        let mut fields = text.split_ascii_whitespace();
        let command_at = fields.clone().position(|field| field == "Command")?;
        fields.any(|field| field == "kB_rd/s").then_some(Self::Pidstat { command_at })
    }

    fn row(self, text: &str) -> Option<TaskFact> {
        match self {
            Self::Iotop { shares } => iotop(text, shares),
            Self::Pidstat { command_at } => pidstat(text, command_at),
        }
    }
}

impl Open for Tasks {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if let Some(columns) = Columns::of(text) {
            self.columns = columns;
            return true;
        }
        let is_total =
            ["Total DISK", "Actual DISK", "Current DISK", "Average:"].iter().any(|start| text.starts_with(start));
        let row = self.columns.row(text);
        let taken = row.is_some() || is_total || text.is_empty();
        self.done.extend(row.filter(|_| self.done.len() < TASKS_MAX));
        taken
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        let room = TASKS_MAX.saturating_sub(pasted.tasks.len());
        pasted.tasks.extend(self.done.into_iter().take(room));
    }
}

/// `477 be/3 root 0.00 B/s 2778.70 K/s 0.00 % 67.48 % [jbd2/md6-8]`.
fn iotop(text: &str, shares: bool) -> Option<TaskFact> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let id = fields.first()?.parse().ok()?;
    let rate = |at: usize| bytes(&format!("{}{}", fields.get(at)?, fields.get(at + 1)?.trim_end_matches("/s")));
    let (read, write) = (rate(3)?, rate(5)?);
    let mut at = 7;
    let mut share = || {
        let value = fields.get(at).filter(|_| fields.get(at + 1) == Some(&"%")).and_then(|field| decimal(field));
        at += if value.is_some() { 2 } else { 0 };
        value
    };
    let (swap_wait_pct, io_wait_pct) = if shares { (share(), share()) } else { (None, None) };
    // Newer versions have one share, of I/O, and none of swap.
    let (swap_wait_pct, io_wait_pct) =
        if io_wait_pct.is_none() { (None, swap_wait_pct) } else { (swap_wait_pct, io_wait_pct) };
    let command = fields.get(at..)?.join(" ");
    let kernel = command.strip_prefix('[').and_then(|name| name.split(']').next());
    let program = || command.split(' ').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    Some(TaskFact {
        id,
        comm: kernel.unwrap_or_else(program).to_owned(),
        kernel_thread: kernel.is_some(),
        read_bytes_per_sec: Some(read),
        write_bytes_per_sec: Some(write),
        io_wait_pct,
        swap_wait_pct,
    })
}

/// `03:05:40 AM 0 477 0.00 2778.70 0.00 12 jbd2/md6-8`, or without the time and the delay.
fn pidstat(text: &str, command_at: usize) -> Option<TaskFact> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let comm = fields.get(command_at..)?.join(" ");
    // From the back: id, read, write, cancelled, and the delay that newer versions have.
    let before = fields.get(..command_at)?;
    let numbers: Vec<f64> = before.iter().rev().map_while(|field| decimal(field)).take(5).collect();
    let (with_delay, without) = (numbers.as_slice(), numbers.as_slice());
    let (id, read, write) = match (with_delay, without) {
        ([_, _, write, read, id], _) if id.fract() == 0.0 && *id > 0.0 => (*id, *read, *write),
        (_, [_, write, read, id, ..]) => (*id, *read, *write),
        _ => return None,
    };
    let id = u32::try_from(quell_units::whole(id)).ok().filter(|_| !comm.is_empty())?;
    Some(TaskFact {
        id,
        comm,
        read_bytes_per_sec: Some(read * 1024.0),
        write_bytes_per_sec: Some(write * 1024.0),
        ..TaskFact::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    #[test]
    fn iotop_of_both_ages_is_read() {
        let old = "  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND\n  477  be/3  root        0.00 B/s \
            2778.70 K/s  0.00 % 67.48 % [jbd2/md6-8]\n";
        let new = "    TID  PRIO  USER     DISK READ DISK WRITE>    COMMAND\n   1234 be/4 mysql       1.00 M/s  2.00 M/s \
            /usr/sbin/mysqld --user=mysql\n";
        let task = &read(old).tasks[0];
        assert_eq!((task.comm.as_str(), task.kernel_thread, task.io_wait_pct), ("jbd2/md6-8", true, Some(67.48)));
        let task = &read(new).tasks[0];
        assert_eq!((task.id, task.comm.as_str(), task.read_bytes_per_sec), (1234, "mysqld", Some(1048576.0)));
    }

    #[test]
    fn pidstat_is_read_with_and_without_a_delay() {
        let text = "03:05:40      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n03:05:41        0       477 \
            1.00   2778.70      0.00      12  jbd2/vda1-8\n";
        let task = &read(text).tasks[0];
        assert_eq!((task.id, task.comm.as_str(), task.read_bytes_per_sec), (477, "jbd2/vda1-8", Some(1024.0)));
    }
}
