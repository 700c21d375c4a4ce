//! Configured ceilings.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A ceiling as the kernel writes it: `max`, or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit<T> {
    /// No ceiling.
    #[default]
    Max,
    /// This much and no more.
    At(T),
}

impl<T> Limit<T> {
    /// The ceiling, where there is one.
    pub fn at(self) -> Option<T> {
        match self {
            Self::Max => None,
            Self::At(value) => Some(value),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::At(value) => value.fmt(f),
        }
    }
}
