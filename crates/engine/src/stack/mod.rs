//! What lies on what: from a path or a container down to the disks, and the layer at which each knob acts.
//!
//! A stack is read from the top, because that is where somebody stands who asks: a path, its mount, an overlay's upper
//! directory, the file system, and below it partitions, volumes, arrays and disks. What cannot be seen from here (a ZFS
//! pool's disks, a server's) ends the stack with the reason and never with a guess.

mod knobs;
mod layer;
mod locate;
#[cfg(test)]
mod tests;

pub use knobs::{Acts, knobs};
pub use layer::Layer;
pub use locate::{Place, kept_out_of_sight, locate, locate_cgroup, locate_device};

use quell_units::DevNum;

use crate::snapshot::Snapshot;

/// No stack is deeper: a captured tree may hold anything, a loop included.
pub const DEPTH_MAX: usize = 16;

impl Snapshot {
    /// What a device lies directly on: its disk for a partition, what the kernel names below it for any other.
    #[must_use]
    pub fn below(&self, dev: DevNum) -> Vec<DevNum> {
        let Some(device) = self.device(dev) else { return Vec::new() };
        match device.partition_of {
            Some(disk) => vec![disk],
            None => device.slaves.clone(),
        }
    }

    /// A device and all below it, from the top: each once, before what it lies on.
    #[must_use]
    pub fn stack(&self, top: DevNum) -> Vec<DevNum> {
        let mut layers = vec![vec![top]];
        while let Some(last) = layers.last().filter(|last| !last.is_empty() && layers.len() <= DEPTH_MAX) {
            let below = last.iter().flat_map(|&dev| self.below(dev)).collect();
            layers.push(below);
        }
        // Where one disk is below two layers, it belongs under the lower of them.
        let all: Vec<DevNum> = layers.concat();
        let later = |at: usize, dev: &DevNum| all.get(at + 1..).is_some_and(|rest| rest.contains(dev));
        all.iter().enumerate().filter(|&(at, dev)| !later(at, dev)).map(|(_, &dev)| dev).collect()
    }
}
