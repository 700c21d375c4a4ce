//! What the rates mean: one rule a file, one table of rules, one ranking.
//!
//! A rule is a pure function of a [`Scene`]; it returns what it found with the numbers that made it, and knows nothing
//! of the other rules. Which finding explains which is said once, in `table`.

mod advise;
mod evidence;
mod finding;
mod rank;
mod scene;
mod table;
#[cfg(test)]
mod tests;
pub mod workload;
#[cfg(test)]
pub(crate) mod written;

// The rules.
mod cgroup_v1;
mod device_hung;
mod device_saturated;
mod dirty_throttled;
mod fsync_bound;
mod healthy;
mod io_controller_off;
mod io_uring_false_pressure;
mod iocost_model_mismatch;
mod iocost_throttled;
mod journal_shared_stall;
mod latency_target_working;
mod memcg_thrash;
mod noisy_neighbour;
mod not_enough_data;
mod scheduler_mismatch;
mod serial_issuer;
mod slow_device;
mod swap_io;
mod system_hog;
mod throttled_by_io_max;
mod util_untrustworthy;
mod wbt_throttled;
mod weight_without_engine;
mod writeback_storm;

pub use finding::{Advice, Aspect, Evidence, Explain, Finding, Severity, Subject, SubjectKind, Value};
pub use rank::find;
pub use scene::{
    Backlog, Budget, Cap, CapKey, Commits, Contention, DirtyLimits, Disk, DiskClass, Engine, Named, PAGE_BYTES, Scene,
    Share, Trust, Wait, WaitKind, Workload,
};
pub use table::{Line, Over, RULES, Rule, rule};
