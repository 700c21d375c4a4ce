//! The commands that advice gives: what the shell or systemd can do on this host, and what takes it back.
//!
//! A workload under systemd is limited through systemd, because a raw write to a unit's cgroup is lost at the next
//! daemon-reload. A name that would need quoting beyond the ordinary gets no command: nothing that a host calls itself
//! may end up as shell syntax.

use quell_units::{CgroupPath, count};

use super::finding::Advice;
use super::scene::{CapKey, Disk, Scene, Workload};

/// Advice to cap a workload on a disk at about half of what it does now.
pub(super) fn cap_at_half(scene: &Scene, workload: &Workload, disk: &Disk) -> Advice {
    let io = workload.io_on(disk.dev);
    let (read, write) = io.map_or((0.0, 0.0), |io| (io.read.bytes_per_sec, io.write.bytes_per_sec));
    let (key, rate) = if write >= read { (CapKey::WriteBytes, write) } else { (CapKey::ReadBytes, read) };
    let limit = round(rate / 2.0);
    let what = if key.is_write() { "writes" } else { "reads" };
    let advice = Advice::text(format!(
        "cap {}'s {what} on {} at {}/s, about half of what it does now",
        workload.name,
        disk.name,
        quell_units::Bytes(limit)
    ))
    .risk("its own work takes longer; buffered writes pile up in its page cache and the next fsync waits for them");
    set_cap(scene, &workload.path, disk, key, limit).map_or(advice.clone(), |(command, undo)| Advice {
        command: Some(command),
        undo: Some(undo),
        ..advice
    })
}

/// The nearest rate that people would write, by ratio; never below 1 MiB.
fn round(bytes_per_sec: f64) -> u64 {
    const MIB: u64 = 1 << 20;
    const STEPS_MIB: [u64; 22] =
        [1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 100, 150, 200, 300, 500, 800, 1000, 1500, 2000, 3000, 5000];
    let distance = |mib: u64| (count(mib * MIB) / bytes_per_sec.max(1.0)).ln().abs();
    STEPS_MIB.into_iter().min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(1) * MIB
}

/// The command that sets one key of a cgroup's limit on a disk, and the one that lifts it.
///
/// None where the cgroup has no such file: what the io controller does not reach cannot be limited by it.
fn set_cap(scene: &Scene, path: &CgroupPath, disk: &Disk, key: CapKey, limit: u64) -> Option<(String, String)> {
    scene.config(path)?.io_max.as_ref().ok()?;
    if let Some(unit) = unit_to_set(path) {
        let property = if key.is_write() { "IOWriteBandwidthMax" } else { "IOReadBandwidthMax" };
        let set = |value: &str| format!("systemctl set-property --runtime {unit} '{property}={value}'");
        return Some((set(&format!("/dev/{} {limit}", disk.name)), set("")));
    }
    let v1 = scene.window.t1.host.cgroups.io_is_v1();
    let file = plain(&scene.cgroup_file(path, if v1 { key.v1_file() } else { "io.max" }))?;
    let set = |value: &str| {
        if v1 {
            format!("echo '{} {value}' > {file}", disk.dev)
        } else {
            format!("echo '{} {}={value}' > {file}", disk.dev, key.as_str())
        }
    };
    Some((set(&limit.to_string()), set(if v1 { "0" } else { "max" })))
}

/// The systemd unit that a cgroup is, where it is one.
fn unit_to_set(path: &CgroupPath) -> Option<String> {
    let name = std::str::from_utf8(path.name()).ok()?;
    let is_unit = [".service", ".scope"].iter().any(|suffix| name.ends_with(suffix));
    let top = path.components().next()?;
    let under_systemd = top.ends_with(b".slice") || top == b"init.scope";
    (is_unit && under_systemd).then(|| plain(name)).flatten()
}

/// The text, where it may stand between single quotes, or bare, in a shell.
pub(super) fn plain(text: &str) -> Option<String> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/_.:@-+=,".contains(c);
    text.chars().all(harmless).then(|| text.to_owned())
}

/// Advice to write a value to one of a disk's queue files.
pub(super) fn set_queue(disk: &Disk, file: &str, value: &str, before: Option<&str>, text: impl Into<String>) -> Advice {
    let path = plain(&format!("/sys/block/{}/queue/{file}", disk.name.as_str()));
    let echo = |value: &str| path.as_ref().map(|path| format!("echo {value} > {path}"));
    Advice { command: echo(value), undo: before.and_then(plain).and_then(|before| echo(&before)), ..Advice::text(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_shell_would_read_gets_no_command() {
        assert_eq!(plain("/sys/fs/cgroup/a'; rm -rf x/io.max"), None);
        assert_eq!(plain("$(reboot)"), None);
        assert_eq!(plain("/sys/fs/cgroup/tenants/etl/io.max").as_deref(), Some("/sys/fs/cgroup/tenants/etl/io.max"));
    }

    #[test]
    fn half_a_rate_is_a_number_that_people_would_write() {
        assert_eq!(round(59e6), 50 << 20);
        assert_eq!(round(29.5e6), 30 << 20);
        assert_eq!(round(10.0), 1 << 20);
    }
}
