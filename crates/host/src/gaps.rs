//! What could not be read, counted by kind: a thousand cgroups without a file are one entry, not a thousand.

use quell_engine::snapshot::Missing;
use quell_kfile::{Lost, ParseError};
use quell_units::{Gap, Known, escape};

/// The things that a file can be missing of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The host as a whole; the file's name says it all.
    Host,
    Cgroup,
    Device,
    Process,
    Filesystem,
    /// A container's state, as its runtime keeps it.
    Container,
}

impl Of {
    fn counted(self, count: u64) -> String {
        let (one, many) = match self {
            Self::Host => return String::new(),
            Self::Cgroup => ("cgroup", "cgroups"),
            Self::Device => ("device", "devices"),
            Self::Process => ("process", "processes"),
            Self::Filesystem => ("file system", "file systems"),
            Self::Container => ("container", "containers"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// The gaps of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct Kind {
    file: &'static str,
    of: Of,
    reason: Gap,
    count: u64,
    /// The first that lacks it, escaped for display. One name and not all: the list is bounded.
    first: String,
    lost: Option<(u64, ParseError)>,
}

impl Gaps {
    /// Counts one thing without its file. The name is only asked for once a kind.
    pub(crate) fn missing<N: AsRef<[u8]>>(
        &mut self,
        file: &'static str,
        of: Of,
        reason: Gap,
        name: impl FnOnce() -> N,
    ) {
        self.kind(file, of, reason, false, name).count += 1;
    }

    /// Counts things of which nothing at all was read.
    pub(crate) fn left_out(&mut self, of: Of, reason: Gap, count: u64) {
        if count > 0 {
            self.kind("", of, reason, false, || "").count += count;
        }
    }

    /// Counts the lines of a file that were lost, if there are any.
    pub(crate) fn lost<N: AsRef<[u8]>>(&mut self, file: &'static str, of: Of, lost: &Lost, name: impl FnOnce() -> N) {
        let Some(first) = lost.first else { return };
        let kind = self.kind(file, of, Gap::Malformed, true, name);
        kind.count += 1;
        kind.lost.get_or_insert((0, first)).0 += u64::from(lost.lines);
    }

    /// Keeps a file's value, or counts it as missing.
    pub(crate) fn note<T>(&mut self, file: &'static str, value: Known<T>) -> Known<T> {
        if let Err(reason) = value {
            self.missing(file, Of::Host, reason, || "");
        }
        value
    }

    fn kind<N: AsRef<[u8]>>(
        &mut self,
        file: &'static str,
        of: Of,
        reason: Gap,
        lines: bool,
        name: impl FnOnce() -> N,
    ) -> &mut Kind {
        let same =
            |kind: &Kind| kind.file == file && kind.of == of && kind.reason == reason && kind.lost.is_some() == lines;
        let at = self.kinds.iter().position(same).unwrap_or(self.kinds.len());
        if at == self.kinds.len() {
            let first = escape(name().as_ref()).into_owned();
            self.kinds.push(Kind { file, of, reason, count: 0, first, lost: None });
        }
        #[expect(clippy::indexing_slicing, reason = "found or pushed just above")]
        &mut self.kinds[at]
    }

    /// The gaps for people, in the order in which they were met.
    pub(crate) fn into_missing(self) -> Vec<Missing> {
        self.kinds.iter().map(|kind| Missing { what: kind.what(), reason: kind.reason }).collect()
    }
}

impl Kind {
    fn what(&self) -> String {
        let subject = match (self.of, self.count) {
            (Of::Host, _) => self.file.to_owned(),
            (of, count) if self.file.is_empty() => of.counted(count),
            (_, 1) if !self.first.is_empty() => format!("{} of {}", self.file, self.first),
            (of, count) => format!("{} of {}", self.file, of.counted(count)),
        };
        match &self.lost {
            Some((1, first)) => format!("{subject}: 1 line lost: {first}"),
            Some((lines, first)) => format!("{subject}: {lines} lines lost: {first}"),
            None => subject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(gaps: Gaps) -> Vec<String> {
        gaps.into_missing().into_iter().map(|missing| format!("{}: {}", missing.what, missing.reason)).collect()
    }

    #[test]
    fn one_entry_a_kind_and_a_lone_one_is_named() {
        let mut gaps = Gaps::default();
        for name in ["a", "b"] {
            gaps.missing("io.pressure", Of::Cgroup, Gap::Disabled, || name);
        }
        gaps.missing("io.pressure", Of::Cgroup, Gap::Denied, || "c\n");
        gaps.left_out(Of::Process, Gap::Gone, 1);
        gaps.left_out(Of::Process, Gap::OverBound, 0);
        gaps.missing("vmstat", Of::Host, Gap::NotInKernel, || "");
        let expected = [
            "io.pressure of 2 cgroups: switched off in this kernel",
            "io.pressure of c\\x0a: no permission",
            "1 process: went away",
            "vmstat: not offered here",
        ];
        assert_eq!(shown(gaps), expected);
    }

    #[test]
    fn lost_lines_are_summed_beside_the_first_error() {
        let mut gaps = Gaps::default();
        let lost = quell_kfile::diskstats::parse(b"8 0 sda 1\n").lost;
        gaps.lost("diskstats", Of::Host, &lost, || "");
        gaps.lost("io.stat", Of::Cgroup, &lost, || "a");
        gaps.lost("io.stat", Of::Cgroup, &lost, || "b");
        gaps.lost("io.stat", Of::Cgroup, &Lost::default(), || "c");
        gaps.missing("io.stat", Of::Cgroup, Gap::Malformed, || "d");
        let expected = [
            "diskstats: 1 line lost: line 1: expected 11, 15 or 17 counters: not in the expected format",
            "io.stat of 2 cgroups: 2 lines lost: line 1: expected 11, 15 or 17 counters: not in the expected format",
            "io.stat of d: not in the expected format",
        ];
        assert_eq!(shown(gaps), expected);
    }
}
