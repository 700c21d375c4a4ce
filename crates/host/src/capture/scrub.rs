//! Scrubbing: a capture without the names of its host.
//!
//! A file is let through because a line here says what is in it. One that no line knows is left out and named, so that
//! a file which a later reader adds cannot carry names out unnoticed.

use std::collections::BTreeMap;

use quell_kfile::{mountinfo, swaps};

use super::names::{Names, model, node};
use super::state;
use crate::cgroups::INODE;
use crate::clock::{CLOCK, UPTIME_END};
use crate::file_stat::STAT;
use crate::recording::{Recording, Seen};

/// The neutral names of one capture, the same in all its files and at both moments.
#[derive(Debug)]
pub(super) struct Scrub {
    names: Names,
    /// Where cgroup hierarchies are mounted, below the root.
    cgroup_points: Vec<Vec<u8>>,
    left_out: Vec<String>,
}

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Numbers and the kernel's own words.
    Plain,
    HostName,
    Mounts,
    Swaps,
    /// One task's `stat`, with its name in parentheses.
    TaskStat,
    /// A process's cgroups.
    TaskCgroup,
    Model,
    /// A device-mapper node's name.
    Volume,
    /// A device-mapper node's uuid.
    VolumeId,
    /// A path.
    Path,
    /// The superblock on a device, of which a recording holds the known fields alone.
    Superblock,
    /// Nobody knows.
    Unknown,
}

impl Scrub {
    pub(super) fn new(cgroup_points: Vec<Vec<u8>>) -> Self {
        Self { names: Names::default(), cgroup_points, left_out: Vec::new() }
    }

    /// The paths that were left out, escaped for display.
    pub(super) fn into_left_out(mut self) -> Vec<String> {
        self.left_out.sort_unstable();
        self.left_out.dedup();
        self.left_out
    }

    /// A recording with neutral names.
    pub(super) fn recording(&mut self, seen: Recording) -> Recording {
        let mut out = BTreeMap::new();
        for (path, entry) in seen.0 {
            if is_of_runtimes(&path) {
                match state::entry(&mut self.names, &path, &entry) {
                    Some((path, entry)) => drop(out.insert(path, entry)),
                    None => self.left_out.push(super::shown(&path)),
                }
                continue;
            }
            let cgroup = self.in_cgroups(&path, &entry);
            let entry = match entry {
                Seen::File(bytes) if cgroup.is_none() => match self.file(&path, &bytes) {
                    Some(bytes) => Seen::File(bytes),
                    None => {
                        self.left_out.push(super::shown(&path));
                        continue;
                    }
                },
                Seen::Link(target) if is_descriptor(&path) => Seen::Link(open_file(&mut self.names, &target)),
                // The rest holds no name: cgroup files speak of devices by number, links lead to places in /sys.
                other => other,
            };
            let path = cgroup.unwrap_or_else(|| self.pool(path));
            out.insert(path, entry);
        }
        Recording(out)
    }

    /// The path of a file or directory of a cgroup, with the names in it replaced; `None` for all else.
    fn in_cgroups(&mut self, path: &[u8], entry: &Seen) -> Option<Vec<u8>> {
        // The longest: one hierarchy may be mounted inside another's mount point.
        let points = self.cgroup_points.iter().filter(|point| is_below(path, point));
        let point = points.max_by_key(|point| point.len())?.clone();
        let rest = path.get(point.len() + 1..)?;
        let (dirs, file) = match entry {
            Seen::Dir => (rest, None),
            Seen::Failed(_) if !is_cgroup_file(rest) => (rest, None),
            _ => match rest.iter().rposition(|&b| b == b'/') {
                Some(at) => (rest.get(..at)?, rest.get(at + 1..)),
                None => (&b""[..], Some(rest)),
            },
        };
        let dirs = self.names.path(dirs);
        Some(crate::reader::join(&[&point, &dirs, file.unwrap_or_default()]))
    }

    /// The path of something of a btrfs file system, whose id is in it; any other path as it is.
    fn pool(&mut self, path: Vec<u8>) -> Vec<u8> {
        const POOLS: &[u8] = b"sys/fs/btrfs/";
        let Some(rest) = path.strip_prefix(POOLS) else { return path };
        let (id, inside) = rest.split_at(rest.iter().position(|&b| b == b'/').unwrap_or(rest.len()));
        [POOLS, &self.names.neutral("pool", id), inside].concat()
    }

