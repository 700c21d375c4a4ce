//! Where a path, a device's name or a container lies: the steps down to the devices, each as a sentence.

use quell_units::{CgroupPath, DevNum, escape};

use super::Layer;
use crate::identity::container_shape;
use crate::snapshot::{Device, Mount, Snapshot};

/// Where something lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// How that was found, from what was asked for to the disk; empty where it is a disk by its own name.
    pub steps: Vec<String>,
    /// The devices it lies on, the highest of each stack; none where none can be seen.
    pub devices: Vec<DevNum>,
    /// Where the file system is mounted, where a mount was met.
    pub mount_point: Option<String>,
    /// Why the devices below cannot be seen, where they cannot.
    pub unseen: Option<String>,
}

/// Where a node, a device's name or number, a mount point or any path lies. Links are the caller's to follow.
#[must_use]
pub fn locate(text: &str, snapshot: &Snapshot) -> Option<Place> {
    let mut place = match find_device(text, snapshot) {
        Some(dev) => Place { devices: vec![dev], ..Place::default() },
        // A node that is not known is a misspelt node and no file of the file system that holds `/dev`.
        None if text.starts_with("/dev/") => return None,
        None if text.starts_with('/') => of_path(text, snapshot)?,
        None => return None,
    };
    place.add_layers(snapshot);
    Some(place)
}

/// Where a device lies.
#[must_use]
pub fn locate_device(dev: DevNum, snapshot: &Snapshot) -> Place {
    let mut place = Place { devices: vec![dev], ..Place::default() };
    place.add_layers(snapshot);
    place
}

/// Where a container or service lies: its writable layer, as its runtime's state or the mounts tell it, and else the disks
/// on which its cgroup is known to have done I/O. `None` where none of them tells anything.
#[must_use]
pub fn locate_cgroup(path: &CgroupPath, snapshot: &Snapshot) -> Option<Place> {
    let container = snapshot.container(path);
    let id = container.map(|container| container.id.clone()).or_else(|| container_shape(path).map(|shape| shape.id));
    // Twelve digits are what people call a container by; fewer would be found by chance.
    const ID_MIN: usize = 12;
    let id = id.filter(|id| id.len() >= ID_MIN);
    let root = |mount: &&Mount| {
        id.as_ref().is_some_and(|id| mount.fs_type == "overlay" && mount.mount_point.contains(id.as_str()))
    };
    let upper = container.and_then(|container| container.upper_dir.as_deref());
    let by_upper = upper.and_then(|upper| {
        let place = of_path(upper, snapshot)?;
        let step = format!("its writable layer is {}", escape(upper.as_bytes()));
        Some(Place { steps: [vec![step], place.steps].concat(), ..place })
    });
    let by_mount = || Some(of_mount_point(snapshot.mounts.iter().find(root)?, snapshot));
    let mut place = by_upper.or_else(by_mount).or_else(|| by_counters(path, snapshot))?;
    place.add_layers(snapshot);
    Some(place)
}

fn of_mount_point(mount: &Mount, snapshot: &Snapshot) -> Place {
    of_mount(mount, &mount.mount_point, snapshot, 0)
}

fn by_counters(path: &CgroupPath, snapshot: &Snapshot) -> Option<Place> {
    let rows = snapshot.cgroup(path)?.io.as_ref().ok()?;
    let used = rows.iter().filter(|row| row.read_ios + row.write_ios > 0).map(|row| row.dev);
    // A layer and the disk below it count the same bytes: the layer is what the cgroup wrote to.
    let used: Vec<DevNum> = used.filter(|&dev| snapshot.device(dev).is_some()).collect();
    let is_below = |dev: DevNum| used.iter().any(|&top| top != dev && snapshot.stack(top).contains(&dev));
    let devices: Vec<DevNum> = used.iter().copied().filter(|&dev| !is_below(dev)).collect();
    (!devices.is_empty()).then(|| Place {
        steps: vec![format!("{path} did I/O on {}", names(&devices, snapshot))],
        devices,
        ..Place::default()
    })
}

impl Place {
    /// Tells the way from its devices to the disks, where there is one.
    fn add_layers(&mut self, snapshot: &Snapshot) {
        for dev in self.devices.iter().flat_map(|&top| snapshot.stack(top)) {
            let below = snapshot.below(dev);
            let (Some(device), false) = (snapshot.device(dev), below.is_empty()) else { continue };
            let (name, below) = (shown(dev, snapshot), names(&below, snapshot));
            let step = match Layer::of(device, snapshot) {
                Layer::Partition => format!("{name} is a partition of {below}"),
                Layer::Loop => format!("{name} is a file on {below}"),
                layer => format!("{name} ({}) lies on {below}", layer.as_str()),
            };
            if !self.steps.contains(&step) {
                self.steps.push(step);
            }
        }
    }
}

