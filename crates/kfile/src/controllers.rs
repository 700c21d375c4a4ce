//! `cgroup.controllers` and `cgroup.subtree_control` of cgroup v2: words on one line.
//!
//! With no controller the kernel prints nothing at all, not even a newline: an empty file is an answer here.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan;

/// The controllers of a cgroup, those that quell has a use for: `false` is off. Others are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controllers {
    /// `cpu`.
    pub cpu: bool,
    /// `cpuset`.
    pub cpuset: bool,
    /// `io`.
    pub io: bool,
    /// `memory`; without it, write-back is not charged to the cgroup.
    pub memory: bool,
    /// `pids`.
    pub pids: bool,
}

/// Parses the words.
///
/// # Errors
/// More than one line, or a torn one.
pub fn parse(bytes: &[u8]) -> Result<Controllers, ParseError> {
    let mut on = Controllers::default();
    if bytes.is_empty() {
        return Ok(on);
    }
    for word in scan::fields(scan::one_line(bytes)?) {
        match word {
            b"cpu" => on.cpu = true,
            b"cpuset" => on.cpuset = true,
            b"io" => on.io = true,
            b"memory" => on.memory = true,
            b"pids" => on.pids = true,
            _ => {}
        }
    }
    Ok(on)
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(on: &Controllers) -> String {
    let words = [("cpuset", on.cpuset), ("cpu", on.cpu), ("io", on.io), ("memory", on.memory), ("pids", on.pids)];
    let words: Vec<_> = words.into_iter().filter_map(|(word, is_on)| is_on.then_some(word)).collect();
    if words.is_empty() { String::new() } else { words.join(" ") + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_quell_does_not_use_are_skipped() {
        let on = parse(b"cpuset cpu io memory hugetlb pids rdma misc\n").unwrap();
        assert_eq!(on, Controllers { cpu: true, cpuset: true, io: true, memory: true, pids: true });
        assert_eq!(render(&on), "cpuset cpu io memory pids\n");
    }

    #[test]
    fn an_empty_file_is_no_controller_and_a_torn_one_an_error() {
        assert_eq!(parse(b""), Ok(Controllers::default()));
        assert_eq!(render(&Controllers::default()), "");
        assert_eq!(parse(b"cpu mem").unwrap_err().what, scan::NEWLINE);
    }
}
