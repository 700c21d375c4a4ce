//! Limits that a workload's I/O does not pass: set for one device, while the bytes go to another.

use quell_units::{DevNum, count};

use super::{Cap, Scene};
use crate::rates::CgroupIo;

/// A limit, and the device on which the same cgroup does more than it allows.
#[derive(Clone, Copy, Debug)]
pub struct Bypass<'s> {
    /// The limit.
    pub cap: &'s Cap,
    /// Where the I/O goes instead.
    pub to: DevNum,
    /// What the cgroup does there, in the limit's own unit per second.
    pub does_per_sec: f64,
    /// Whether that device is a layer above or below the limit's, or of another disk altogether.
    pub related: bool,
}

impl Scene<'_> {
    /// The limits that are set for a device where the cgroup does next to nothing, while it does half as much again as
    /// the limit allows on another device that no limit of the same key covers.
    ///
    /// A tenth of the limit is next to nothing; and doing more than is allowed is what proves that the limit does not act.
    pub fn bypasses(&self) -> impl Iterator<Item = Bypass<'_>> {
        self.caps.iter().filter_map(|cap| self.bypass(cap))
    }

    fn bypass<'s>(&'s self, cap: &'s Cap) -> Option<Bypass<'s>> {
        cap.used_per_sec.filter(|used| *used <= cap.limit_per_sec / 10.0)?;
        let rows = self.rates.cgroup(&cap.cgroup)?.io.as_ref().ok()?;
        let over = |row: &&CgroupIo| cap.key.of(row) >= 1.5 * cap.limit_per_sec;
        let limited =
            |dev: DevNum| self.caps_over(&cap.cgroup, dev).any(|other| other.key == cap.key && other.dev == dev);
        let row = rows.iter().filter(over).filter(|row| row.dev != cap.dev && !limited(row.dev)).max_by(|a, b| {
            // Of a volume and the disk below it the disk is the one to name.
            let leaf = |row: &CgroupIo| self.disk(row.dev).is_some_and(|disk| disk.leaf);
            leaf(a).cmp(&leaf(b)).then(cap.key.of(a).total_cmp(&cap.key.of(b)))
        })?;
        let leaves = self.window.t1.leaves(cap.dev);
        let related = self.window.t1.leaves(row.dev).iter().any(|dev| leaves.contains(dev));
        Some(Bypass { cap, to: row.dev, does_per_sec: cap.key.of(row), related })
    }

    /// Whether the cgroup has done nothing of what a limit holds on its device since it was made: then the limit was not
    /// written for what it does now and then.
    #[must_use]
    pub fn never_used(&self, cap: &Cap) -> bool {
        let rows = self.cgroup(&cap.cgroup).and_then(|cgroup| cgroup.io.as_ref().ok());
        let row = rows.map(|rows| rows.iter().find(|row| row.dev == cap.dev));
        row.is_some_and(|row| {
            row.is_none_or(|row| {
                let (ios, bytes) = if cap.key.is_write() {
                    (row.write_ios, row.write_bytes.get())
                } else {
                    (row.read_ios, row.read_bytes.get())
                };
                // A label or a superblock was looked at when the disk was mounted.
                count(if cap.key.is_bytes() { bytes } else { ios }) < cap.limit_per_sec
            })
        })
    }
}
