//! The table's bounds, which no host that runs a test would reach.

use std::fs;

use quell_kfile::io_stat;

use super::*;
use crate::gaps::Gaps;

struct Host {
    tree: tempfile::TempDir,
    reader: Reader,
    table: Table,
}

impl Host {
    fn new(bounds: Bounds) -> Self {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("sys/fs/cgroup")).unwrap();
        fs::write(tree.path().join("sys/fs/cgroup/cgroup.controllers"), "io\n").unwrap();
        let mut reader = Reader::under(tree.path()).unwrap();
        let hierarchies = Hierarchies::find(&mut reader, &[]);
        let table = Table::new(&hierarchies, bounds).unwrap();
        Self { tree, reader, table }
    }

    fn cgroup(&self, path: &str) {
        let dir = self.tree.path().join("sys/fs/cgroup").join(path);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("io.stat"), "253:0 rbytes=1\n").unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_dir_all(self.tree.path().join("sys/fs/cgroup").join(path)).unwrap();
    }

    /// The paths of a sample, and the gaps that are not about files.
    fn sample(&mut self) -> (Vec<String>, Vec<String>) {
        let mut gaps = Gaps::default();
        let cgroups = self.table.sample(&mut self.reader, false, &mut gaps);
        let missing = gaps.into_missing().into_iter().map(|missing| format!("{}: {}", missing.what, missing.reason));
        let gaps = missing.filter(|gap| !gap.contains(" of ")).collect();
        (cgroups.iter().map(|cgroup| cgroup.path.to_string()).collect(), gaps)
    }
}

const ROOMY: Bounds = Bounds { cgroups_max: 100, kept_max: 100 };

#[test]
fn cgroups_beyond_the_bound_are_counted_and_there_is_room_again_later() {
    let mut host = Host::new(Bounds { cgroups_max: 3, ..ROOMY });
    ["a", "b", "c", "d"].iter().for_each(|path| host.cgroup(path));
    let (paths, gaps) = host.sample();
    assert_eq!((paths.len(), gaps), (3, vec!["2 cgroups: over quell's bound".to_owned()]));
    let kept: Vec<String> = paths.into_iter().skip(1).collect();
    kept.iter().for_each(|path| host.remove(path));
    let (paths, gaps) = host.sample();
    assert_eq!((paths.len(), gaps), (3, Vec::new()));
    assert!(kept.iter().all(|gone| !paths.contains(gone)));
}

#[test]
fn beyond_the_budget_of_descriptors_the_same_is_read() {
    let mut host = Host::new(Bounds { kept_max: 0, ..ROOMY });
    ["a", "a/b", "c"].iter().for_each(|path| host.cgroup(path));
    assert_eq!(host.sample().0, ["/", "a", "a/b", "c"]);
    assert_eq!(host.table.kept, 0);
    host.cgroup("a/b/late");
    host.remove("c");
    assert_eq!(host.sample(), (vec!["/".into(), "a".into(), "a/b".into(), "a/b/late".into()], Vec::new()));
}

#[test]
fn a_kernel_that_counts_its_cgroups_is_asked_for_nothing_else() {
    let mut host = Host::new(ROOMY);
    ["a", "a/b"].iter().for_each(|path| host.cgroup(path));
    let count = |host: &Host, n: u32| {
        fs::write(host.tree.path().join("sys/fs/cgroup/cgroup.stat"), format!("nr_descendants {n}\n")).unwrap();
    };
    count(&host, 2);
    assert_eq!(host.sample().0.len(), 3);
    host.cgroup("a/c");
    // Not counted yet, as no kernel would do: so it shows that nobody looked.
    assert_eq!(host.sample().0.len(), 3);
    count(&host, 3);
    assert_eq!(host.sample().0, ["/", "a", "a/b", "a/c"]);
}

#[test]
fn descriptors_are_given_back_with_the_cgroup() {
    let mut host = Host::new(ROOMY);
    host.cgroup("a");
    host.sample();
    let with = host.table.kept;
    host.cgroup("b");
    host.sample();
    assert!(host.table.kept > with);
    host.remove("b");
    host.sample();
    assert_eq!(host.table.kept, with);
}

#[test]
fn a_process_that_runs_out_of_descriptors_gets_some_back() {
    let mut host = Host::new(ROOMY);
    ["a", "b", "c", "d"].iter().for_each(|path| host.cgroup(path));
    host.sample();
    let before = host.table.kept;
    host.table.heed(Gap::Errno(24));
    assert_eq!(host.sample().0.len(), 5);
    assert!(host.table.kept > 0 && host.table.kept <= before / 2, "{before} {}", host.table.kept);
}

#[test]
fn a_captured_cgroup_has_the_same_id_at_both_moments() {
    let mut host = Host::new(ROOMY);
    host.cgroup("a");
    fs::create_dir_all(host.tree.path().join("sys/fs/cgroup/kept")).unwrap();
    fs::write(host.tree.path().join("sys/fs/cgroup/kept/.inode"), "77\n").unwrap();
    let mut ids = || -> Vec<CgroupId> {
        host.table.entries.clear();
        let cgroups = host.table.sample(&mut host.reader, false, &mut Gaps::default());
        cgroups.iter().map(|cgroup| cgroup.id).collect()
    };
    let before = ids();
    assert_eq!(before[2], CgroupId(77));
    assert_eq!(ids(), before);
    assert!(before.iter().all(|id| id.0 < 1 << 53), "JSON readers take numbers for floats");
}

#[test]
fn rows_of_one_cgroup_do_not_show_in_the_next() {
    let mut host = Host::new(ROOMY);
    host.cgroup("a");
    host.cgroup("b");
    fs::write(host.tree.path().join("sys/fs/cgroup/b/io.stat"), "").unwrap();
    let cgroups = host.table.sample(&mut host.reader, false, &mut Gaps::default());
    let rows: Vec<Option<&[io_stat::Row]>> = cgroups.iter().map(|cgroup| cgroup.io.as_deref().ok()).collect();
    assert_eq!((rows[1].map(<[_]>::len), rows[2].map(<[_]>::len)), (Some(1), Some(0)));
}
