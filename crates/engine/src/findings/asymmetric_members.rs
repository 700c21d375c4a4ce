//! `asymmetric-members`: one disk of a set answers far slower than the others under the same load.
//!
//! A paste often shows the members and not the array: then disks of one family that do the same are taken for a set,
//! with less confidence.

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject, usec};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;
use crate::rates::{DiskRates, Flow};

pub(super) const RULE: Rule = Rule {
    id: "asymmetric-members",
    explain: Explain {
        means: "The disks of one set get the same work, and one of them takes at least three times as long for it. The \
            whole set is as slow as that one.",
        kernel: "A stripe's request and a mirror's write are done when the last member is done. A worn or failing disk, a \
            bad cable, a link that trained down or another firmware makes one member slow; the array's own row shows a \
            mean that hides it.",
        evidence: "Two members of one array with at least 5 reads or writes a second each, alike in rate and size within a \
            quarter, whose awaits differ by more than three times, the slow one above its class's usual time.",
        change: "Look at that disk's health, link speed and firmware; replace it, or fail it out of a mirror.",
        undo: "Nothing is changed.",
    },
    find,
};

/// How much longer the slow member takes.
const TIMES: f64 = 3.0;
/// The least rate, and the least number in the window, to speak of a mean.
const IOS_PER_SEC: f64 = 5.0;
const IOS: u64 = 50;

fn find(scene: &Scene) -> Vec<Finding> {
    let mut known: Vec<(Odd, Vec<&Disk>)> = Vec::new();
    for set in scene.disks.iter().filter(|disk| disk.device.slaves.len() >= 2) {
        let members: Vec<&Disk> = scene.leaves(set.dev).collect();
        // What the set is known to share needs no more than its class's usual time to be felt.
        let Some(odd) = outlier(&members, 1.0) else { continue };
        // One disk may be a member of several sets, by its partitions; it is slow once.
        match known.iter_mut().find(|(other, _)| other.slow.dev == odd.slow.dev) {
            Some((_, sets)) => sets.push(set),
            None => known.push((odd, vec![set])),
        }
    }
    if known.is_empty() {
        known.extend(guessed(scene).map(|odd| (odd, Vec::new())));
    }
    known.iter().map(|(odd, sets)| asymmetric(scene, odd, sets)).collect()
}

/// One direction of a disk's rates.
type Side = fn(&DiskRates) -> Flow;

/// A member that is slow, beside one that is not.
struct Odd<'s> {
    slow: &'s Disk<'s>,
    fast: &'s Disk<'s>,
    word: &'static str,
    awaits_usec: (f64, f64),
}

/// The slowest member against the fastest that has the like load. `least` is in the class's usual time.
fn outlier<'s>(members: &[&'s Disk<'s>], least: f64) -> Option<Odd<'s>> {
    let pairs = members.iter().flat_map(|slow| members.iter().map(move |fast| (*slow, *fast)));
    let odd = pairs.flat_map(|(slow, fast)| {
        let of: [(&'static str, Side); 2] = [("read", |r| r.read), ("write", |r| r.write)];
        of.into_iter().filter_map(move |(word, flow)| {
            let awaits_usec = differ(slow, flow(slow.rates?), flow(fast.rates?), least)?;
            Some(Odd { slow, fast, word, awaits_usec })
        })
    });
    odd.max_by(|a, b| a.times().total_cmp(&b.times()))
}

impl Odd<'_> {
    fn times(&self) -> f64 {
        self.awaits_usec.0 / self.awaits_usec.1.max(1.0)
    }
}

/// Both awaits, where the first is far longer under the like load.
fn differ(disk: &Disk, slow: Flow, fast: Flow, least: f64) -> Option<(f64, f64)> {
    let enough = |flow: &Flow| flow.ios_per_sec >= IOS_PER_SEC && flow.ios >= IOS;
    let (slow_usec, fast_usec) = (slow.await_usec?, fast.await_usec?);
    let size = slow.size_bytes_avg?;
    let alike = is_like(slow.ios_per_sec, fast.ios_per_sec) && is_like(size, fast.size_bytes_avg?);
    let long = slow_usec > TIMES * fast_usec && slow_usec >= least * disk.class.fast_usec(size);
    (enough(&slow) && enough(&fast) && alike && long).then_some((slow_usec, fast_usec))
}

/// Within a quarter.
fn is_like(a: f64, b: f64) -> bool {
    a.min(b) >= 0.8 * a.max(b)
}

/// In a paste without its arrays: disks of one family that do the same.
fn guessed<'s>(scene: &'s Scene) -> Option<Odd<'s>> {
    scene.window.pasted.as_ref()?;
    let told = scene.disks.iter().any(|disk| disk.device.slaves.len() >= 2);
    let leaves: Vec<&Disk> = scene.leaf_disks().filter(|_| !told).collect();
    let families = ["nvme", "sd", "vd", "xvd", "hd"];
    let sets = families.into_iter().filter_map(|family| {
        let members: Vec<&Disk> =
            leaves.iter().copied().filter(|disk| disk.name.as_str().starts_with(family)).collect();
        // Here the load alone says that they belong together: only what is slow by any measure is named.
        outlier(&members, TIMES)
    });
    sets.max_by(|a, b| a.times().total_cmp(&b.times()))
}