    fn file(&mut self, path: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let names = &mut self.names;
        Some(match content(path) {
            Content::Plain => bytes.into(),
            Content::HostName => b"host\n".into(),
            Content::Mounts => mounts(names, bytes),
            Content::Swaps => {
                let mut rows = swaps::parse(bytes).value;
                for row in &mut rows {
                    row.path = place(names, &row.path).into();
                }
                swaps::render(&rows)
            }
            Content::TaskStat => task_stat(names, bytes),
            Content::TaskCgroup => lines(bytes, |line| task_cgroup(names, line)),
            Content::Model => lines(bytes, |line| model(names, line.trim_ascii())),
            Content::Volume => lines(bytes, |line| names.neutral("volume", line)),
            Content::VolumeId => lines(bytes, |line| volume_id(names, line)),
            Content::Path => lines(bytes, |line| names.path(line)),
            Content::Superblock => quell_kfile::superblock::render(&quell_kfile::superblock::parse(bytes).ok()?),
            Content::Unknown => return None,
        })
    }
}

/// What is in the file at a path outside the cgroup hierarchies.
fn content(path: &[u8]) -> Content {
    let parts: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
    match parts.as_slice() {
        [name] if *name == CLOCK.as_bytes() || *name == UPTIME_END.as_bytes() => Content::Plain,
        [.., name] if *name == INODE.as_bytes() => Content::Plain,
        [b"proc", b"sys", b"kernel", b"hostname"] => Content::HostName,
        [b"proc", b"sys", b"kernel", b"osrelease"] | [b"proc", b"sys", b"vm", _] => Content::Plain,
        [b"proc", _, b"mountinfo"] => Content::Mounts,
        [b"proc", b"swaps"] => Content::Swaps,
        [b"proc", b"diskstats" | b"vmstat" | b"stat" | b"meminfo" | b"uptime" | b"cpuinfo"] => Content::Plain,
        [b"proc", b"pressure", _]
        | [b"proc", b"fs", b"jbd2", _, b"info"]
        | [b"proc", b"fs", b"ext4", _, b"options"] => Content::Plain,
        [b"proc", _, b"stat"] | [b"proc", _, b"task", _, b"stat"] => Content::TaskStat,
        [b"proc", _, b"cgroup"] => Content::TaskCgroup,
        [b"proc", _, b"fdinfo", _] => Content::Plain,
        [b"proc", _, b"fd", name] if name.starts_with(STAT) => Content::Plain,
        [b"proc", _, b"io" | b"wchan"] | [b"proc", _, b"task", _, b"wchan"] => Content::Plain,
        [b"sys", b"devices", .., b"model"] => Content::Model,
        [b"sys", b"devices", .., b"dm", b"name"] => Content::Volume,
        [b"sys", b"devices", .., b"dm", b"uuid"] => Content::VolumeId,
        [b"sys", b"devices", .., b"loop", b"backing_file"] => Content::Path,
        [b"sys", b"devices", .., b"queue" | b"md" | b"dm", _] | [b"sys", b"devices", .., b"queue", b"iosched", _] => {
            Content::Plain
        }
        [b"sys", b"devices", .., b"mq", _, b"cpu_list" | b"nr_tags"] => Content::Plain,
        [
            b"sys",
            b"devices",
            ..,
            b"dev" | b"partition" | b"start" | b"size" | b"diskseq" | b"alignment_offset" | b"ro",
        ] => Content::Plain,
        [b"sys", b"devices", .., b"queue_depth" | b"numa_node" | b"transport" | b"state" | b"ana_state"] => {
            Content::Plain
        }
        [b"dev", ..] => Content::Superblock,
        [b"sys", b"kernel", b"debug", b"block", ..] | [b"sys", b"hypervisor", b"type"] => Content::Plain,
        [b"sys", b"class", b"dmi", b"id", b"sys_vendor"] => Content::Plain,
        _ => Content::Unknown,
    }
}

/// Whether a path lies outside of what the kernel shows and of quell's own files: then it is a runtime's state.
fn is_of_runtimes(path: &[u8]) -> bool {
    !matches!(path.split(|&b| b == b'/').next(), Some(b"proc" | b"sys")) && content(path) == Content::Unknown
}

/// Whether this is one of a process's open files, whose target is what it was opened by.
fn is_descriptor(path: &[u8]) -> bool {
    matches!(path.split(|&b| b == b'/').collect::<Vec<_>>().as_slice(), [b"proc", _, b"fd", _])
}

