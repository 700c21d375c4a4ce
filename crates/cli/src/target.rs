//! What somebody means by `mysql`, `docker/1f2e3d`, `pod/shop/cart`, `vda` or `pid/4711` on this host.
//!
//! Resolved from a snapshot and before any watching, so a name that is wrong is told at once. A bare name is taken only
//! where it means one thing: guessing here would blame or calm the wrong container.

use quell_engine::findings::{Finding, Subject};
use quell_engine::identity::{WorkloadKind, container_shape, identify};
use quell_engine::snapshot::{Cgroup, Container, Device, Snapshot};
use quell_engine::stack;
use quell_units::{CgroupPath, DevNum, escape};

use crate::error::Failure;
use crate::near::{did_you_mean, nearest};

/// What a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A cgroup with all below it.
    Cgroup(CgroupPath),
    /// A whole disk.
    Disk(DevNum),
}

/// At most this many candidates are told.
const CANDIDATES_MAX: usize = 8;

/// The prefixes that say what a target is, beside the runtimes' own.
const PREFIXES: [&str; 3] = ["unit/", "cgroup/", "pod/"];

impl Target {
    /// What `text` means on this host.
    ///
    /// # Errors
    /// Nothing or several things have that name; the message has the nearest or the candidates.
    pub fn find(text: &str, snapshot: &Snapshot) -> Result<Self, Failure> {
        let found = candidates(text, snapshot);
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(not_found(text, snapshot)),
            several => Err(ambiguous(text, several, snapshot)),
        }
    }

    /// Its name in the spelling that always finds it.
    #[must_use]
    pub fn name(&self, snapshot: &Snapshot) -> String {
        match self {
            Self::Disk(dev) => {
                snapshot.device(*dev).map_or_else(|| dev.to_string(), |disk| format!("/dev/{}", disk.name))
            }
            Self::Cgroup(path) => {
                let (kind, name) = identify(path, snapshot);
                let is_of_runtime = kind == WorkloadKind::Container || snapshot.pod(path).is_some();
                let is_unit = kind == WorkloadKind::Unit && name.ends_with(&*escape(path.name()));
                // Two users can give the same name to containers of their own.
                let is_alone = || candidates(&name, snapshot).as_slice() == [self.clone()];
                if (is_of_runtime || is_unit) && is_alone() { name } else { format!("cgroup/{path}") }
            }
        }
    }

    /// Whether a finding is about it, or blames it.
    #[must_use]
    pub fn concerns(&self, finding: &Finding, snapshot: &Snapshot) -> bool {
        std::iter::once(&finding.subject).chain(&finding.culprit).any(|subject| self.is(subject, snapshot))
    }

    /// Whether what a workload does on a disk is its own.
    #[must_use]
    pub fn covers(&self, dev: DevNum, workload: Option<&CgroupPath>) -> bool {
        match self {
            Self::Disk(disk) => *disk == dev,
            Self::Cgroup(path) => workload.is_some_and(|workload| concern(path, workload)),
        }
    }

    fn is(&self, subject: &Subject, snapshot: &Snapshot) -> bool {
        match self {
            Self::Cgroup(path) => subject.cgroup.as_ref().is_some_and(|cgroup| concern(path, cgroup)),
            Self::Disk(dev) => {
                let leaves = snapshot.leaves(*dev);
                let of_name = |device: &&Device| Some(device.name) == subject.device;
                let theirs = snapshot.devices.iter().find(of_name).map(|device| snapshot.leaves(device.dev));
                theirs.unwrap_or_default().iter().any(|dev| leaves.contains(dev))
            }
        }
    }
}

/// Whether what is said of a cgroup concerns a target: it is the target's own or one below it, or it holds the target, as
/// a parent's limit does. What the root cgroup does is nobody's in particular.
fn concern(target: &CgroupPath, cgroup: &CgroupPath) -> bool {
    cgroup.is_within(target) || (target.is_within(cgroup) && !cgroup.is_root())
}

/// A disk that was asked for, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDisk {
    /// The whole disk.
    pub dev: DevNum,
    /// The steps from what was asked for, where it was not the disk's own name: `/var/lib is on vda1 253:1, disk vda 253:0`.
    pub steps: Option<String>,
}

/// The disk that a node, a name, a number, a mount point or any path on one means.
///
/// The kernel counts and limits whole disks: a partition's number in io.max is ENODEV.
///
/// # Errors
/// There is no such device; the message has the nearest.
pub fn find_disk(text: &str, snapshot: &Snapshot) -> Result<FoundDisk, Failure> {
    let found = device(text, snapshot)
        .map(|dev| FoundDisk { dev: snapshot.whole_disk(dev), steps: steps(text, dev, snapshot) });
    found.ok_or_else(|| {
        let names: Vec<&str> = snapshot.devices.iter().map(|device| device.name.as_str()).collect();
        let failure = Failure::usage(format!("no such device: {}", escape(text.as_bytes())));
        hinted(failure, &nearest(text.trim_start_matches("/dev/"), names))
    })
}

