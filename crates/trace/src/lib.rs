//! Where an I/O's time goes, as the kernel itself sees it: eBPF programs and their loader.
//!
//! The programs (`bpf/stages.bpf.c`) add up, for each device, cgroup and operation, how long requests spent in each stage
//! from submission to the last completion; [`Tracer`] loads what this kernel lets one load, and [`Tracer::read`] gives the
//! counters as [`quell_engine::snapshot::Trace`]. A hook that is refused costs its own stage and no other. The compiled
//! object is committed beside its source, so that building quell needs no clang; `cargo xtask bpf` makes it anew.

mod hooks;
mod layout;
mod tracer;

pub use tracer::{Room, Stages, Tracer};