/// What a descriptor's link leads to: a path, or one of the kernel's own words such as `anon_inode:[io_uring]`.
fn open_file(names: &mut Names, target: &[u8]) -> Vec<u8> {
    if !target.starts_with(b"/") {
        return target.into();
    }
    let (path, end) = without_deleted(target);
    [&names.path(path), end].concat()
}

/// A path without what the kernel puts behind one that is no more, and that.
fn without_deleted(path: &[u8]) -> (&[u8], &[u8]) {
    const DELETED: &[u8] = b" (deleted)";
    path.strip_suffix(DELETED).map_or((path, &b""[..]), |path| (path, DELETED))
}

/// Whether the last component looks like a file of a cgroup and not like a cgroup.
fn is_cgroup_file(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or_default();
    [&b"cgroup."[..], b"io.", b"memory.", b"blkio."].iter().any(|prefix| name.starts_with(prefix))
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Each line replaced, its newline kept.
fn lines(bytes: &[u8], mut replace: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        let text = line.strip_suffix(b"\n");
        out.extend(replace(text.unwrap_or(line)));
        out.extend(text.map(|_| b'\n'));
    }
    out
}

/// A place in the tree of files: a node, or a path whose components are replaced.
fn place(names: &mut Names, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/dev/") { node(names, path) } else { names.path(path) }
}

fn mounts(names: &mut Names, bytes: &[u8]) -> Vec<u8> {
    let mut rows = mountinfo::parse(bytes).value;
    for row in &mut rows {
        row.root = names.path(&row.root).into();
        // The tree of a capture has its cgroups where they were mounted, so that path stays.
        if !matches!(&*row.fs_type, b"cgroup" | b"cgroup2") {
            row.mount_point = names.path(&row.mount_point).into();
        }
        row.source = source(names, &row.source).into();
        row.super_options = options(&row.super_options).into();
    }
    mountinfo::render(&rows)
}

/// A node, a word of the kernel's such as `tmpfs`; a server's name and the like become neutral.
fn source(names: &mut Names, source: &[u8]) -> Vec<u8> {
    const KEPT: [&[u8]; 12] = [
        b"proc",
        b"sysfs",
        b"tmpfs",
        b"devtmpfs",
        b"devpts",
        b"cgroup",
        b"cgroup2",
        b"overlay",
        b"rootfs",
        b"none",
        b"debugfs",
        b"udev",
    ];
    match source {
        _ if source.starts_with(b"/dev/") => node(names, source),
        b"" => Vec::new(),
        _ if KEPT.contains(&source) => source.into(),
        _ => names.neutral("source", source),
    }
}

/// The options without those whose value may hold a name: a path, an address, a user.
fn options(options: &[u8]) -> Vec<u8> {
    const KEPT_VALUES: [&[u8]; 11] = [
        b"name=systemd",
        b"data=",
        b"commit=",
        b"errors=",
        b"size=",
        b"mode=",
        b"stripe=",
        b"space_cache=",
        b"compress=",
        b"subvolid=",
        b"barrier=",
    ];
    let kept = options.split(|&b| b == b',').filter(|option| {
        !option.contains(&b'/') && (!option.contains(&b'=') || KEPT_VALUES.iter().any(|key| option.starts_with(key)))
    });
    kept.collect::<Vec<_>>().join(&b',')
}

/// `PID (NAME) STATE ...`: the name is between the first `(` and the last `)`. Threads of the kernel keep theirs.
fn task_stat(names: &mut Names, bytes: &[u8]) -> Vec<u8> {
    let kernel_thread = quell_kfile::pid_stat::parse(bytes).is_ok_and(|stat| stat.kernel_thread);
    let open = bytes.iter().position(|&b| b == b'(');
    let close = bytes.iter().rposition(|&b| b == b')');
    let (Some(open), Some(close), false) = (open, close, kernel_thread) else { return bytes.into() };
    let (head, rest) = bytes.split_at(open + 1);
    let (name, tail) = rest.split_at(close.saturating_sub(open + 1));
    [head, &names.neutral("task", name), tail].concat()
}

