//! The commands that advice gives: what the shell or systemd can do on this host, and what takes it back.
//!
//! The one place that writes commands which change something or name something of the host, because they differ by host
//! and not by rule: a workload under systemd is set
//! through systemd, since a raw write to a unit's cgroup is lost at the next daemon-reload; version 1 has other files; and
//! undo restores what was there, not a default. A name that would need quoting beyond the ordinary gets no command:
//! nothing that a host calls itself may end up as shell syntax.

use quell_units::{Bytes, CgroupPath, DevNum, count, whole};

use super::finding::Advice;
use super::scene::{CapKey, Disk, Scene, Workload};
use crate::hierarchy::{Controller, unit_of};
use crate::snapshot::Snapshot;

/// A command, and the one that takes it back.
type Pair = Option<(String, String)>;

impl Advice {
    /// This advice with its commands, where there are any.
    pub(super) fn with(self, pair: Pair) -> Self {
        let (command, undo) = pair.unzip();
        Self { command, undo, ..self }
    }
}

/// Advice to cap a workload on a disk at about half of what it does now.
pub(super) fn cap_at_half(scene: &Scene, workload: &Workload, disk: &Disk) -> Advice {
    if workload.inner {
        return Advice::text(format!(
            "see what in {} does it: processes there, or cgroups that ended in the window; a cap would hold all below",
            workload.name
        ));
    }
    let io = workload.io_on(disk.dev);
    let (read, write) = io.map_or((0.0, 0.0), |io| (io.read.bytes_per_sec, io.write.bytes_per_sec));
    let (key, rate) = if write >= read { (CapKey::WriteBytes, write) } else { (CapKey::ReadBytes, read) };
    let limit = round(rate / 2.0);
    let what = if key.is_write() { "writes" } else { "reads" };
    let no_file = scene.config(&workload.path).is_some_and(|config| config.io_max.is_err());
    let first = match no_file {
        true => format!("find out what keeps io.max away (quell cgroup show {}), then ", workload.name),
        false => String::new(),
    };
    let text = format!(
        "{first}cap {}'s {what} on {} at {}/s, about half of what it does now",
        workload.name,
        disk.name,
        Bytes(limit)
    );
    let buffered = scene.backlog(&workload.path).is_some_and(|backlog| backlog.bytes() > 1e6);
    let risk = if buffered {
        "its writes pile up in the page cache, and its next fsync waits for them"
    } else {
        "its own work takes longer"
    };
    Advice::text(text).risk(risk).with(set_cap(scene, &workload.path, disk.dev, key, Some(limit)))
}

/// Advice to set a limit on a device.
pub(super) fn cap(
    scene: &Scene,
    path: &CgroupPath,
    dev: DevNum,
    key: CapKey,
    limit_per_sec: f64,
    text: impl Into<String>,
) -> Advice {
    Advice::text(text).with(set_cap(scene, path, dev, key, Some(whole(limit_per_sec))))
}

/// Advice to raise or lift a limit.
pub(super) fn lift(scene: &Scene, path: &CgroupPath, dev: DevNum, key: CapKey, text: impl Into<String>) -> Advice {
    Advice::text(text).with(set_cap(scene, path, dev, key, None))
}

/// The nearest rate that people would write, by ratio: one and a half digits of KiB or MiB, never below 64 KiB.
fn round(bytes_per_sec: f64) -> u64 {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let distance = |bytes: u64| (count(bytes) / bytes_per_sec.max(1.0)).ln().abs();
    let kib = (64..1000).map(|n| nice(n) * KIB).filter(|bytes| *bytes >= 64 * KIB);
    let steps = kib.chain((1..=10_000).map(|n| nice(n) * MIB));
    steps.min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(MIB)
}

/// A number with its digits after the first cut to a half: 28 as 25, 137 as 100.
fn nice(n: u64) -> u64 {
    let half = (10_u64.pow(n.checked_ilog10().unwrap_or(0)) / 2).max(1);
    n / half * half
}

