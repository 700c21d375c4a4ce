//! What two readings of raw counters say: numbers per second, averages and shares of time.
//!
//! Derived numbers are floats in fields that name their unit, and are made here alone. Each is a difference of two
//! counters over the time between the readings of *their* files; a counter that went back is a [`Gap`] and never a
//! negative or a huge number.

mod cgroup;
mod disk;
mod latency;

pub use cgroup::{CgroupIo, CgroupRates, MemoryRates, PressureRates, Span};
pub use disk::{DeviceRates, DiskRates, Flow, FlushFlow};
pub use latency::{BucketEdge, Latency, StageTimes};

use quell_kfile::cpu_times::CpuTimes;
use quell_kfile::vmstat::VmStat;
use quell_units::{CgroupPath, DevNum, Gap, Known, Micros, count};

use crate::snapshot::{Snapshot, Window};

/// What two snapshots say.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// The time between the readings of the system's files.
    pub seconds: Known<f64>,
    /// The host as a whole.
    pub system: SystemRates,
    /// Each device of the later snapshot, by number.
    pub devices: Vec<DeviceRates>,
    /// Each cgroup of the later snapshot, by path, the root first.
    pub cgroups: Vec<CgroupRates>,
}

/// The host as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemRates {
    /// Time stalled on I/O.
    pub io_pressure: Known<PressureRates>,
    /// Time stalled on memory.
    pub memory_pressure: Known<PressureRates>,
    /// Time stalled on processors.
    pub cpu_pressure: Known<PressureRates>,
    /// Share of the processors' time spent in the kernel.
    pub cpu_system_pct: Known<f64>,
    /// Pages read from swap.
    pub swap_in_pages_per_sec: Known<f64>,
    /// Pages written to swap.
    pub swap_out_pages_per_sec: Known<f64>,
}

impl Rates {
    /// Makes the rates of a window.
    #[must_use]
    pub fn of(window: &Window) -> Self {
        Self::between(&window.t0, &window.t1)
    }

    /// Makes the rates between two snapshots of one host.
    #[must_use]
    pub fn between(t0: &Snapshot, t1: &Snapshot) -> Self {
        let span = t1.clock.system.since(t0.clock.system).ok_or(Gap::NoTimePassed);
        Self {
            seconds: span.map(Micros::seconds),
            system: rates_system(t0, t1, span),
            devices: t1.devices.iter().map(|now| disk::rates_device(t0.device(now.dev), now, span)).collect(),
            cgroups: cgroup::rates_cgroups(t0, t1),
        }
    }

    /// The rates of one device.
    #[must_use]
    pub fn device(&self, dev: DevNum) -> Option<&DeviceRates> {
        let at = self.devices.binary_search_by_key(&dev, |device| device.dev).ok()?;
        self.devices.get(at)
    }

    /// The rates of one cgroup.
    #[must_use]
    pub fn cgroup(&self, path: &CgroupPath) -> Option<&CgroupRates> {
        let at = self.cgroups.binary_search_by(|cgroup| cgroup.path.cmp(path)).ok()?;
        self.cgroups.get(at)
    }
}

fn rates_system(t0: &Snapshot, t1: &Snapshot, span: Known<Micros>) -> SystemRates {
    let (was, now) = (&t0.system, &t1.system);
    let cpu = |part: fn(&CpuTimes) -> u64| -> Known<f64> {
        let (was, now) = (was.cpu?, now.cpu?);
        let part = growth(part(&was), part(&now))?;
        let whole = growth(all_ticks(&was), all_ticks(&now))?;
        if whole == 0 { Err(Gap::NoTimePassed) } else { Ok(100.0 * count(part) / count(whole)) }
    };
    let vm = |part: fn(&VmStat) -> Option<u64>| -> Known<f64> {
        let was = part(was.vmstat.as_ref().map_err(|gap| *gap)?).ok_or(Gap::NotInKernel)?;
        let now = part(now.vmstat.as_ref().map_err(|gap| *gap)?).ok_or(Gap::NotInKernel)?;
        Ok(count(growth(was, now)?) / span?.seconds())
    };
    SystemRates {
        io_pressure: cgroup::rates_pressure(was.io_pressure, now.io_pressure, span),
        memory_pressure: cgroup::rates_pressure(was.memory_pressure, now.memory_pressure, span),
        cpu_pressure: cgroup::rates_pressure(was.cpu_pressure, now.cpu_pressure, span),
        cpu_system_pct: cpu(|times| times.system_ticks),
        swap_in_pages_per_sec: vm(|vmstat| vmstat.swapped_in_pages),
        swap_out_pages_per_sec: vm(|vmstat| vmstat.swapped_out_pages),
    }
}

fn all_ticks(times: &CpuTimes) -> u64 {
    [times.user_ticks, times.system_ticks, times.idle_ticks, times.iowait_ticks, times.steal_ticks]
        .into_iter()
        .fold(0, u64::saturating_add)
}

/// How much a counter grew.
///
/// One that went back was made anew under the same name. Its new total is not a difference, so there is no rate; zero
/// would hide the event.
fn growth(was: u64, now: u64) -> Known<u64> {
    now.checked_sub(was).ok_or(Gap::CounterReset)
}
