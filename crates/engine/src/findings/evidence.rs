//! The evidence that several rules give in the same words.

use quell_units::{DevName, count};

use super::finding::{Aspect, Evidence, Finding, Subject, SubjectKind, Value};
use super::scene::{Disk, DiskClass, Scene, Share, Wait, Workload};
use super::workload::WorkloadKind;
use crate::rates::DiskRates;

/// A piece of evidence.
pub(super) fn evidence(aspect: Aspect, what: &str, value: Value, source: impl Into<String>) -> Evidence {
    Evidence { aspect, what: what.to_owned(), value, source: source.into() }
}

/// A workload as a subject or culprit, on a disk.
pub(super) fn subject(workload: &Workload, device: Option<DevName>) -> Subject {
    Subject {
        kind: SubjectKind::Workload(workload.kind),
        name: workload.name.clone(),
        cgroup: Some(workload.path.clone()),
        device,
    }
}

/// A disk as a subject.
pub(super) fn disk_subject(disk: &Disk) -> Subject {
    Subject { kind: SubjectKind::Device, name: disk.name.to_string(), cgroup: None, device: Some(disk.name) }
}

/// The host as a subject.
pub(super) fn host_subject() -> Subject {
    Subject { kind: SubjectKind::Host, name: "this host".into(), cgroup: None, device: None }
}

/// Where evidence comes from that stands in a paste and in no file.
pub(super) const PASTE: &str = "as pasted";

/// Who asked for a setting, as a paste names him; a runtime speaks for the host.
pub(super) fn asker(by: &str) -> Subject {
    const RUNTIMES: [&str; 8] = ["docker", "dockerd", "podman", "runc", "crun", "containerd", "kubelet", "systemd"];
    let kind = match by.strip_prefix("unit/") {
        Some(_) => WorkloadKind::Unit,
        None if by.is_empty() || RUNTIMES.contains(&by) => return host_subject(),
        None => WorkloadKind::Container,
    };
    Subject { kind: SubjectKind::Workload(kind), name: safe(by), cgroup: None, device: None }
}

/// A word of a paste, safe to print.
pub(super) fn safe(text: &str) -> String {
    quell_units::escape(text.as_bytes()).into_owned()
}

/// A finding with nothing in it but its names; the rest is filled in by `..`.
pub(super) fn finding(id: &'static str, subject: Subject) -> Finding {
    Finding {
        id,
        severity: super::Severity::Warning,
        confidence: 0.8,
        subject,
        culprit: None,
        summary: String::new(),
        evidence: Vec::new(),
        advice: Vec::new(),
        stall_ratio: 0.0,
    }
}

const DISKSTATS: &str = "/proc/diskstats";

/// What the disk did: requests, their time, the queue.
pub(super) fn of_disk(disk: &Disk) -> Vec<Evidence> {
    let mut words = vec![disk.name.to_string()];
    // A disk that is known by a pasted table alone has a number of our making, and no class.
    words.extend((disk.dev.major != 0).then(|| disk.dev.to_string()));
    words.extend((disk.class != DiskClass::Unknown).then(|| disk.class.as_str().to_owned()));
    let mut out = vec![evidence(Aspect::Device, "disk", Value::Word(words.join(" ")), "/sys/block")];
    let Some(rates) = disk.rates else { return out };
    let all = rates.ios_per_sec();
    for (kind, flow) in [("read", rates.read), ("write", rates.write)] {
        // A stray request in a hundred says nothing and reads like something.
        if let Some(usec) = flow.await_usec.filter(|_| flow.ios_per_sec >= all / 100.0) {
            out.push(evidence(Aspect::Device, &format!("{kind}s"), Value::PerSec(flow.ios_per_sec), DISKSTATS));
            out.push(evidence(Aspect::Device, &format!("{kind} await"), Value::Usec(usec), DISKSTATS));
        }
    }
    out.push(evidence(Aspect::Device, "aqu-sz", Value::Number(rates.queue_length_avg), DISKSTATS));
    out.push(evidence(Aspect::Device, "util", Value::Pct(disk.util_pct), DISKSTATS));
    out
}

/// What a workload did on a disk, and how much of the disk that was.
pub(super) fn of_share(scene: &Scene, workload: &Workload, share: &Share, aspect: Aspect) -> Vec<Evidence> {
    let source =
        if workload.io_counted { scene.cgroup_file(&workload.path, io_file(scene)) } else { "/proc/PID/io".into() };
    let mut out = vec![evidence(aspect, "share of the disk's time", Value::Pct(share.ratio * 100.0), source.clone())];
    for (kind, span) in [("reads", share.io.read), ("writes", share.io.write)] {
        if span.bytes_per_sec > 0.0 {
            out.push(evidence(aspect, kind, Value::BytesPerSec(span.bytes_per_sec), source.clone()));
        }
    }
    out
}

/// A time in microseconds, for a sentence.
pub(super) fn usec(usec: f64) -> String {
    quell_units::Micros::rounded(usec).to_string()
}

/// What a request took at a disk on the average, for a sentence.
pub(super) fn took(disk: &Disk) -> String {
    disk.rates.and_then(DiskRates::await_usec).map_or("an unknown time".into(), usec)
}

/// The file that counts a cgroup's I/O.
pub(super) fn io_file(scene: &Scene) -> &'static str {
    if scene.window.t1.host.cgroups.io_is_v1() { "blkio.throttle.io_service_bytes_recursive" } else { "io.stat" }
}

/// How long a workload was stalled, by the kernel's own account and by what was seen of its tasks.
pub(super) fn of_stall(scene: &Scene, workload: &Workload, aspect: Aspect) -> Vec<Evidence> {
    let mut out = Vec::new();
    if let Some(pct) = workload.pressure_full_pct() {
        let source = scene.cgroup_file(&workload.path, "io.pressure");
        out.push(evidence(aspect, "io.pressure full", Value::Pct(pct), source));
    }
    if let Some(wait) = workload.waits.iter().find(|wait| wait.ratio() > 0.0) {
        out.push(of_wait(wait, aspect));
    }
    out
}

/// One task that was seen waiting.
pub(super) fn of_wait(wait: &Wait, aspect: Aspect) -> Evidence {
    let channel = if wait.channel.is_empty() { "an unknown place" } else { &wait.channel };
    let text = format!(
        "{} ({}) waits in {} at {} of {} looks",
        quell_units::escape(wait.comm.as_bytes()),
        wait.tid,
        quell_units::escape(channel.as_bytes()),
        wait.seen,
        wait.looks
    );
    evidence(aspect, "task", Value::Word(text), format!("/proc/{}/wchan", wait.tid))
}

/// The host's dirty pages against its limits.
pub(super) fn of_host_backlog(scene: &Scene) -> Vec<Evidence> {
    let pages = |n: u64| Value::Bytes(count(n) * scene.page_bytes());
    let mut out = Vec::new();
    if let Some(most) = scene.host_backlog_pages().into_iter().max() {
        out.push(evidence(Aspect::Memory, "dirty and under write-back", pages(most), "/proc/vmstat"));
    }
    if let Some(limits) = scene.dirty_limits() {
        out.push(evidence(Aspect::Memory, "background threshold", pages(limits.background_pages), "/proc/vmstat"));
        out.push(evidence(Aspect::Memory, "limit", pages(limits.limit_pages), "/proc/vmstat"));
    }
    out
}
