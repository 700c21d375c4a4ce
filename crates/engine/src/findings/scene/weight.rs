//! Weights, and the engines that heed them.

use quell_units::CgroupPath;

use super::{Disk, Scene};
pub use crate::shares::Engine;
use crate::shares::{EffectiveShare, engines, shares};

impl Scene<'_> {
    /// The engine at work on a disk.
    #[must_use]
    pub fn engine(&self, disk: &Disk) -> Option<Engine> {
        self.engines(disk).first().copied()
    }

    /// The engines at work on a disk: one, if all is well.
    #[must_use]
    pub fn engines(&self, disk: &Disk) -> Vec<Engine> {
        engines(&self.window.t1, disk.dev)
    }

    /// What each cgroup that did I/O on a disk gets of it under an engine.
    #[must_use]
    pub fn effective_shares(&self, disk: &Disk, engine: Engine) -> Vec<EffectiveShare> {
        shares(&self.window.t1, disk.dev, engine, |cgroup| {
            let io = self.rates.cgroup(&cgroup.path).and_then(|rates| rates.io.as_ref().ok());
            io.is_some_and(|rows| rows.iter().any(|row| row.dev == disk.dev && row.ios_per_sec() > 0.0))
        })
    }

    /// A cgroup's weight under iocost on a disk.
    #[must_use]
    pub fn io_weight(&self, path: &CgroupPath, disk: &Disk) -> Option<u32> {
        Engine::IoCost.weight(self.config(path)?, disk.dev)
    }

    /// How many times the share of another's an engine on the disk gives a cgroup, both being busy: its weight where their
    /// paths part, over the other's there. `None` without an engine.
    #[must_use]
    pub fn advantage(&self, disk: &Disk, of: &CgroupPath, over: &CgroupPath) -> Option<f64> {
        let engine = self.engine(disk)?;
        // What lies below divides its own parent's share alone, and siblings that are idle take nothing of it.
        let first_apart = |path: &CgroupPath, other: &CgroupPath| {
            path.ancestors().take_while(|at| !other.is_within(at)).last().unwrap_or_else(|| path.clone())
        };
        let weight = |path: &CgroupPath| engine.weight(self.config(path)?, disk.dev).map(f64::from);
        Some(weight(&first_apart(of, over))? / weight(&first_apart(over, of))?.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use quell_kfile::io_weight::Weights;

    use crate::findings::written::{Did, Written, number};
    use crate::shares::{Engine, shares};

    fn weighed(host: &mut Written, path: &str, weight: u32) {
        host.cgroup(path, 0.0, &[]);
        host.configure(path, |config| config.io_weight = Ok(Weights { default: weight, devices: Vec::new() }));
    }

    fn rows(host: &Written, active: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
        let rows = shares(&host.window.t1, number(0), Engine::IoCost, |cgroup| active(&cgroup.path.to_string()));
        rows.into_iter().map(|row| (row.cgroup.to_string(), row.share_ratio)).collect()
    }

    fn tree() -> Written {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default());
        for (path, weight) in [("a", 100), ("a/x", 300), ("a/y", 100), ("b", 300)] {
            weighed(&mut host, path, weight);
        }
        host
    }

    #[test]
    fn a_share_is_the_product_of_the_parts_on_every_level() {
        let got = rows(&tree(), |_| true);
        assert_eq!(got, [("a".into(), 0.25), ("a/x".into(), 0.1875), ("a/y".into(), 0.0625), ("b".into(), 0.75)]);
    }

    #[test]
    fn who_is_idle_takes_nothing() {
        let got = rows(&tree(), |path| path != "b" && path != "a/y");
        assert_eq!(got, [("a".into(), 1.0), ("a/x".into(), 1.0)]);
    }

    #[test]
    fn what_lies_below_a_cgroup_without_the_file_has_no_row() {
        let mut host = tree();
        host.configure("a", |config| config.io_weight = Err(quell_units::Gap::ControllerOff));
        assert_eq!(rows(&host, |_| true), [("b".into(), 1.0)]);
    }
}
