//! Neutral names: the same name always gets the same one, and its shape stays.
//!
//! A name is taken apart where its parts mean something to quell or to its reader: `docker-<id>.scope` stays a docker
//! scope, `kubepods-burstable-pod<uid>.slice` a pod's slice, `foo@bar.service` a service of a template. Ids become
//! other ids of the same length and letters; words that every host has are kept; all else becomes `name1`, `name2`,
//! and so on.

use std::collections::HashMap;

/// Neutral names for the names met so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    words: HashMap<Vec<u8>, String>,
    /// The digits of each id, and its number.
    ids: HashMap<Vec<u8>, usize>,
}

/// Words of cgroups, units and paths that every host has, or that say which runtime made a cgroup.
const KEPT: &[&str] = &[
    "app",
    "background",
    "session",
    "system",
    "user",
    "machine",
    "init",
    "kubepods",
    "kubelet",
    "burstable",
    "besteffort",
    "guaranteed",
    "docker",
    "podman",
    "libpod",
    "libpod_parent",
    "nspawn",
    "actions_job",
    "conmon",
    "crio",
    "cri",
    "containerd",
    "nerdctl",
    "lxc",
    "lxd",
    "incus",
    "payload",
    "monitor",
    "buildkit",
    "run",
    "systemd",
    "dbus",
    "cron",
    "ssh",
    "sshd",
    "getty",
    "serial",
    "polkit",
    "rsyslog",
    "chrony",
    "chronyd",
    "snapd",
    "udisks2",
    "NetworkManager",
    "journald",
    "logind",
    "networkd",
    "resolved",
    "timesyncd",
    "udevd",
    "control",
    "scope",
    "tasks",
    "supervisor",
    "proc",
    "sys",
    "dev",
    "tmp",
    "var",
    "lib",
    "lib64",
    "usr",
    "etc",
    "home",
    "root",
    "mnt",
    "media",
    "srv",
    "opt",
    "boot",
    "efi",
    "log",
    "cache",
    "spool",
    "swap",
    "swapfile",
    "data",
    "overlay",
    "overlay2",
    "merged",
    "volumes",
    "containers",
    "storage",
    "local",
    "share",
    "snap",
    "common",
    "microk8s",
    "k3s",
    "slurm",
    "slurmstepd",
    "container",
    "slice",
    "service",
    "json",
    "diff",
    "pods",
    "rootfs",
    "fs",
    "cgroup",
    "unified",
    "blkio",
    "memory",
    "shm",
    "pts",
    "mqueue",
    "hugepages",
    "kernel",
    "debug",
    "tracing",
];

/// Endings of the names of units.
const ENDINGS: [&str; 10] =
    [".service", ".scope", ".slice", ".socket", ".mount", ".swap", ".target", ".timer", ".device", ".automount"];

/// The shortest run of hexadecimal digits that is taken for an id.
const ID_LEN_MIN: usize = 12;

