//! `quell.demo/1`: the recordings in the binary.

use schemars::JsonSchema;
use serde::Serialize;

/// The recordings in the binary.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell demo")]
pub struct Document {
    /// `quell.demo/1`.
    #[schemars(extend("const" = "quell.demo/1"))]
    pub schema: &'static str,
    /// The recordings.
    pub demos: Vec<Demo>,
}

/// One recording.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Demo {
    /// Its name.
    pub name: &'static str,
    /// What is wrong in it.
    pub about: &'static str,
    /// The kernel it was made on.
    pub kernel: &'static str,
}
