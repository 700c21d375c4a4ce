//! Every decision of quell, as functions from a value to a value.
//!
//! `snapshot` is what was read, `identity` what a cgroup is to people, `class` what a disk is, `stack` what lies on what,
//! `settings` how disks and file systems are set up, `hierarchy` the tree of cgroups, `shares` what its weights make of a
//! disk, `rates` what two readings say, `paste` what somebody pasted in their place, `findings` what that means. Nothing here opens a file or asks the time, so a live host, a
//! capture and a recording are judged by the same code, and every judgement can be tested from a value.

pub mod class;
pub mod findings;
pub mod hierarchy;
pub mod identity;
pub mod paste;
pub mod rates;
pub mod settings;
pub mod shares;
pub mod snapshot;
pub mod stack;
