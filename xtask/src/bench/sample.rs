//! A sample of all cgroups against the bare `pread`s of the same files, through descriptors that are already open.

use std::fs::File;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use quell_host::{Depth, Machine};
use rustix::io::pread;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use super::Claim;
use super::tree::Tree;
use crate::interrupt::Interrupt;

/// Alternating pairs.
const PAIRS: usize = 10;

/// Rounds of each side in a pair, so that a pair lasts long enough for a clock of microseconds.
const ROUNDS: u32 = 20;

/// The most that a sample may cost, in bare reads.
const RATIO_MAX: f64 = 1.5;

/// The sample's ratio to the bare reads.
pub(super) fn ratio(cgroups: u32, interrupt: &Interrupt) -> Result<Claim> {
    let tree = Tree::make(cgroups, interrupt)?;
    let mut pin = CpuSet::new();
    pin.set(sched_getcpu());
    sched_setaffinity(None, &pin).context("stay on one core")?;
    let mut machine = Machine::under(&tree.root(1))?;
    let first = machine.snapshot(Depth::Counters);
    ensure!(first.cgroups.len() == usize::try_from(cgroups)? + 1, "quell sees {} cgroups", first.cgroups.len());
    // The first one opened the files and looked for what is missing.
    let sampled = machine.snapshot(Depth::Counters).cost.files;
    let mut floor = Floor::open(tree.files(1))?;
    let mut ours = Vec::new();
    let mut least = Vec::new();
    for _ in 0..PAIRS {
        interrupt.check()?;
        ours.push(timed(|| Ok(machine.snapshot(Depth::Counters)))?);
        least.push(timed(|| floor.read_all())?);
    }
    let (ours, least) = (median(ours), median(least));
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Claim {
        what: format!("a sample of {cgroups} cgroups against the bare reads of its files"),
        measured: ours.as_secs_f64() / least.as_secs_f64(),
        most: Some(RATIO_MAX),
        unit: "",
        detail: format!(
            "CPU time, medians of {PAIRS} pairs: {:.3} ms for {sampled} files, {:.3} ms for {} bare reads",
            millis(ours),
            millis(least),
            floor.files.len()
        ),
    })
}

/// The files, open, and one buffer.
struct Floor {
    files: Vec<File>,
    buffer: Vec<u8>,
}

impl Floor {
    fn open(paths: Vec<PathBuf>) -> Result<Self> {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("open many files")?;
        let open = |path: PathBuf| File::open(&path).with_context(|| path.display().to_string());
        Ok(Self { files: paths.into_iter().map(open).collect::<Result<_>>()?, buffer: vec![0; 64 << 10] })
    }

    fn read_all(&mut self) -> Result<usize> {
        let mut bytes = 0;
        for file in &self.files {
            bytes += pread(file, self.buffer.as_mut_slice(), 0)?;
        }
        Ok(bytes)
    }
}

/// The CPU time of one round. Not the wall's: what else runs on this core is not quell's cost.
fn timed<T>(mut round: impl FnMut() -> Result<T>) -> Result<Duration> {
    let start = cpu_time()?;
    for _ in 0..ROUNDS {
        drop(black_box(round()?));
    }
    Ok((cpu_time()? - start) / ROUNDS)
}

fn cpu_time() -> Result<Duration> {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).context("a time before the epoch")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_one_that_was_slow() {
        let ms = Duration::from_millis;
        assert_eq!(median(vec![ms(3), ms(900), ms(1), ms(2), ms(4)]), ms(3));
    }
}
