//! The one place that opens files: everything below a root directory, and nothing above it.
//!
//! Live the root is `/`. Otherwise it is a captured tree that may come from anywhere, so each open is an `openat2` with
//! `RESOLVE_IN_ROOT`: a symlink or a `..` in the tree ends at the tree's own root, as after a `chroot`. A missing file
//! of a capture may be a link to `errno:N`: there the live machine answered with that error, and so does the root.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::{Errno, retry_on_intr};

use crate::error::HostError;

/// What the target of a link starts with that stands for a file which could not be read.
pub(crate) const ERRNO_LINK: &str = "errno:";

/// A directory that stands for `/`.
#[derive(Debug)]
pub(crate) struct Root {
    dir: OwnedFd,
    /// Whether it is a tree of files and not the live kernel.
    captured: bool,
    /// Whether `openat2` works: from 5.6, and some container runtimes forbid it.
    openat2: bool,
}

impl Root {
    /// The live machine.
    pub(crate) fn live() -> Result<Self, HostError> {
        let dir = open_root(Path::new("/"))?;
        let openat2 = !matches!(resolve(&dir, b".", DIRECTORY), Err(Errno::NOSYS | Errno::PERM));
        Ok(Self { dir, captured: false, openat2 })
    }

    /// A captured tree.
    pub(crate) fn under(path: &Path) -> Result<Self, HostError> {
        let dir = open_root(path)?;
        // Without `openat2` a link could lead out of the tree, so there is no fallback here.
        resolve(&dir, b".", DIRECTORY).map_err(|errno| HostError::new("openat2", path, errno))?;
        Ok(Self { dir, captured: true, openat2: true })
    }

    /// Whether this is a tree of files and not the live kernel.
    pub(crate) const fn is_captured(&self) -> bool {
        self.captured
    }

    /// Opens a file for reading, by its path below the root.
    pub(crate) fn open(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open_in(&self.dir, path)
    }

    /// Opens a file of an open directory.
    pub(crate) fn open_in(&self, dir: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
        // Not blocking: a FIFO in a captured tree would otherwise hang the open.
        self.resolve(dir.as_fd(), name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    /// Opens a directory, by its path below the root.
    pub(crate) fn open_dir(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.resolve(&self.dir, path, DIRECTORY)
    }

    /// Where a link points to, by the link's path below the root.
    pub(crate) fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let link = self.resolve(&self.dir, path, OFlags::PATH | OFlags::NOFOLLOW)?;
        // An empty path names the link itself; what is no link has no empty path in it.
        link_target(link, b"").map_err(|errno| if errno == Errno::NOENT { Errno::INVAL } else { errno })
    }

    fn resolve(&self, dir: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let dir = dir.as_fd();
        let path = if path.is_empty() { b"." } else { path };
        if !self.openat2 {
            return retry_on_intr(|| openat(dir, path, flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty()));
        }
        match resolve(dir, path, flags) {
            Err(Errno::NOENT) if self.captured => Err(recorded_errno(dir, path).unwrap_or(Errno::NOENT)),
            result => result,
        }
    }
}

/// Where a link in an open directory points to.
pub(crate) fn link_target(dir: impl AsFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    readlinkat(dir, name, Vec::new()).map(std::ffi::CString::into_bytes)
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn open_root(path: &Path) -> Result<OwnedFd, HostError> {
    let flags = DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| openat(CWD, path, flags, Mode::empty())).map_err(|errno| HostError::new("open", path, errno))
}

fn resolve(dir: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    // The kernel answers EAGAIN where a rename anywhere raced with a `..`; it asks to be called again.
    const TRIES: u32 = 16;
    let dir = dir.as_fd();
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    // `O_PATH` allows no flag that says how to open.
    let flags = if flags.contains(OFlags::PATH) { flags.difference(OFlags::NOCTTY) } else { flags };
    let mut result = Err(Errno::AGAIN);
    for _ in 0..TRIES {
        result = openat2(dir, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

/// The error that a captured tree holds in place of a file.
fn recorded_errno(dir: impl AsFd, path: &[u8]) -> Option<Errno> {
    let link = resolve(dir, path, OFlags::PATH | OFlags::NOFOLLOW).ok()?;
    let target = link_target(link, b"").ok()?;
    let number = target.strip_prefix(ERRNO_LINK.as_bytes())?;
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    (1..4096).contains(&number).then(|| Errno::from_raw_os_error(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("root/proc")).unwrap();
        std::fs::write(tree.path().join("outside"), "secret\n").unwrap();
        tree
    }

    #[test]
    fn links_and_dots_do_not_leave_the_root() {
        let tree = tree();
        symlink("../../outside", tree.path().join("root/proc/relative")).unwrap();
        symlink(tree.path().join("outside"), tree.path().join("root/proc/absolute")).unwrap();
        let root = Root::under(&tree.path().join("root")).unwrap();
        for path in [&b"proc/relative"[..], b"proc/absolute", b"../outside", b"proc/../../outside"] {
            assert_eq!(root.open(path).unwrap_err(), Errno::NOENT, "{path:?}");
        }
        assert_eq!(root.read_link(b"proc/relative").unwrap(), b"../../outside");
        assert_eq!(root.read_link(b"proc").unwrap_err(), Errno::INVAL);
    }

    #[test]
    fn a_captured_error_is_answered_again() {
        let tree = tree();
        symlink("errno:95", tree.path().join("root/proc/pressure")).unwrap();
        symlink("errno:x", tree.path().join("root/proc/other")).unwrap();
        let root = Root::under(&tree.path().join("root")).unwrap();
        assert_eq!(root.open(b"proc/pressure").unwrap_err(), Errno::OPNOTSUPP);
        assert_eq!(root.open(b"proc/other").unwrap_err(), Errno::NOENT);
    }

    #[test]
    fn without_openat2_the_live_root_still_reads() {
        let tree = tree();
        symlink("target", tree.path().join("link")).unwrap();
        let root = Root { dir: open_root(tree.path()).unwrap(), captured: false, openat2: false };
        assert!(root.open(b"outside").is_ok() && root.open_dir(b"").is_ok());
        assert_eq!(root.read_link(b"link").unwrap(), b"target");
        assert_eq!(root.open(b"absent").unwrap_err(), Errno::NOENT);
    }

    #[test]
    fn a_root_that_is_not_there_is_named() {
        let error = Root::under(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "open: /nowhere/at/all: No such file or directory (ENOENT)");
    }
}
