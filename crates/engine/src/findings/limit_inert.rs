//! `limit-inert`: a limit is in place, and nothing that the workload does passes it.

use quell_paste::Statement;
use quell_units::{DevNum, Limit};

use super::advise;
use super::evidence::{PASTE, asker, cap_file, evidence, finding, per_sec_of, safe, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Bypass, Named, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-inert",
    explain: Explain {
        means: "A limit is set and holds nobody: it is for another disk than the one the workload uses, or for reads while it \
            writes, or it never arrived in io.max.",
        kernel: "A limit counts for one device and one direction, and only what passes that device under this cgroup. A path \
            such as /var/lib/docker may lie on another disk than one thinks.",
        evidence: "A limit on a device where the cgroup has done nothing since it was made, while it does half as much again \
            as is allowed on another disk without such a limit. In a paste: a limit of the other direction than the copy, \
            or one that io.max does not hold.",
        change: "Set the limit for the disk that the data lies on.",
        undo: "Lift it there; the old limit need not go.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let bypasses = scene.bypasses().filter(|bypass| !bypass.related && scene.never_used(bypass.cap));
    let live = bypasses.filter_map(|bypass| inert(scene, &bypass));
    for finding in live.chain(other_direction(scene)).chain(not_arrived(scene)) {
        if !found.iter().any(|earlier| earlier.subject == finding.subject) {
            found.push(finding);
        }
    }
    found
}

fn inert(scene: &Scene, bypass: &Bypass) -> Option<Finding> {
    let Bypass { cap, to, does_per_sec, .. } = bypass;
    let (limited, used) = (scene.disk(cap.dev)?, scene.disk(*to)?);
    let below = scene.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
    let workload = below.max_by(|a, b| {
        let does = |workload: &super::Workload| workload.io_on(*to).map_or(0.0, crate::rates::CgroupIo::ios_per_sec);
        does(a).total_cmp(&does(b))
    })?;
    let stat = scene.cgroup_file(&cap.cgroup, "io.stat");
    let shown = per_sec_of(cap.key, *does_per_sec);
    Some(Finding {
        confidence: 0.85,
        summary: format!(
            "{}'s limit is on {}, and it does its I/O on {}: {} {shown} where {} is allowed on the other",
            workload.name,
            limited.name,
            used.name,
            if cap.key.is_write() { "writes" } else { "reads" },
            per_sec_of(cap.key, cap.limit_per_sec)
        ),
        evidence: vec![
            evidence(
                Aspect::Limit,
                "set",
                Value::Word(format!("{} {}={:.0}", cap.dev, cap.key.as_str(), cap.limit_per_sec)),
                cap_file(scene, cap),
            ),
            evidence(Aspect::Limit, "passed it since the cgroup was made", Value::Word("nothing".into()), stat.clone()),
            evidence(Aspect::Victim, &format!("does on {}", used.name), Value::Word(shown), stat),
        ],
        advice: vec![advise::cap(
            scene,
            &cap.cgroup,
            *to,
            cap.key,
            cap.limit_per_sec,
            format!("set the limit for {}, which the data lies on", used.name),
        )],
        ..finding(RULE.id, subject(workload, Some(used.name)))
    })
}

/// Limits of one direction, and a copy of the other.
fn other_direction(scene: &Scene) -> Option<Finding> {
    let keys: Vec<(&String, &String)> = scene
        .statements()
        .iter()
        .filter_map(|said| match said {
            Statement::LimitAsked { by, key, value, .. } if *value > 0 => Some((by, key)),
            _ => None,
        })
        .collect();
    let (by, key) = *keys.first()?;
    let writes = scene.copies().find_map(|copied| copied.writes)?;
    let holds = |key: &String| key.starts_with(if writes { 'w' } else { 'r' });
    if keys.iter().any(|(_, key)| holds(key)) {
        return None;
    }
    let (limited, does) = if writes { ("reads", "writes") } else { ("writes", "reads") };
    Some(Finding {
        confidence: 0.85,
        summary: format!("the limit is for {limited} and the copy {does}: it cannot hold it"),
        evidence: vec![evidence(Aspect::Limit, "asked for", Value::Word(safe(key)), PASTE)],
        advice: vec![Advice::text(if writes {
            "limit writes: --device-write-bps, IOWriteBandwidthMax=, wbps"
        } else {
            "limit reads: --device-read-bps, IOReadBandwidthMax=, rbps"
        })],
        ..finding(RULE.id, asker(by))
    })
}

/// A limit that was asked for, and an io.max of the same cgroup that does not hold it.
fn not_arrived(scene: &Scene) -> Option<Finding> {
    scene.statements().iter().find_map(|said| {
        let Statement::LimitAsked { by, device, key, value } = said else { return None };
        let rows = scene.cgroup_of(by)?.config.as_ref()?.io_max.as_ref().ok()?;
        // A partition's limit became the disk's, if anything.
        let device = match scene.named(device) {
            Named::Partition(disk) => disk?,
            Named::NoDisk => return None,
            Named::Whole | Named::Unknown => device.clone(),
        };
        let dev: Option<DevNum> = scene.number_of(&device);
        let held = rows.iter().any(|row| {
            let limited = match key.as_str() {
                "rbps" => row.read_bytes_per_sec != Limit::Max,
                "wbps" => row.write_bytes_per_sec != Limit::Max,
                "riops" => row.read_ios_per_sec != Limit::Max,
                _ => row.write_ios_per_sec != Limit::Max,
            };
            limited && dev.is_none_or(|dev| row.dev == dev)
        });
        (!held && *value > 0).then(|| Finding {
            confidence: 0.8,
            summary: format!("{key} was asked for {} and is not in its io.max: it holds nobody", safe(by)),
            evidence: vec![evidence(
                Aspect::Limit,
                "asked for",
                Value::Word(safe(&format!("{device} {key}={value}"))),
                PASTE,
            )],
            advice: vec![Advice::text(
                "name the disk by its node; under systemd look into the unit's log, which says what was dropped",
            )],
            ..finding(RULE.id, asker(by))
        })
    })
}

#[cfg(test)]
mod tests {
    use quell_paste::{Copied, Pasted, Statement};
    use quell_units::Bytes;

    use crate::findings::written::{Did, Written, io_max};

    const MIB: u64 = 1 << 20;
    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    fn host(on_vdb_before: u64) -> Written {
        let mut host = Written::new();
        let did = Did { writes: 800, write_bytes: 50 * MIB, write_usec: 4000, util_pct: 90, ..Did::default() };
        host.disk(0, "vda", VIRTIO, did).disk(16, "vdb", VIRTIO, Did::default());
        host.cgroup("app", 0.0, &[(0, 0, 800, 50 * MIB), (16, 0, 0, 0)]);
        host.configure("app", |config| config.io_max = Ok(vec![io_max(16, [None, Some(5 * MIB), None, None])]));
        for snapshot in [&mut host.window.t0, &mut host.window.t1] {
            for cgroup in snapshot.cgroups.iter_mut().filter(|cgroup| cgroup.path.as_bytes() == b"app") {
                cgroup.io.as_mut().unwrap()[1].write_bytes = Bytes(on_vdb_before);
            }
        }
        host
    }

    #[test]
    fn a_limit_on_a_disk_that_was_never_written_to_is_inert() {
        assert_eq!(host(0).ids(), ["limit-inert"]);
    }

    #[test]
    fn a_limit_on_a_disk_that_is_used_now_and_then_is_not_nor_is_one_that_the_other_disk_has_too() {
        assert_eq!(host(500 * MIB).ids(), ["healthy"]);
        let mut both = host(0);
        both.configure("app", |config| {
            config.io_max = Ok([0, 16].map(|minor| io_max(minor, [None, Some(60 * MIB), None, None])).to_vec());
        });
        assert!(!both.ids().contains(&"limit-inert"));
    }

    fn pasted(key: &str, writes: bool) -> bool {
        let mut host = Written::new();
        let (by, device, key) = ("docker".into(), "/dev/sda".into(), key.into());
        let asked = Statement::LimitAsked { by, device, key, value: 10 * MIB };
        let copied = Copied { bytes: Bytes(900 * MIB), seconds: 1.0, writes: Some(writes), ..Copied::default() };
        host.window.pasted =
            Some(Box::new(Pasted { statements: vec![asked, Statement::Copied(copied)], ..Pasted::default() }));
        host.ids().contains(&"limit-inert")
    }

    #[test]
    fn a_limit_for_reads_does_not_hold_a_copy_that_writes() {
        assert!(pasted("rbps", true));
        assert!(pasted("wiops", false));
        assert!(!pasted("wbps", true));
    }

    #[test]
    fn what_was_asked_for_and_is_not_in_io_max_holds_nobody() {
        let says = |key: &str| {
            let mut host = Written::new();
            host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default());
            host.cgroup("app.service", 0.0, &[]);
            host.configure("app.service", |config| {
                config.io_max = Ok(vec![io_max(0, [Some(MIB), None, None, None])]);
            });
            let (by, device) = ("unit/app.service".into(), "/dev/sda1".into());
            let asked = Statement::LimitAsked { by, device, key: key.into(), value: MIB };
            host.window.pasted = Some(Box::new(Pasted { statements: vec![asked], ..Pasted::default() }));
            host.ids().contains(&"limit-inert")
        };
        assert!(says("wbps"));
        assert!(!says("rbps"));
    }
}