/// The device or partition that a name, a node or a number means.
fn find_device(text: &str, snapshot: &Snapshot) -> Option<DevNum> {
    let name = text.strip_prefix("/dev/").unwrap_or(text);
    let is_it = |device: &&Device| {
        let mapper = device.queue.as_ref().and_then(|queue| queue.device_mapper.as_ref());
        let mapped = mapper.and_then(|mapper| mapper.name.as_deref().ok());
        // The kernel writes the `/` of a name as `!`.
        let is_name = device.name.as_str() == name || device.name.as_str() == name.replace('/', "!");
        is_name || (mapped.is_some() && (name.strip_prefix("mapper/") == mapped || (Some(name) == mapped)))
    };
    let by_number = || text.parse().ok().filter(|&dev| snapshot.device(dev).is_some());
    snapshot.devices.iter().find(is_it).map(|device| device.dev).or_else(by_number)
}

/// Where a file lies: on the mount with the longest mount point above it, of equals the later one.
fn of_path(path: &str, snapshot: &Snapshot) -> Option<Place> {
    mount_above(path, snapshot).map(|mount| of_mount(mount, path, snapshot, 0))
}

fn mount_above<'s>(path: &str, snapshot: &'s Snapshot) -> Option<&'s Mount> {
    let holds = |mount: &&Mount| {
        let rest = path.strip_prefix(mount.mount_point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    snapshot.mounts.iter().filter(holds).max_by_key(|mount| mount.mount_point.len())
}

fn of_mount(mount: &Mount, path: &str, snapshot: &Snapshot, depth: usize) -> Place {
    let shown_path = escape(path.as_bytes());
    let on = if mount.on.is_empty() { &*mount.source } else { &names(&mount.on, snapshot) };
    let step = match path.trim_end_matches('/') == mount.mount_point.trim_end_matches('/') {
        true => format!("{} is {} on {on}", mount.mount_point, mount.fs_type),
        false => format!("{shown_path} is below {}, which is {} on {on}", mount.mount_point, mount.fs_type),
    };
    let mount_point = Some(mount.mount_point.clone());
    if let Some(upper) = &mount.upper_dir {
        let steps = vec![format!("{} is an overlay that writes to {upper}", mount.mount_point)];
        // Seen from inside a container, the upper directory is outside of all that is mounted here.
        let below = mount_above(upper, snapshot).filter(|below| **below != *mount && depth < super::DEPTH_MAX);
        return match below.map(|below| of_mount(below, upper, snapshot, depth + 1)) {
            Some(below) => Place { steps: [steps, below.steps].concat(), mount_point, ..below },
            None => {
                let unseen = Some("the overlay's upper directory lies outside of this mount namespace".to_owned());
                Place { steps, mount_point, unseen, ..Place::default() }
            }
        };
    }
    let unseen = mount.on.is_empty().then(|| unseen(mount));
    Place { steps: vec![step], devices: mount.on.clone(), mount_point, unseen }
}

/// Why the disks that keep a mount's files cannot be seen from here; `None` where they can, or where no disk keeps them.
#[must_use]
pub fn kept_out_of_sight(mount: &Mount) -> Option<String> {
    const KEPT_ELSEWHERE: [&str; 12] =
        ["zfs", "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "glusterfs", "lustre", "btrfs", "bcachefs"];
    let is_fuse = mount.fs_type.starts_with("fuse.") || mount.fs_type == "fuseblk";
    let kept = is_fuse || KEPT_ELSEWHERE.contains(&&*mount.fs_type);
    (mount.on.is_empty() && kept).then(|| unseen(mount))
}

/// Why no disk can be named below a mount.
fn unseen(mount: &Mount) -> String {
    match &*mount.fs_type {
        "zfs" => format!(
            "ZFS does not tell the kernel its disks: `zpool status {}` does; limits of cgroups do not see what it writes",
            mount.source.split('/').next().unwrap_or_default()
        ),
        "overlay" => "an overlay without an upper directory is read only".into(),
        "tmpfs" | "ramfs" | "devtmpfs" | "rootfs" | "hugetlbfs" => "it is memory, and swap at the most".into(),
        "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "glusterfs" | "lustre" => {
            "its disks are another machine's: limits of cgroups hold here only what goes to local disks".into()
        }
        kind if kind.starts_with("fuse") => "a program serves it: the I/O is that program's".into(),
        "btrfs" | "bcachefs" => "the kernel names none of its disks here".into(),
        _ => "no disk lies below it".into(),
    }
}

/// A device for people: `vda1 253:1`.
pub(super) fn shown(dev: DevNum, snapshot: &Snapshot) -> String {
    let Some(device) = snapshot.device(dev) else { return dev.to_string() };
    let mapper = device.queue.as_ref().and_then(|queue| queue.device_mapper.as_ref());
    match mapper.and_then(|mapper| mapper.name.as_deref().ok()) {
        Some(mapped) => format!("{} {dev} \"{}\"", device.name, escape(mapped.as_bytes())),
        None => format!("{} {dev}", device.name),
    }
}

fn names(devices: &[DevNum], snapshot: &Snapshot) -> String {
    let names: Vec<String> = devices.iter().map(|&dev| shown(dev, snapshot)).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}
