//! How long the disk takes: when a request that arrives now is complete, given those that came before it.
//!
//! Nothing here looks at a clock or waits: times are passed in, counted from the disk's start, and a request's end is
//! known when it arrives. So requests are served in the order of their arrival, reads and writes alike: a disk that
//! served them apart would hide how a hog of writes delays a reader.

use std::mem;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use serde::Deserialize;

/// How a disk behaves. The default is a small cloud disk.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Model {
    /// How long a read takes after a unit served it; occupies nothing.
    pub(crate) read_usec: u64,
    /// The same for a write.
    pub(crate) write_usec: u64,
    /// How long a flush takes once the requests before it are complete.
    pub(crate) flush_usec: u64,
    /// Requests per second of one unit; 0 is unlimited.
    pub(crate) iops: u64,
    /// Bytes per second of the whole disk; 0 is unlimited. The units share it in the order of the requests: one
    /// request transfers at a time, at full speed.
    pub(crate) bytes_per_sec: u64,
    /// How many requests are served at the same time.
    pub(crate) units: NonZeroUsize,
    /// Whether nobody is served while the disk flushes.
    pub(crate) flush_occupies: bool,
    /// The volatile write cache; 0 is none. A write that fits takes `write_usec` and no unit; one that does not is
    /// served as if there was none. It empties at `bytes_per_sec`: by a flush, which takes that much longer, and while
    /// all units are idle.
    pub(crate) cache_bytes: u64,
    /// What a disk with burst credit becomes without it; `None` for one that stays as it is.
    pub(crate) burst: Option<Burst>,
}

/// Credit for requests at the model's `iops`, as cloud disks have it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Burst {
    /// Requests of a full credit. The disk starts with it.
    pub(crate) ios: u64,
    /// Requests per second of one unit without credit, and the credit that a second of idleness earns.
    pub(crate) then_iops: NonZeroU64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            read_usec: 600,
            write_usec: 400,
            flush_usec: 2500,
            iops: 2000,
            bytes_per_sec: 60_000_000,
            units: NonZeroUsize::MIN,
            flush_occupies: false,
            cache_bytes: 0,
            burst: None,
        }
    }
}

/// What the disk is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
    /// A write that is not complete before it is durable (FUA): a write and a flush after it.
    WriteThrough,
    Flush,
}

/// The requests that a disk serves, as far as they matter to those that follow.
#[derive(Debug)]
pub(crate) struct Queue {
    model: Model,
    /// How many times slower than the model.
    factor: NonZeroU32,
    /// When each unit is done with what it has.
    units_free_at: Vec<Duration>,
    transfers_end_at: Duration,
    /// Nobody is served before: the end of a flush that occupies.
    flush_ends_at: Duration,
    /// The latest completion of any request so far.
    last_complete_at: Duration,
    /// Until when idle time was used.
    idle_used_at: Duration,
    cached_bytes: u64,
    /// Burst credit, as the idle time that earns it.
    credit: Duration,
}

impl Queue {
    /// A disk that has not served anything.
    pub(crate) fn new(model: Model) -> Self {
        Self {
            factor: NonZeroU32::MIN,
            units_free_at: vec![Duration::ZERO; model.units.get()],
            transfers_end_at: Duration::ZERO,
            flush_ends_at: Duration::ZERO,
            last_complete_at: Duration::ZERO,
            idle_used_at: Duration::ZERO,
            cached_bytes: 0,
            credit: full_credit(&model),
            model,
        }
    }

    /// Multiplies every time of the model for the requests that follow.
    pub(crate) fn slow_down(&mut self, factor: NonZeroU32) {
        self.factor = factor;
    }

