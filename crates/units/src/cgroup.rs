//! A cgroup's place in the tree, checked once, and its identity.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text;

/// A cgroup's path relative to the cgroup root, without a leading slash; the root itself is empty.
///
/// Bytes and not text: the kernel allows any byte but `/`, NUL and newline in a name. It never holds an empty
/// component, `.` or `..`, so joined to the root it cannot leave it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupPath(Box<[u8]>);

/// Why bytes are no cgroup path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupPathError {
    /// A component is `.` or `..`.
    #[error("a cgroup path must not hold . or ..")]
    Dots,
    /// There is a NUL in it.
    #[error("a cgroup path must not hold a NUL byte")]
    Nul,
}

impl CgroupPath {
    /// The root of the tree.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Checks a path; slashes in front, at the end and doubled are dropped.
    ///
    /// # Errors
    /// A component `.` or `..`, or a NUL.
    pub fn new(path: &[u8]) -> Result<Self, CgroupPathError> {
        if path.contains(&0) {
            return Err(CgroupPathError::Nul);
        }
        let parts: Vec<&[u8]> = path.split(|&b| b == b'/').filter(|part| !part.is_empty()).collect();
        if parts.iter().any(|part| matches!(*part, b"." | b"..")) {
            return Err(CgroupPathError::Dots);
        }
        Ok(Self(parts.join(&b'/').into()))
    }

    /// The child of this name.
    ///
    /// # Errors
    /// As [`CgroupPath::new`].
    pub fn join(&self, name: &[u8]) -> Result<Self, CgroupPathError> {
        Self::new(&[&self.0, name].join(&b'/'))
    }

    /// Whether this is the root of the tree.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path's bytes, without a leading slash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The last component; empty for the root.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|&b| b == b'/').next().unwrap_or_default()
    }

    /// The components from the top down; none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/').filter(|part| !part.is_empty())
    }

    /// The cgroup above, or `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
        Some(Self(self.0.get(..end).unwrap_or_default().into()))
    }

    /// This cgroup, the one above it, and so on to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// Whether this is `other` or lies below it.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        match self.0.strip_prefix(&*other.0) {
            Some(rest) => other.is_root() || rest.is_empty() || rest.starts_with(b"/"),
            None => false,
        }
    }
}

/// For people: `/` for the root, control characters and non-UTF-8 escaped as `\xNN`.
impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.pad("/") } else { f.pad(&text::escape(&self.0)) }
    }
}

impl Serialize for CgroupPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text::escape_reversible(&self.0))
    }
}

impl<'de> Deserialize<'de> for CgroupPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let escaped = String::deserialize(deserializer)?;
        let bytes = text::unescape(&escaped).ok_or_else(|| D::Error::custom("a \\ not followed by xNN"))?;
        Self::new(&bytes).map_err(D::Error::custom)
    }
}

/// The inode of a cgroup's directory: it tells a cgroup from another that was later made under the same path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CgroupId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> CgroupPath {
        CgroupPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn slashes_are_normalised_and_dots_refused() {
        assert_eq!(path("/a//b/"), path("a/b"));
        assert!(path("/").is_root());
        assert_eq!(CgroupPath::new(b"a/../b"), Err(CgroupPathError::Dots));
        assert_eq!(CgroupPath::new(b"a\0"), Err(CgroupPathError::Nul));
    }

    #[test]
    fn a_name_that_starts_alike_is_not_within() {
        assert!(path("a/b").is_within(&path("a")));
        assert!(path("a").is_within(&path("a")));
        assert!(!path("ab").is_within(&path("a")));
        assert!(path("ab").is_within(&CgroupPath::root()));
    }

    #[test]
    fn ancestors_end_at_the_root() {
        let all: Vec<String> = path("a/b c").ancestors().map(|p| p.to_string()).collect();
        assert_eq!(all, ["a/b c", "a", "/"]);
    }

    #[test]
    fn json_gives_any_path_back() {
        for bytes in [&b"plain"[..], b"sp ace/\xff", b"back\\x2d", b"new\nline"] {
            let path = CgroupPath::new(bytes).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<CgroupPath>(&json).unwrap(), path);
        }
    }
}
