//! Numbers for people: three significant digits and a unit that keeps them short.

use quell_engine::findings::Value;
use quell_units::{Bytes, Micros};

/// A count or a rate: `0`, `0.50`, `28.6`, `902`, `57.7k`.
#[must_use]
pub fn three(value: f64) -> String {
    if value.fract() == 0.0 && value < 1000.0 {
        return format!("{value}");
    }
    let mut value = value;
    let mut units = ["k", "M", "G", "T"].iter();
    let mut unit = "";
    // 999.5 and not 1000: a fourth digit would be printed from here on.
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        value /= 1000.0;
        unit = next;
    }
    digits(value) + unit
}

/// Bytes in binary units: `512 B`, `114 KiB`, `56.3 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    Bytes::rounded(value).to_string()
}

/// A time given in microseconds: `80 us`, `1.65 ms`, `18.3 s`.
#[must_use]
pub fn usec(value: f64) -> String {
    Micros::rounded(value).to_string()
}

/// Percent: `0.40 %`, `79.3 %`, `100 %`.
#[must_use]
pub fn pct(value: f64) -> String {
    format!("{} %", digits(value))
}

/// A piece of evidence's value.
#[must_use]
pub fn value(value: &Value) -> String {
    match value {
        Value::Pct(v) => pct(*v),
        Value::Usec(v) => usec(*v),
        Value::Bytes(v) => bytes(*v),
        Value::BytesPerSec(v) => format!("{}/s", bytes(*v)),
        Value::PerSec(v) => format!("{}/s", three(*v)),
        Value::Number(v) => three(*v),
        Value::Word(word) => word.clone(),
    }
}

fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in
            [(0.0, "0"), (7.0, "7"), (0.5, "0.50"), (28.64, "28.6"), (901.6, "902"), (57_667.5, "57.7k")]
        {
            assert_eq!(three(value), text);
        }
        assert_eq!(bytes(0.4), "0 B");
        assert_eq!(bytes(59_051_520.0), "56.3 MiB");
        assert_eq!(usec(34_830.0), "34.8 ms");
        assert_eq!(usec(999.7), "1.00 ms");
        assert_eq!(pct(100.0), "100 %");
        assert_eq!(pct(0.404), "0.40 %");
    }
}
