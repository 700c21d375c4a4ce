//! How a command ends: its exit code, and what it says when it could not do its work.

use std::fmt;
use std::io;
use std::path::Path;

use quell_host::HostError;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did its work.
    Done,
    /// It did its work and found something at or above the level asked for.
    Found,
    /// Usage or configuration is wrong; nothing was read or changed.
    Usage,
    /// Nothing could be judged: no readable device or cgroup, or one moment alone.
    NotJudged,
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 1,
            Self::Usage => 2,
            Self::NotJudged => 3,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// Nobody reads the output any more, which is no failure of ours: `quell stat 1 | head`.
    Closed,
    /// What went wrong, for people.
    Told {
        /// How the process ends.
        exit: Exit,
        /// What failed, and why.
        what: String,
        /// What to do about it, where that is known; a line each.
        hint: Option<String>,
    },
}

impl Failure {
    /// Wrong usage or configuration.
    #[must_use]
    pub fn usage(what: impl Into<String>) -> Self {
        Self::Told { exit: Exit::Usage, what: what.into(), hint: None }
    }

    /// Nothing could be judged.
    #[must_use]
    pub fn not_judged(what: impl Into<String>) -> Self {
        Self::Told { exit: Exit::NotJudged, what: what.into(), hint: None }
    }

    /// A system call that failed: `cannot WHAT: path: errno text (ENAME)`.
    #[must_use]
    pub fn io(exit: Exit, what: &'static str, path: &Path, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::host(exit, &HostError { op: what, path: path.into(), errno }),
            // Not the kernel's: a damaged archive.
            None => Self::Told { exit, what: format!("cannot {what}: {}: {error}", path_text(path)), hint: None },
        }
    }

    /// A system call that failed at the door to the machine.
    #[must_use]
    pub fn host(exit: Exit, error: &HostError) -> Self {
        Self::Told { exit, what: format!("cannot {error}"), hint: None }
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Told { exit, what, .. } => Self::Told { exit, what, hint: Some(text.into()) },
        }
    }

    /// The process's exit code.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Closed => Exit::Done,
            Self::Told { exit, .. } => *exit,
        }
    }
}

/// For stderr, with `quell:` in front; empty for a closed pipe.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Told { what, hint, .. } = self else { return Ok(()) };
        writeln!(f, "quell: {what}")?;
        hint.iter().flat_map(|hint| hint.lines()).try_for_each(|line| writeln!(f, "hint: {line}"))
    }
}

/// An error while writing the answer.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::io(Exit::NotJudged, "write the answer", Path::new("stdout"), &error)
    }
}

/// A path as text that is safe to print.
#[must_use]
pub fn path_text(path: &Path) -> String {
    quell_units::escape(path.as_os_str().as_encoded_bytes()).into_owned()
}
