//! `io.weight` and `io.bfq.weight` of cgroup v2, and `blkio.bfq.weight` of v1: a cgroup's share against its siblings.
//!
//! Here a bad line costs the whole file, unlike everywhere else: a device's weight that went missing would be answered
//! with the default, and a wrong weight is worse than none.

use quell_units::DevNum;
use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan::{self, Line};

/// The weights of one cgroup. They act only on devices with an engine: `io.weight` with iocost, `io.bfq.weight` with bfq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// For the devices that are not named: 1..10000 for iocost, 1..1000 for bfq, 100 where nobody wrote one.
    pub default: u32,
    /// The devices with a weight of their own.
    pub devices: Vec<(DevNum, u32)>,
}

impl Weights {
    /// The weight on a device.
    #[must_use]
    pub fn on(&self, dev: DevNum) -> u32 {
        self.devices.iter().find(|(named, _)| *named == dev).map_or(self.default, |&(_, weight)| weight)
    }
}

/// Parses `default N` and `MAJ:MIN N` lines, or the bare `N` of v1.
///
/// A device that went away while it was printed, `(unknown) N`, is skipped: nobody can ask for it.
///
/// # Errors
/// No default, or a line of another form.
pub fn parse(bytes: &[u8]) -> Result<Weights, ParseError> {
    let mut default = None;
    let mut devices = Vec::new();
    for (line_no, line) in scan::lines(bytes) {
        let fail = |what| ParseError { line_no, what };
        let Line::Whole(line) = line else { return Err(fail(scan::NEWLINE)) };
        let mut fields = scan::fields(line);
        let (first, second) = (fields.next().unwrap_or_default(), fields.next());
        let weight = scan::number_u32(second.unwrap_or(first)).filter(|_| fields.next().is_none());
        let weight = weight.ok_or_else(|| fail("`default N` or `MAJ:MIN N` (a weight has no keys)"))?;
        match (first, second) {
            (b"default", _) | (_, None) => default = Some(weight),
            (b"(unknown)", _) => {}
            (dev, _) => devices.push((scan::value(dev).ok_or_else(|| fail("default or MAJ:MIN"))?, weight)),
        }
    }
    let default = default.ok_or(ParseError { line_no: 1, what: "a line `default N`" })?;
    Ok(Weights { default, devices })
}

/// The weights as cgroup v2 prints them.
#[must_use]
pub fn render(weights: &Weights) -> String {
    let devices = weights.devices.iter().map(|(dev, weight)| format!("{dev} {weight}\n"));
    std::iter::once(format!("default {}\n", weights.default)).chain(devices).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VDA: DevNum = DevNum { major: 253, minor: 0 };

    #[test]
    fn a_named_device_has_its_own_weight_and_the_rest_the_default() {
        let text = b"default 100\n253:0 900\n";
        let weights = parse(text).unwrap();
        assert_eq!((weights.on(VDA), weights.on(DevNum { major: 8, minor: 0 })), (900, 100));
        assert_eq!(render(&weights).as_bytes(), text);
    }

    #[test]
    fn version_1_prints_a_bare_number() {
        assert_eq!(parse(b"500\n").unwrap().default, 500);
    }

    #[test]
    fn a_device_that_went_away_is_skipped() {
        assert_eq!(parse(b"default 100\n(unknown) 7\n").unwrap().devices, []);
    }

    #[test]
    fn keys_are_refused_with_the_real_syntax() {
        let error = parse(b"default 100\n8:0 rioweight=200 wioweight=100\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: expected `default N` or `MAJ:MIN N` (a weight has no keys)");
        for wrong in
            [&b""[..], b"\n", b"253:0 100\n", b"default 100 200\n", b"default\n", b"x 1\n", b"default 1\n8:0 5"]
        {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