impl Names {
    /// A path with each of its components replaced.
    pub(super) fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = path.split(|&b| b == b'/').map(|part| self.component(part)).collect();
        parts.join(&b'/')
    }

    /// A component of a path: a cgroup's name, a unit's, a directory's.
    pub(super) fn component(&mut self, name: &[u8]) -> Vec<u8> {
        if name.is_empty() {
            return Vec::new();
        }
        let ending = ENDINGS.iter().find(|ending| name.ends_with(ending.as_bytes())).copied().unwrap_or_default();
        let stem = name.strip_suffix(ending.as_bytes()).unwrap_or(name);
        // The name of a slice holds the names of those above it, split by dashes, so each part is replaced alone.
        let mut out = Vec::with_capacity(name.len());
        let mut rest = stem;
        while let Some((token, tail)) = next_token(rest) {
            match token {
                [byte] if is_separator(*byte) => out.push(*byte),
                word => out.extend(self.word(word)),
            }
            rest = tail;
        }
        out.extend_from_slice(ending.as_bytes());
        out
    }

    /// A word that is not taken apart any more: the name of a process, a volume, a disk's model.
    pub(super) fn neutral(&mut self, kind: &str, word: &[u8]) -> Vec<u8> {
        let next = self.words.len() + 1;
        self.words.entry(word.into()).or_insert_with(|| format!("{kind}{next}")).clone().into_bytes()
    }

    fn word(&mut self, word: &[u8]) -> Vec<u8> {
        let is_kept = KEPT.iter().any(|kept| kept.as_bytes() == word) || word.iter().all(u8::is_ascii_digit);
        if is_kept || is_of_slurm(word) {
            return word.into();
        }
        if let Some(uid) = word.strip_prefix(b"pod").filter(|uid| uid.iter().any(u8::is_ascii_digit)) {
            return [b"pod", self.id_or_name(uid).as_slice()].concat();
        }
        self.id_or_name(word)
    }

    fn id_or_name(&mut self, word: &[u8]) -> Vec<u8> {
        if is_id(word) { self.id(word) } else { self.neutral("name", word) }
    }

    /// Another id of the same length, with the same characters between its digits.
    fn id(&mut self, id: &[u8]) -> Vec<u8> {
        let next = self.ids.len() + 1;
        // A pod's uid has dashes in one place and underscores in another.
        let key = id.iter().copied().filter(u8::is_ascii_hexdigit).collect();
        let number = *self.ids.entry(key).or_insert(next);
        // From the end: the number, then zeros.
        let mut digits = format!("{number:x}").into_bytes();
        let digit = |&byte: &u8| if byte.is_ascii_hexdigit() { digits.pop().unwrap_or(b'0') } else { byte };
        let mut out: Vec<u8> = id.iter().rev().map(digit).collect();
        out.reverse();
        out
    }
}

/// `job_42`, `step_0`, `uid_1000`, `task_3`: Slurm's cgroups are named by numbers, which name nobody.
fn is_of_slurm(word: &[u8]) -> bool {
    let number = [&b"job_"[..], b"step_", b"uid_", b"task_"].iter().find_map(|prefix| word.strip_prefix(*prefix));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

/// The first part of a name, and the rest: an id with its dashes, a separator, or a word up to the next separator.
fn next_token(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = name.first()?;
    let pod = if name.starts_with(b"pod") { 3 } else { 0 };
    let id_end = pod + UUID_LEN;
    let len = if name.get(pod..id_end).is_some_and(is_uuid) {
        id_end
    } else if is_separator(*first) {
        1
    } else {
        name.iter().position(|&byte| is_separator(byte)).unwrap_or(name.len())
    };
    name.split_at_checked(len)
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'-' | b'@' | b':' | b'.')
}

/// The length of `8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e`.
const UUID_LEN: usize = 36;

fn is_uuid(text: &[u8]) -> bool {
    text.len() == UUID_LEN
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => matches!(byte, b'-' | b'_'),
            _ => byte.is_ascii_hexdigit(),
        })
}

/// An id: many hexadecimal digits, perhaps in groups, and at least one decimal digit so that no word is taken for one.
fn is_id(word: &[u8]) -> bool {
    let digits = word.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    digits >= ID_LEN_MIN
        && word.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'_' | b'-'))
        && word.iter().any(u8::is_ascii_digit)
}

/// Models that hypervisors and clouds give all of their disks: they name no owner, and the engine takes a disk for a
/// virtual one by them. Where one holds another, it stands in front.
const KEPT_MODELS: [&str; 13] = [
    "Amazon Elastic Block Store",
    "Amazon EC2 NVMe Instance Storage",
    "nvme_card-pd",
    "nvme_card",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "VMware Virtual NVMe Disk",
    "Virtual NVMe Disk",
    "Virtual Disk",
    "Virtual disk",
    "QEMU NVMe Ctrl",
    "QEMU HARDDISK",
    "VBOX HARDDISK",
];

