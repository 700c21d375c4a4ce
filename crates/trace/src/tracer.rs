//! Loading what this kernel allows, and reading what it added up.

use std::fmt;
use std::io;

use aya::maps::{Array, HashMap, MapData};
use aya::programs::{BtfTracePoint, FEntry, FExit, Program, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use quell_engine::snapshot::{Missing, Stage, Trace};
use quell_units::Gap;

use crate::hooks::{HOOKS, Hook, Loss, Place};
use crate::layout::{self, GROUP_BYTES, Histogram, KEY_BYTES, LOSSES_BYTES};

/// The compiled programs.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/stages.bpf.o"));

/// What is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// Every stage that this kernel shows.
    All,
    /// The device alone: two tracepoints a request.
    Device,
}

/// For how much there is to be room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Whole devices.
    pub devices: usize,
    /// Cgroups.
    pub cgroups: usize,
}

impl Room {
    /// Devices, cgroups and operations that are counted apart: two operations for each pair, within bounds. 320 bytes each
    /// with their key, when they are used.
    fn groups(self) -> u32 {
        let pairs = self.devices.saturating_mul(self.cgroups.saturating_add(1));
        u32::try_from(pairs.saturating_mul(2)).unwrap_or(u32::MAX).clamp(512, 16_384)
    }

    /// Histograms: two for each of those (the device and the total), and 448 bytes each. 24 MB are the most for all maps.
    fn histograms(self) -> u32 {
        self.groups().saturating_mul(2)
    }
}

/// Programs that are attached, and their counters.
pub struct Tracer {
    groups: HashMap<MapData, [u8; KEY_BYTES], [u8; GROUP_BYTES]>,
    histograms: Array<MapData, Histogram>,
    losses: Array<MapData, [u8; LOSSES_BYTES]>,
    missing: Vec<Missing>,
    unseen: Vec<Stage>,
    /// Detaches the programs when it goes.
    _programs: Ebpf,
}

impl Tracer {
    /// Loads and attaches what this kernel allows. What it refuses is in [`Trace::missing`] of every reading.
    ///
    /// Needs `CAP_BPF` and `CAP_PERFMON`, and a kernel with BTF of its own types.
    ///
    /// # Errors
    /// Why there is nothing to trace with, where even the device stage cannot be had.
    pub fn start(stages: Stages, room: &Room) -> Result<Self, Missing> {
        let all = |reason| Missing { what: "where the time of requests goes (eBPF)".into(), reason };
        let btf = Btf::from_sys_fs().map_err(|_| all(Gap::NotInKernel))?;
        let (groups, histograms) = (room.groups(), room.histograms());
        let device_only = u8::from(stages == Stages::Device);
        let mut programs = EbpfLoader::new()
            .btf(Some(&btf))
            .map_max_entries("groups", groups)
            .map_max_entries("histograms", histograms)
            .override_global("histograms_max", &histograms, true)
            .override_global("device_only", &device_only, true)
            .load(OBJECT)
            .map_err(|error| all(gap_of(&error)))?;
        let mut missing: Vec<Missing> = Vec::new();
        let mut unseen = Vec::new();
        for hook in &HOOKS {
            if stages == Stages::Device && !matches!(hook.loss, Loss::All) {
                continue;
            }
            let Err(error) = attach(&mut programs, hook, &btf) else { continue };
            let reason = gap_of(&error);
            let Loss::Part(what, stage) = hook.loss else { return Err(all(reason)) };
            missing.push(Missing { what: what.into(), reason });
            unseen.extend(stage);
        }
        let mut map = |name: &str| programs.take_map(name).ok_or_else(|| all(Gap::Malformed));
        let (groups, histograms, losses) = (map("groups")?, map("histograms")?, map(".bss.losses")?);
        let malformed = |_| all(Gap::Malformed);
        Ok(Self {
            groups: HashMap::try_from(groups).map_err(malformed)?,
            histograms: Array::try_from(histograms).map_err(malformed)?,
            losses: Array::try_from(losses).map_err(malformed)?,
            missing,
            unseen,
            _programs: programs,
        })
    }

    /// All counters since the start. Reading changes none of them.
    #[must_use]
    pub fn read(&self) -> Trace {
        let mut histogram =
            |at: u32| self.histograms.get(&at, 0).map_or_else(|_| Vec::new(), |buckets| buckets.to_vec());
        // A group that goes while they are listed cannot be: none is ever removed.
        let mut groups: Vec<_> = self
            .groups
            .iter()
            .filter_map(Result::ok)
            .filter_map(|(key, value)| layout::group(&key, &value, &mut histogram))
            .collect();
        groups.sort_by_key(|group| group.key);
        let losses = self.losses.get(&0, 0).as_ref().map(layout::losses).unwrap_or_default();
        Trace { groups, losses, missing: self.missing.clone(), unseen: self.unseen.clone() }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("missing", &self.missing).finish_non_exhaustive()
    }
}

fn attach(programs: &mut Ebpf, hook: &Hook, btf: &Btf) -> Result<(), ProgramError> {
    match (programs.program_mut(hook.program), hook.place) {
        (Some(Program::BtfTracePoint(program)), Place::Tracepoint(name)) => {
            BtfTracePoint::load(program, name, btf)?;
            program.attach()?;
        }
        (Some(Program::FEntry(program)), Place::Entry(name)) => {
            FEntry::load(program, name, btf)?;
            program.attach()?;
        }
        (Some(Program::FExit(program)), Place::Exit(name)) => {
            FExit::load(program, name, btf)?;
            program.attach()?;
        }
        _ => return Err(ProgramError::UnexpectedProgramType),
    }
    Ok(())
}

/// The reason of an error, which lies at the bottom of those it is wrapped in.
fn gap_of(error: &(dyn std::error::Error + 'static)) -> Gap {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    let chain = std::iter::successors(Some(error), |error| error.source());
    let errno = chain.filter_map(|error| error.downcast_ref::<io::Error>()?.raw_os_error()).last();
    match errno {
        Some(EPERM | EACCES) => Gap::Denied,
        Some(errno) => Gap::Errno(errno),
        // Not refused by the kernel: the function or its tracepoint is not in its BTF.
        None => Gap::NotInKernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maps_stay_within_24_mb_for_a_thousand_containers_on_four_disks() {
        let room = Room { devices: 4, cgroups: 1000 };
        let slots = 32_768 * (8 + 56 + 48);
        let groups = u64::from(room.groups()) * (16 + u64::try_from(GROUP_BYTES).unwrap() + 48);
        let histograms = u64::from(room.histograms()) * 448;
        assert!(room.groups() >= 8_000);
        assert!(slots + groups + histograms <= 24_000_000, "{slots} + {groups} + {histograms}");
    }

    #[test]
    fn a_refusal_is_told_from_what_the_kernel_does_not_have() {
        assert_eq!(gap_of(&io::Error::from_raw_os_error(1)), Gap::Denied);
        assert_eq!(gap_of(&io::Error::from_raw_os_error(12)), Gap::Errno(12));
        assert_eq!(gap_of(&io::Error::other("no such function")), Gap::NotInKernel);
    }
}
