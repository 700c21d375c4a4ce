//! Numbers for people: three significant digits and a unit that keeps them short.

use quell_engine::findings::Value;

const BINARY: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const PLAIN: [&str; 5] = ["", "k", "M", "G", "T"];

/// A count or a rate: `0`, `0.50`, `28.6`, `902`, `57.7k`.
#[must_use]
pub fn three(value: f64) -> String {
    if value.fract() == 0.0 && value < 1000.0 {
        return format!("{value}");
    }
    let (text, unit) = scaled(value, 1000.0, &PLAIN);
    format!("{text}{unit}")
}

/// Bytes in binary units: `512 B`, `114 KiB`, `56.3 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    // There is no part of a byte.
    if value < 999.5 {
        return format!("{} B", value.round());
    }
    let (text, unit) = scaled(value, 1024.0, &BINARY);
    format!("{text} {unit}")
}

/// A time given in microseconds: `80 us`, `1.65 ms`, `18.3 s`.
#[must_use]
pub fn usec(value: f64) -> String {
    match value {
        v if v < 999.5 => format!("{} us", v.round()),
        v if v < 999_500.0 => format!("{} ms", digits(v / 1e3)),
        v => format!("{} s", digits(v / 1e6)),
    }
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

/// The value in the largest unit that leaves a digit before the point, and that unit.
fn scaled(value: f64, step: f64, units: &[&'static str]) -> (String, &'static str) {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    // 999.5 and not the step: a fourth digit would be printed from here on.
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        value /= step;
        unit = next;
    }
    (digits(value), unit)
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
        assert_eq!(bytes(1000.0), "0.98 KiB");
        assert_eq!(bytes(59_051_520.0), "56.3 MiB");
        assert_eq!(usec(34_830.0), "34.8 ms");
        assert_eq!(usec(999.7), "1.00 ms");
        assert_eq!(pct(100.0), "100 %");
        assert_eq!(pct(0.404), "0.40 %");
    }
}
