//! What a paste says that somebody asked for, and what was asked for: a whole disk, a partition, or no disk at all.
//!
//! A live host shows what holds and a paste often shows only what was wanted, so these answers are empty on a live host.

use quell_paste::{Copied, DeviceFact, Pasted, Statement};
use quell_units::{CgroupPath, DevNum};

use super::Scene;
use crate::snapshot::Cgroup;

/// What a setting's device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A disk, or a whole device above one.
    Whole,
    /// A partition; of this disk, where that can be told.
    Partition(Option<String>),
    /// No block device: `/dev/random`, a number of a character device's driver.
    NoDisk,
    /// Not told.
    Unknown,
}

/// Drivers whose numbers tell a partition: the major numbers, and how many minors a disk has (`sd`, `hd`, `xvd`; the
/// kernel's `Documentation/admin-guide/devices.txt`). Others hand their numbers out as they come.
const NUMBERED: [(std::ops::RangeInclusive<u32>, u32); 6] =
    [(8..=8, 16), (65..=71, 16), (128..=135, 16), (3..=3, 64), (22..=22, 64), (202..=202, 16)];

/// Majors of the character devices that settings name by mistake: memory (`random`, `null`), terminals, misc. Block
/// devices of the same majors are RAM disks and floppies, which nobody limits.
const CHARACTER: [u32; 5] = [1, 2, 4, 5, 10];

/// Nodes in `/dev` that are no disks.
const NO_DISKS: [&str; 7] = ["random", "urandom", "null", "zero", "full", "tty", "console"];

impl Scene<'_> {
    /// What a paste says; nothing on a live host.
    #[must_use]
    pub fn pasted(&self) -> Option<&Pasted> {
        self.window.pasted.as_deref()
    }

    /// What programs and the kernel said, and what somebody asked for.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        self.pasted().map_or(&[], |pasted| &pasted.statements)
    }

    /// The copies that dd made.
    pub fn copies(&self) -> impl Iterator<Item = &Copied> {
        self.statements()
            .iter()
            .filter_map(|said| if let Statement::Copied(copied) = said { Some(copied) } else { None })
    }

    /// The version of cgroups that controls I/O, where it is told: by a statement, or by the host itself.
    #[must_use]
    pub fn cgroup_version(&self) -> Option<u8> {
        let told = self.statements().iter().find_map(|said| match said {
            Statement::CgroupVersion(version) => Some(*version),
            _ => None,
        });
        // A paste has no mounts: its snapshot says version 2 for want of better.
        let v1 = self.window.t1.host.cgroups.io_is_v1().then_some(1);
        told.or(v1).or_else(|| self.pasted().is_none().then_some(2))
    }

    /// What the device of this number is: by what is said of it, by the snapshot, else by the kernel's numbering.
    #[must_use]
    pub fn named_by_number(&self, dev: DevNum) -> Named {
        let fact = self.facts().iter().find(|fact| fact.dev == Some(dev));
        if let Some(told) = fact.and_then(of_fact) {
            return told;
        }
        if let Some(device) = self.window.t1.device(dev) {
            return device.partition_of.map_or(Named::Whole, |disk| Named::Partition(self.device_name(disk)));
        }
        if CHARACTER.contains(&dev.major) {
            return Named::NoDisk;
        }
        let minors = NUMBERED.iter().find(|(majors, _)| majors.contains(&dev.major)).map(|(_, minors)| *minors);
        match minors.map(|minors| dev.minor % minors) {
            None => Named::Unknown,
            Some(0) => Named::Whole,
            Some(_) => Named::Partition(fact.and_then(|fact| partition_name(&fact.name)).map(str::to_owned)),
        }
    }

    /// What a setting's device is, named by a node, a number or a mount point.
    #[must_use]
    pub fn named(&self, device: &str) -> Named {
        if let Ok(dev) = device.parse() {
            return self.named_by_number(dev);
        }
        let mounted = self.facts().iter().find(|fact| fact.mounts.iter().any(|mount| mount == device));
        let name = match (device.strip_prefix("/dev/"), mounted) {
            (Some(node), _) => node,
            (None, Some(fact)) => &fact.name,
            (None, None) if device.contains('/') || device.is_empty() => return Named::Unknown,
            (None, None) => device,
        };
        if let Some(told) = self.facts().iter().find(|fact| fact.name == name).and_then(of_fact) {
            return told;
        }
        let known = self.window.t1.devices.iter().find(|device| device.name.as_str() == name);
        match known {
            Some(device) => device.partition_of.map_or(Named::Whole, |disk| Named::Partition(self.device_name(disk))),
            None if NO_DISKS.contains(&name) => Named::NoDisk,
            None => by_name(name),
        }
    }

    /// The number of a setting's device, where it is told.
    #[must_use]
    pub fn number_of(&self, device: &str) -> Option<DevNum> {
        let name = device.strip_prefix("/dev/").unwrap_or(device);
        let fact =
            self.facts().iter().find(|fact| fact.name == name || fact.mounts.iter().any(|mount| mount == device));
        let known = self.window.t1.devices.iter().find(|known| known.name.as_str() == name);
        device.parse().ok().or_else(|| fact?.dev).or_else(|| Some(known?.dev))
    }

    /// The cgroup of whom a setting is said: of the same name, or the only one that was pasted.
    #[must_use]
    pub fn cgroup_of(&self, by: &str) -> Option<&Cgroup> {
        let name = by.rsplit('/').next().unwrap_or(by);
        let mut configured = self.window.t1.cgroups.iter().filter(|cgroup| {
            !cgroup.path.is_root()
                && cgroup.config.as_ref().is_some_and(|config| config.io_max.is_ok() || config.io_weight.is_ok())
        });
        let same =
            self.window.t1.cgroups.iter().find(|cgroup| cgroup.path.name() == name.as_bytes() && !name.is_empty());
        let only = || configured.next().filter(|_| configured.next().is_none());
        same.or_else(only)
    }

    /// The bytes that a cgroup wrote between the two moments, on all devices; `None` where they were not read twice.
    #[must_use]
    pub fn written_bytes(&self, path: &CgroupPath) -> Option<u64> {
        let rows = |cgroup: &Cgroup| {
            let rows = cgroup.io.as_ref().ok()?;
            Some(rows.iter().map(|row| row.write_bytes.get()).fold(0, u64::saturating_add))
        };
        rows(self.window.t1.cgroup(path)?)?.checked_sub(rows(self.window.t0.cgroup(path)?)?)
    }

    fn facts(&self) -> &[DeviceFact] {
        self.pasted().map_or(&[], |pasted| &pasted.devices)
    }

    fn device_name(&self, dev: DevNum) -> Option<String> {
        self.window.t1.device(dev).map(|device| device.name.as_str().to_owned())
    }
}

