//! A cgroup's rates: what it did on each disk, how long it was stalled, what its memory did.

use quell_kfile::io_stat;
use quell_kfile::pressure::Pressure;
use quell_units::{Bytes, CgroupId, CgroupPath, DevNum, Gap, Known, Micros, count};

use super::growth;
use crate::snapshot::{Cgroup, Snapshot};

/// One cgroup's rates, its descendants included.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupRates {
    /// Its place in the tree.
    pub path: CgroupPath,
    /// Its identity.
    pub id: CgroupId,
    /// What it did, a row a device it touched.
    pub io: Known<Vec<CgroupIo>>,
    /// Time stalled on I/O.
    pub io_pressure: Known<PressureRates>,
    /// What its memory did.
    pub memory: Known<MemoryRates>,
}

/// What one cgroup did on one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgroupIo {
    /// The device.
    pub dev: DevNum,
    /// Reads.
    pub read: Span,
    /// Writes.
    pub write: Span,
    /// Device time that iocost charged, over the time: 1.0 is a whole device of its model. `None` without iocost.
    pub cost_usage_ratio: Option<f64>,
    /// Time held by iocost over the time. `None` unless the kernel shows it.
    pub cost_wait_ratio: Option<f64>,
}

impl CgroupIo {
    /// Bios per second, both ways.
    #[must_use]
    pub fn ios_per_sec(&self) -> f64 {
        self.read.ios_per_sec + self.write.ios_per_sec
    }
}

/// Bios and bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Bios per second, before merging.
    pub ios_per_sec: f64,
    /// Bytes per second.
    pub bytes_per_sec: f64,
    /// Mean size of a bio; `None` where there was none.
    pub size_bytes_avg: Option<f64>,
}

/// Time stalled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureRates {
    /// Share of the time in which at least one task was stalled, 0 to 100.
    pub some_pct: f64,
    /// Share of the time in which all tasks were stalled, 0 to 100. `None` where the kernel does not tell.
    pub full_pct: Option<f64>,
}

/// What a cgroup's memory did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryRates {
    /// Pages of the page cache read again after being evicted.
    pub refault_file_pages_per_sec: Option<f64>,
    /// Anonymous pages read again after being swapped out.
    pub refault_anon_pages_per_sec: Option<f64>,
    /// Pages looked at by reclaim.
    pub scan_pages_per_sec: Option<f64>,
}

/// The rates of every cgroup of the later snapshot.
pub(super) fn rates_cgroups(t0: &Snapshot, t1: &Snapshot) -> Vec<CgroupRates> {
    let span = t1.clock.cgroups.since(t0.clock.cgroups).ok_or(Gap::NoTimePassed);
    let was_there = |now: &Cgroup| t0.cgroup(&now.path).filter(|was| was.id == now.id);
    t1.cgroups.iter().map(|now| rates_cgroup(was_there(now), now, span)).collect()
}

/// The rates of one cgroup; `was` is `None` for one that was made in between, whose counters all belong to the window.
fn rates_cgroup(was: Option<&Cgroup>, now: &Cgroup, span: Known<Micros>) -> CgroupRates {
    let none_yet = Ok(Pressure { some_usec: Micros(0), full_usec: Some(Micros(0)) });
    let pressure = rates_pressure(was.map_or(none_yet, |was| was.io_pressure), now.io_pressure, span);
    CgroupRates {
        path: now.path.clone(),
        id: now.id,
        io: rates_io(was, now, span),
        io_pressure: pressure,
        memory: rates_memory(was, now, span),
    }
}

fn rates_io(was: Option<&Cgroup>, now: &Cgroup, span: Known<Micros>) -> Known<Vec<CgroupIo>> {
    let seconds = span?.seconds();
    let rows = now.io.as_ref().map_err(|gap| *gap)?;
    let earlier: &[io_stat::Row] = match was {
        None => &[],
        Some(was) => was.io.as_ref().map_err(|gap| *gap)?,
    };
    rows.iter()
        .map(|row| {
            // A device without an earlier row had done nothing for this cgroup: its counters are made at first use.
            let was = earlier.iter().find(|was| was.dev == row.dev).copied().unwrap_or(io_stat::Row::idle(row.dev));
            rates_row(&was, row, seconds)
        })
        .collect()
}

fn rates_row(was: &io_stat::Row, now: &io_stat::Row, seconds: f64) -> Known<CgroupIo> {
    let span = |was: (u64, Bytes), now: (u64, Bytes)| -> Known<Span> {
        let (ios, bytes) = (count(growth(was.0, now.0)?), count(growth(was.1.0, now.1.0)?));
        Ok(Span {
            ios_per_sec: ios / seconds,
            bytes_per_sec: bytes / seconds,
            size_bytes_avg: (ios > 0.0).then(|| bytes / ios),
        })
    };
    let share = |was: Option<Micros>, now: Option<Micros>| -> Known<Option<f64>> {
        let Some(now) = now else { return Ok(None) };
        let grown = growth(was.map_or(0, Micros::get), now.0)?;
        Ok(Some(Micros(grown).seconds() / seconds))
    };
    Ok(CgroupIo {
        dev: now.dev,
        read: span((was.read_ios, was.read_bytes), (now.read_ios, now.read_bytes))?,
        write: span((was.write_ios, was.write_bytes), (now.write_ios, now.write_bytes))?,
        cost_usage_ratio: share(was.cost_usage_usec, now.cost_usage_usec)?,
        cost_wait_ratio: share(was.cost_wait_usec, now.cost_wait_usec)?,
    })
}

/// Shares of the time stalled.
pub(super) fn rates_pressure(was: Known<Pressure>, now: Known<Pressure>, span: Known<Micros>) -> Known<PressureRates> {
    let (was, now, span) = (was?, now?, span?);
    let pct = |was: Micros, now: Micros| Ok(100.0 * Micros(growth(was.0, now.0)?).seconds() / span.seconds());
    Ok(PressureRates {
        some_pct: pct(was.some_usec, now.some_usec)?,
        full_pct: was.full_usec.zip(now.full_usec).map(|(was, now)| pct(was, now)).transpose()?,
    })
}

fn rates_memory(was: Option<&Cgroup>, now: &Cgroup, span: Known<Micros>) -> Known<MemoryRates> {
    let seconds = span?.seconds();
    let now = now.memory_stat?;
    let was = match was {
        None => quell_kfile::memory_stat::MemoryStat::default(),
        Some(was) => was.memory_stat?,
    };
    let per_sec = |was: Option<u64>, now: Option<u64>| -> Known<Option<f64>> {
        let Some(now) = now else { return Ok(None) };
        Ok(Some(count(growth(was.unwrap_or(0), now)?) / seconds))
    };
    Ok(MemoryRates {
        refault_file_pages_per_sec: per_sec(was.refault_file_pages, now.refault_file_pages)?,
        refault_anon_pages_per_sec: per_sec(was.refault_anon_pages, now.refault_anon_pages)?,
        scan_pages_per_sec: per_sec(was.scan_pages, now.scan_pages)?,
    })
}
