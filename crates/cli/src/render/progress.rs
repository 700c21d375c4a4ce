//! What a watch sees while it lasts, in one line.

use std::time::Duration;

/// How long it has lasted.
#[must_use]
pub fn line(passed: Duration, of: Duration) -> String {
    format!("watching, {:.0} of {:.0} s; Ctrl-C ends it early", passed.as_secs_f64(), of.as_secs_f64())
}
