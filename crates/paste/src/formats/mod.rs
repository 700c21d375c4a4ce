//! The table of formats.
//!
//! A new format is a module beside this one and a line here. The order matters only where two could take one line: the
//! surer one comes first.

mod dd;
mod devices;
mod docker_info;
mod docker_inspect;
mod docker_stats;
mod document;
mod fio_json;
mod fio_terse;
mod fio_text;
mod iostat;
mod iostat_json;
mod kernel_file;
mod kernel_log;
mod limits_json;
mod lsblk_json;
mod program_log;
mod refusals;
mod settings;
mod tasks;

use crate::line::Line;
use crate::pasted::Pasted;

/// A format: what it is called, and how its first line is known.
pub(crate) struct Format {
    /// For people.
    pub(crate) name: &'static str,
    /// The reading of a piece that starts with this line, which is taken by that; `None` where the line is not its.
    pub(crate) open: fn(&Line) -> Option<Box<dyn Open>>,
}

/// A piece under way.
pub(crate) trait Open {
    /// Takes the next line, or leaves it: then the piece is over.
    fn take(&mut self, line: &Line) -> bool;

    /// What the piece turned out to be, where the format's own name says less.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Puts what was read into the paste's facts. Called once, at the piece's end.
    fn close(self: Box<Self>, pasted: &mut Pasted);
}

/// Every format.
pub(crate) static FORMATS: &[Format] = &[
    iostat_json::FORMAT,
    iostat::FORMAT,
    program_log::FORMAT,
    document::FORMAT,
    fio_terse::FORMAT,
    fio_text::FORMAT,
    settings::RUN,
    dd::FORMAT,
    docker_stats::FORMAT,
    tasks::FORMAT,
    devices::LSBLK,
    devices::LS,
    devices::MDSTAT,
    refusals::FORMAT,
    settings::UNIT,
    kernel_log::FORMAT,
    docker_info::FORMAT,
    kernel_file::FORMAT,
];

#[cfg(test)]
mod tests {
    use crate::{Pasted, Reader};
    use proptest::prelude::*;

    /// Reads a paste.
    pub(super) fn read(text: &str) -> Pasted {
        let mut reader = Reader::default();
        text.split_inclusive('\n').for_each(|line| reader.line(line.as_bytes()));
        reader.finish()
    }

    /// Every case's paste: real output of real tools.
    fn cases() -> Vec<Vec<u8>> {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
        let files = std::fs::read_dir(dir).unwrap().flat_map(|case| std::fs::read_dir(case.unwrap().path()).unwrap());
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.retain(|path| path.file_stem().is_some_and(|stem| stem == "input"));
        paths.sort();
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    fn read_bytes(bytes: &[u8]) -> Pasted {
        let mut reader = Reader::default();
        bytes.split_inclusive(|&b| b == b'\n').for_each(|line| reader.line(line));
        reader.finish()
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            read_bytes(&bytes);
        }

        #[test]
        fn no_mutation_of_a_real_paste_makes_a_reader_panic(
            case in 0_usize..50, cut in any::<proptest::sample::Index>(), at in any::<proptest::sample::Index>(), byte in any::<u8>(),
        ) {
            let cases = cases();
            let mut bytes = cases[case % cases.len()].clone();
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            read_bytes(&bytes);
        }
    }
}
