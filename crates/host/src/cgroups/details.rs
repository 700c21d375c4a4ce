//! What else one cgroup's files say: read for the one that somebody asks for, and kept as text.

use quell_engine::snapshot::Setting;
use quell_units::{CgroupPath, Gap, escape};

use crate::error::gap;
use crate::machine::Machine;
use crate::reader::join;

/// The files, in the order in which they are told.
const FILES: [&str; 17] = [
    "cgroup.freeze",
    "cgroup.max.depth",
    "cgroup.max.descendants",
    "cgroup.events",
    "cgroup.stat",
    "cpu.weight",
    "cpu.max",
    "cpu.pressure",
    "memory.low",
    "memory.min",
    "memory.events",
    "memory.swap.current",
    "memory.swap.max",
    "memory.pressure",
    "pids.current",
    "pids.max",
    "io.prio.class",
];

/// The most text that is kept of one file. A line a key, none of these is longer.
const TEXT_MAX: usize = 1024;

impl Machine {
    /// The other files of a cgroup, as the kernel prints them with a space for each line's end, in the order in which
    /// they are read. What the cgroup has no file for is left out. Known only after a snapshot.
    pub fn cgroup_details(&mut self, path: &CgroupPath) -> Vec<Setting> {
        let dir = self.cgroup_dir(path);
        let mut settings = Vec::new();
        for file in FILES {
            let value = match self.reader.read_head(&join(&[&dir, file.as_bytes()]), TEXT_MAX) {
                Ok(bytes) => {
                    let lines: Vec<_> = bytes.trim_ascii_end().split(|&b| b == b'\n').map(escape).collect();
                    Ok(lines.join(" "))
                }
                Err(errno) => Err(gap(errno)),
            };
            if value != Err(Gap::NotInKernel) {
                settings.push(Setting { file: file.to_owned(), value });
            }
        }
        settings
    }
}
