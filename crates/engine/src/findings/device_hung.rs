//! `device-hung`: requests went in and none comes out, or a dm device is suspended.

use quell_paste::Statement;
use quell_units::{Micros, MonoMicros, count};

use super::advise;
use super::evidence::{disk_subject, evidence, finding, of_wait, safe};
use super::finding::{Aspect, Evidence, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, Wait};
use super::table::Rule;
use crate::snapshot::Snapshot;

pub(super) const RULE: Rule = Rule {
    id: "device-hung",
    explain: Explain {
        means: "The disk has taken requests and completes none. Everything that needs it waits, mostly in \
            uninterruptible sleep, where not even kill -9 helps.",
        kernel: "The driver handed the requests to the device and got no answer: a dead path, a controller that resets \
            without end, a storage server that is gone. virtio-blk and rbd disks have no timeout of their own. Since \
            Linux 5.0 a request is counted when it completes, so such a disk shows %util 100 with aqu-sz 0 and \
            await 0. A suspended dm device shows nothing at all: its requests wait above every counter.",
        evidence: "Requests in flight and not one read, write, discard or flush completed, over the whole window or for the \
            last 5 s of it, with the disk busy meanwhile or a task of one of its users asleep in one place throughout; or \
            dm/suspended = 1. In a paste the kernel's own messages of commands that timed out, or failed.",
        change: "Nothing that quell could write helps. Look at `dmesg` for the driver's resets and timeouts and at the \
            storage behind the disk; resume a suspended dm device once what suspended it is known.",
        undo: "Nothing is changed.",
    },
    find,
};

/// Below this a flush or an erase that takes its time could look the same.
const SECONDS_SURE: f64 = 5.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let disks = scene.disks.iter().filter_map(|disk| suspended(scene, disk).or_else(|| hung(scene, disk)));
    let found: Vec<Finding> = disks.collect();
    if found.is_empty() { said(scene).into_iter().collect() } else { found }
}

/// A write that has not returned for so long has met no queue: the longest that a healthy disk lets one wait is seconds.
const STUCK_SECONDS: f64 = 20.0;

/// What the kernel's and programs' own messages in a paste say: commands that nobody answered, writes that never end,
/// and errors, which are answers but no good ones.
fn said(scene: &Scene) -> Option<Finding> {
    let mut told: Vec<(Severity, &str, String)> = scene.statements().iter().filter_map(message).collect();
    // What was not answered says more than what failed, which is often its end.
    told.sort_by_key(|(severity, ..)| std::cmp::Reverse(*severity));
    let (severity, device, first) = told.first()?.clone();
    let disk = scene.disks.iter().find(|disk| disk.name.as_str() == device);
    let name = if device.is_empty() { "the disk".to_owned() } else { safe(device) };
    let verb = if severity == Severity::Critical { "does not answer" } else { "answers with errors" };
    let message = |(_, _, what): &(Severity, &str, String)| {
        evidence(Aspect::Device, "message", Value::Word(what.clone()), "the message")
    };
    Some(Finding {
        severity,
        confidence: 0.7,
        summary: format!("{name} {verb}: {first}"),
        evidence: told.iter().take(5).map(message).collect(),
        advice: vec![advise::look("look at what the driver says of it, and at the storage behind it", None)],
        stall_ratio: 1.0,
        ..finding(RULE.id, disk.map_or(super::evidence::host_subject(), disk_subject))
    })
}

/// What a statement says of a device, `""` where it names none, and how bad that is.
fn message(said: &Statement) -> Option<(Severity, &str, String)> {
    Some(match said {
        Statement::CommandTimedOut { device, .. } => {
            (Severity::Critical, device, "a command was not answered in time".into())
        }
        Statement::IoError { device } => (Severity::Warning, device, "a request ended in an I/O error".into()),
        Statement::TaskHung { comm, seconds } => {
            let device = of_file_system(comm)?;
            (Severity::Critical, device, format!("its file system's {} waits for {seconds:.0} s and more", safe(comm)))
        }
        Statement::StuckWrite { seconds, .. } if *seconds >= STUCK_SECONDS => {
            (Severity::Critical, "", format!("a write has not returned for {seconds:.0} s"))
        }
        _ => return None,
    })
}

/// The device of a file system's own thread, by its name: `jbd2/sda1-8`, `xfsaild/dm-0`. Any other task may hang for
/// anything.
fn of_file_system(comm: &str) -> Option<&str> {
    match comm.split_once('/')? {
        ("jbd2", device) => device.rsplit_once('-').map(|(device, _)| device),
        ("xfsaild", device) => Some(device),
        _ => None,
    }
}

