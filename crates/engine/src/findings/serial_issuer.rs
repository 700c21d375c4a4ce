//! `serial-issuer`: the disk is used all the time and full none of it, because one request waits for the other.

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject, took};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Trust};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "serial-issuer",
    explain: Explain {
        means: "One request at a time: the program sends the next when the last is done. The disk is busy all the time \
            and could do several times more.",
        kernel: "%util counts the time with at least one request in flight, so a queue of one reads 90 and more. aqu-sz \
            near 1 with a short await says that nothing waits in the queue: the issuer waits, for one round trip each.",
        evidence: "%util of at least 70, aqu-sz between 0.6 and 1.5, await below three times the class's usual time, at \
            least 5 requests a second and 50 in all, and counters that agree with one another.",
        change: "More requests at once (threads, io_uring, read-ahead, group commit) or fewer of them (cache, larger \
            blocks). A faster disk gives only what it saves of each await.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    // Two that send one each are no serial issuer, though they look like one; where nobody is told, one is assumed.
    let alone = |disk: &&Disk| scene.main_user(disk).is_some() || disk.shares.is_empty();
    scene.leaf_disks().filter(|disk| is_serial(disk)).filter(alone).map(|disk| serial(scene, disk)).collect()
}

fn is_serial(disk: &Disk) -> bool {
    disk.trust == Trust::Trusted
        && disk.rate_gate()
        && disk.util_pct >= 70.0
        && (0.6..=1.5).contains(&disk.queue_length_avg())
        && disk.slowness().is_some_and(|times| times < 3.0)
}

fn serial(scene: &Scene, disk: &Disk) -> Finding {
    let user = scene.main_user(disk);
    let who = user.map_or("its user".to_owned(), |(workload, _)| workload.name.clone());
    let mut out = of_disk(disk);
    if let Some((workload, share)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
        let pct = Value::Pct(share.ratio * 100.0);
        out.push(evidence(
            Aspect::Victim,
            "share of the disk's time",
            pct,
            scene.cgroup_file(&workload.path, "io.stat"),
        ));
    }
    Finding {
        summary: format!("{who} sends {} one request at a time: the disk is used all the time, not full", disk.name),
        evidence: out,
        advice: vec![Advice::text(format!(
            "send more at once (threads, io_uring, read-ahead) or ask less often (cache, larger blocks); a faster disk can \
             save no more than the {} of each request",
            took(disk)
        ))],
        stall_ratio: user.map_or(0.3, |(workload, _)| workload.stall_ratio()),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}
