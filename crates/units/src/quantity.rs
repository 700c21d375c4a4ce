//! Counts with a unit, and the only conversions from counts to floating point.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A count as a float, exact up to 2^53.
///
/// Kernel counters of more than 9e15 (9 PB, 285 years in microseconds) lose their last digits here,
/// which no rate can show.
#[expect(clippy::as_conversions, reason = "the one place where a count becomes a float")]
#[must_use]
pub fn count(n: u64) -> f64 {
    n as f64
}

/// `part / whole`, or 0 where the whole is 0: a share of nothing is nothing.
///
/// Only for shares of a sum. A rate over no time is [`crate::Gap::NoTimePassed`], not 0.
#[must_use]
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The nearest whole number; 0 for what is negative or no number, the largest for what does not fit.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
#[must_use]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The bare number, in this type's unit.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The bare number as a float, in this type's unit.
            #[must_use]
            pub fn as_f64(self) -> f64 {
                count(self.0)
            }

            /// The nearest whole amount; 0 for what is negative or no number.
            #[must_use]
            pub fn rounded(amount: f64) -> Self {
                Self(whole(amount))
            }

            /// The difference, or 0 where `earlier` is the larger.
            #[must_use]
            pub const fn saturating_sub(self, earlier: Self) -> Self {
                Self(self.0.saturating_sub(earlier.0))
            }

            /// The sum, or the largest value where it does not fit.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
    };
}

quantity!(
    /// Bytes.
    Bytes
);
quantity!(
    /// Units of 512 bytes, whatever the device's own sector size: the block layer's unit.
    Sectors
);
quantity!(
    /// Microseconds.
    Micros
);
quantity!(
    /// Nanoseconds.
    Nanos
);
quantity!(
    /// Milliseconds, the unit of the ticks in `/proc/diskstats`.
    Millis
);

impl Sectors {
    /// The same amount in bytes (512 each).
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(512))
    }
}

impl Micros {
    /// The same span in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.as_f64() / 1e6
    }
}

impl Nanos {
    /// The same span in microseconds.
    #[must_use]
    pub fn usec(self) -> f64 {
        self.as_f64() / 1e3
    }
}

/// Binary units with three significant digits: `118 MiB`, `1.31 GiB`, `512 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.as_f64() / 1024.0;
        let mut units = UNITS.iter();
        let mut unit = units.next().unwrap_or(&"");
        // 999.5 and not 1024: a fourth digit would be printed from here on.
        while value >= 999.5 {
            let Some(next) = units.next() else { break };
            value /= 1024.0;
            unit = next;
        }
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// Three significant digits: `80 us`, `1.65 ms`, `642 ms`, `18.3 s`.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} us", self.0),
            1_000..999_500 => (self.as_f64() / 1e3, "ms"),
            _ => (self.as_f64() / 1e6, "s"),
        };
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_three_significant_digits() {
        let shown = |n| Bytes(n).to_string();
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1023), "1023 B");
        assert_eq!(shown(1024), "1.00 KiB");
        assert_eq!(shown(10_485_760), "10.0 MiB");
        assert_eq!(shown(123_731_968), "118 MiB");
        assert_eq!(shown(1023 * 1024), "1.00 MiB");
        assert_eq!(shown(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn spans_change_unit_where_a_fourth_digit_would_show() {
        let shown = |n| Micros(n).to_string();
        assert_eq!(shown(80), "80 us");
        assert_eq!(shown(1_650), "1.65 ms");
        assert_eq!(shown(641_900), "642 ms");
        assert_eq!(shown(999_600), "1.00 s");
        assert_eq!(shown(18_277_000), "18.3 s");
    }

    #[test]
    fn sectors_are_512_bytes() {
        assert_eq!(Sectors(3).bytes(), Bytes(1536));
        assert_eq!(Sectors(u64::MAX).bytes(), Bytes(u64::MAX), "saturates, does not wrap");
    }
}
