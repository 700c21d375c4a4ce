//! Waiting between two readings: at an even pace for `stat`, with a line of progress for the doctor.
//!
//! Progress goes to stderr and only to a terminal, so a pipe gets the answer alone.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use quell_engine::snapshot::{Look, Window};
use quell_host::{Captured, Depth, Machine, SystemTicker, Ticker, Wake};
use quell_units::{Micros, MonoMicros};
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::render::progress;
use crate::screen::{Screen, columns_of};

/// An even pace: each wait ends a whole number of intervals after the start, however long the work between took.
pub(crate) struct Pace<T> {
    ticker: T,
    next: MonoMicros,
    interval: Micros,
}

impl<T: Ticker> Pace<T> {
    pub(crate) fn start(mut ticker: T, interval: Duration) -> Self {
        let interval = micros(interval);
        let next = MonoMicros(ticker.now().0.saturating_add(interval.0));
        Self { ticker, next, interval }
    }

    /// Waits for the next beat. Beats that were missed are left out, not made up for.
    pub(crate) fn wait(&mut self) -> Wake {
        let due = self.next.max(self.ticker.now());
        let wake = self.ticker.sleep_until(due);
        self.next = MonoMicros(due.0.saturating_add(self.interval.0));
        wake
    }
}

/// A clock that nobody interrupts: Ctrl-C ends the process, as it ends iostat.
pub(crate) fn clock() -> impl Ticker {
    SystemTicker::new(|| false)
}

/// Now, on the clock that rates are made by.
pub(crate) fn now() -> MonoMicros {
    clock().now()
}

/// Watches this host; Ctrl-C ends the watch early.
pub(crate) fn watch(machine: &mut Machine, lasting: Duration) -> Result<Window, Failure> {
    let interrupt = take_over()?;
    let mut ticker = SystemTicker::new(|| interrupt.asked());
    let mut line = ProgressLine::on_stderr();
    // The looks know disks by number; only for a line that is seen are their names read.
    let disks = if line.width.is_some() { machine.snapshot(Depth::Counters).devices } else { Vec::new() };
    line.show(&progress::line(Duration::ZERO, lasting, &disks, &Look::default()));
    let window = quell_host::watch(machine, &mut ticker, micros(lasting), &mut |passed, look| {
        line.show(&progress::line(Duration::from_micros(passed.get()), lasting, &disks, look));
    });
    line.clear();
    Ok(window)
}

/// Captures this host; Ctrl-C ends the wait between the two moments early.
pub(crate) fn capture(machine: &mut Machine, lasting: Duration, dir: &Path, scrub: bool) -> Result<Captured, Failure> {
    let interrupt = take_over()?;
    let mut ticker = SystemTicker::new(|| interrupt.asked());
    let mut line = ProgressLine::on_stderr();
    line.show(&format!("capturing for {} s", lasting.as_secs_f64()));
    let captured = quell_host::capture(machine, &mut ticker, micros(lasting), dir, scrub);
    line.clear();
    captured.map_err(|error| Failure::host(Exit::Usage, &error))
}

/// The CPU time of this process so far: the looks and the judging are part of what quell costs.
pub(crate) fn cpu_time() -> Micros {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Micros(u64::try_from(time.tv_sec * 1_000_000 + time.tv_nsec / 1000).unwrap_or(0))
}

fn take_over() -> Result<Interrupt, Failure> {
    Interrupt::take_over().map_err(|error| Failure::io(Exit::NotJudged, "handle signals", Path::new("SIGINT"), &error))
}

fn micros(span: Duration) -> Micros {
    Micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

/// One line on stderr, rewritten in place; nothing where stderr is no terminal.
struct ProgressLine {
    width: Option<usize>,
}

impl ProgressLine {
    fn on_stderr() -> Self {
        let stderr = io::stderr();
        // One column less: in the last one some terminals go to the next line.
        Self { width: stderr.is_terminal().then(|| columns_of(&stderr).unwrap_or(Screen::WIDTH) - 1) }
    }

    fn show(&mut self, text: &str) {
        if let Some(width) = self.width {
            let _ = write!(io::stderr(), "\r\x1b[K{}", crate::render::text::cut(text, width));
        }
    }

    fn clear(&mut self) {
        if self.width.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
