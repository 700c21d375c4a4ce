//! `/proc/stat`: where the processors' time went.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan::{self, Line};

/// Time of all processors since boot, in `USER_HZ` ticks (10 ms on every architecture Linux runs today).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Processors online: the `cpuN` lines.
    pub online: u32,
    /// In user space, niced included.
    pub user_ticks: u64,
    /// In the kernel, interrupts included.
    pub system_ticks: u64,
    /// Idle, waiting for nothing.
    pub idle_ticks: u64,
    /// Idle while a task waited for I/O: a hint, not a measure.
    pub iowait_ticks: u64,
    /// Taken by the hypervisor.
    pub steal_ticks: u64,
}

/// Parses `/proc/stat`; all but the `cpu` lines is passed over.
///
/// # Errors
/// No `cpu` line, or one with less than the eight columns that every kernel since 2.6.11 has.
pub fn parse(bytes: &[u8]) -> Result<CpuTimes, ParseError> {
    let mut times: Option<CpuTimes> = None;
    let mut online = 0;
    for (line_no, line) in scan::lines(bytes) {
        let Line::Whole(line) = line else { continue };
        if let Some(columns) = line.strip_prefix(b"cpu ") {
            let mut ticks = [0; 8];
            let mut fields = scan::fields(columns);
            for slot in &mut ticks {
                let number = fields.next().and_then(scan::number);
                *slot = number.ok_or(ParseError { line_no, what: "eight counters of ticks" })?;
            }
            let [user, nice, system, idle, iowait, irq, softirq, steal_ticks] = ticks;
            times = Some(CpuTimes {
                online: 0,
                user_ticks: user.saturating_add(nice),
                system_ticks: system.saturating_add(irq).saturating_add(softirq),
                idle_ticks: idle,
                iowait_ticks: iowait,
                steal_ticks,
            });
        } else if line.starts_with(b"cpu") {
            online += 1;
        }
    }
    let times = times.ok_or(ParseError { line_no: 1, what: "a line that starts with `cpu `" })?;
    Ok(CpuTimes { online, ..times })
}

/// The `cpu` lines as the kernel prints them, with what is summed here in the first of its columns.
#[must_use]
pub fn render(times: &CpuTimes) -> String {
    let CpuTimes { online, user_ticks, system_ticks, idle_ticks, iowait_ticks, steal_ticks } = times;
    let all = format!("cpu  {user_ticks} 0 {system_ticks} {idle_ticks} {iowait_ticks} 0 0 {steal_ticks} 0 0\n");
    (0..*online).fold(all, |out, n| out + &format!("cpu{n} 0 0 0 0 0 0 0 0 0 0\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_count_as_system_time() {
        let times = parse(b"cpu  10 1 20 300 5 2 3 7 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5 0\n").unwrap();
        let expected =
            CpuTimes { online: 1, user_ticks: 11, system_ticks: 25, idle_ticks: 300, iowait_ticks: 5, steal_ticks: 7 };
        assert_eq!(times, expected);
        assert_eq!(parse(render(&expected).as_bytes()), Ok(expected));
    }

    #[test]
    fn a_file_without_a_cpu_line_is_an_error() {
        assert!(parse(b"intr 5\n").is_err());
        assert!(parse(b"cpu  10 1\n").is_err());
    }
}