/// A disk's model. Of one that is kept only the known part is: a vendor can put anything around it.
pub(super) fn model(names: &mut Names, model: &[u8]) -> Vec<u8> {
    let holds = |known: &&&str| model.windows(known.len()).any(|part| part == known.as_bytes());
    match KEPT_MODELS.iter().find(holds) {
        Some(known) => known.as_bytes().into(),
        None => names.neutral("model", model),
    }
}

/// The path of a node below `/dev`, with the name of a volume replaced.
pub(super) fn node(names: &mut Names, node: &[u8]) -> Vec<u8> {
    match node.strip_prefix(b"/dev/mapper/") {
        Some(volume) => [b"/dev/mapper/", names.neutral("volume", volume).as_slice()].concat(),
        None => node.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(names: &mut Names, name: &str) -> String {
        String::from_utf8(names.component(name.as_bytes())).unwrap()
    }

    #[test]
    fn the_shape_of_a_name_stays_and_its_words_do_not() {
        let mut names = Names::default();
        let id = "3f5c9d2ab1e0".repeat(6)[..64].to_owned();
        let docker = component(&mut names, &format!("docker-{id}.scope"));
        assert!(
            docker.starts_with("docker-0") && docker.ends_with("01.scope") && docker.len() == 6 + 1 + 64 + 6,
            "{docker}"
        );
        assert_eq!(component(&mut names, &id), docker[7..71], "the same id without its scope");
        let cases = [
            ("system.slice", "system.slice"),
            ("user-1000.slice", "user-1000.slice"),
            ("kubepods-burstable.slice", "kubepods-burstable.slice"),
            ("systemd-journald.service", "systemd-journald.service"),
            ("acme.slice", "name1.slice"),
            ("acme-payroll.slice", "name1-name2.slice"),
            ("payroll@7.service", "name2@7.service"),
            ("acme", "name1"),
            ("lxc.payload.acme", "lxc.payload.name1"),
            ("lxc.monitor.acme", "lxc.monitor.name1"),
            ("libpod_parent", "libpod_parent"),
            ("actions_job", "actions_job"),
            ("machine", "machine"),
            ("nspawn-acme.scope", "nspawn-name1.scope"),
            ("user@1000.service", "user@1000.service"),
            ("dev-disk\\x2dby.swap", "dev-name3.swap"),
        ];
        for (name, expected) in cases {
            assert_eq!(component(&mut names, name), expected);
        }
    }

    #[test]
    fn a_model_that_every_disk_of_a_cloud_has_is_kept_and_what_is_around_it_is_not() {
        let mut names = Names::default();
        let mut shown = |text: &str| String::from_utf8(model(&mut names, text.as_bytes())).unwrap();
        for kept in KEPT_MODELS {
            assert_eq!(shown(kept), kept);
        }
        assert_eq!(shown("ACME Virtual disk 7"), "Virtual disk");
        assert_eq!(shown("SAMSUNG MZVL2512"), "model1");
        assert_eq!((shown("Payroll 3000"), shown("SAMSUNG MZVL2512")), ("model2".into(), "model1".into()));
    }

    #[test]
    fn a_pods_uid_stays_a_uid() {
        let mut names = Names::default();
        let pod = component(&mut names, "kubepods-pod8a5f1c2e_77aa_4b6c_9d0e_1f2a3b4c5d6e.slice");
        assert_eq!(pod, "kubepods-pod00000000_0000_0000_0000_000000000001.slice");
        let plain = component(&mut names, "pod8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e");
        assert_eq!(component(&mut names, "kubepods-pod5a1c.slice"), "kubepods-podname1.slice");
        assert_eq!(plain, "pod00000000-0000-0000-0000-000000000001", "one uid, with dashes and with underscores");
    }

    #[test]
    fn any_bytes_are_replaced() {
        let mut names = Names::default();
        assert_eq!(names.path(b"/a b/\xff\n/a b"), b"/name1/name2/name1");
    }
}