fn asymmetric(scene: &Scene, odd: &Odd, sets: &[&Disk]) -> Finding {
    let Odd { slow, fast, word, awaits_usec: (slow_usec, fast_usec) } = odd;
    let user = scene.main_user(slow);
    let mut out = Vec::new();
    let names = sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", ");
    if !sets.is_empty() {
        out.push(evidence(Aspect::Device, "set", Value::Word(names.clone()), "/sys/block/*/slaves"));
    }
    out.extend(of_disk(slow));
    out.extend(of_disk(fast));
    if let Some((workload, _)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    let of = if sets.is_empty() { String::new() } else { format!(" of {names}") };
    Finding {
        confidence: if !sets.is_empty() { 0.9 } else { 0.6 },
        summary: format!(
            "{}{of} takes {} for a {word}, and {} takes {} for the same work",
            slow.name,
            usec(*slow_usec),
            fast.name,
            usec(*fast_usec)
        ),
        evidence: out,
        advice: vec![advice(scene, slow)],
        // Every request that this member has a part in waits for it: half, where nothing else is known.
        stall_ratio: user.map_or(0.5, |(workload, _)| workload.stall_ratio().max(0.5)),
        ..finding(RULE.id, user.map_or(disk_subject(slow), |(workload, _)| subject(workload, Some(slow.name))))
    }
}

fn advice(scene: &Scene, slow: &Disk) -> Advice {
    super::advise::look(
        "look at this member's health, link and firmware; replace it if they are bad",
        super::advise::health(scene, slow.dev),
    )
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written, number};

    /// A stripe whose members read so many times a second and take so long.
    fn stripe(first: (u64, u64), second: (u64, u64)) -> Written {
        let mut host = Written::new();
        for (minor, name, (reads, read_usec)) in [(0, "sda", first), (1, "sdb", second)] {
            let util_pct = (reads * read_usec / 10_000).min(99);
            let did = Did { reads, read_bytes: reads * 4096, read_usec, util_pct, ..Did::default() };
            host.disk(minor, name, &format!("/sys/devices/pci0000:00/ata{minor}/block/{name}"), did);
        }
        host.disk(9, "md0", "/sys/devices/virtual/block/md0", Did::default());
        host.change("md0", |device| device.slaves = vec![number(0), number(1)]);
        host
    }

    #[test]
    fn the_slow_member_of_a_stripe_is_named_and_not_a_slow_disk() {
        let findings = stripe((75, 1900), (75, 23_000)).findings();
        assert_eq!(findings[0].id, "asymmetric-members");
        assert!(findings[0].summary.starts_with("sdb of md0"), "{}", findings[0].summary);
        assert!(!findings.iter().any(|finding| finding.id == "slow-device"));
    }

    #[test]
    fn members_that_take_alike_or_do_unlike_are_not_compared() {
        assert!(!stripe((75, 10_000), (75, 23_000)).ids().contains(&"asymmetric-members"));
        assert!(!stripe((300, 1900), (75, 23_000)).ids().contains(&"asymmetric-members"));
    }

    #[test]
    fn a_member_that_is_slower_and_still_fast_does_no_harm() {
        assert!(!stripe((75, 100), (75, 700)).ids().contains(&"asymmetric-members"));
    }
}
