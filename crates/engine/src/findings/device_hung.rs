//! `device-hung`: requests went in and none comes out, or a dm device is suspended.

use quell_units::count;

use super::evidence::{disk_subject, evidence, finding, of_wait};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "device-hung",
    explain: Explain {
        means: "The disk has taken requests and completes none. Everything that needs it waits, mostly in \
            uninterruptible sleep, where not even kill -9 helps.",
        kernel: "The driver handed the requests to the device and got no answer: a dead path, a controller that resets \
            without end, a storage server that is gone. virtio and network disks have no timeout of their own. Since \
            Linux 5.0 a request is counted when it completes, so such a disk shows %util 100 with aqu-sz 0 and \
            await 0. A suspended dm device shows nothing at all: its requests wait above every counter.",
        evidence: "Requests in flight at every reading while no read, write, discard or flush completes and the disk is \
            busy all the time; or dm/suspended = 1 at both moments. Tasks that sleep in one place throughout.",
        change: "Nothing that quell could write helps. Look at `dmesg` for the driver's resets and timeouts and at the \
            storage behind the disk; resume a suspended dm device once what suspended it is known.",
        undo: "Nothing is changed.",
    },
    find,
    explains: &[],
};

/// Below this a flush or an erase that takes its time could look the same.
const SECONDS_SURE: f64 = 5.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter_map(|disk| suspended(scene, disk).or_else(|| hung(scene, disk))).collect()
}

fn hung(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let rates = disk.rates?;
    let in_flight = disk.device.counters.in_flight;
    let nothing_completed = rates.ios() == 0 && rates.flush.is_none_or(|flush| flush.ios == 0);
    let always_in_flight = disk.in_flight_before > 0
        && in_flight > 0
        && scene.window.looks.iter().all(|look| look.in_flight.iter().any(|(dev, n)| *dev == disk.dev && *n > 0));
    if !(disk.leaf && nothing_completed && always_in_flight && rates.seconds >= 1.0) {
        return None;
    }
    let sure = rates.seconds >= SECONDS_SURE;
    let source = format!("/proc/diskstats and /sys/block/{}/inflight", disk.name);
    let mut out = vec![
        evidence(Aspect::Device, "in flight", Value::Number(count(in_flight)), source),
        evidence(Aspect::Device, "completed", Value::Number(0.0), "/proc/diskstats"),
        evidence(Aspect::Device, "util", Value::Pct(disk.util_pct), "/proc/diskstats"),
    ];
    out.extend(waiting(scene));
    Some(Finding {
        severity: if sure { Severity::Critical } else { Severity::Warning },
        confidence: if sure { 0.95 } else { 0.6 },
        summary: format!(
            "{} hangs: {in_flight} requests in flight, none completed in {:.1} s",
            disk.name, rates.seconds
        ),
        evidence: out,
        advice: vec![Advice {
            command: Some(format!("dmesg --ctime | grep -iE '{}|timeout|reset|I/O error' | tail -20", disk.name)),
            ..Advice::text("see what the driver says, then look at the storage behind the disk")
        }],
        stall_ratio: 1.0,
        ..finding(RULE.id, disk_subject(disk))
    })
}

fn suspended(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let is_suspended = |device: &crate::snapshot::Device| {
        device.queue.as_deref()?.device_mapper.as_ref().map(|dm| dm.suspended == Ok(true))
    };
    let before = scene.window.t0.device(disk.dev).and_then(is_suspended)?;
    if !before || is_suspended(disk.device) != Some(true) {
        return None;
    }
    let dm = disk.queue()?.device_mapper.as_ref()?;
    let name = dm.name.as_deref().unwrap_or(disk.name.as_str());
    let source = format!("/sys/block/{}/dm/suspended", disk.name);
    let mut out =
        vec![evidence(Aspect::Device, "suspended", Value::Word(quell_units::escape(name.as_bytes()).into()), source)];
    out.extend(waiting(scene));
    let command = super::advise::plain(name).map(|name| format!("dmsetup resume {name}"));
    Some(Finding {
        severity: Severity::Critical,
        confidence: 0.95,
        summary: format!("{} is suspended: its requests wait above every counter until it is resumed", disk.name),
        evidence: out,
        advice: vec![
            Advice { command, ..Advice::text("resume it, once what suspended it is known") }
                .risk("a snapshot, a resize or a multipath change may be half done"),
        ],
        stall_ratio: 1.0,
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// The tasks that were seen waiting in one place throughout; a handful, the rest is counted.
fn waiting(scene: &Scene) -> Vec<Evidence> {
    const SHOWN: usize = 4;
    let waits: Vec<_> = scene.workloads.iter().flat_map(|w| &w.waits).filter(|wait| wait.throughout()).collect();
    let mut out: Vec<_> = waits.iter().take(SHOWN).map(|wait| of_wait(wait, Aspect::Tasks)).collect();
    if let Some(more) = waits.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.push(evidence(Aspect::Tasks, "and more", Value::Word(more.to_string()), "/proc/PID/wchan"));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written, device_mapper, number};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    fn suspended(is: bool) -> Written {
        let mut host = Written::new();
        host.disk(0, "vda", VIRTIO, Did::default()).disk(1, "dm-0", "/sys/devices/virtual/block/dm-0", Did::default());
        host.change("dm-0", |device| {
            device.slaves = vec![number(0)];
            device.queue.as_mut().unwrap().device_mapper = Some(device_mapper("vg0-data", is));
        });
        host
    }

    #[test]
    fn a_suspended_device_moves_no_counter_and_is_named_all_the_same() {
        let findings = suspended(true).findings();
        assert_eq!(findings[0].id, "device-hung");
        assert_eq!(findings[0].advice[0].command.as_deref(), Some("dmsetup resume vg0-data"));
        assert_eq!(suspended(false).ids(), ["healthy"]);
    }

    #[test]
    fn a_disk_that_completes_anything_does_not_hang() {
        let mut host = Written::new();
        host.disk(
            0,
            "vda",
            VIRTIO,
            Did { reads: 1, read_bytes: 4096, read_usec: 900_000, util_pct: 100, ..Did::default() },
        );
        host.change("vda", |device| device.counters.in_flight = 1);
        assert!(!host.ids().contains(&"device-hung"));
    }
}
