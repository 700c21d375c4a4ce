//! What failed at the door: the operation, the path and the raw errno.
//!
//! The errno is kept and never an `ErrorKind`: `ErrorKind` has no word for `ENODEV` and `EOPNOTSUPP`, and those two
//! tell a cgroup that went away from a kernel that has the file switched off.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use quell_units::{Gap, escape};
use rustix::io::Errno;

/// A system call that failed where there is no going on without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct HostError {
    /// What was attempted, such as `open`.
    pub op: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// The error's number, such as 2 for `ENOENT`.
    pub errno: i32,
}

impl HostError {
    pub(crate) fn new(op: &'static str, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self { op, path: path.into(), errno: errno.raw_os_error() }
    }

    pub(crate) fn from_io(op: &'static str, path: impl Into<PathBuf>, error: &std::io::Error) -> Self {
        Self { op, path: path.into(), errno: error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()) }
    }
}

/// `open: /srv/t0: No such file or directory (ENOENT)`.
impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = escape(self.path.as_os_str().as_bytes());
        let text = std::io::Error::from_raw_os_error(self.errno).to_string();
        // The standard library appends the number; the name says more.
        let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
        write!(f, "{}: {path}: {text} ", self.op)?;
        match NAMES.iter().find(|(errno, _)| errno.raw_os_error() == self.errno) {
            Some((_, name)) => write!(f, "({name})"),
            None => write!(f, "(errno {})", self.errno),
        }
    }
}

/// The names of the errors that reading and writing these files can give.
const NAMES: [(Errno, &str); 24] = [
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::SRCH, "ESRCH"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::RANGE, "ERANGE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::LOOP, "ELOOP"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
];

/// Why a file could not be read, in the words of a snapshot.
pub(crate) fn gap(errno: Errno) -> Gap {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Gap::NotInKernel,
        Errno::OPNOTSUPP => Gap::Disabled,
        Errno::ACCESS | Errno::PERM => Gap::Denied,
        _ if is_gone(errno) => Gap::Gone,
        other => Gap::Errno(other.raw_os_error()),
    }
}

/// Whether the error says that the thing behind an open file is no more: a removed cgroup or device, an ended process.
pub(crate) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NODEV | Errno::SRCH | Errno::NXIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_operation_path_and_errno() {
        let error = HostError::new("open", "/srv/\x1b[2J", Errno::NOENT);
        assert_eq!(error.to_string(), "open: /srv/\\x1b[2J: No such file or directory (ENOENT)");
        let unknown = HostError { op: "open", path: "/x".into(), errno: 4000 };
        assert!(unknown.to_string().ends_with("(errno 4000)"), "{unknown}");
    }

    #[test]
    fn the_raw_errno_decides_the_gap() {
        assert_eq!(gap(Errno::NODEV), Gap::Gone);
        assert_eq!(gap(Errno::OPNOTSUPP), Gap::Disabled);
        assert_eq!(gap(Errno::ACCESS), Gap::Denied);
        assert_eq!(gap(Errno::NOENT), Gap::NotInKernel);
        assert_eq!(gap(Errno::IO), Gap::Errno(5));
    }
}
