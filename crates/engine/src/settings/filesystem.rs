//! What decides how a file system's writes become durable: its journal, its barriers, its intervals.
//!
//! From three sources: the options in force, which ext4 tells in `/proc/fs/ext4` and others show in their mount; the
//! superblock, for what is fixed on the disk; and the caches of the disks below, since a barrier matters only where
//! something is volatile.

use quell_kfile::superblock::{DataMode, ExtJournal, Superblock};
use quell_units::{Bytes, DevNum, Gap, Known};

use super::{Judged, Verdict};
use crate::class::DiskClass;
use crate::snapshot::{Filesystem, Mount, Snapshot};

/// A journal below this is filled by one writer that is held back: its reserved space keeps everybody waiting. Seen at
/// 16 MB, gone at 192 MB.
const JOURNAL_SMALL: Bytes = Bytes(64 << 20);

/// A file system, mounted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsReport {
    /// The devices it lies on.
    pub devices: Vec<DevNum>,
    /// Its type.
    pub fs_type: String,
    /// Every place where it is seen, the first mount first; empty where it is not mounted.
    pub mount_points: Vec<String>,
    /// Its size, where it is known.
    pub size: Option<Bytes>,
    /// How it is set up.
    pub settings: Vec<Judged>,
    /// What could not be read of it.
    pub gaps: Vec<(String, Gap)>,
}

/// Every file system on a block device, in the order of its first mount, then those that are not mounted.
#[must_use]
pub fn filesystems(snapshot: &Snapshot) -> Vec<FsReport> {
    let mut reports: Vec<FsReport> = Vec::new();
    for mount in snapshot.mounts.iter().filter(|mount| !mount.on.is_empty()) {
        // The kernel shows as many mounts of one file system as there are, subvolumes and bind mounts included.
        match reports.iter_mut().find(|report| report.devices == mount.on) {
            Some(known) if known.mount_points.contains(&mount.mount_point) => {}
            Some(known) => known.mount_points.push(mount.mount_point.clone()),
            None => reports.push(mounted(mount, snapshot)),
        }
    }
    let unmounted = snapshot.on_disk.iter().filter(|on_disk| {
        on_disk.superblock.is_ok() && !snapshot.mounts.iter().any(|mount| mount.on.contains(&on_disk.dev))
    });
    let unmounted: Vec<FsReport> = unmounted.filter_map(|on_disk| not_mounted(on_disk.dev, snapshot)).collect();
    reports.extend(unmounted);
    reports
}

/// What a report is made from.
struct Fs<'a> {
    snapshot: &'a Snapshot,
    dev: DevNum,
    options: Vec<&'a str>,
    source: String,
    superblock: Known<Superblock>,
    mounted: bool,
}

fn mounted(mount: &Mount, snapshot: &Snapshot) -> FsReport {
    let of_mount = |fs: &&Filesystem| mount.on.contains(&fs.dev);
    // ext4's own file has the options in force, the mount only those that are no default.
    let options = snapshot.filesystems.iter().find(of_mount).map_or(&*mount.fs_options, |fs| &fs.options);
    let dev = mount.on.first().copied().unwrap_or(mount.dev);
    let name = snapshot.device(dev).map(|device| device.name.to_string()).unwrap_or_default();
    let own = mount.fs_type.starts_with("ext") && options != mount.fs_options;
    let fs = Fs {
        snapshot,
        dev,
        options: options.split(',').collect(),
        source: if own { format!("/proc/fs/ext4/{name}/options") } else { "/proc/self/mountinfo".into() },
        superblock: superblock(dev, snapshot),
        mounted: true,
    };
    fs.report(mount.on.clone(), &mount.fs_type, vec![mount.mount_point.clone()])
}

