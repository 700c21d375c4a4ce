//! Why a value is not there.

use serde::{Deserialize, Serialize};

/// A value, or the reason there is none.
pub type Known<T> = Result<T, Gap>;

/// The reason a value is missing. Missing is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The file does not exist here: this kernel, device or capture does not offer it.
    #[error("not offered here")]
    NotInKernel,
    /// The cgroup controller that makes the file is not enabled for this cgroup.
    #[error("controller not enabled")]
    ControllerOff,
    /// The file answers `EOPNOTSUPP`: built in, but switched off (PSI without `psi=1`).
    #[error("switched off in this kernel")]
    Disabled,
    /// No permission.
    #[error("no permission")]
    Denied,
    /// The cgroup, process or device went away while it was read.
    #[error("went away")]
    Gone,
    /// The bytes are not of the file's format.
    #[error("not in the expected format")]
    Malformed,
    /// A counter went back: the device or cgroup was made anew under the same name.
    #[error("counter was reset")]
    CounterReset,
    /// Two readings of the same moment: no rate can be made of them.
    #[error("no time passed")]
    NoTimePassed,
    /// A bound was reached and this was left out.
    #[error("over quell's bound")]
    OverBound,
    /// Any other error of the system call, by its number.
    #[error("errno {0}")]
    Errno(i32),
}
