//! Watching: a snapshot, light looks, a snapshot.
//!
//! The looks see what two snapshots cannot, a task that waits now and then; and they are the only part that repeats,
//! so they hold themselves to a share of one processor. Time is a parameter: tests turn the clock by hand and nobody
//! sleeps.

use quell_engine::snapshot::{Look, Window};
use quell_units::{Micros, MonoMicros};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::clock;
use crate::machine::{Depth, Machine};

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time came.
    Reached,
    /// Somebody asked to stop.
    Interrupted,
}

/// A clock that one can sleep by.
pub trait Ticker {
    /// Now.
    fn now(&mut self) -> MonoMicros;
    /// Sleeps until then, or until it is interrupted. A moment that has passed is reached at once.
    fn sleep_until(&mut self, at: MonoMicros) -> Wake;
}

/// The machine's own clock. It is interrupted when the function says so.
#[derive(Debug)]
pub struct SystemTicker<F> {
    stop: F,
}

impl<F: Fn() -> bool> SystemTicker<F> {
    /// A clock that asks `stop` whether to go on sleeping: on each signal, and at least every fifth of a second.
    pub const fn new(stop: F) -> Self {
        Self { stop }
    }
}

impl<F: Fn() -> bool> Ticker for SystemTicker<F> {
    fn now(&mut self) -> MonoMicros {
        clock::boot_time()
    }

    fn sleep_until(&mut self, at: MonoMicros) -> Wake {
        // A signal may be delivered to another thread, which would not end this one's sleep.
        const SLICE_USEC: u64 = 200_000;
        loop {
            if (self.stop)() {
                return Wake::Interrupted;
            }
            let now = clock::boot_time();
            if now >= at {
                return Wake::Reached;
            }
            // However it ends, the two questions above are asked again.
            let _ = clock_nanosleep_absolute(ClockId::Boottime, &timespec(at.0.min(now.0.saturating_add(SLICE_USEC))));
        }
    }
}

fn timespec(usec: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(usec / 1_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(usec % 1_000_000 * 1000).unwrap_or(0),
    }
}

/// The shortest time between two looks.
const INTERVAL_USEC_MIN: u64 = 100_000;

/// A look may take a twentieth of the time to the next: 5 % of one processor.
const COST_SHARE: u64 = 20;

/// The most looks that are kept of one window: 5 minutes at ten a second. A longer window has them further apart.
const LOOKS_MAX: u64 = 3_000;

/// Watches for `span`: a full snapshot, light looks, a full snapshot.
///
/// `on_progress` is told after each look how much of the span has passed and what was seen. An interruption
/// ends the watch early, with what there is until then.
pub fn watch(
    machine: &mut Machine,
    ticker: &mut dyn Ticker,
    span: Micros,
    on_progress: &mut dyn FnMut(Micros, &Look),
) -> Window {
    let begun = ticker.now();
    let end = MonoMicros(begun.0.saturating_add(span.0));
    let t0 = machine.snapshot(Depth::Full);
    let interval_min = INTERVAL_USEC_MIN.max(span.0 / LOOKS_MAX);
    let mut interval = interval_min;
    let mut looks = Vec::new();
    loop {
        let next = MonoMicros(ticker.now().0.saturating_add(interval));
        if next >= end {
            ticker.sleep_until(end);
            break;
        }
        if ticker.sleep_until(next) == Wake::Interrupted {
            break;
        }
        let before = ticker.now();
        let look = machine.look();
        let after = ticker.now();
        let cost = after.0.saturating_sub(before.0);
        interval = interval_min.max(cost.saturating_mul(COST_SHARE));
        on_progress(Micros(after.0.saturating_sub(begun.0)), &look);
        looks.push(look);
    }
    Window { t0, looks, t1: machine.snapshot(Depth::Full), pasted: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock by hand: a sleep takes no time, and every second question about the time adds the cost of a look.
    struct Fake {
        now: u64,
        look_usec: u64,
        asked: u32,
        sleeps: Vec<u64>,
        interrupt_at: u64,
    }

    impl Fake {
        fn new(look_usec: u64) -> Self {
            Self { now: 0, look_usec, asked: 0, sleeps: Vec::new(), interrupt_at: u64::MAX }
        }
    }

    impl Ticker for Fake {
        fn now(&mut self) -> MonoMicros {
            // Asked in turn: at the start, then for each look to plan it, before it and after it.
            self.asked += 1;
            if self.asked > 1 && (self.asked - 1).is_multiple_of(3) {
                self.now += self.look_usec;
            }
            MonoMicros(self.now)
        }

        fn sleep_until(&mut self, at: MonoMicros) -> Wake {
            if at.0 >= self.interrupt_at {
                return Wake::Interrupted;
            }
            self.now = self.now.max(at.0);
            self.sleeps.push(at.0);
            Wake::Reached
        }
    }

    fn tree() -> (tempfile::TempDir, Machine) {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("proc")).unwrap();
        std::fs::write(tree.path().join("proc/vmstat"), "nr_dirty 7\n").unwrap();
        let machine = Machine::under(tree.path()).unwrap();
        (tree, machine)
    }

    #[test]
    fn looks_come_ten_times_a_second_and_the_end_on_time() {
        let (_tree, mut machine) = tree();
        let mut fake = Fake::new(0);
        let mut progress = Vec::new();
        let window = watch(&mut machine, &mut fake, Micros(1_000_000), &mut |Micros(usec), _| progress.push(usec));
        assert_eq!(window.looks.len(), 9);
        assert_eq!(window.looks[0].dirty_pages, Some(7));
        assert_eq!(fake.sleeps.last(), Some(&1_000_000));
        assert_eq!(progress[..2], [100_000, 200_000]);
    }

    #[test]
    fn a_look_that_is_dear_comes_less_often() {
        let (_tree, mut machine) = tree();
        let mut fake = Fake::new(50_000);
        let window = watch(&mut machine, &mut fake, Micros(5_000_000), &mut |_, _| {});
        // The first at 0.1 s, then each 1.05 s: a twentieth of the time.
        assert_eq!(window.looks.len(), 5);
    }

    #[test]
    fn an_interruption_ends_the_watch_with_what_there_is() {
        let (_tree, mut machine) = tree();
        let mut fake = Fake { interrupt_at: 350_000, ..Fake::new(0) };
        let window = watch(&mut machine, &mut fake, Micros(3_600_000_000), &mut |_, _| {});
        assert_eq!(window.looks.len(), 0, "an hour of looks is spread out");
        let mut fake = Fake { interrupt_at: 350_000, ..Fake::new(0) };
        let window = watch(&mut machine, &mut fake, Micros(10_000_000), &mut |_, _| {});
        assert_eq!(window.looks.len(), 3);
        assert_eq!(window.t1.gaps, window.t0.gaps);
    }

    #[test]
    fn the_machines_clock_stops_when_it_is_asked_to() {
        let far = MonoMicros(u64::MAX);
        assert_eq!(SystemTicker::new(|| true).sleep_until(far), Wake::Interrupted);
        assert_eq!(SystemTicker::new(|| false).sleep_until(MonoMicros(0)), Wake::Reached);
    }
}
