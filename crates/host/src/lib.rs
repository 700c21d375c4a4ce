//! The only door to the machine: everything that quell knows of a host comes through here.
//!
//! [`Machine`] reads `/proc`, `/sys` and the cgroup tree, live or as a captured tree, into a `Snapshot`: plain values,
//! a reason in place of each that is missing. [`watch()`] takes two of them with light looks in between, [`capture()`]
//! writes a tree that reads as this host did. Two decisions shape the crate. Every open goes through one root, so a
//! captured tree cannot lead out of itself. And what is read again and again stays open, because the observer runs
//! where the disk is already in trouble: a sample of a thousand cgroups costs little more than the reads of their
//! files.

mod capture;
mod cgroups;
mod clock;
mod devices;
mod error;
mod file_stat;
mod gaps;
mod layer;
mod links;
mod machine;
mod mounts;
mod names;
mod open_files;
mod reader;
mod recording;
mod root;
mod superblocks;
mod system;
mod tasks;
mod values;
mod watch;

pub use capture::{Captured, capture};
pub use error::HostError;
pub use layer::LayerUsage;
pub use machine::{Depth, Machine};
pub use watch::{SystemTicker, Ticker, Wake, watch};
