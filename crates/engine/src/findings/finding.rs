//! One judgement, with the numbers that made it.

use quell_units::{CgroupPath, DevName};

use crate::identity::WorkloadKind;

/// One rule's judgement about one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that made it.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure the rule is, 0 to 1.
    pub confidence: f64,
    /// Who suffers.
    pub subject: Subject,
    /// Who is to blame, where that is somebody else.
    pub culprit: Option<Subject>,
    /// One sentence.
    pub summary: String,
    /// The numbers behind it, each with the file it came from.
    pub evidence: Vec<Evidence>,
    /// What to do, the best first.
    pub advice: Vec<Advice>,
    /// The larger share of the time somebody waits, 0 to 1: what ranks findings of one severity.
    pub stall_ratio: f64,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Something is slower than it need be, or set so that it does not do what was meant.
    Warning,
    /// Somebody waits for most of the time.
    Critical,
}

impl Severity {
    /// The word in JSON and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What a finding is about, or whom it blames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name as people know it, safe to print.
    pub name: String,
    /// Its cgroup.
    pub cgroup: Option<CgroupPath>,
    /// The disk it is about.
    pub device: Option<DevName>,
}

/// What a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// A container, a service or another cgroup.
    Workload(WorkloadKind),
    /// A disk.
    Device,
    /// The host as a whole.
    Host,
}

impl SubjectKind {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workload(WorkloadKind::Container) => "container",
            Self::Workload(WorkloadKind::Unit) => "unit",
            Self::Workload(WorkloadKind::Cgroup) => "cgroup",
            Self::Device => "device",
            Self::Host => "host",
        }
    }
}

/// One number, or one word, that a judgement rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Whom it describes; the findings are printed a line an aspect.
    pub aspect: Aspect,
    /// What was measured, such as `write await`.
    pub what: String,
    /// The number or the word.
    pub value: Value,
    /// The file it came from.
    pub source: String,
}

/// Whom a piece of evidence describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// The one who suffers.
    Victim,
    /// The one who is to blame.
    Culprit,
    /// The disk.
    Device,
    /// A configured ceiling, target or weight.
    Limit,
    /// Memory and page cache.
    Memory,
    /// A file system's journal.
    Journal,
    /// Tasks that wait.
    Tasks,
    /// A finding that this one explains.
    Explains,
}

impl Aspect {
    /// The word at the start of its line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Victim => "victim",
            Self::Culprit => "culprit",
            Self::Device => "device",
            Self::Limit => "limit",
            Self::Memory => "memory",
            Self::Journal => "journal",
            Self::Tasks => "tasks",
            Self::Explains => "explains",
        }
    }
}

/// A piece of evidence's number with its unit, or a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Percent.
    Pct(f64),
    /// Microseconds.
    Usec(f64),
    /// Bytes.
    Bytes(f64),
    /// Bytes per second.
    BytesPerSec(f64),
    /// Something countable per second.
    PerSec(f64),
    /// A count or a ratio without a unit.
    Number(f64),
    /// A word, safe to print.
    Word(String),
}

impl Value {
    /// The unit's word in JSON; empty for a bare number or a word.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Pct(_) => "pct",
            Self::Usec(_) => "usec",
            Self::Bytes(_) => "bytes",
            Self::BytesPerSec(_) => "bytes_per_sec",
            Self::PerSec(_) => "per_sec",
            Self::Number(_) | Self::Word(_) => "",
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What, in a sentence.
    pub text: String,
    /// The command that does it, where there is one.
    pub command: Option<String>,
    /// The command that takes it back, where there is one.
    pub undo: Option<String>,
    /// What it may cost.
    pub risk: Option<String>,
}

impl Advice {
    /// Advice in words alone.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), command: None, undo: None, risk: None }
    }

    /// What following it may cost.
    #[must_use]
    pub fn risk(self, risk: impl Into<String>) -> Self {
        Self { risk: Some(risk.into()), ..self }
    }
}

/// What a rule means, for `quell explain`.
#[derive(Clone, Copy, Debug)]
pub struct Explain {
    /// What it means, in a sentence or two.
    pub means: &'static str,
    /// How the kernel gets there.
    pub kernel: &'static str,
    /// What the rule reads, and its thresholds.
    pub evidence: &'static str,
    /// What to change.
    pub change: &'static str,
    /// How to take that back.
    pub undo: &'static str,
}
