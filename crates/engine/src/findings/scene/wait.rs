//! Who waits, and for what: tasks in uninterruptible sleep, told apart by the kernel function they sleep in.

use std::collections::HashMap;

use quell_units::CgroupPath;

use crate::snapshot::{Task, Window};

/// One task that was seen waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// The kernel function it was most often seen in.
    pub channel: String,
    /// What that means.
    pub kind: WaitKind,
    /// Whether it is a thread of the kernel's own.
    pub kernel_thread: bool,
    /// In how many looks it was seen there.
    pub seen: u32,
    /// Of how many.
    pub looks: u32,
}

impl Wait {
    /// Whether it waited there the whole time, as far as was looked: at every look but for a few of many.
    #[must_use]
    pub fn throughout(&self) -> bool {
        self.looks >= 2 && self.seen * 10 >= self.looks * 8
    }

    /// The share of the time it waited there, 0 to 1.
    ///
    /// Two looks, all that a capture has, tell "at both" from "not at both" and nothing finer: at both counts as half.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.looks, self.seen) {
            (0..5, seen) if seen < self.looks => 0.0,
            (0..5, _) => 0.5,
            (looks, seen) => f64::from(seen) / f64::from(looks),
        }
    }
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// The file system's journal: a commit, or room for a new handle.
    Journal,
    /// A pause because too many pages are dirty.
    DirtyPause,
    /// Write-back throttling or `io.latency`, which share one function.
    QueueQos,
    /// iocost.
    IoCost,
    /// Anything else: the disk, mostly.
    Other,
}

/// The kernel functions that name their cause, by prefix; suffixes like `.isra.0` differ between builds.
const CHANNELS: [(&str, WaitKind); 13] = [
    ("add_transaction_credits", WaitKind::Journal),
    ("jbd2_log_wait_commit", WaitKind::Journal),
    ("jbd2_journal_get_write_access", WaitKind::Journal),
    ("do_get_write_access", WaitKind::Journal),
    ("wait_transaction_locked", WaitKind::Journal),
    ("wait_transaction_switching", WaitKind::Journal),
    ("start_this_handle", WaitKind::Journal),
    ("__jbd2_log_wait_for_space", WaitKind::Journal),
    ("jbd2_journal_lock_updates", WaitKind::Journal),
    ("balance_dirty_pages", WaitKind::DirtyPause),
    ("rq_qos_wait", WaitKind::QueueQos),
    ("wbt_wait", WaitKind::QueueQos),
    ("ioc_rqos_throttle", WaitKind::IoCost),
];

fn kind(channel: &str) -> WaitKind {
    CHANNELS.iter().find(|(prefix, _)| channel.starts_with(prefix)).map_or(WaitKind::Other, |(_, kind)| *kind)
}

/// Every task that was seen waiting, with its cgroup, and the number of looks: both snapshots and all between.
pub(super) fn waits(window: &Window) -> (Vec<(CgroupPath, Wait)>, u32) {
    let ends = [&window.t0.tasks, &window.t1.tasks];
    let blocked = |tasks: &'_ Vec<Task>| tasks.iter().filter(|task| task.blocked).cloned().collect::<Vec<_>>();
    let looks: Vec<Vec<Task>> =
        ends.into_iter().map(blocked).chain(window.looks.iter().map(|look| look.blocked.clone())).collect();
    let looks_count = u32::try_from(looks.len()).unwrap_or(u32::MAX);

    let mut seen: HashMap<(u32, String), (Task, u32)> = HashMap::new();
    for task in looks.into_iter().flatten() {
        let channel = task.wait_channel.clone().unwrap_or_default();
        seen.entry((task.tid, channel)).and_modify(|(_, times)| *times += 1).or_insert((task, 1));
    }
    let mut longest: HashMap<u32, (Task, u32)> = HashMap::new();
    for (task, times) in seen.into_values() {
        let better =
            longest.get(&task.tid).is_none_or(|(was, most)| (*most, &was.wait_channel) < (times, &task.wait_channel));
        if better {
            longest.insert(task.tid, (task, times));
        }
    }
    let mut waits: Vec<_> = longest.into_values().map(|(task, times)| wait(task, times, looks_count)).collect();
    waits.sort_by(|(_, a), (_, b)| b.seen.cmp(&a.seen).then(a.tid.cmp(&b.tid)));
    (waits, looks_count)
}

fn wait(task: Task, seen: u32, looks: u32) -> (CgroupPath, Wait) {
    let channel = task.wait_channel.unwrap_or_default();
    let wait = Wait {
        tid: task.tid,
        comm: task.comm,
        kind: kind(&channel),
        channel,
        kernel_thread: task.kernel_thread,
        seen,
        looks,
    };
    (task.cgroup.unwrap_or_default(), wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_rename_a_function_are_still_understood() {
        assert_eq!(kind("ioc_rqos_throttle.isra.0"), WaitKind::IoCost);
        assert_eq!(kind("jbd2_log_wait_commit"), WaitKind::Journal);
        assert_eq!(kind("__iomap_dio_rw"), WaitKind::Other);
        assert_eq!(kind(""), WaitKind::Other);
    }
}
