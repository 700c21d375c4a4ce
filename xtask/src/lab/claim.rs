//! A claim of a scenario: `LEFT [/ RIGHT] >= NUMBER`, each side a measure of the run.
//!
//! Ratios within one run and no absolute speeds: how fast an emulated machine is depends on who shares the processor. A
//! measure is a path: `fio.NAME.read.iops` in a load's own report, `disk.vda.reads_per_sec` as the disk itself counted,
//! `quell.devices.vda.util_pct` in the doctor's document, `seen.NAME` as the script noted, or a number. A missing measure is an error
//! and never zero.

use std::fmt;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

/// What is claimed of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Claim {
    left: String,
    right: Option<String>,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A claim beside what was measured.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// Whether it is true.
    pub(crate) holds: bool,
    /// The claim with its numbers.
    pub(crate) shown: String,
}

impl Claim {
    /// Holds the claim against the numbers of a run.
    pub(crate) fn hold(&self, measures: &Value) -> Result<Held> {
        let left = measure(measures, &self.left)?;
        let (value, numbers) = match &self.right {
            None => (left, String::new()),
            Some(right) => {
                let right = measure(measures, right)?;
                (left / right, format!("{} / {} = ", brief(left), brief(right)))
            }
        };
        // A ratio over nothing is no number, and fails whichever way it is bound.
        let holds = value.is_finite() && self.bound.admits(value);
        Ok(Held { holds, shown: format!("{self}: {numbers}{}", brief(value)) })
    }
}

impl Bound {
    fn admits(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.left)?;
        if let Some(right) = &self.right {
            write!(f, " / {right}")?;
        }
        match self.bound {
            Bound::AtLeast(least) => write!(f, " >= {least}"),
            Bound::AtMost(most) => write!(f, " <= {most}"),
        }
    }
}

impl TryFrom<String> for Claim {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (left, right, sign, number) = match words.as_slice() {
            [left, sign, number] => (left, None, sign, number),
            [left, "/", right, sign, number] => (left, Some((*right).to_owned()), sign, number),
            _ => bail!("`{text}` is not `LEFT [/ RIGHT] >= NUMBER`"),
        };
        let number = number.parse().with_context(|| format!("`{text}`: `{number}` is not a number"))?;
        let bound = match *sign {
            ">=" => Bound::AtLeast(number),
            "<=" => Bound::AtMost(number),
            _ => bail!("`{text}`: `{sign}` is neither >= nor <="),
        };
        Ok(Self { left: (*left).to_owned(), right, bound })
    }
}

/// The number itself, or the one at a path: keys of objects, and in lists the element of that `name`.
fn measure(root: &Value, path: &str) -> Result<f64> {
    if let Ok(number) = path.parse() {
        return Ok(number);
    }
    let mut value = root;
    for step in path.split('.') {
        let inner = match value {
            Value::Array(list) => list.iter().find(|element| element.get("name").and_then(Value::as_str) == Some(step)),
            object => object.get(step),
        };
        value = inner.with_context(|| format!("{path}: no {step}"))?;
    }
    value.as_f64().with_context(|| format!("{path} is {value}, not a number"))
}

/// Three digits that tell.
fn brief(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(text: &str) -> Result<Claim> {
        Claim::try_from(text.to_owned())
    }

    #[test]
    fn a_ratio_is_held_against_its_bound_and_shown_with_its_numbers() {
        let run = json!({"fio": {"victim": {"iops": 30}, "alone": {"iops": 540.0}}});
        let slow = claim("fio.victim.iops / fio.alone.iops <= 0.3").unwrap().hold(&run).unwrap();
        assert!(slow.holds);
        assert_eq!(slow.shown, "fio.victim.iops / fio.alone.iops <= 0.3: 30.0 / 540.0 = 0.056");
        assert!(!claim("fio.victim.iops >= 31").unwrap().hold(&run).unwrap().holds);
    }

    #[test]
    fn a_measure_that_is_missing_is_an_error_and_a_ratio_over_nothing_holds_nowhere() {
        let run = json!({"disk": {"vda": {"reads": 0}}, "list": [{"name": "vdb", "x": 2}]});
        assert!(claim("disk.vdb.reads >= 0").unwrap().hold(&run).is_err());
        assert!(!claim("list.vdb.x / disk.vda.reads >= 0").unwrap().hold(&run).unwrap().holds);
        assert!(!claim("disk.vda.reads / disk.vda.reads <= 9").unwrap().hold(&run).unwrap().holds);
        assert!(claim("list.vdb.x >= 2").unwrap().hold(&run).unwrap().holds);
    }

    #[test]
    fn what_is_no_claim_is_refused_with_its_text() {
        for text in ["", "a >", "a = 1", "a / b 1", "a >= x", "a / >= 1", "a * b >= 1"] {
            assert!(claim(text).is_err(), "{text}");
        }
    }
}