/// What a fact says outright; its name and number may still tell more.
fn of_fact(fact: &DeviceFact) -> Option<Named> {
    match fact.kind.as_deref()? {
        "part" => Some(Named::Partition(fact.below.first().cloned().or_else(|| disk_name(&fact.name)))),
        "char" => Some(Named::NoDisk),
        _ => Some(Named::Whole),
    }
}

/// What a name says that follows the kernel's own pattern.
fn by_name(name: &str) -> Named {
    let prefixes = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "md", "nbd", "loop", "dm-"];
    match disk_name(name) {
        Some(disk) => Named::Partition(Some(disk)),
        None if prefixes.iter().any(|prefix| name.starts_with(prefix)) => Named::Whole,
        None => Named::Unknown,
    }
}

fn partition_name(name: &str) -> Option<&str> {
    disk_name(name).and_then(|disk| name.get(..disk.len()))
}

/// The disk that a partition of this name lies on: `sda4` of `sda`, `nvme0n1p2` of `nvme0n1`; `None` for another name.
fn disk_name(name: &str) -> Option<String> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == name.len() || stem.is_empty() {
        return None;
    }
    let by_letter = ["sd", "hd", "vd", "xvd"].iter().find_map(|prefix| stem.strip_prefix(prefix));
    if by_letter.is_some_and(|letters| !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase())) {
        return Some(stem.to_owned());
    }
    let disk = stem.strip_suffix('p')?;
    let by_number = ["nvme", "mmcblk", "md", "nbd", "loop"].iter().any(|prefix| disk.starts_with(prefix));
    (by_number && disk.ends_with(|c: char| c.is_ascii_digit())).then(|| disk.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_partition_by_the_kernels_patterns() {
        for (name, disk) in [("sda4", "sda"), ("vda1", "vda"), ("nvme0n1p2", "nvme0n1"), ("mmcblk0p1", "mmcblk0")] {
            assert_eq!(by_name(name), Named::Partition(Some(disk.into())), "{name}");
        }
        for name in ["sda", "nvme0n1", "dm-0", "md127", "loop7", "xvdba"] {
            assert_eq!(by_name(name), Named::Whole, "{name}");
        }
        assert_eq!(by_name("vg-home"), Named::Unknown);
        assert_eq!(by_name("4"), Named::Unknown);
    }
}