/// The command that sets one key of a cgroup's limit on a device, or lifts it, and the one that restores what was.
///
/// None where the cgroup has no such file: what the io controller does not reach cannot be limited by it.
fn set_cap(scene: &Scene, path: &CgroupPath, dev: DevNum, key: CapKey, limit: Option<u64>) -> Pair {
    scene.config(path)?.io_max.as_ref().ok()?;
    let here = || scene.caps.iter().filter(|cap| cap.cgroup == *path && cap.key == key);
    let before = here().find(|cap| cap.dev == dev).map(|cap| whole(cap.limit_per_sec));
    if let Some(unit) = unit_to_set(path) {
        // An assignment adds to the list and an empty one clears it, so that the others are said again.
        let others: Vec<(DevNum, u64)> =
            here().filter(|cap| cap.dev != dev).map(|cap| (cap.dev, whole(cap.limit_per_sec))).collect();
        let set = |limit: Option<u64>| {
            let rows = others.iter().copied().chain(limit.map(|limit| (dev, limit)));
            let list: Option<Vec<String>> =
                rows.map(|(dev, limit)| Some(format!("'{}={} {limit}'", property(key), node(scene, dev)?))).collect();
            Some(
                format!("systemctl set-property --runtime {unit} '{}=' {}", property(key), list?.join(" "))
                    .trim_end()
                    .into(),
            )
        };
        return Some((set(limit)?, set(before)?));
    }
    let v1 = scene.window.t1.host.cgroups.io_is_v1();
    let file = plain(&scene.cgroup_file(path, if v1 { key.v1_file() } else { "io.max" }))?;
    let set = |limit: Option<u64>| match (v1, limit) {
        (true, limit) => format!("echo '{dev} {}' > {file}", limit.unwrap_or(0)),
        (false, None) => format!("echo '{dev} {}=max' > {file}", key.as_str()),
        (false, Some(limit)) => format!("echo '{dev} {}={limit}' > {file}", key.as_str()),
    };
    Some((set(limit), set(before)))
}

const fn property(key: CapKey) -> &'static str {
    match key {
        CapKey::ReadBytes => "IOReadBandwidthMax",
        CapKey::WriteBytes => "IOWriteBandwidthMax",
        CapKey::ReadIos => "IOReadIOPSMax",
        CapKey::WriteIos => "IOWriteIOPSMax",
    }
}

/// Advice to give a memory limit another value.
pub(super) fn set_memory(scene: &Scene, path: &CgroupPath, file: &str, from: Bytes, to: Bytes, text: &str) -> Advice {
    let set = |bytes: Bytes| {
        if let Some(unit) = unit_to_set(path) {
            let property = if file == "memory.high" { "MemoryHigh" } else { "MemoryMax" };
            return Some(format!("systemctl set-property --runtime {unit} {property}={}", bytes.0));
        }
        // Version 1 has its own hierarchy for memory, of which the mount is not known here.
        let v2 = !scene.window.t1.host.cgroups.io_is_v1();
        let file = plain(&scene.cgroup_file(path, file)).filter(|_| v2)?;
        Some(format!("echo {} > {file}", bytes.0))
    };
    Advice::text(text).with(set(to).zip(set(from)))
}

/// Advice to give a cgroup another weight under iocost.
pub(super) fn set_weight(scene: &Scene, path: &CgroupPath, dev: DevNum, from: u32, to: u32, text: String) -> Advice {
    let set = |weight: u32| {
        if let Some(unit) = unit_to_set(path) {
            return Some(format!("systemctl set-property --runtime {unit} IOWeight={weight}"));
        }
        Some(format!("echo '{dev} {weight}' > {}", plain(&scene.cgroup_file(path, "io.weight"))?))
    };
    Advice::text(text).with(set(to).zip(set(from)))
}

/// Advice to turn iocost on or off for a disk.
pub(super) fn set_iocost(scene: &Scene, disk: &Disk, on: bool, text: &str) -> Advice {
    let file = plain(&scene.cgroup_file(&CgroupPath::root(), "io.cost.qos"));
    let set = |on: bool| Some(format!("echo '{} enable={}' > {}", disk.dev, u8::from(on), file.as_ref()?));
    Advice::text(text).with(set(on).zip(set(!on)))
}

/// Advice to write a value to one of a disk's queue files.
pub(super) fn set_queue(disk: &Disk, file: &str, to: &str, from: &str, text: impl Into<String>) -> Advice {
    let path = plain(&format!("/sys/block/{}/queue/{file}", disk.name.as_str()));
    let set = |value: &str| Some(format!("echo {} > {}", plain(value)?, path.as_ref()?));
    Advice::text(text).with(set(to).zip(set(from)))
}

