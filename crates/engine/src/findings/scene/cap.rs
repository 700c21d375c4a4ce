//! Configured ceilings, each beside the rate it is held against.

use quell_units::{CgroupPath, DevNum, Limit, count};

use super::{Scene, Workload};
use crate::rates::{CgroupIo, Rates};
use crate::snapshot::{Cgroup, Window};

/// One key of one device in one cgroup's `io.max`, or the same limit of version 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Cap {
    /// Where it is written: the workload's own cgroup or one above it.
    pub cgroup: CgroupPath,
    /// The device it is written for.
    pub dev: DevNum,
    /// What it limits.
    pub key: CapKey,
    /// The ceiling: bytes or bios a second.
    pub limit_per_sec: f64,
    /// What the cgroup and all below it did: bytes or bios a second. `None` where it cannot be told.
    pub used_per_sec: Option<f64>,
    /// The mean size of the bios it holds, in the limit's own unit: bytes, or 1 for a limit of bios.
    pub grain: f64,
    /// The time over which the rate was measured.
    pub seconds: f64,
}

/// What a cap limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapKey {
    /// `rbps`.
    ReadBytes,
    /// `wbps`.
    WriteBytes,
    /// `riops`.
    ReadIos,
    /// `wiops`.
    WriteIos,
}

impl CapKey {
    /// The key in `io.max`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadBytes => "rbps",
            Self::WriteBytes => "wbps",
            Self::ReadIos => "riops",
            Self::WriteIos => "wiops",
        }
    }

    /// Whether it counts bytes and not bios.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        matches!(self, Self::ReadBytes | Self::WriteBytes)
    }

    /// Whether it limits writes.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::WriteBytes | Self::WriteIos)
    }

    /// The file of version 1 that holds it.
    #[must_use]
    pub const fn v1_file(self) -> &'static str {
        match self {
            Self::ReadBytes => "blkio.throttle.read_bps_device",
            Self::WriteBytes => "blkio.throttle.write_bps_device",
            Self::ReadIos => "blkio.throttle.read_iops_device",
            Self::WriteIos => "blkio.throttle.write_iops_device",
        }
    }

    /// What a cgroup did of what it limits: bytes or bios a second.
    pub(super) const fn of(self, io: &CgroupIo) -> f64 {
        match self {
            Self::ReadBytes => io.read.bytes_per_sec,
            Self::WriteBytes => io.write.bytes_per_sec,
            Self::ReadIos => io.read.ios_per_sec,
            Self::WriteIos => io.write.ios_per_sec,
        }
    }
}

impl Cap {
    /// What was used of it, 1.0 is all.
    #[must_use]
    pub fn used_ratio(&self) -> Option<f64> {
        Some(self.used_per_sec? / self.limit_per_sec)
    }

    /// Whether the rate is the ceiling itself: within 2 %, closer than a load comes to it by chance.
    #[must_use]
    pub fn pins(&self) -> bool {
        self.used_ratio().is_some_and(|used| (0.98..=1.02).contains(&used))
    }

    /// Whether the rate has reached the ceiling.
    ///
    /// 5 % of slack, because blk-throttle hands out its budget in slices and the cgroup's files are read a little
    /// apart; and on top of it a bio and a half in the window, because a bio is counted whole when it is let through: with
    /// 512 KiB bios under 2 MiB/s, 94 % was measured over 8.5 s.
    #[must_use]
    pub fn reached(&self) -> bool {
        let slack = 0.05 + 1.5 * self.grain / (self.limit_per_sec * self.seconds);
        self.used_ratio().is_some_and(|used| slack < 1.0 && used >= 1.0 - slack)
    }
}

impl Scene<'_> {
    /// The workload that the limit holds: of those below it that do a part of what it limits the one that waits most, and
    /// of those that wait alike the one that does most.
    #[must_use]
    pub fn held_by(&self, cap: &Cap) -> Option<&Workload> {
        let rate = |workload: &Workload| {
            let io = workload.io_on(cap.dev);
            io.map_or(0.0, |io| if cap.key.is_write() { io.write.bytes_per_sec } else { io.read.bytes_per_sec })
        };
        let below = || self.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
        let all: f64 = below().map(rate).sum();
        below()
            .filter(|workload| rate(workload) >= all / 50.0)
            .max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()).then(rate(a).total_cmp(&rate(b))))
    }
}

/// Every ceiling that was there at both moments.
pub(super) fn caps(window: &Window, rates: &Rates) -> Vec<Cap> {
    let was_there = |cgroup: &Cgroup, cap: &Cap| {
        let Some(was) = window.t0.cgroup(&cgroup.path) else { return true };
        limits(was).any(|(dev, key, limit)| {
            dev == cap.dev && key == cap.key && count(limit).total_cmp(&cap.limit_per_sec).is_eq()
        })
    };
    let seconds = window.t1.clock.cgroups.since(window.t0.clock.cgroups).map_or(0.0, |span| span.seconds());
    window
        .t1
        .cgroups
        .iter()
        .flat_map(|cgroup| limits(cgroup).map(move |(dev, key, limit)| (cgroup, dev, key, limit)))
        .map(|(cgroup, dev, key, limit)| {
            let io = rates.cgroup(&cgroup.path).and_then(|rates| rates.io.as_ref().ok());
            let row = io.map(|rows| rows.iter().find(|row| row.dev == dev));
            let flow = row.flatten().map(|row| if key.is_write() { row.write } else { row.read });
            let grain = flow.and_then(|flow| flow.size_bytes_avg).unwrap_or(0.0);
            let cap = Cap {
                cgroup: cgroup.path.clone(),
                dev,
                key,
                limit_per_sec: count(limit),
                // A device without a row did nothing for this cgroup.
                used_per_sec: row.map(|row| row.map_or(0.0, |row| key.of(row))),
                grain: if key.is_bytes() { grain } else { 1.0 },
                seconds,
            };
            (cgroup, cap)
        })
        .filter(|(cgroup, cap)| was_there(cgroup, cap))
        .map(|(_, cap)| cap)
        .collect()
}

fn limits(cgroup: &Cgroup) -> impl Iterator<Item = (DevNum, CapKey, u64)> {
    let rows = cgroup.config.as_ref().and_then(|config| config.io_max.as_ref().ok());
    rows.into_iter().flatten().flat_map(|row| {
        let bytes = |limit: Limit<quell_units::Bytes>| limit.at().map(quell_units::Bytes::get);
        [
            (CapKey::ReadBytes, bytes(row.read_bytes_per_sec)),
            (CapKey::WriteBytes, bytes(row.write_bytes_per_sec)),
            (CapKey::ReadIos, row.read_ios_per_sec.at()),
            (CapKey::WriteIos, row.write_ios_per_sec.at()),
        ]
        .into_iter()
        .filter_map(|(key, limit)| Some((row.dev, key, limit?)))
    })
}
