//! `asymmetric-members`: of several disks with like work one takes several times as long.

use super::evidence::{disk_subject, evidence, finding, of_disk, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;
use crate::rates::Flow;

pub(super) const RULE: Rule = Rule {
    id: "asymmetric-members",
    explain: Explain {
        means: "The members of a mirror, stripe or RAID get like requests, and one of them takes more than three times as \
            long: it holds all of them back.",
        kernel: "A stripe is as slow as its slowest member, a mirror's write is done when the last leg is, and a RAID's \
            parity waits for all of its row. The mean over the members hides the one.",
        evidence: "Two members with rates and sizes within a quarter of each other in one direction, at least 5 requests a \
            second and 50 in all, mean times more than three times apart, and the slower one slower than its class need \
            be. Without the array's own topology (a paste) disks of one kind with like work are taken for members, with \
            less confidence.",
        change: "Look at the slow member: health data, firmware, link speed, slot; replace it, or fail it out of the array.",
        undo: "Nothing is changed.",
    },
    find,
};

/// How many times slower a member has to be.
const TIMES: f64 = 3.0;

fn find(scene: &Scene) -> Vec<Finding> {
    let mut out: Vec<Finding> = scene
        .disks
        .iter()
        .filter(|disk| disk.device.slaves.len() >= 2)
        .filter_map(|set| slow_member(scene, &scene.leaves(set.dev).collect::<Vec<_>>(), Some(set)))
        .collect();
    if scene.window.pasted.is_some() && out.is_empty() {
        let families = scene.leaf_disks().map(family).fold(Vec::new(), |mut all, family| {
            if !all.contains(&family) {
                all.push(family);
            }
            all
        });
        let of = |name: &String| scene.leaf_disks().filter(|disk| family(disk) == *name).collect::<Vec<_>>();
        out.extend(families.iter().filter_map(|name| slow_member(scene, &of(name), None)));
    }
    out
}

/// The letters that a disk's name starts with: `nvme`, `sd`.
fn family(disk: &Disk) -> String {
    let name = disk.name.as_str();
    let letters: String = name.chars().take_while(char::is_ascii_alphabetic).collect();
    // `sda` and `sdb` differ in the letter that counts them.
    if name.starts_with("sd") || name.starts_with("vd") { letters.chars().take(2).collect() } else { letters }
}

/// One direction of a disk.
type Of = fn(&Disk) -> Option<Flow>;

fn slow_member(scene: &Scene, members: &[&Disk], set: Option<&Disk>) -> Option<Finding> {
    let directions: [(&str, Of); 2] =
        [("write", |disk| disk.rates.map(|rates| rates.write)), ("read", |disk| disk.rates.map(|rates| rates.read))];
    for (word, of) in directions {
        for slow in members {
            let pair = members.iter().find_map(|fast| Some((fast, apart(slow, of(slow)?, of(fast)?)?)));
            if let Some((fast, times)) = pair {
                return Some(asymmetric(scene, slow, fast, set, word, of, times));
            }
        }
    }
    None
}

/// How many times longer the first takes, where both have like work and it is slow for its class.
fn apart(slow: &Disk, flow: Flow, other: Flow) -> Option<f64> {
    let enough = |flow: &Flow| flow.ios_per_sec >= 5.0 && flow.ios >= 50;
    let like = |a: f64, b: f64| a <= 1.25 * b && b <= 1.25 * a;
    let (size, other_size) = (flow.size_bytes_avg?, other.size_bytes_avg?);
    let alike = enough(&flow) && enough(&other) && like(flow.ios_per_sec, other.ios_per_sec) && like(size, other_size);
    let (long, short) = (flow.await_usec?, other.await_usec?);
    let times = long / short.max(1.0);
    (alike && times > TIMES && long >= TIMES * slow.class.fast_usec(size)).then_some(times)
}

fn asymmetric(scene: &Scene, slow: &Disk, fast: &Disk, set: Option<&Disk>, word: &str, of: Of, times: f64) -> Finding {
    let mut out = of_disk(slow);
    let took = |disk: &Disk| of(disk).and_then(|flow| flow.await_usec).unwrap_or_default();
    let what = format!("{word} await of {}", fast.name);
    out.push(evidence(Aspect::Device, &what, Value::Usec(took(fast)), "/proc/diskstats"));
    let user = set.and_then(|set| scene.main_user(set)).or_else(|| scene.main_user(slow));
    let of_set = set.map_or_else(String::new, |set| format!(" of {}", set.name));
    Finding {
        confidence: if set.is_some() { 0.85 } else { 0.6 },
        summary: format!(
            "{}{of_set} takes {} for a {word} where {} with like work takes {}: {times:.0} times as long",
            slow.name,
            usec(took(slow)),
            fast.name,
            usec(took(fast))
        ),
        evidence: out,
        advice: vec![
            super::advise::look(
                format!("look at {}: its health, its link and its firmware beside {}'s", slow.name, fast.name),
                super::advise::node(scene, slow.dev).map(|node| format!("smartctl -x {node}")),
            ),
            Advice::text("replace it, or fail it out of an array that can do without it"),
        ],
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.3)),
        ..finding(RULE.id, user.map_or(disk_subject(slow), |(workload, _)| subject(workload, Some(slow.name))))
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written, number};

    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vd";

    fn stripe(usec: [u64; 2], reads: [u64; 2]) -> Written {
        let mut host = Written::new();
        for (minor, name) in [(0, "vda"), (1, "vdb")] {
            let at = usize::try_from(minor).unwrap();
            let did = Did {
                reads: reads[at],
                read_bytes: reads[at] * 4096,
                read_usec: usec[at],
                util_pct: 50,
                ..Did::default()
            };
            host.disk(minor, name, VIRTIO, did);
        }
        host.disk(2, "md0", "/sys/devices/virtual/block/md0", Did::default());
        host.change("md0", |device| device.slaves = vec![number(0), number(1)]);
        host
    }

    #[test]
    fn the_slow_one_of_two_members_is_named() {
        let findings = stripe([22_000, 1_100], [75, 77]).findings();
        assert_eq!((findings[0].id, findings[0].subject.device.unwrap().as_str()), ("asymmetric-members", "vda"));
    }

    #[test]
    fn unlike_work_or_a_fast_pair_is_no_fault() {
        assert!(!stripe([22_000, 1_100], [75, 300]).ids().contains(&"asymmetric-members"), "unlike rates");
        assert!(!stripe([3_000, 900], [75, 77]).ids().contains(&"asymmetric-members"), "fast for its class");
        assert!(!stripe([22_000, 12_000], [75, 77]).ids().contains(&"asymmetric-members"), "less than three times");
    }
}