/// The device or partition that a text means.
fn device(text: &str, snapshot: &Snapshot) -> Option<DevNum> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let mapper = |device: &Device| {
        let mapper = device.queue.as_ref().and_then(|queue| queue.device_mapper.as_ref());
        mapper.is_some_and(|dm| dm.name.as_deref().is_ok_and(|dm| name.strip_prefix("mapper/") == Some(dm)))
    };
    let is_it = |device: &&Device| device.name.as_str() == name || mapper(device);
    let by_name = || snapshot.devices.iter().find(is_it).map(|device| device.dev);
    let by_number = || text.parse().ok().filter(|&dev| snapshot.device(dev).is_some());
    // A node that is not known is a misspelt node and no file of the root file system.
    let holds = |mount: &str| {
        let below = text.strip_prefix(mount.trim_end_matches('/'));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && !text.starts_with("/dev/")
    };
    let by_mount = || {
        let mounts = snapshot.filesystems.iter().filter(|fs| text.starts_with('/') && holds(&fs.mount_point));
        mounts.max_by_key(|fs| fs.mount_point.len()).map(|fs| fs.dev)
    };
    // Through overlays and past what lies on no disk, where the mounts are known.
    let by_path = || stack::locate(text, snapshot).and_then(|place| place.devices.first().copied());
    let by_mount = || if snapshot.mounts.is_empty() { by_mount() } else { by_path() };
    by_name().or_else(by_number).or_else(by_mount)
}

/// How a text came to mean a disk, where it is not the disk's own name.
fn steps(text: &str, dev: DevNum, snapshot: &Snapshot) -> Option<String> {
    let shown = |dev: DevNum| snapshot.device(dev).map(|device| format!("{} {dev}", device.name));
    let whole = snapshot.whole_disk(dev);
    let asked = text.strip_prefix("/dev/").unwrap_or(text);
    let is_name = |dev: DevNum| snapshot.device(dev).is_some_and(|device| device.name.as_str() == asked);
    let text = escape(text.as_bytes());
    match (whole == dev, is_name(dev)) {
        (true, true) => None,
        (true, false) => Some(format!("{text} is on disk {}", shown(whole)?)),
        (false, true) => Some(format!("{} is on disk {}", shown(dev)?, shown(whole)?)),
        (false, false) => Some(format!("{text} is on {}, disk {}", shown(dev)?, shown(whole)?)),
    }
}

/// All that a text can mean.
fn candidates(text: &str, snapshot: &Snapshot) -> Vec<Target> {
    let cgroups = |is: &dyn Fn(&Cgroup) -> bool| -> Vec<Target> {
        snapshot.cgroups.iter().filter(|cgroup| is(cgroup)).map(|cgroup| Target::Cgroup(cgroup.path.clone())).collect()
    };
    if let Some(path) = text.strip_prefix("cgroup/") {
        let path = CgroupPath::new(path.strip_prefix("/sys/fs/cgroup").unwrap_or(path).as_bytes());
        return cgroups(&|cgroup| path.as_ref() == Ok(&cgroup.path));
    }
    if let Some(pid) = text.strip_prefix("pid/") {
        let task = snapshot.tasks.iter().find(|task| pid.parse() == Ok(task.pid));
        return task.and_then(|task| task.cgroup.clone().ok()).map(Target::Cgroup).into_iter().collect();
    }
    if let Some(unit) = text.strip_prefix("unit/") {
        return cgroups(&|cgroup| is_unit(cgroup, unit, snapshot));
    }
    if text.contains('/') && !text.starts_with('/') {
        // The whole name before the beginning of an id, as docker takes them.
        let exact = cgroups(&|cgroup| is_named(cgroup, text, snapshot));
        return if exact.is_empty() { cgroups(&|cgroup| has_id(cgroup, text, snapshot)) } else { exact };
    }
    if text.starts_with('/') && text != "/" {
        // Every path lies on some disk, so it means one only where it is no cgroup's.
        let path = CgroupPath::new(text.as_bytes());
        let found = cgroups(&|cgroup| path.as_ref() == Ok(&cgroup.path));
        if !found.is_empty() {
            return found;
        }
    }
    let disk = device(text, snapshot).map(|dev| Target::Disk(snapshot.whole_disk(dev)));
    disk.into_iter().chain(cgroups(&|cgroup| is_bare(cgroup, text, snapshot))).collect()
}

