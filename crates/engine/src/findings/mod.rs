//! What the rates mean: one rule a file, one table of rules, one ranking.
//!
//! A rule is a pure function of a [`Scene`]; it returns what it found with the numbers that made it, and knows nothing
//! of the other rules. Which finding explains which is said once, in `table`.

mod advise;
mod evidence;
mod finding;
mod hot;
mod program;
mod rank;
mod scene;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod written;

// The rules.
mod asymmetric_members;
mod burst_credit_exhausted;
mod cgroup_v1;
mod cgroup_version_mismatch;
mod counter_broken;
mod device_hung;
mod device_saturated;
mod dirty_throttled;
mod fragmented_sequential;
mod fsync_bound;
mod healthy;
mod host_memory_thrash;
mod in_the_way;
mod io_controller_off;
mod io_not_delegated;
mod io_uring_false_pressure;
mod iocost_model_mismatch;
mod iocost_throttled;
mod iops_limit_on_buffered;
mod journal_bound;
mod journal_shared_stall;
mod latency_target_unavailable;
mod latency_target_working;
mod limit_device_missing;
mod limit_inert;
mod limit_on_partition;
mod limit_value_zero;
mod limit_vs_backlog;
mod limit_wrong_layer;
mod media_without_plp;
mod memcg_thrash;
mod noisy_neighbour;
mod not_disk_bound;
mod not_enough_data;
mod nvme_multipath_hidden;
mod provider_cap;
mod psi_disabled;
mod raid_rebuild;
mod readahead_amplification;
mod rotational_misreported;
mod scheduler_mismatch;
mod serial_issuer;
mod slow_device;
mod slow_flush;
mod swap_io;
mod system_hog;
mod throttled_by_io_max;
mod throttling_not_in_kernel;
mod tool_bug_units;
mod util_untrustworthy;
mod wbt_throttled;
mod weight_engine_conflict;
mod weight_scale_mismatch;
mod weight_without_engine;
mod writeback_storm;
mod writeback_unattributed;

pub use advise::enable;
pub use finding::{Advice, Aspect, Evidence, Explain, Finding, Severity, Subject, SubjectKind, Value};
pub use rank::find;
pub use scene::{
    Backlog, Budget, Bypass, Cap, CapKey, Commits, Contention, DirtyLimits, Disk, DiskClass, Engine, Named, Scene,
    Share, Step, Trust, Wait, WaitKind, Workload,
};
pub use table::{Line, Over, RULES, Rule, rule};