fn not_mounted(dev: DevNum, snapshot: &Snapshot) -> Option<FsReport> {
    let seen = superblock(dev, snapshot).ok()?;
    let source = "superblock".into();
    let fs = Fs { snapshot, dev, options: Vec::new(), source, superblock: Ok(seen), mounted: false };
    let fs_type = match seen {
        Superblock::Xfs(_) => "xfs",
        Superblock::Ext(ext) if ext.journal == ExtJournal::Absent => "ext2/ext4",
        Superblock::Ext(_) => "ext3/ext4",
    };
    Some(fs.report(vec![dev], fs_type, Vec::new()))
}

fn superblock(dev: DevNum, snapshot: &Snapshot) -> Known<Superblock> {
    snapshot.on_disk.iter().find(|on_disk| on_disk.dev == dev).map_or(Err(Gap::NotInKernel), |found| found.superblock)
}

impl Fs<'_> {
    fn report(&self, devices: Vec<DevNum>, fs_type: &str, mount_points: Vec<String>) -> FsReport {
        let size = match self.superblock {
            Ok(Superblock::Ext(ext)) => Some(ext.size),
            Ok(Superblock::Xfs(xfs)) => Some(xfs.size),
            Err(_) => self.device_size(),
        };
        let settings = match fs_type {
            fs_type if fs_type.starts_with("ext") => self.ext(),
            "xfs" => self.xfs(),
            "btrfs" => self.btrfs(),
            _ => [self.barrier(), self.discard()].into_iter().flatten().collect(),
        };
        let has_superblock = fs_type.starts_with("ext") || fs_type == "xfs";
        // Any other reason is the host's to tell, since it holds for every file system alike.
        let gap = self.superblock.err().filter(|gap| has_superblock && *gap == Gap::NotInKernel);
        let gaps = gap.map(|gap| ("superblock".to_owned(), gap)).into_iter().collect();
        FsReport { devices, fs_type: fs_type.into(), mount_points, size, settings, gaps }
    }

    fn ext(&self) -> Vec<Judged> {
        let on_disk = match self.superblock {
            Ok(Superblock::Ext(ext)) => Some(ext),
            _ => None,
        };
        let journal = on_disk.map(|ext| ext.journal);
        let has_journal = journal.is_none_or(|journal| journal != ExtJournal::Absent);
        let mut out = Vec::new();
        out.extend(journal.map(|journal| {
            self.told("journal", journal_text(journal, self.snapshot), "superblock", journal_verdict(journal))
        }));
        if has_journal {
            let default = on_disk.and_then(|ext| ext.default_data_mode).map(data_word);
            let mode = self.value("data").or(default).map_or("ordered", |mode| mode);
            out.push(self.told("data", mode.into(), &self.source, data_verdict(mode)));
            let commit = self.value("commit").unwrap_or("5");
            out.push(self.told("commit", format!("{commit} s"), &self.source, commit_verdict(commit, 5)));
        }
        let off_by_default = on_disk.is_some_and(|ext| ext.default_nobarrier) && !self.has("barrier");
        out.extend(self.barrier_or(off_by_default));
        if let Some(ext) = on_disk {
            let (value, verdict) = match (ext.metadata_checksums, self.has("journal_checksum")) {
                (true, _) => ("metadata and journal", Verdict::fine("a torn commit is seen and not replayed")),
                (false, true) => ("journal", Verdict::fine("a torn commit is seen and not replayed")),
                _ => ("none", Verdict::open("a torn commit may be replayed after a crash (metadata_csum)")),
            };
            out.push(self.told("checksums", value.into(), "superblock", verdict));
            if ext.errors > 0 {
                let why = "the kernel noted errors in it since it was last checked: plan an fsck";
                out.push(self.told("errors", ext.errors.to_string(), "superblock", Verdict::wrong(why)));
            }
        }
        if self.has("journal_async_commit") {
            let why = "a commit is written without waiting for its blocks: only its checksum tells whether it is whole";
            out.push(self.told("journal_async_commit", "on".into(), &self.source, Verdict::questionable(why)));
        }
        out.extend(self.discard());
        out
    }

    fn xfs(&self) -> Vec<Judged> {
        let mut out = Vec::new();
        if let Ok(Superblock::Xfs(xfs)) = self.superblock {
            let value = if xfs.external_log { format!("external, {}", xfs.log) } else { xfs.log.to_string() };
            // No size of its log was seen to matter to a neighbour; an ext4 journal's was.
            out.push(self.told("log", value, "superblock", Verdict::fine("")));
            let (value, verdict) = match xfs.metadata_checksums {
                true => ("metadata and log", Verdict::fine("")),
                false => ("none", Verdict::questionable("the old format (version 4): support for it ends")),
            };
            out.push(self.told("checksums", value.into(), "superblock", verdict));
        } else if let Some(log) = self.value("logdev") {
            out.push(self.told("log", format!("external, {log}"), &self.source, Verdict::fine("")));
        }
        out.extend(self.barrier());
        for option in ["logbufs", "logbsize"] {
            out.extend(
                self.value(option).map(|value| self.told(option, value.into(), &self.source, Verdict::fine(""))),
            );
        }
        if self.mounted {
            let (value, why) = match ["prjquota", "pquota", "pqnoenforce"].iter().find(|option| self.has(option)) {
                Some(&"pqnoenforce") => ("counted", "project quotas are counted and not enforced"),
                Some(_) => ("on", "sizes of writable layers can be held (storage-opt size)"),
                None => ("off", "sizes of writable layers cannot be held (storage-opt size needs pquota)"),
            };
            out.push(self.told("project quota", value.into(), &self.source, Verdict::open(why)));
        }
        out.extend(self.discard());
        out
    }

    fn btrfs(&self) -> Vec<Judged> {
        let mut out = Vec::new();
        let commit = self.value("commit").unwrap_or("30");
        out.push(self.told("commit", format!("{commit} s"), &self.source, commit_verdict(commit, 30)));
        out.extend(self.barrier());
        let (value, verdict) = match (self.has("nodatasum"), self.has("nodatacow")) {
            (_, true) => ("metadata", Verdict::open("nodatacow: data is written in place and not checked")),
            (true, _) => ("metadata", Verdict::questionable("nodatasum: rotten data is not seen")),
            _ => ("data and metadata", Verdict::fine("")),
        };
        out.push(self.told("checksums", value.into(), &self.source, verdict));
        out.extend(self.discard());
        out
    }

    fn barrier(&self) -> Option<Judged> {
        self.barrier_or(false)
    }

    /// Whether flushes are sent. Without them a power cut loses what the disks hold in a volatile cache, in any order.
    fn barrier_or(&self, off_by_default: bool) -> Option<Judged> {
        if !self.mounted && !off_by_default {
            return None;
        }
        let off = off_by_default || self.has("nobarrier") || self.value("barrier") == Some("0");
        if !off {
            return Some(self.told("barrier", "on".into(), &self.source, Verdict::fine("")));
        }
        let leaves = self.snapshot.leaves(self.dev);
        let caches = leaves.iter().map(|&leaf| {
            let queue = self.snapshot.device(leaf).and_then(|device| device.queue.as_deref());
            (leaf, queue.and_then(|queue| queue.write_cache.as_deref().ok()))
        });
        let name = |leaf: DevNum| self.snapshot.device(leaf).map_or(leaf.to_string(), |disk| disk.name.to_string());
        let (volatile, rest): (Vec<_>, Vec<_>) = caches.partition(|(_, cache)| *cache == Some("write back"));
        let verdict = match (volatile.first(), rest.iter().find(|(_, cache)| cache.is_none())) {
            (Some((leaf, _)), _) => Verdict::wrong(format!(
                "unsafe: {} has a volatile write cache, and no flush is sent. A power cut loses what was synced, in any \
                 order; remount with barriers",
                name(*leaf)
            )),
            (None, Some((leaf, _))) => Verdict::questionable(format!(
                "no flush is sent, and whether {} has a volatile cache is not known",
                name(*leaf)
            )),
            (None, None) => Verdict::fine("no disk below says it has a volatile cache"),
        };
        Some(self.told("barrier", "off".into(), &self.source, verdict))
    }

    fn discard(&self) -> Option<Judged> {
        let value = self.options.iter().find(|option| **option == "discard" || option.starts_with("discard="))?;
        let class = self.snapshot.device(self.dev).map(|device| DiskClass::of(self.snapshot, device));
        let verdict = match *value {
            _ if class == Some(DiskClass::Virtual) => {
                Verdict::open("deletions are passed on at once: what serves the disk may need them to give space back")
            }
            "discard=async" => Verdict::fine("discards are sent when the disk has time"),
            _ => Verdict::questionable(
                "each deletion sends discards in the middle of the work: fstrim.timer does it at night",
            ),
        };
        let value = value.strip_prefix("discard=").unwrap_or("on");
        Some(self.told("discard", value.into(), "/proc/self/mountinfo", verdict))
    }

    fn told(&self, what: &str, value: String, source: &str, verdict: Verdict) -> Judged {
        let source = match (source, self.snapshot.device(self.dev)) {
            ("superblock", Some(device)) => format!("/dev/{} (superblock)", device.name.as_str().replace('!', "/")),
            (source, _) => source.to_owned(),
        };
        Judged::of(what, value, source, verdict)
    }

    fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }

    fn device_size(&self) -> Option<Bytes> {
        self.snapshot.size_of(self.dev)
    }
}

