//! Two clocks, two types: one for differences, one for people.

use serde::{Deserialize, Serialize};

use crate::Micros;

/// A moment on a clock that never goes back: time since boot, in microseconds.
///
/// Live it is `CLOCK_BOOTTIME`, in a capture it is `/proc/uptime`: the same clock, with 10 ms steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MonoMicros(pub u64);

impl MonoMicros {
    /// The time from `earlier` to here, or `None` where none passed or the clock is another's.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Micros> {
        self.0.checked_sub(earlier.0).filter(|&us| us > 0).map(Micros)
    }

    /// The moment half-way between two.
    #[must_use]
    pub const fn midpoint(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }
}

/// Wall-clock time in microseconds since 1970, for display alone: it can jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMicros(pub u64);
