//! How a disk's rate went within the window: by the looks on a live host, by the blocks of a pasted table.

use quell_units::count;

use super::{Disk, Scene};
use crate::snapshot::DiskLook;

/// A stretch of the window, on one disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How long it is.
    pub seconds: f64,
    /// Requests completed per second.
    pub ios_per_sec: f64,
    /// Bytes read and written per second, where they are known.
    pub bytes_per_sec: Option<f64>,
    /// Requests in flight, the mean of what was seen.
    pub queue: f64,
}

/// The least length of a step of looks: over a tenth of a second a queue's own bursts would show.
const SECONDS: f64 = 0.5;

impl Scene<'_> {
    /// The disk's steps in order; empty where there were no looks and no table of more than the time since boot.
    #[must_use]
    pub fn series(&self, disk: &Disk) -> Vec<Step> {
        if self.window.looks.is_empty() { self.blocks(disk) } else { self.looks(disk) }
    }

    fn looks(&self, disk: &Disk) -> Vec<Step> {
        let seen = self.window.looks.iter().filter_map(|look| {
            let row = look.disks.iter().find(|row| row.dev == disk.dev)?;
            Some((look.at, *row))
        });
        let mut steps = Vec::new();
        let mut first = None;
        let mut in_flight: Vec<f64> = Vec::new();
        for (at, row) in seen {
            in_flight.push(count(row.in_flight));
            let Some((from, was)) = first else {
                first = Some((at, row));
                continue;
            };
            let Some(seconds) = at.since(from).map(quell_units::Micros::seconds) else { continue };
            if seconds >= SECONDS {
                let queue = in_flight.iter().sum::<f64>() / in_flight.iter().map(|_| 1.0).sum::<f64>();
                // A counter that went back leaves a hole and no number.
                steps.extend(step(was, row, seconds, queue));
                first = Some((at, row));
                in_flight.clear();
            }
        }
        steps
    }

    fn blocks(&self, disk: &Disk) -> Vec<Step> {
        let Some(pasted) = &self.window.pasted else { return Vec::new() };
        let tables = pasted.tables.iter().filter(|table| !table.since_boot);
        let rows = tables.filter_map(|table| {
            let row = table.rows.iter().find(|row| row.name == disk.name.as_str())?;
            let both = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
            Some(Step {
                // Without time stamps the blocks are of one length: which one changes nothing between them.
                seconds: table.seconds.unwrap_or(1.0),
                ios_per_sec: both(row.read.ios_per_sec, row.write.ios_per_sec)?,
                bytes_per_sec: both(row.read.bytes_per_sec, row.write.bytes_per_sec),
                queue: row.queue_length_avg?,
            })
        });
        rows.collect()
    }
}

fn step(was: DiskLook, now: DiskLook, seconds: f64, queue: f64) -> Option<Step> {
    let bytes = was.bytes.zip(now.bytes).and_then(|(was, now)| now.get().checked_sub(was.get()));
    Some(Step {
        seconds,
        ios_per_sec: count(now.completed.checked_sub(was.completed)?) / seconds,
        bytes_per_sec: bytes.map(|bytes| count(bytes) / seconds),
        queue,
    })
}

/// How far rates lie apart: largest less smallest, over the mean. `None` without any, or where all are zero.
pub(in crate::findings) fn spread(rates: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = rates.clone().map(|_| 1.0).sum::<f64>();
    let mean = rates.clone().sum::<f64>() / n;
    let (least, most) = (rates.clone().reduce(f64::min)?, rates.reduce(f64::max)?);
    (mean > 0.0).then(|| (most - least) / mean)
}
