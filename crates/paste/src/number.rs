//! Numbers as tools print them: with a decimal comma, a unit, or no value at all.

/// A number with a decimal point or comma; `None` for anything else, `nan` and `inf` included.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'-' | b'+' | b'e' | b'E'));
    if !plain {
        return None;
    }
    let value: f64 = if text.contains(',') { text.replacen(',', ".", 1).parse() } else { text.parse() }.ok()?;
    value.is_finite().then_some(value)
}

/// A number with a unit of bytes behind it, with or without a space: `4.5 GiB`, `238.6GB`, `10M`, `12K/s`; a bare number
/// is bytes. `kB`, `MB`, `GB` count in thousands, everything else in 1,024.
pub(crate) fn bytes(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches("/s").trim_end_matches("/sec").trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some(decimal(number)? * unit_bytes(unit.trim())?)
}

/// What a unit of bytes counts.
pub(crate) fn unit_bytes(unit: &str) -> Option<f64> {
    let prefix = unit.strip_suffix("iB").or_else(|| unit.strip_suffix('i'));
    let (prefix, base) = match (prefix, unit.strip_suffix('B')) {
        (Some(prefix), _) => (prefix, 1024.0_f64),
        (None, Some(prefix)) => (prefix, 1000.0),
        (None, None) => (unit, 1024.0),
    };
    let power = match prefix {
        "" | "b" | "bytes" | "byte" => 0,
        "k" | "K" => 1,
        "M" | "m" => 2,
        "G" | "g" => 3,
        "T" | "t" => 4,
        "P" | "p" => 5,
        _ => return None,
    };
    Some(base.powi(power))
}

/// A time with its unit, in microseconds: `2.88s`, `604.076876ms`, `12us`, `1m23.5s`.
pub(crate) fn usec(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut sum = None;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, tail) = rest.split_at_checked(end)?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit_end)?;
        let scale = match unit.trim() {
            "ns" | "nsec" => 0.001,
            "us" | "µs" | "usec" | "μs" => 1.0,
            "ms" | "msec" | "milliseconds" => 1e3,
            "s" | "sec" | "seconds" | "secs" => 1e6,
            "m" | "min" => 60e6,
            "h" => 3600e6,
            _ => return None,
        };
        sum = Some(sum.unwrap_or(0.0) + decimal(number)? * scale);
        rest = tail;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_tools_print_them() {
        assert_eq!(
            (decimal("1,25"), decimal("1.25"), decimal("-nan"), decimal("inf")),
            (Some(1.25), Some(1.25), None, None)
        );
        for (text, value) in
            [("238.6 GB", 238.6e9), ("4.5GiB", 4.5 * 1073741824.0), ("10M", 10485760.0), ("0 B", 0.0), ("12kB/s", 12e3)]
        {
            assert_eq!(bytes(text), Some(value), "{text}");
        }
        assert_eq!(bytes("lots"), None);
        for (text, value) in [("2.88067165s", 2_880_671.65), ("604.076876ms", 604_076.876), ("1m23.5s", 83.5e6)] {
            assert!((usec(text).unwrap() - value).abs() < 0.01, "{text}");
        }
        assert_eq!((usec("7"), usec("")), (None, None));
    }
}
