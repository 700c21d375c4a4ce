//! `cgroup.type` of cgroup v2. The root cgroup has no such file.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan;

/// What a cgroup may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupType {
    /// Processes and every controller: the usual.
    Domain,
    /// The top of a subtree of threads: the whole subtree's I/O is charged here.
    DomainThreaded,
    /// Below such a top and not threaded itself: it takes no process.
    DomainInvalid,
    /// Threads; io and memory are charged to the domain above.
    Threaded,
}

impl CgroupType {
    const fn words(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::DomainThreaded => "domain threaded",
            Self::DomainInvalid => "domain invalid",
            Self::Threaded => "threaded",
        }
    }
}

/// Parses `cgroup.type`.
///
/// # Errors
/// Not one whole line with one of the four.
pub fn parse(bytes: &[u8]) -> Result<CgroupType, ParseError> {
    let words = scan::one_line(bytes)?;
    [CgroupType::Domain, CgroupType::DomainThreaded, CgroupType::DomainInvalid, CgroupType::Threaded]
        .into_iter()
        .find(|kind| kind.words().as_bytes() == words)
        .ok_or(ParseError { line_no: 1, what: "domain, domain threaded, domain invalid or threaded" })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(kind: &CgroupType) -> String {
    format!("{}\n", kind.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_are_another_type_than_the_first_alone() {
        assert_eq!(parse(b"domain\n"), Ok(CgroupType::Domain));
        assert_eq!(parse(b"domain invalid\n"), Ok(CgroupType::DomainInvalid));
        assert_eq!(parse(render(&CgroupType::DomainThreaded).as_bytes()), Ok(CgroupType::DomainThreaded));
        assert!(parse(b"domain").is_err(), "torn, it may be `domain threaded`");
    }
}