/// `ID:CONTROLLERS:PATH`.
fn task_cgroup(names: &mut Names, line: &[u8]) -> Vec<u8> {
    let mut fields = line.splitn(3, |&b| b == b':');
    let (Some(id), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (path, end) = without_deleted(path);
    [[id, controllers, &names.path(path)].join(&b':').as_slice(), end].concat()
}

/// `LVM-<id>`, `CRYPT-LUKS2-<id>-<name>`: the words in front name the target and are kept.
fn volume_id(names: &mut Names, id: &[u8]) -> Vec<u8> {
    const TARGETS: [&[u8]; 9] = [
        b"LVM-",
        b"CRYPT-LUKS1-",
        b"CRYPT-LUKS2-",
        b"CRYPT-PLAIN-",
        b"CRYPT-",
        b"mpath-",
        b"RAID-",
        b"DMRAID-",
        b"DM-",
    ];
    let target = TARGETS.iter().find(|target| id.starts_with(target)).copied().unwrap_or_default();
    match id.strip_prefix(target).unwrap_or(id) {
        b"" => id.into(),
        rest => [target, &names.neutral("id", rest)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(files: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<String>) {
        let mut scrub = Scrub::new(vec![b"sys/fs/cgroup".to_vec()]);
        let mut seen = Recording::default();
        for (path, text) in files {
            seen.file(path.as_bytes(), text.as_bytes());
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let out = scrub.recording(seen).0.into_iter().map(|(path, seen)| match seen {
            Seen::File(bytes) => (text(path), text(bytes)),
            other => panic!("{other:?}"),
        });
        (out.collect(), scrub.into_left_out())
    }

    #[test]
    fn a_name_is_the_same_in_paths_and_in_files() {
        let (files, _) = scrubbed(&[
            ("proc/7/cgroup", "0::/acme.slice/payroll.service\n"),
            ("proc/7/stat", "7 (payroll (x)) S 1\n"),
            ("sys/fs/cgroup/acme.slice/payroll.service/io.stat", "253:0 rbytes=1\n"),
        ]);
        let expected = [
            ("proc/7/cgroup", "0::/name1.slice/name2.service\n"),
            ("proc/7/stat", "7 (task3) S 1\n"),
            ("sys/fs/cgroup/name1.slice/name2.service/io.stat", "253:0 rbytes=1\n"),
        ];
        assert_eq!(files, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }

    #[test]
    fn mounts_keep_what_tells_devices_and_hierarchies() {
        let text = "1 0 253:1 / /srv/payroll rw - ext4 /dev/vda1 rw,errors=continue\n\
                    2 0 0:20 /acme /acme/cg rw - cgroup2 cgroup2 rw,nsdelegate\n\
                    3 0 0:50 / /home/alice rw - nfs4 nas.acme.example:/home rw,addr=10.1.2.3\n\
                    4 0 252:0 / /var/lib/docker rw - xfs /dev/mapper/vg0-payroll rw\n";
        let (files, _) = scrubbed(&[("proc/self/mountinfo", text)]);
        let expected = "1 0 253:1 / /srv/name1 rw - ext4 /dev/vda1 rw,errors=continue\n\
                        2 0 0:20 /name2 /acme/cg rw - cgroup2 cgroup2 rw,nsdelegate\n\
                        3 0 0:50 / /home/name3 rw - nfs4 source4 rw\n\
                        4 0 252:0 / /var/lib/docker rw - xfs /dev/mapper/volume5 rw\n";
        assert_eq!(files[0].1, expected);
    }

    #[test]
    fn a_file_that_nobody_knows_is_left_out_and_named() {
        let (files, left_out) = scrubbed(&[("proc/7/cmdline", "secret"), ("proc/vmstat", "nr_dirty 1\n")]);
        assert_eq!(files.len(), 1);
        assert_eq!(left_out, ["proc/7/cmdline"]);
    }

    #[test]
    fn what_names_a_target_of_device_mapper_is_kept() {
        let mut names = Names::default();
        assert_eq!(volume_id(&mut names, b"LVM-x7Kq"), b"LVM-id1");
        assert_eq!(volume_id(&mut names, b"CRYPT-LUKS2-0123-payroll"), b"CRYPT-LUKS2-id2");
        assert_eq!(volume_id(&mut names, b"LVM-x7Kq"), b"LVM-id1");
    }

    #[test]
    fn threads_of_the_kernel_keep_their_names() {
        let mut names = Names::default();
        let stat = |flags: &str| format!("9 (jbd2/vda1-8) S 2 0 0 0 -1 {flags}{}\n", " 0".repeat(43));
        let kernel = stat("2129984");
        assert_eq!(task_stat(&mut names, kernel.as_bytes()), kernel.as_bytes());
        assert!(task_stat(&mut names, stat("0").as_bytes()).starts_with(b"9 (task1) S 2"));
    }
}
