//! How disks and file systems are set up, setting by setting, each with a judgement and its reason.
//!
//! One moment is enough here: nothing is measured. So a judgement says what a value means for a disk of this class and
//! never that it hurts; that is the doctor's to say, from rates. A value nobody could object to is fine without a
//! reason, and what cannot be judged without knowing the work is left open rather than praised.

mod filesystem;
mod queue;
mod quota;
#[cfg(test)]
mod tests;

pub use filesystem::{FsReport, filesystems};
pub use queue::queue;
pub use quota::{LayerQuota, layer_quota, writable_layer_quota};

/// What a setting is worth on the device it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It depends on the work, or nothing is known to judge it by.
    Open,
    /// As it should be.
    Fine,
    /// Seldom right on such a device: somebody should have a reason for it.
    Questionable,
    /// Wrong on such a device, or unsafe.
    Wrong,
}

impl Judgement {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Fine => "fine",
            Self::Questionable => "questionable",
            Self::Wrong => "wrong",
        }
    }
}

/// One setting, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What is set, such as `nr_requests`.
    pub what: String,
    /// Its value, as the kernel prints it.
    pub value: String,
    /// The file it came from.
    pub source: String,
    /// What it is worth.
    pub judgement: Judgement,
    /// Why; empty where there is nothing to say.
    pub why: String,
    /// A value that would be better, where it is one write to `source` away.
    pub better: Option<String>,
}

impl Judged {
    /// A value that is there already is no better one.
    fn of(what: impl Into<String>, value: String, source: impl Into<String>, verdict: Verdict) -> Self {
        let Verdict { judgement, why, better } = verdict;
        let better = better.filter(|better| *better != value);
        Self { what: what.into(), value, source: source.into(), judgement, why, better }
    }
}

/// A judgement in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    judgement: Judgement,
    why: String,
    better: Option<String>,
}

impl Verdict {
    fn open(why: impl Into<String>) -> Self {
        Self { judgement: Judgement::Open, why: why.into(), better: None }
    }

    fn fine(why: impl Into<String>) -> Self {
        Self { judgement: Judgement::Fine, why: why.into(), better: None }
    }

    fn questionable(why: impl Into<String>) -> Self {
        Self { judgement: Judgement::Questionable, why: why.into(), better: None }
    }

    fn wrong(why: impl Into<String>) -> Self {
        Self { judgement: Judgement::Wrong, why: why.into(), better: None }
    }

    fn better(self, value: impl Into<String>) -> Self {
        Self { better: Some(value.into()), ..self }
    }
}
