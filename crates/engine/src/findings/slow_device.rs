//! `slow-device`: no queue, and yet each request takes long.

use super::device_saturated::{main_user, usec};
use super::evidence::{disk_subject, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding};
use super::scene::{Disk, Scene, Trust};
use super::table::Rule;

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
    explains: &[],
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.disks.iter().filter(|disk| is_slow(scene, disk)).map(|disk| slow(scene, disk)).collect()
}

fn is_slow(scene: &Scene, disk: &Disk) -> bool {
    let slow = disk.rate_gate() && disk.queue_length_avg() <= 1.5 && disk.slowness().is_some_and(|times| times >= 3.0);
    let busy = disk.trust == Trust::Trusted && disk.util_pct >= 70.0;
    // A cap on a disk below holds the requests of the device above, in whose await the hold then shows.
    let capped = scene
        .caps
        .iter()
        .any(|cap| cap.reached() && scene.window.t1.leaves(cap.dev) == scene.window.t1.leaves(disk.dev));
    slow && !capped && if disk.leaf { busy } else { waits_between_layers(scene, disk) }
}

fn waits_between_layers(scene: &Scene, disk: &Disk) -> bool {
    let above = disk.rates.and_then(|rates| rates.await_usec());
    let below = scene
        .leaves(disk.dev)
        .filter_map(|leaf| leaf.rates?.await_usec())
        .fold(None, |most: Option<f64>, usec| Some(most.map_or(usec, |most| most.max(usec))));
    above.zip(below).is_some_and(|(above, below)| above >= 3.0 * below)
}

fn slow(scene: &Scene, disk: &Disk) -> Finding {
    let user = main_user(scene, disk);
    let took = disk.rates.and_then(|rates| rates.await_usec()).map_or("unknown".into(), usec);
    let mut evidence = of_disk(disk);
    if let Some((workload, _)) = user {
        evidence.extend(of_stall(scene, workload, Aspect::Victim));
    }
    let place = if disk.leaf { "slow by itself" } else { "held up above the disks below it" };
    Finding {
        confidence: if disk.leaf { 0.8 } else { 0.7 },
        summary: format!(
            "{} is {place}: a request takes {took} with only {:.1} in the queue",
            disk.name,
            disk.queue_length_avg()
        ),
        evidence,
        advice: vec![Advice {
            command: super::advise::plain(disk.name.as_str()).map(|name| format!("smartctl -a /dev/{name}")),
            ..Advice::text("look at the disk itself: its health data, the volume's own limit, the storage behind it")
        }],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio()),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}
