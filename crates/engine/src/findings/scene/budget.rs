//! iocost's budget on a disk, and who waits for it.

use quell_units::{CgroupPath, DevNum, count};

use super::{Disk, Scene, WaitKind, Workload};
use crate::snapshot::Snapshot;

/// A disk under iocost whose budget is used up while somebody waits for it.
///
/// `cost.usage` is the charge divided by the present rate (`iocg_flush_stat_leaf` in block/blk-iocost.c:
/// `vusage_delta / ioc->vtime_base_rate`), so it is held against the time itself and not against vrate.
#[derive(Debug)]
pub struct Budget<'s> {
    /// The disk.
    pub disk: &'s Disk<'s>,
    /// The percentage of its model handed out, the mean of both moments; `None` where it is not shown.
    pub vrate_pct: Option<f64>,
    /// Whether `min` and `max` of io.cost.qos pin it.
    pub pinned: bool,
    /// What was charged of what was handed out, 1.0 is all of it.
    pub usage_ratio: f64,
    /// The workload that waits most.
    pub victim: &'s Workload,
}

impl Scene<'_> {
    /// The disks whose iocost budget is used up while somebody waits.
    #[must_use]
    pub fn budgets_used_up(&self) -> Vec<Budget<'_>> {
        let qos = self.root_config().and_then(|config| config.cost_qos.as_deref().ok()).unwrap_or_default();
        let enabled = qos.iter().filter(|row| row.enabled);
        enabled.filter_map(|row| self.budget(self.disk(row.dev)?, row.min_centipct == row.max_centipct)).collect()
    }

    fn budget<'s>(&'s self, disk: &'s Disk<'s>, pinned: bool) -> Option<Budget<'s>> {
        let root = self.rates.cgroup(&CgroupPath::root())?.io.as_ref().ok()?;
        let usage_ratio = root.iter().find(|row| row.dev == disk.dev)?.cost_usage_ratio.unwrap_or(0.0);
        let in_iocost = |workload: &Workload| workload.waits.iter().any(|wait| wait.kind == WaitKind::IoCost);
        let victim = self
            .users(disk)
            .map(|(workload, _)| workload)
            .filter(|workload| !workload.is_kernel())
            .max_by(|a, b| a.stall_ratio().total_cmp(&b.stall_ratio()).then(in_iocost(a).cmp(&in_iocost(b))))?;
        let full = usage_ratio >= 0.85 && victim.stall_ratio() >= 0.1;
        let waits = usage_ratio >= 0.5 && self.users(disk).any(|(workload, _)| in_iocost(workload));
        let vrate_pct = self.vrate_pct(disk.dev);
        (full || waits).then_some(Budget { disk, vrate_pct, pinned, usage_ratio, victim })
    }

    fn vrate_pct(&self, dev: DevNum) -> Option<f64> {
        let at = |snapshot: &Snapshot| {
            let rows = snapshot.cgroup(&CgroupPath::root())?.io.as_ref().ok()?;
            rows.iter().find(|row| row.dev == dev)?.cost_vrate_centipct.map(count)
        };
        Some((at(&self.window.t0)? + at(&self.window.t1)?) / 2.0 / 100.0)
    }
}
