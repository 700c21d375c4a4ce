//! What the reader saw, path by path: the raw material of a capture.
//!
//! A capture is not a list of files that someone keeps in step with the readers. The readers run as always, and what
//! they open, list and resolve is kept here; so a capture holds what was read, by construction, and nothing else.

use std::collections::BTreeMap;

use rustix::io::Errno;

use crate::error;

/// What was seen at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A file with these bytes.
    File(Vec<u8>),
    /// A link to this target.
    Link(Vec<u8>),
    /// A directory.
    Dir,
    /// Something that answered with an error other than not being there.
    Failed(Errno),
}

/// All that was seen, by path below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recording(pub(crate) BTreeMap<Vec<u8>, Seen>);

impl Recording {
    pub(crate) fn file(&mut self, path: &[u8], bytes: &[u8]) {
        self.0.insert(path.into(), Seen::File(bytes.into()));
    }

    pub(crate) fn link(&mut self, path: &[u8], target: &[u8]) {
        self.0.insert(path.into(), Seen::Link(target.into()));
    }

    pub(crate) fn dir(&mut self, path: &[u8]) {
        self.0.insert(path.into(), Seen::Dir);
    }

    /// Keeps an error. What is not there needs no note, and what went away is as if it never was.
    pub(crate) fn failed(&mut self, path: &[u8], errno: Errno) {
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR) && !error::is_gone(errno) {
            self.0.insert(path.into(), Seen::Failed(errno));
        }
    }

    /// Drops a directory and all below it: it went away while it was read, so the snapshot does not hold it either.
    pub(crate) fn forget(&mut self, dir: &[u8]) {
        self.0.retain(|path, _| !path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_away_is_dropped_with_all_below_it_and_nothing_else() {
        let mut recording = Recording::default();
        for path in [&b"proc/12/stat"[..], b"proc/12", b"proc/120/stat", b"proc/1"] {
            recording.file(path, b"x");
        }
        recording.failed(b"proc/3/io", Errno::ACCESS);
        recording.failed(b"proc/3/stat", Errno::SRCH);
        recording.forget(b"proc/12");
        let left: Vec<&[u8]> = recording.0.keys().map(Vec::as_slice).collect();
        assert_eq!(left, [&b"proc/1"[..], b"proc/120/stat", b"proc/3/io"]);
    }
}
