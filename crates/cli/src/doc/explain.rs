//! `quell.explain/1`: what the rules mean.

use quell_engine::findings::Line;
use schemars::JsonSchema;
use serde::Serialize;

/// One rule, or all of them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell explain")]
pub struct Document {
    /// `quell.explain/1`.
    #[schemars(extend("const" = "quell.explain/1"))]
    pub schema: &'static str,
    /// The rules.
    pub rules: Vec<Explained>,
}

/// What one rule means.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// Its name.
    pub id: &'static str,
    /// What it means.
    pub means: &'static str,
    /// How the kernel gets there.
    pub kernel: &'static str,
    /// What the rule reads, and its thresholds.
    pub evidence: &'static str,
    /// What to change.
    pub change: &'static str,
    /// How to take that back.
    pub undo: &'static str,
    /// The findings that become its evidence where both hold.
    pub explains: Vec<&'static str>,
}

impl Document {
    /// The document of some rules.
    #[must_use]
    pub fn of<'a>(rules: impl IntoIterator<Item = &'a Line>) -> Self {
        Self { schema: "quell.explain/1", rules: rules.into_iter().map(Explained::of).collect() }
    }
}

impl Explained {
    fn of(line: &Line) -> Self {
        let explain = line.rule.explain;
        Self {
            id: line.rule.id,
            means: explain.means,
            kernel: explain.kernel,
            evidence: explain.evidence,
            change: explain.change,
            undo: explain.undo,
            explains: line.explains.iter().map(|(id, _)| *id).collect(),
        }
    }
}