fn hung(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let rates = disk.rates.filter(|_| disk.leaf)?;
    let seconds = stands_still_for(scene, disk)?;
    // A count of requests in flight can leak; then nothing waits for them and the disk's time does not run.
    let felt = disk.util_pct >= 90.0 * seconds / rates.seconds || waits(scene).next().is_some();
    let enough = if seconds >= rates.seconds { 1.0 } else { SECONDS_SURE };
    if !felt || seconds < enough {
        return None;
    }
    let in_flight = scene.window.t1.in_flight(disk.device);
    let sure = seconds >= SECONDS_SURE;
    let mut out = vec![
        evidence(Aspect::Device, "in flight", Value::Number(count(in_flight)), "/proc/diskstats"),
        evidence(Aspect::Device, "none completed for", Value::Usec(seconds * 1e6), "/proc/diskstats"),
        evidence(Aspect::Device, "util", Value::Pct(disk.util_pct), "/proc/diskstats"),
    ];
    out.extend(waiting(scene));
    let dmesg = |name: String| format!("dmesg --ctime | grep -iE '{name}|timeout|reset|I/O error' | tail -20");
    let command = advise::plain(disk.name.as_str()).map(dmesg);
    Some(Finding {
        severity: if sure { Severity::Critical } else { Severity::Warning },
        confidence: if sure { 0.95 } else { 0.6 },
        summary: format!("{} hangs: {in_flight} requests in flight, none completed for {seconds:.1} s", disk.name),
        evidence: out,
        advice: vec![advise::look("see what the driver says, then look at the storage behind the disk", command)],
        stall_ratio: 1.0,
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// For how long the disk has had requests in flight and completed none, up to the end of the window.
fn stands_still_for(scene: &Scene, disk: &Disk) -> Option<f64> {
    let window = scene.window;
    let of_snapshot = |snapshot: &Snapshot| {
        let device = snapshot.device(disk.dev)?;
        Some((snapshot.clock.system, snapshot.in_flight(device), device.counters.completed()))
    };
    let looks = window.looks.iter().filter_map(|look| {
        let disk = look.disks.iter().find(|look| look.dev == disk.dev)?;
        Some((look.at, disk.in_flight, disk.completed))
    });
    let (end, in_flight, completed) = of_snapshot(&window.t1)?;
    let earlier: Vec<_> = of_snapshot(&window.t0).into_iter().chain(looks).collect();
    let still = |(_, in_flight, done): &&(MonoMicros, u64, u64)| *in_flight > 0 && *done == completed;
    let (since, _, _) = earlier.iter().rev().take_while(still).last()?;
    (in_flight > 0).then(|| end.since(*since)).flatten().map(Micros::seconds)
}

fn suspended(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let dm = disk.queue()?.device_mapper.as_ref().filter(|dm| dm.suspended == Ok(true))?;
    let before = scene.window.t0.device(disk.dev)?.queue.as_deref()?.device_mapper.as_ref()?;
    // A resize or a snapshot suspends for a moment: at both readings it was no moment.
    let sure = before.suspended == Ok(true);
    let name = dm.name.as_deref().unwrap_or(disk.name.as_str());
    let shown = quell_units::escape(name.as_bytes()).into_owned();
    let source = format!("/sys/block/{}/dm/suspended", disk.name);
    let mut out = vec![evidence(Aspect::Device, "suspended", Value::Word(shown), source)];
    out.extend(waiting(scene));
    let command = advise::plain(name).map(|name| format!("dmsetup resume {name}"));
    Some(Finding {
        severity: if sure { Severity::Critical } else { Severity::Warning },
        confidence: if sure { 0.95 } else { 0.7 },
        summary: format!("{} is suspended: its requests wait above every counter until it is resumed", disk.name),
        evidence: out,
        advice: vec![
            advise::look("resume it, once what suspended it is known", command)
                .risk("a snapshot, a resize or a multipath change may be half done"),
        ],
        stall_ratio: 1.0,
        ..finding(RULE.id, disk_subject(disk))
    })
}

/// The tasks that were seen waiting in one place throughout.
fn waits<'s>(scene: &'s Scene) -> impl Iterator<Item = &'s Wait> {
    scene.workloads.iter().flat_map(|workload| &workload.waits).filter(|wait| wait.throughout())
}

/// A handful of them; the rest is counted.
fn waiting(scene: &Scene) -> Vec<Evidence> {
    const SHOWN: usize = 4;
    let mut out: Vec<_> = waits(scene).take(SHOWN).map(|wait| of_wait(wait, Aspect::Tasks)).collect();
    if let Some(more) = waits(scene).count().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.push(evidence(Aspect::Tasks, "and more", Value::Word(more.to_string()), "/proc/PID/wchan"));
    }
    out
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Statement};

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
    fn messages_of_commands_and_writes_that_nobody_answers_are_believed() {
        let ids = |statement: Statement| {
            let mut host = Written::new();
            let statements = vec![statement];
            host.window.pasted = Some(Box::new(Pasted { statements, ..Pasted::default() }));
            host.ids()
        };
        let stuck = |seconds| Statement::StuckWrite { by: "cockroach".into(), seconds };
        assert!(ids(Statement::CommandTimedOut { device: "nvme0".into(), seconds: None }).contains(&"device-hung"));
        assert!(ids(stuck(83.5)).contains(&"device-hung"));
        assert!(!ids(stuck(3.0)).contains(&"device-hung"));
        let hung = |comm: &str| Statement::TaskHung { comm: comm.into(), seconds: 120.0 };
        assert!(ids(hung("jbd2/sda1-8")).contains(&"device-hung"));
        assert!(!ids(hung("java")).contains(&"device-hung"), "it may wait for anything");
    }

    #[test]
    fn requests_that_only_a_partition_counts_hang_its_disk() {
        let mut host = Written::new();
        host.disk(0, "vda", VIRTIO, Did { util_pct: 100, ..Did::default() }).disk(1, "vda1", VIRTIO, Did::default());
        host.change("vda1", |device| {
            device.partition_of = Some(number(0));
            device.counters.in_flight = 8;
        });
        assert_eq!(host.ids()[0], "device-hung");
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
