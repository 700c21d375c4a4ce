//! One workload in another's way: a disk that queues, who fills it, and who waits.

use super::{Disk, Scene, Share, Workload};
use crate::identity::WorkloadKind;

/// One workload in another's way on a disk.
#[derive(Debug)]
pub struct Contention<'s> {
    /// The disk.
    pub disk: &'s Disk<'s>,
    /// Who waits, the longest of all who do.
    pub victim: &'s Workload,
    /// Who fills the queue.
    pub culprit: &'s Workload,
    /// The culprit's part of the disk.
    pub share: &'s Share,
    /// How many wait.
    pub victims: usize,
}

impl Contention<'_> {
    /// Whether the culprit belongs to the host and the victim does not: then it is the host's own doing.
    #[must_use]
    pub fn is_of_the_host(&self) -> bool {
        let of_host = |workload: &Workload| workload.kind == WorkloadKind::Unit || workload.is_kernel();
        of_host(self.culprit) && !of_host(self.victim)
    }
}

impl Scene<'_> {
    /// The disks where one workload fills the queue and another waits.
    #[must_use]
    pub fn contentions(&self) -> Vec<Contention<'_>> {
        self.leaf_disks().filter(|disk| disk.is_queueing()).filter_map(|disk| self.contention(disk)).collect()
    }

    fn contention<'s>(&'s self, disk: &'s Disk<'s>) -> Option<Contention<'s>> {
        let (culprit, share) = self.top_user(disk)?;
        let mut victims: Vec<&Workload> = self
            .users(disk)
            .filter(|(workload, share)| self.can_suffer(disk, workload, culprit) && waits(disk, workload, share))
            .map(|(workload, _)| workload)
            .collect();
        victims.sort_by(|a, b| b.stall_ratio().total_cmp(&a.stall_ratio()));
        Some(Contention { disk, victim: victims.first()?, culprit, share, victims: victims.len() })
    }

    /// Whether a workload can be the culprit's victim on this disk.
    ///
    /// Not what is left of a cgroup with children, nor the culprit's own relatives; not one that does most of its I/O
    /// elsewhere, for its pressure names no disk; and not where somebody set it up so, with an engine at work that gives
    /// the culprit the larger weight.
    fn can_suffer(&self, disk: &Disk, workload: &Workload, culprit: &Workload) -> bool {
        let related = workload.path.is_within(&culprit.path) && !culprit.is_kernel();
        let here = workload.io_on(disk.dev).map_or(0.0, |io| io.ios_per_sec());
        let all: f64 = self.leaf_disks().filter_map(|leaf| workload.io_on(leaf.dev)).map(|io| io.ios_per_sec()).sum();
        let meant = self.advantage(disk, &culprit.path, &workload.path).is_some_and(|times| times > 1.0);
        !workload.is_kernel()
            && !workload.inner
            && workload.path != culprit.path
            && !related
            && here >= all / 2.0
            && !meant
    }
}

/// Whether a workload waits at a disk that queues: by its stall, or by what its kind of request takes there.
fn waits(disk: &Disk, workload: &Workload, share: &Share) -> bool {
    let slow = |await_usec: Option<f64>, size: Option<f64>, ios_per_sec: f64| {
        ios_per_sec >= 5.0 && await_usec.is_some_and(|usec| usec >= 3.0 * disk.class.fast_usec(size.unwrap_or(0.0)))
    };
    let Some(rates) = disk.rates else { return false };
    workload.stall_ratio() >= 0.2
        || slow(rates.read.await_usec, share.io.read.size_bytes_avg, share.io.read.ios_per_sec)
        || slow(rates.write.await_usec, share.io.write.size_bytes_avg, share.io.write.ios_per_sec)
}
