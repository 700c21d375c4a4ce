//! `quell.capture/1`: what a capture wrote.

use schemars::JsonSchema;
use serde::Serialize;

use super::Gap;

/// What a capture wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell capture")]
pub struct Document {
    /// `quell.capture/1`.
    #[schemars(extend("const" = "quell.capture/1"))]
    pub schema: &'static str,
    /// The directory that holds `t0` and `t1`.
    pub dir: String,
    /// The time between the two moments; null where none passed.
    pub observed_seconds: Option<f64>,
    /// Files written.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Whether names were replaced.
    pub scrubbed: bool,
    /// Files that were left out, since nothing is known about the names in them.
    pub left_out: Vec<String>,
    /// What could not be read, and why. The capture holds these gaps too.
    pub gaps: Vec<Gap>,
}
