//! Which cgroup hierarchies are mounted, and where.
//!
//! The mount table decides, since a hierarchy can be mounted anywhere: `/sys/fs/cgroup` is a `tmpfs` on many hosts and
//! the unified hierarchy then lies in `/sys/fs/cgroup/unified`. Only a tree without a mount table is looked at in the
//! places that everybody uses.

use quell_engine::snapshot::CgroupMode;
use quell_kfile::mountinfo;

use crate::reader::{Reader, join};

/// One mounted hierarchy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Its mount point, below the root.
    pub(crate) point: Vec<u8>,
    /// The cgroup that is seen at the mount point; empty for the root of the tree. Another one in a container whose
    /// cgroup was mounted without a namespace: there `/proc/PID/cgroup` gives longer paths than the walk.
    pub(crate) shows: Vec<u8>,
}

/// The hierarchies that quell reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    /// Version 2.
    pub(crate) unified: Option<Hierarchy>,
    /// Version 1 with the I/O controller.
    pub(crate) blkio: Option<Hierarchy>,
    /// Version 1 with the memory controller.
    pub(crate) memory: Option<Hierarchy>,
    /// Whether any of version 1 is mounted.
    any_v1: bool,
}

impl Hierarchies {
    /// Finds the hierarchies.
    pub(crate) fn find(reader: &mut Reader, mounts: &[mountinfo::Row]) -> Self {
        let found = Self::in_mounts(mounts);
        if found.mode() == CgroupMode::Absent { Self::in_usual_places(reader) } else { found }
    }

    fn in_mounts(mounts: &[mountinfo::Row]) -> Self {
        let v2 = |row: &mountinfo::Row| *row.fs_type == *b"cgroup2";
        let v1 = |row: &mountinfo::Row| *row.fs_type == *b"cgroup";
        let v1_of = |controller| first(mounts, move |row| v1(row) && row.super_option(controller).is_some());
        Self {
            unified: first(mounts, v2),
            blkio: v1_of("blkio"),
            memory: v1_of("memory"),
            any_v1: mounts.iter().any(v1),
        }
    }

    fn in_usual_places(reader: &mut Reader) -> Self {
        let mut with = |point: &[u8], file: &[u8]| {
            let there = reader.read(&join(&[point, file])).is_ok();
            there.then(|| Hierarchy { point: point.into(), shows: Vec::new() })
        };
        let unified = with(b"sys/fs/cgroup", b"cgroup.controllers")
            .or_else(|| with(b"sys/fs/cgroup/unified", b"cgroup.controllers"));
        let blkio = with(b"sys/fs/cgroup/blkio", b"blkio.throttle.io_service_bytes");
        let memory = with(b"sys/fs/cgroup/memory", b"memory.usage_in_bytes");
        let any_v1 = blkio.is_some() || memory.is_some();
        Self { unified, blkio, memory, any_v1 }
    }

    /// Which hierarchy carries the I/O controller.
    pub(crate) fn mode(&self) -> CgroupMode {
        match (&self.unified, self.any_v1, &self.blkio) {
            (None, false, _) => CgroupMode::Absent,
            (None, true, _) => CgroupMode::V1,
            (Some(_), false, _) => CgroupMode::V2,
            // A controller is bound to one hierarchy: in a mounted one of version 1 it is lost to version 2.
            (Some(_), true, Some(_)) => CgroupMode::HybridIoV1,
            (Some(_), true, None) => CgroupMode::HybridIoV2,
        }
    }

    /// All that are read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Hierarchy> {
        [&self.unified, &self.blkio, &self.memory].into_iter().flatten()
    }

    /// The hierarchy that is walked: the one with the I/O controller.
    pub(crate) fn io(&self) -> Option<&Hierarchy> {
        self.blkio.as_ref().or(self.unified.as_ref()).or(self.memory.as_ref())
    }
}

/// The first that fits, one that shows its whole tree before one that shows a part.
fn first(mounts: &[mountinfo::Row], fits: impl Fn(&mountinfo::Row) -> bool) -> Option<Hierarchy> {
    let mut fitting = mounts.iter().filter(|row| fits(row));
    let row = fitting.clone().find(|row| *row.root == *b"/").or_else(|| fitting.next())?;
    Some(Hierarchy { point: relative(&row.mount_point), shows: relative(&row.root) })
}

fn relative(path: &[u8]) -> Vec<u8> {
    let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
    path.get(start..).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_mounts(text: &str) -> Hierarchies {
        Hierarchies::in_mounts(&mountinfo::parse(text.as_bytes()).value)
    }

    fn point(hierarchy: Option<&Hierarchy>) -> &str {
        hierarchy.map_or("none", |hierarchy| std::str::from_utf8(&hierarchy.point).unwrap())
    }

    const UNIFIED: &str = "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
    const UNIFIED_BESIDE: &str = "1 0 0:20 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const BLKIO: &str = "2 0 0:21 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
    const MEMORY: &str = "3 0 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const SYSTEMD: &str = "4 0 0:23 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";

    #[test]
    fn the_mount_table_decides_the_mode() {
        let cases = [
            (vec![UNIFIED], CgroupMode::V2, "sys/fs/cgroup"),
            (vec![BLKIO, MEMORY], CgroupMode::V1, "sys/fs/cgroup/blkio"),
            (vec![UNIFIED_BESIDE, BLKIO, MEMORY], CgroupMode::HybridIoV1, "sys/fs/cgroup/blkio"),
            (vec![UNIFIED_BESIDE, MEMORY, SYSTEMD], CgroupMode::HybridIoV2, "sys/fs/cgroup/unified"),
            (vec![SYSTEMD], CgroupMode::V1, "none"),
            (vec![], CgroupMode::Absent, "none"),
        ];
        for (lines, mode, walked) in cases {
            let found = in_mounts(&lines.concat());
            assert_eq!((found.mode(), point(found.io())), (mode, walked), "{lines:?}");
        }
    }

    #[test]
    fn a_controller_may_share_its_hierarchy() {
        let found = in_mounts("2 0 0:21 / /cg/all rw - cgroup cgroup rw,cpu,blkio,memory\n");
        assert_eq!(point(found.blkio.as_ref()), "cg/all");
        assert_eq!(point(found.memory.as_ref()), "cg/all");
    }

    #[test]
    fn a_mount_of_the_whole_tree_goes_before_one_of_a_part() {
        let part = "9 0 0:20 /docker/aa /run/part rw - cgroup2 cgroup2 rw\n";
        assert_eq!(point(in_mounts(&[part, UNIFIED].concat()).unified.as_ref()), "sys/fs/cgroup");
        let alone = in_mounts(part).unified.unwrap();
        assert_eq!((alone.point.as_slice(), alone.shows.as_slice()), (&b"run/part"[..], &b"docker/aa"[..]));
    }
}