fn is_unit(cgroup: &Cgroup, unit: &str, snapshot: &Snapshot) -> bool {
    let name = cgroup.path.name();
    let suffixed = |suffix: &str| name.strip_suffix(suffix.as_bytes()) == Some(unit.as_bytes());
    identify(&cgroup.path, snapshot).0 == WorkloadKind::Unit
        && (name == unit.as_bytes() || [".service", ".scope", ".slice"].into_iter().any(suffixed))
}

/// Whether a name with a slash in it is the cgroup's: the one that is shown, its runtime's, or its path.
fn is_named(cgroup: &Cgroup, text: &str, snapshot: &Snapshot) -> bool {
    // A container of a pod is shown as the pod's, and its runtime has a name for it all the same.
    let of_runtime = |container: &Container| {
        let name = text.strip_prefix(container.runtime.as_str()).and_then(|rest| rest.strip_prefix('/'));
        name.is_some() && name == container.name.as_deref()
    };
    // A cgroup that is neither container nor unit is called by its path, so its path finds it.
    identify(&cgroup.path, snapshot).1 == text
        || cgroup.path.to_string() == text
        || snapshot.container(&cgroup.path).is_some_and(of_runtime)
}

/// Whether the cgroup is the container `RUNTIME/ID`, the id whole or its beginning.
fn has_id(cgroup: &Cgroup, text: &str, snapshot: &Snapshot) -> bool {
    let Some((runtime, id)) = text.split_once('/') else { return false };
    let begins = |(of, whole): (String, String)| of == runtime && begins_id(&whole, id);
    container_id(cgroup, snapshot).is_some_and(begins)
}

/// Whether a text is the beginning of an id. Of a name such as `job_42` the beginning means nothing.
fn begins_id(whole: &str, text: &str) -> bool {
    whole.bytes().all(|b| b.is_ascii_hexdigit()) && !text.is_empty() && whole.starts_with(text)
}

/// Whether a bare name can mean the cgroup: its own name, its unit's, its container's or pod's, or the beginning of its
/// container's id.
fn is_bare(cgroup: &Cgroup, text: &str, snapshot: &Snapshot) -> bool {
    // Four digits at the least: shorter ones are begun by chance.
    const ID_MIN: usize = 4;
    let id = container_id(cgroup, snapshot);
    let is_id = id.is_some_and(|(_, id)| id == text || (text.len() >= ID_MIN && begins_id(&id, text)));
    let in_pod =
        |container: &Container| container.pod.as_ref().is_some_and(|pod| pod.container.as_deref() == Some(text));
    let of_container = |container: &Container| container.name.as_deref() == Some(text) || in_pod(container);
    let name_is = !cgroup.path.is_root() && cgroup.path.name() == text.as_bytes();
    is_id
        || name_is
        || snapshot.container(&cgroup.path).is_some_and(of_container)
        || snapshot.pod(&cgroup.path).is_some_and(|pod| pod.name == text)
        || is_unit(cgroup, text, snapshot)
}

/// A container's runtime and its whole id, as its state or its cgroup's name has it.
fn container_id(cgroup: &Cgroup, snapshot: &Snapshot) -> Option<(String, String)> {
    match snapshot.container(&cgroup.path) {
        Some(container) => Some((container.runtime.clone(), container.id.clone())),
        None => container_shape(&cgroup.path).map(|shape| (shape.runtime.to_owned(), shape.id)),
    }
}

fn ambiguous(text: &str, several: &[Target], snapshot: &Snapshot) -> Failure {
    let mut names: Vec<String> = several.iter().take(CANDIDATES_MAX).map(|target| target.name(snapshot)).collect();
    if several.len() > CANDIDATES_MAX {
        names.push(format!("and {} more", several.len() - CANDIDATES_MAX));
    }
    Failure::usage(format!("{} can mean several things: say which", escape(text.as_bytes()))).hint(names.join("\n"))
}

fn not_found(text: &str, snapshot: &Snapshot) -> Failure {
    if let Some(pid) = text.strip_prefix("pid/") {
        return Failure::usage(format!("no such process, or its cgroup is not known: {}", escape(pid.as_bytes())));
    }
    let failure = Failure::usage(format!("no such target: {}", escape(text.as_bytes())));
    let disks =
        snapshot.devices.iter().filter(|device| device.partition_of.is_none()).map(|device| device.name.to_string());
    let cgroups = snapshot.cgroups.iter().map(|cgroup| Target::Cgroup(cgroup.path.clone()).name(snapshot));
    let names: Vec<String> = disks.chain(cgroups).collect();
    let bare = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    hinted(failure, &nearest(bare, names.iter().map(String::as_str)))
}

fn hinted(failure: Failure, near: &[&str]) -> Failure {
    match did_you_mean(near) {
        Some(hint) => failure.hint(hint),
        None => failure.hint("quell stat --all lists devices and workloads"),
    }
}