/// Advice to set a sysctl of `vm`, undone by setting the one that counted before.
pub(super) fn set_vm(key: &str, to: u64, before: (&str, u64), text: impl Into<String>) -> Advice {
    let set = |key: &str, value: u64| format!("sysctl -w vm.{key}={value}");
    Advice::text(text).with(Some((set(key, to), set(before.0, before.1))))
}

/// Advice to slow an array's resync to 10 MB/s for each member: what even one spinning disk gives beside a workload.
pub(super) fn slow_resync(disk: &Disk) -> Advice {
    let file = plain(&format!("/sys/block/{}/md/sync_speed_max", disk.name));
    let set = |value: &str| Some(format!("echo {value} > {}", file.as_ref()?));
    // `200000 (system)` is the host's limit, `20000 (local)` one of this array's own.
    let before = disk.queue().and_then(|queue| queue.multi_disk.as_ref()?.sync_speed_max.clone().ok());
    let before = before.and_then(|text| match text.split_once(" (")? {
        (value, "local)") => plain(value),
        _ => Some("system".to_owned()),
    });
    Advice {
        command: set("10000"),
        undo: before.and_then(|value| set(&value)),
        ..Advice::text("slow it down while people work: sync_speed_max is in KiB/s for each member")
    }
    .risk("it takes longer, and a recovery leaves the array without its redundancy until it ends")
}

/// The command that shows a disk's own health data.
pub(super) fn health(scene: &Scene, dev: DevNum) -> Option<String> {
    node(scene, dev).map(|node| format!("smartctl -a {node}"))
}

/// Advice to have systemd pass the io controller on to users' own managers.
pub(super) fn delegate_io(text: &str) -> Advice {
    const DIR: &str = "/etc/systemd/system/user@.service.d";
    const RELOAD: &str = "systemctl daemon-reload";
    let lines = "[Service]\\nDelegate=cpu cpuset io memory pids\\n";
    Advice {
        command: Some(format!("mkdir -p {DIR} && printf '{lines}' > {DIR}/delegate-io.conf && {RELOAD}")),
        undo: Some(format!("rm {DIR}/delegate-io.conf && {RELOAD}")),
        ..Advice::text(text)
    }
}

/// The command that has a cgroup pass a controller on towards one below it, and the one that takes it back.
///
/// What systemd keeps is asked of systemd: it enables the controller all the way down to the unit, and a raw write would be
/// lost when it next sets up the slice. `None` where a name would be more than a word to a shell.
#[must_use]
pub fn enable(
    snapshot: &Snapshot,
    at: &CgroupPath,
    towards: &CgroupPath,
    controller: Controller,
) -> Option<(String, String)> {
    let unit = unit_of(towards).filter(|unit| unit.is_within(at) && unit != at);
    if let Some(unit) = unit {
        let name = plain(std::str::from_utf8(unit.name()).ok()?)?;
        let set = |value| format!("systemctl set-property --runtime {name} {}={value}", controller.unit_property());
        return Some((set("yes"), set("no")));
    }
    let mount = snapshot.host.cgroup_mount.as_deref().unwrap_or("/sys/fs/cgroup");
    let dir = if at.is_root() { mount.to_owned() } else { format!("{mount}/{at}") };
    let file = plain(&format!("{dir}/cgroup.subtree_control"))?;
    let set = |sign| format!("echo {sign}{} > {file}", controller.as_str());
    Some((set('+'), set('-')))
}

/// Advice with a command that changes nothing.
pub(super) fn look(text: impl Into<String>, command: Option<String>) -> Advice {
    Advice { command, ..Advice::text(text) }
}

/// The name of the system's own unit that a cgroup is, where it is one.
fn unit_to_set(path: &CgroupPath) -> Option<String> {
    let unit = unit_of(path).filter(|unit| unit == path)?;
    plain(std::str::from_utf8(unit.name()).ok()?)
}

/// A device's node; the kernel writes the `/` of a name as `!` in sysfs.
pub(super) fn node(scene: &Scene, dev: DevNum) -> Option<String> {
    let name = scene.window.t1.device(dev)?.name;
    plain(&format!("/dev/{}", name.as_str().replace('!', "/")))
}

