//! How evenly a disk worked: its rate in each stretch between two looks, or in each block of a pasted table.

use quell_paste::TableRow;
use quell_units::{DevNum, Micros, count};

use super::{Disk, Scene};
use crate::snapshot::Snapshot;

/// What a disk did in one stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::findings) struct Pace {
    /// Requests completed per second.
    pub(in crate::findings) ios_per_sec: f64,
    /// Whether requests waited in it throughout, as far as was seen.
    pub(in crate::findings) waiting: bool,
}

/// The shortest stretch that makes a rate: below it the reading's own time shows.
const SECONDS_MIN: f64 = 0.4;

/// Requests in flight that are a queue.
const QUEUE: u64 = 4;

impl Scene<'_> {
    /// A disk's pace, stretch by stretch; empty where nothing was read in between.
    #[must_use]
    pub(in crate::findings) fn paces(&self, disk: &Disk) -> Vec<Pace> {
        match self.window.pasted.as_deref() {
            Some(pasted) if !pasted.tables.is_empty() => {
                let row = |row: &TableRow| Pace {
                    ios_per_sec: row.ios_per_sec(),
                    waiting: row.queue_length_avg.unwrap_or_else(|| row.requests_in_flight()) >= count(QUEUE),
                };
                let of_disk = |table: &quell_paste::Table| {
                    table.rows.iter().find(|row| row.name == disk.name.as_str()).filter(|_| !table.since_boot).map(row)
                };
                pasted.tables.iter().filter_map(of_disk).collect()
            }
            _ => self.paces_of_looks(disk.dev),
        }
    }

    fn paces_of_looks(&self, dev: DevNum) -> Vec<Pace> {
        let of_snapshot = |snapshot: &Snapshot| {
            let counters = &snapshot.device(dev)?.counters;
            Some((snapshot.clock.system, counters.in_flight, counters.completed()))
        };
        let looks = self.window.looks.iter().filter_map(|look| {
            let disk = look.disks.iter().find(|look| look.dev == dev)?;
            Some((look.at, disk.in_flight, disk.completed))
        });
        let all = of_snapshot(&self.window.t0).into_iter().chain(looks).chain(of_snapshot(&self.window.t1));
        let mut paces = Vec::new();
        let mut from: Option<(_, u64, u64)> = None;
        let mut waiting = true;
        for (at, in_flight, completed) in all {
            let Some((since, first, before)) = from else {
                from = Some((at, in_flight, completed));
                continue;
            };
            waiting &= in_flight >= QUEUE && first >= QUEUE;
            let seconds = at.since(since).map_or(0.0, Micros::seconds);
            if seconds >= SECONDS_MIN {
                let ios_per_sec = count(completed.saturating_sub(before)) / seconds;
                paces.push(Pace { ios_per_sec, waiting });
                from = Some((at, in_flight, completed));
                waiting = true;
            }
        }
        paces
    }
}

/// The mean of some paces and how far they lie from it, as a share of the mean (coefficient of variation).
#[must_use]
pub(in crate::findings) fn spread(paces: &[Pace]) -> Option<(f64, f64)> {
    let n = count(u64::try_from(paces.len()).ok()?);
    let mean = paces.iter().map(|pace| pace.ios_per_sec).sum::<f64>() / n;
    let variance = paces.iter().map(|pace| (pace.ios_per_sec - mean).powi(2)).sum::<f64>() / n;
    (mean > 0.0).then(|| (mean, variance.sqrt() / mean))
}
