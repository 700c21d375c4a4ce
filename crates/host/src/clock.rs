//! What time it is: for the live machine the kernel's clock, for a captured tree what its files say.
//!
//! Both are time since boot, sleep counted. A snapshot takes a moment, so each group of files has its own time; a
//! capture of quell's own keeps all three in `.clock`, and any other has the first and the last from `uptime`.

use std::fmt::Write as _;

use quell_engine::snapshot::Clock;
use quell_kfile::uptime;
use quell_units::{Gap, Known, Micros, MonoMicros, UnixMicros};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::gaps::Gaps;
use crate::reader::Reader;
use crate::values;

/// The clock of the kernel when a captured tree was begun.
pub(crate) const UPTIME: &[u8] = b"proc/uptime";

/// The same file when it was finished, as the harness writes it.
pub(crate) const UPTIME_END: &str = ".uptime_end";

/// The times of the three groups of files, as quell's own captures have them.
pub(crate) const CLOCK: &str = ".clock";

/// Now, on `CLOCK_BOOTTIME`.
pub(crate) fn boot_time() -> MonoMicros {
    MonoMicros(micros(clock_gettime(ClockId::Boottime)))
}

/// The CPU time that the calling thread has used.
pub(crate) fn cpu_time() -> Micros {
    Micros(micros(clock_gettime(ClockId::ThreadCPUTime)))
}

/// The wall clock.
pub(crate) fn wall_time() -> UnixMicros {
    UnixMicros(micros(clock_gettime(ClockId::Realtime)))
}

fn micros(time: Timespec) -> u64 {
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec / 1000).unwrap_or(0))
}

/// The times of a captured tree.
pub(crate) fn read_captured(reader: &mut Reader, gaps: &mut Gaps) -> Clock {
    if let Some(clock) = reader.read(CLOCK.as_bytes()).ok().and_then(parse) {
        return clock;
    }
    let start = read_uptime(reader, UPTIME);
    // Without the second file the tree may be a live one under another path, whose clock moved on.
    let end = read_uptime(reader, UPTIME_END.as_bytes()).or_else(|_| read_uptime(reader, UPTIME));
    let start = gaps.note("uptime", start).unwrap_or_default();
    let end = end.unwrap_or(start).max(start);
    // Between the two come the tree of the devices, the cgroups, the processes. In the captures that have a known cap,
    // two thirds of the way gives the cap back within 0.1 %; the start gave 1.2 %, the middle 0.5 %.
    let cgroups = MonoMicros(start.0 + (end.0 - start.0) / 3 * 2);
    Clock { system: start, cgroups, tasks: end, wall: None }
}

fn read_uptime(reader: &mut Reader, path: &[u8]) -> Known<MonoMicros> {
    values::one(reader.read(path), uptime::parse)
}

/// The bytes of [`CLOCK`].
pub(crate) fn render(clock: &Clock) -> String {
    [("system", clock.system), ("cgroups", clock.cgroups), ("tasks", clock.tasks)].iter().fold(
        String::new(),
        |mut out, (group, MonoMicros(at))| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{group} {at}");
            out
        },
    )
}

fn parse(bytes: &[u8]) -> Option<Clock> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = |group: &str| -> Known<MonoMicros> {
        let line = text.lines().find_map(|line| line.strip_prefix(group)).ok_or(Gap::NotInKernel)?;
        line.trim().parse().map(MonoMicros).map_err(|_| Gap::Malformed)
    };
    Some(Clock { system: at("system ").ok()?, cgroups: at("cgroups ").ok()?, tasks: at("tasks ").ok()?, wall: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> (Clock, usize) {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        for (path, text) in files {
            std::fs::write(tree.path().join(path), text).unwrap();
        }
        let mut gaps = Gaps::default();
        let clock = read_captured(&mut Reader::under(tree.path()).unwrap(), &mut gaps);
        (clock, gaps.into_missing().len())
    }

    #[test]
    fn a_capture_of_our_own_keeps_microseconds() {
        let clock = Clock { system: MonoMicros(1), cgroups: MonoMicros(22), tasks: MonoMicros(333), wall: None };
        assert_eq!(parse(render(&clock).as_bytes()), Some(clock));
        assert_eq!(read(&[(".clock", &render(&clock)), ("proc/uptime", "9.00 1.00\n")]), (clock, 0));
    }

    #[test]
    fn another_capture_has_the_time_of_its_start_and_its_end() {
        let (clock, gaps) = read(&[("proc/uptime", "10.00 1.00\n"), (".uptime_end", "10.30 1.00\n")]);
        assert_eq!(
            (clock.system, clock.cgroups, clock.tasks),
            (MonoMicros(10_000_000), MonoMicros(10_200_000), MonoMicros(10_300_000))
        );
        assert_eq!(gaps, 0);
    }

    #[test]
    fn a_tree_without_a_clock_says_so() {
        assert_eq!(read(&[]), (Clock::default(), 1));
    }

    #[test]
    fn the_live_clock_moves_on() {
        let earlier = boot_time();
        assert!(boot_time() >= earlier && earlier.0 > 0);
        assert!(wall_time().0 > 1_600_000_000_000_000);
    }
}
