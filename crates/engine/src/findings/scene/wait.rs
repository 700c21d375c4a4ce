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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Every task that was seen waiting, with its cgroup: at both snapshots and at all looks between.
///
/// Sightings are counted by what the wait means: a journal's waiter goes from one of its functions to the next. A task
/// whose cgroup is not known is nobody's, unless it is the kernel's own.
pub(super) fn waits(window: &Window) -> Vec<(CgroupPath, Wait)> {
    let ends = [&window.t0.tasks, &window.t1.tasks].into_iter().flatten().filter(|task| task.blocked);
    let between = window.looks.iter().flat_map(|look| &look.blocked);
    let looks = u32::try_from(window.looks.len()).unwrap_or(u32::MAX).saturating_add(2);

    let mut seen: HashMap<(u32, Meaning), Sightings> = HashMap::new();
    for task in ends.chain(between) {
        let channel = task.wait_channel.as_deref().unwrap_or_default();
        let sightings = seen.entry((task.tid, Meaning::of(channel))).or_insert_with(|| Sightings::of(task));
        sightings.times += 1;
        *sightings.channels.entry(channel).or_default() += 1;
    }
    let mut longest: HashMap<u32, Sightings> = HashMap::new();
    for ((tid, _), sightings) in seen {
        match longest.get(&tid) {
            Some(best) if (best.times, best.channel()) >= (sightings.times, sightings.channel()) => {}
            _ => drop(longest.insert(tid, sightings)),
        }
    }
    let mut waits: Vec<_> = longest.into_values().filter_map(|sightings| sightings.wait(looks)).collect();
    waits.sort_by(|(_, a), (_, b)| b.seen.cmp(&a.seen).then(a.tid.cmp(&b.tid)));
    waits
}

/// What makes two sightings one wait: the cause where the function names it, else the function.
#[derive(PartialEq, Eq, Hash)]
enum Meaning {
    Cause(WaitKind),
    Function(String),
}

impl Meaning {
    fn of(channel: &str) -> Self {
        match kind(channel) {
            WaitKind::Other => Self::Function(channel.to_owned()),
            kind => Self::Cause(kind),
        }
    }
}

/// How often one task was seen in one wait.
struct Sightings<'a> {
    task: &'a Task,
    times: u32,
    channels: HashMap<&'a str, u32>,
}

impl<'a> Sightings<'a> {
    fn of(task: &'a Task) -> Self {
        Self { task, times: 0, channels: HashMap::new() }
    }

    /// The function it was most often seen in.
    fn channel(&self) -> &'a str {
        self.channels.iter().max_by_key(|(channel, times)| (**times, **channel)).map_or("", |(channel, _)| channel)
    }

    fn wait(&self, looks: u32) -> Option<(CgroupPath, Wait)> {
        let cgroup = match &self.task.cgroup {
            Ok(path) => path.clone(),
            Err(_) if self.task.kernel_thread => CgroupPath::root(),
            Err(_) => return None,
        };
        let channel = self.channel().to_owned();
        let Task { tid, comm, kernel_thread, .. } = self.task;
        let kind = kind(&channel);
        let (comm, seen) = (comm.clone(), self.times);
        Some((cgroup, Wait { tid: *tid, comm, channel, kind, kernel_thread: *kernel_thread, seen, looks }))
    }
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