const fn data_word(mode: DataMode) -> &'static str {
    match mode {
        DataMode::Journal => "journal",
        DataMode::Ordered => "ordered",
        DataMode::Writeback => "writeback",
    }
}

fn data_verdict(mode: &str) -> Verdict {
    match mode {
        "ordered" => Verdict::fine("data is on disk before what points to it"),
        "journal" => Verdict::questionable(
            "every byte is written twice, and no cgroup is charged for its write-back: limits do not hold it",
        ),
        "writeback" => Verdict::questionable(
            "after a crash a file may hold old blocks: safe only for a database that checks its pages and syncs its log",
        ),
        _ => Verdict::open(""),
    }
}

fn commit_verdict(value: &str, default: u64) -> Verdict {
    match value.parse::<u64>() {
        Ok(seconds) if seconds > default.max(30) => {
            Verdict::questionable(format!("a crash loses up to {seconds} s of what nobody synced"))
        }
        Ok(seconds) if seconds == default => Verdict::fine("the default"),
        Ok(_) => Verdict::open(format!("the default is {default}")),
        Err(_) => Verdict::open(""),
    }
}

fn journal_text(journal: ExtJournal, snapshot: &Snapshot) -> String {
    match journal {
        ExtJournal::Absent => "none".into(),
        ExtJournal::Internal(None) => "internal".into(),
        ExtJournal::Internal(Some(size)) => format!("internal, {size}"),
        ExtJournal::External(0) => "external".into(),
        ExtJournal::External(noted) => {
            // As `new_decode_dev`: 12 bits of the major number, 20 of the minor number around them.
            let dev = DevNum { major: (noted >> 8) & 0xFFF, minor: (noted & 0xFF) | ((noted >> 12) & 0xF_FF00) };
            match snapshot.device(dev) {
                Some(device) => format!("external, {} {dev}", device.name),
                None => format!("external, {dev} when it was made"),
            }
        }
    }
}

fn journal_verdict(journal: ExtJournal) -> Verdict {
    match journal {
        ExtJournal::Absent => {
            Verdict::questionable("nothing is replayed after a crash: fsck reads all of it, and metadata may be lost")
        }
        ExtJournal::Internal(Some(size)) if size < JOURNAL_SMALL => Verdict::questionable(
            "small: one writer that is held back by a limit fills it, and everybody's fsync waits",
        ),
        ExtJournal::Internal(_) => Verdict::fine(""),
        ExtJournal::External(_) => {
            Verdict::fine("its disk is needed to mount this one: lose it and the file system is down")
        }
    }
}
