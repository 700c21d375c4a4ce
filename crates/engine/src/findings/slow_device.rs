//! `slow-device`: no queue, and yet each request takes long.

use super::advise;
use super::evidence::{disk_subject, finding, of_disk, of_stall, subject, took};
use super::finding::{Advice, Aspect, Explain, Finding};
use super::scene::{Disk, DiskClass, Scene, Trust};
use super::table::Rule;
use crate::rates::DiskRates;

pub(super) const RULE: Rule = Rule {
    id: "slow-device",
    explain: Explain {
        means: "The disk is slow by itself: hardly more than one request is there at a time, and that one takes at least \
            three times what a healthy disk of its class needs.",
        kernel: "With a queue of one, await is the device's own time: a remote or throttled volume, flash that collects \
            garbage, a disk that retries sectors or spins up, a path that lost half its links. Where an upper device \
            (dm, md) waits and the disks below do not, the wait lies between the layers.",
        evidence: "%util of at least 70 with aqu-sz of at most 1.5, await against the class's usual time for the size, at \
            least 5 requests a second and 50 in all; no io.max, iocost or write-back throttling that explains it.",
        change: "Look at the disk and what lies behind it: SMART data, the volume's own limits, the storage network. No \
            setting of the host makes a slow disk fast; more requests in flight may hide its latency.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter(|disk| is_slow(scene, disk)).map(|disk| slow(scene, disk)).collect()
}

fn is_slow(scene: &Scene, disk: &Disk) -> bool {
    let slow = disk.rate_gate() && disk.slowness().is_some_and(|times| times >= 3.0);
    let alone = disk.trust == Trust::Trusted && disk.util_pct >= 70.0 && disk.queue_length_avg() <= 1.5;
    // A cap on a disk below holds the requests of the device above, in whose await the hold then shows.
    let below = scene.window.t1.leaves(disk.dev);
    let capped = scene
        .caps
        .iter()
        .filter(|cap| cap.reached())
        .any(|cap| scene.window.t1.leaves(cap.dev).iter().any(|dev| below.contains(dev)));
    slow && !capped
        && if disk.device.slaves.is_empty() { disk.leaf && alone } else { waits_between_layers(scene, disk) }
}

/// Whether the disks below a device serve its requests in a fraction of what it says they take.
fn waits_between_layers(scene: &Scene, disk: &Disk) -> bool {
    let above = disk.rates.and_then(DiskRates::await_usec);
    let below = scene.leaves(disk.dev).filter_map(|leaf| leaf.rates?.await_usec()).reduce(f64::max);
    above.is_some_and(|above| below.is_none_or(|below| above >= 3.0 * below))
}

fn slow(scene: &Scene, disk: &Disk) -> Finding {
    let user = scene.main_user(disk);
    let mut evidence = of_disk(disk);
    if let Some((workload, _)) = user {
        evidence.extend(of_stall(scene, workload, Aspect::Victim));
    }
    let place = if disk.leaf { "slow by itself" } else { "held up above the disks below it" };
    let queue = disk.queue_length_avg();
    Finding {
        confidence: if disk.leaf { 0.8 } else { 0.7 },
        summary: format!("{} is {place}: a request takes {} with {queue:.1} in the queue", disk.name, took(disk)),
        evidence,
        advice: vec![advice(scene, disk)],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio()),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}

fn advice(scene: &Scene, disk: &Disk) -> Advice {
    match disk.class {
        _ if !disk.leaf => advise::look(
            "see what the device does with its requests before it hands them on",
            advise::plain(disk.name.as_str())
                .map(|name| format!("dmsetup table /dev/{name}"))
                .filter(|_| disk.queue().is_some_and(|queue| queue.device_mapper.is_some())),
        ),
        DiskClass::Virtual => Advice::text("look at the volume's own limit and at the storage behind it"),
        _ => advise::look("look at the disk's own health data, and at the path to it", advise::health(scene, disk.dev)),
    }
}