    /// When a request that arrives `now` is complete. Both count from the disk's start.
    pub(crate) fn complete_at(&mut self, now: Duration, op: Op, bytes: u64) -> Duration {
        self.use_idle_time(now);
        let at = match op {
            Op::Read => self.serve(now, bytes).saturating_add(self.slowed(micros(self.model.read_usec))),
            Op::Write => self.write(now, bytes),
            Op::WriteThrough => {
                let written_at = self.write(now, bytes);
                self.flush(now.max(written_at))
            }
            Op::Flush => self.flush(now),
        };
        self.last_complete_at = self.last_complete_at.max(at);
        at
    }

    fn write(&mut self, now: Duration, bytes: u64) -> Duration {
        let cached_bytes = self.cached_bytes.saturating_add(bytes);
        let served_at = if cached_bytes <= self.model.cache_bytes {
            self.cached_bytes = cached_bytes;
            now.max(self.flush_ends_at)
        } else {
            self.serve(now, bytes)
        };
        served_at.saturating_add(self.slowed(micros(self.model.write_usec)))
    }

    fn flush(&mut self, now: Duration) -> Duration {
        let drain = time_of(mem::take(&mut self.cached_bytes), self.model.bytes_per_sec);
        let takes = self.slowed(micros(self.model.flush_usec).saturating_add(drain));
        let ends_at = now.max(self.last_complete_at).saturating_add(takes);
        if self.model.flush_occupies {
            self.flush_ends_at = ends_at;
        }
        ends_at
    }

    /// Occupies the unit that is free first; says until when.
    fn serve(&mut self, now: Duration, bytes: u64) -> Duration {
        let request = self.request_time();
        let request = self.slowed(request);
        let transfer = self.slowed(time_of(bytes, self.model.bytes_per_sec));
        let Some(unit_free_at) = self.units_free_at.iter_mut().min() else { return now };
        let begins_at = now.max(*unit_free_at).max(self.flush_ends_at);
        self.transfers_end_at = begins_at.max(self.transfers_end_at).saturating_add(transfer);
        *unit_free_at = begins_at.saturating_add(request).max(self.transfers_end_at);
        *unit_free_at
    }

    /// How long a request occupies a unit, whatever its size. Takes of the credit.
    fn request_time(&mut self) -> Duration {
        let fast = time_of(1, self.model.iops);
        let Some(burst) = &self.model.burst else { return fast };
        let slow = time_of(1, burst.then_iops.get());
        match self.credit.checked_sub(slow) {
            Some(rest) => {
                self.credit = rest;
                fast
            }
            None => slow,
        }
    }

    // Credit is earned in idle time only: earned under load it would make a disk without credit fast at every other
    // request.
    fn use_idle_time(&mut self, now: Duration) {
        let busy_until = self.units_free_at.iter().copied().max().unwrap_or_default().max(self.flush_ends_at);
        let idle = now.saturating_sub(self.idle_used_at.max(busy_until));
        self.idle_used_at = self.idle_used_at.max(now);
        self.credit = self.credit.saturating_add(idle).min(full_credit(&self.model));
        self.cached_bytes = match self.model.bytes_per_sec {
            0 => 0,
            per_sec => self.cached_bytes.saturating_sub(amount_in(idle / self.factor.get(), per_sec)),
        };
    }

    fn slowed(&self, time: Duration) -> Duration {
        time.saturating_mul(self.factor.get())
    }
}

fn full_credit(model: &Model) -> Duration {
    model.burst.as_ref().map_or(Duration::ZERO, |burst| time_of(burst.ios, burst.then_iops.get()))
}

fn micros(usec: u64) -> Duration {
    Duration::from_micros(usec)
}

/// How long an amount takes at a rate; no time where the rate is 0, which is unlimited.
fn time_of(amount: u64, per_sec: u64) -> Duration {
    let nanos = (u128::from(amount) * 1_000_000_000).checked_div(u128::from(per_sec)).unwrap_or(0);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn amount_in(time: Duration, per_sec: u64) -> u64 {
    let amount = time.as_nanos().saturating_mul(u128::from(per_sec)) / 1_000_000_000;
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