/// The text, where it may stand between single quotes, or bare, in a shell.
pub(super) fn plain(text: &str) -> Option<String> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/_.:@-+=,".contains(c);
    text.chars().all(harmless).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::{Did, Written, io_max, number};
    use crate::rates::Rates;

    #[test]
    fn a_name_that_a_shell_would_read_gets_no_command() {
        assert_eq!(plain("/sys/fs/cgroup/a'; rm -rf x/io.max"), None);
        assert_eq!(plain("$(reboot)"), None);
        assert_eq!(plain("/sys/fs/cgroup/tenants/etl/io.max").as_deref(), Some("/sys/fs/cgroup/tenants/etl/io.max"));
    }

    #[test]
    fn half_a_rate_is_a_number_that_people_would_write() {
        for (rate, nice) in
            [(59e6, 55 << 20), (29.5e6, 30 << 20), (150e3, 150 << 10), (10.0, 65 << 10), (1e9, 950 << 20)]
        {
            assert_eq!(round(rate), nice, "{rate}");
        }
    }

    /// A host where `path` has limits for writes on two disks.
    fn limited(path: &str) -> Written {
        let mut host = Written::new();
        for (minor, name) in [(0, "sda"), (1, "cciss!c0d0")] {
            host.disk(minor, name, "/sys/devices/pci0000:00/ata1/block", Did::default());
        }
        if path.contains('/') {
            host.cgroup("system.slice", 0.0, &[]);
        }
        host.cgroup(path, 0.0, &[]);
        host.configure(path, |config| {
            let writes = |minor, bytes| io_max(minor, [None, Some(bytes), None, None]);
            config.io_max = Ok(vec![writes(0, 200), writes(1, 300)]);
        });
        host
    }

    fn commands(host: &Written, path: &str, limit: Option<u64>) -> (String, String) {
        let rates = Rates::of(&host.window);
        let scene = Scene::of(&host.window, &rates);
        let path = CgroupPath::new(path.as_bytes()).unwrap();
        set_cap(&scene, &path, number(0), CapKey::WriteBytes, limit).unwrap()
    }

    #[test]
    fn undo_restores_the_limit_that_was_there() {
        let (set, undo) = commands(&limited("etl"), "etl", Some(100));
        assert_eq!(set, "echo '8:0 wbps=100' > /sys/fs/cgroup/etl/io.max");
        assert_eq!(undo, "echo '8:0 wbps=200' > /sys/fs/cgroup/etl/io.max");
        let (lift, undo) = commands(&limited("etl"), "etl", None);
        assert_eq!(lift, "echo '8:0 wbps=max' > /sys/fs/cgroup/etl/io.max");
        assert_eq!(undo, "echo '8:0 wbps=200' > /sys/fs/cgroup/etl/io.max");
    }

    #[test]
    fn a_unit_keeps_its_limits_on_other_disks() {
        let unit = "system.slice/db.service";
        let (set, undo) = commands(&limited(unit), unit, Some(100));
        let start = "systemctl set-property --runtime db.service 'IOWriteBandwidthMax='";
        let other = "'IOWriteBandwidthMax=/dev/cciss/c0d0 300'";
        assert_eq!(set, format!("{start} {other} 'IOWriteBandwidthMax=/dev/sda 100'"));
        assert_eq!(undo, format!("{start} {other} 'IOWriteBandwidthMax=/dev/sda 200'"));
        let (lift, _) = commands(&limited(unit), unit, None);
        assert_eq!(lift, format!("{start} {other}"));
    }

    #[test]
    fn what_another_manager_keeps_is_written_and_not_asked_of_the_systems_own() {
        for path in ["user.slice/user@1.service/app.slice/db.service", "system.slice/docker-1.scope/db.service"] {
            let path = CgroupPath::new(path.as_bytes()).unwrap();
            assert_eq!(unit_to_set(&path), None, "{path}");
        }
        let mut host = Written::new();
        let path = "user.slice/user@1.service/app.slice/db.service";
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default()).cgroup(path, 0.0, &[]);
        let (set, _) = commands(&host, path, Some(100));
        assert_eq!(set, format!("echo '8:0 wbps=100' > /sys/fs/cgroup/{path}/io.max"));
    }

    #[test]
    fn version_1_has_a_file_a_key_and_lifts_with_0() {
        let mut host = limited("etl");
        host.window.t1.host.cgroups = crate::snapshot::CgroupMode::V1;
        let (lift, undo) = commands(&host, "etl", None);
        assert_eq!(lift, "echo '8:0 0' > /sys/fs/cgroup/etl/blkio.throttle.write_bps_device");
        assert_eq!(undo, "echo '8:0 200' > /sys/fs/cgroup/etl/blkio.throttle.write_bps_device");
    }
}
