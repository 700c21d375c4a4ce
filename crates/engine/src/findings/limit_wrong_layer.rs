//! `limit-wrong-layer`: a limit is set at another layer of a stack than the one it acts on as meant.

use quell_paste::Statement;
use quell_units::Limit;

use super::advise;
use super::evidence::{PASTE, asker, cap_file, evidence, finding, of_stall, per_sec_of, safe, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Bypass, Cap, Named, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-wrong-layer",
    explain: Explain {
        means: "The limit names a volume and the I/O passes the disk, or the other way round; or both are limited and every \
            byte is counted twice; or a limit meant for a partition holds the whole disk.",
        kernel: "A bio is charged at each layer that it enters with its cgroup. Some kernels lose the cgroup of write-back \
            between a volume and the disk below; I/O to another volume or partition of the disk never passes this one. \
            systemd turns a partition into its disk, and of several partitions keeps one value.",
        evidence: "A limit at one layer, hardly used, while the cgroup does half as much again as it allows at another layer \
            of the same stack; limits of one key at both layers, both used; or a unit that names partitions and an io.max \
            that holds their disk.",
        change: "Set it at the layer where io.stat shows the cgroup's bytes, and lift the other.",
        undo: "Write the old values back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    // Where the disk does not see what passes the volume, the kernel lost the cgroup between them. Of two volumes, or a
    // volume and a partition, one may just be quiet now: there the limit must never have held anything.
    let lost = |bypass: &Bypass| scene.window.t1.leaves(bypass.to).contains(&bypass.cap.dev);
    let wrong = |bypass: &Bypass| bypass.related && (lost(bypass) || scene.never_used(bypass.cap));
    let bypassed = scene.bypasses().filter(wrong).filter_map(|bypass| elsewhere(scene, &bypass));
    let mut found: Vec<Finding> = Vec::new();
    for finding in bypassed.chain(twice(scene)).chain(widened(scene)) {
        if !found.iter().any(|earlier| earlier.subject == finding.subject) {
            found.push(finding);
        }
    }
    found
}

/// The workload below a limit's cgroup that does most on a device.
fn user<'s>(scene: &'s Scene, cap: &Cap, dev: quell_units::DevNum) -> Option<&'s Workload> {
    let does = |workload: &Workload| workload.io_on(dev).map_or(0.0, crate::rates::CgroupIo::ios_per_sec);
    let below = scene.workloads.iter().filter(|workload| workload.path.is_within(&cap.cgroup));
    below.max_by(|a, b| does(a).total_cmp(&does(b)))
}

fn elsewhere(scene: &Scene, bypass: &Bypass) -> Option<Finding> {
    let Bypass { cap, to, does_per_sec, .. } = bypass;
    let (limited, used) = (scene.disk(cap.dev)?, scene.disk(*to)?);
    let workload = user(scene, cap, *to)?;
    let shown = per_sec_of(cap.key, *does_per_sec);
    Some(Finding {
        confidence: 0.85,
        summary: format!(
            "{}'s limit is at {}, and its {} are counted at {}: {shown} pass",
            workload.name,
            limited.name,
            if cap.key.is_write() { "writes" } else { "reads" },
            used.name
        ),
        evidence: vec![
            of_cap(scene, cap),
            evidence(
                Aspect::Victim,
                &format!("does at {}", used.name),
                Value::Word(shown),
                scene.cgroup_file(&cap.cgroup, "io.stat"),
            ),
        ],
        advice: vec![
            advise::cap(
                scene,
                &cap.cgroup,
                *to,
                cap.key,
                cap.limit_per_sec,
                format!("set it at {}, where the bytes are counted", used.name),
            ),
            advise::lift(scene, &cap.cgroup, cap.dev, cap.key, format!("and lift the one at {}", limited.name)),
        ],
        ..finding(RULE.id, subject(workload, Some(used.name)))
    })
}

/// The same bytes held at two layers: a warning where somebody waits there.
fn twice(scene: &Scene) -> Vec<Finding> {
    let used = |cap: &&Cap| cap.used_ratio().is_some_and(|used| used >= 0.1);
    let uppers = scene.caps.iter().filter(used);
    uppers
        .filter_map(|upper| {
            let leaves = scene.window.t1.leaves(upper.dev);
            let lower = scene.caps.iter().filter(used).find(|lower| {
                lower.dev != upper.dev
                    && leaves.contains(&lower.dev)
                    && lower.key == upper.key
                    && (lower.cgroup.is_within(&upper.cgroup) || upper.cgroup.is_within(&lower.cgroup))
            })?;
            let inner = if lower.cgroup.is_within(&upper.cgroup) { lower } else { upper };
            let workload = user(scene, inner, lower.dev)?;
            let (volume, disk) = (scene.disk(upper.dev)?, scene.disk(lower.dev)?);
            let waits = workload.stall_ratio() >= 0.2;
            let mut out = vec![of_cap(scene, upper), of_cap(scene, lower)];
            out.extend(of_stall(scene, workload, Aspect::Victim));
            Some(Finding {
                severity: if waits { Severity::Warning } else { Severity::Info },
                confidence: 0.8,
                summary: format!(
                    "{} is limited at {} and again at {} below it: every byte is held twice",
                    workload.name, volume.name, disk.name
                ),
                evidence: out,
                advice: vec![advise::lift(
                    scene,
                    &lower.cgroup,
                    lower.dev,
                    lower.key,
                    format!("keep the limit at {}, where the writer waits, and lift the lower one", volume.name),
                )],
                stall_ratio: if waits { workload.stall_ratio() } else { 0.0 },
                ..finding(RULE.id, subject(workload, Some(volume.name)))
            })
        })
        .collect()
}

/// A limit that was asked for a partition, and an io.max that holds its whole disk.
fn widened(scene: &Scene) -> Option<Finding> {
    scene.statements().iter().find_map(|said| {
        let Statement::LimitAsked { by, device, key, value } = said else { return None };
        let Named::Partition(disk) = scene.named(device) else { return None };
        let dev = scene.number_of(&disk?)?;
        let rows = scene.cgroup_of(by)?.config.as_ref()?.io_max.as_ref().ok()?;
        let row = rows.iter().find(|row| row.dev == dev)?;
        let limits = [row.read_ios_per_sec, row.write_ios_per_sec];
        let bytes = [row.read_bytes_per_sec, row.write_bytes_per_sec];
        let any = limits.iter().any(|limit| *limit != Limit::Max) || bytes.iter().any(|limit| *limit != Limit::Max);
        let holds = quell_kfile::io_max::render(std::slice::from_ref(row)).trim_end().to_owned();
        any.then(|| Finding {
            confidence: 0.85,
            summary: format!(
                "the limit meant for {} holds the whole disk {dev}: everything that {} does on it",
                safe(device),
                safe(by)
            ),
            evidence: vec![
                evidence(Aspect::Limit, "asked for", Value::Word(safe(&format!("{device} {key}={value}"))), PASTE),
                evidence(Aspect::Limit, "holds", Value::Word(holds), "io.max"),
            ],
            advice: vec![Advice::text(
                "one value a disk: name the disk, with what all of its partitions may do; or limit a volume of its own",
            )],
            ..finding(RULE.id, asker(by))
        })
    })
}

fn of_cap(scene: &Scene, cap: &Cap) -> super::Evidence {
    let name = scene.disk(cap.dev).map_or_else(|| cap.dev.to_string(), |disk| disk.name.to_string());
    evidence(
        Aspect::Limit,
        &format!("at {name}"),
        Value::Word(format!(
            "{} {}, used {}",
            cap.key.as_str(),
            per_sec_of(cap.key, cap.limit_per_sec),
            per_sec_of(cap.key, cap.used_per_sec.unwrap_or(0.0))
        )),
        cap_file(scene, cap),
    )
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Statement};

    use crate::findings::Severity;
    use crate::findings::written::{Did, Written, io_max, number};

    const MIB: u64 = 1 << 20;
    const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";

    /// A volume dm-0 over vda; what the cgroup writes at each, and its limits at each, in MiB/s.
    fn host(writes: [u64; 2], limits: [Option<u64>; 2], stall: f64) -> Written {
        let mut host = Written::new();
        let did = |mib: u64| Did {
            writes: 8 * mib,
            write_bytes: mib * MIB,
            write_usec: 2000,
            util_pct: 30,
            ..Did::default()
        };
        host.disk(0, "vda", VIRTIO, did(writes[1])).disk(16, "dm-0", "/sys/devices/virtual/block/dm-0", did(writes[0]));
        host.change("dm-0", |device| device.slaves = vec![number(0)]);
        host.cgroup("app", stall, &[(0, 0, 8 * writes[1], writes[1] * MIB), (16, 0, 8 * writes[0], writes[0] * MIB)]);
        let row = |minor, mib: Option<u64>| mib.map(|mib| io_max(minor, [None, Some(mib * MIB), None, None]));
        let rows: Vec<_> = [row(0, limits[1]), row(16, limits[0])].into_iter().flatten().collect();
        host.configure("app", |config| config.io_max = Ok(rows.clone()));
        host
    }

    #[test]
    fn a_limit_below_a_volume_that_loses_the_cgroup_is_at_the_wrong_layer() {
        assert_eq!(host([40, 0], [None, Some(5)], 0.0).ids(), ["limit-wrong-layer"]);
        assert_eq!(host([40, 40], [None, Some(50)], 0.0).ids(), ["healthy"], "it passes the limit and stays below");
        assert_eq!(host([40, 0], [Some(60), Some(5)], 0.0).ids(), ["healthy"], "the volume has its own");
    }

    #[test]
    fn a_volume_that_is_quiet_now_and_was_used_before_has_its_limit_where_it_belongs() {
        let mut other = host([0, 40], [Some(5), None], 0.0);
        assert_eq!(other.ids(), ["limit-wrong-layer"]);
        for snapshot in [&mut other.window.t0, &mut other.window.t1] {
            for cgroup in snapshot.cgroups.iter_mut().filter(|cgroup| cgroup.path.as_bytes() == b"app") {
                cgroup.io.as_mut().unwrap()[1].write_bytes = quell_units::Bytes(500 * MIB);
            }
        }
        assert_eq!(other.ids(), ["healthy"]);
    }

    #[test]
    fn limits_at_both_layers_are_a_warning_only_where_somebody_waits() {
        let severity = |stall| {
            let findings = host([5, 5], [Some(20), Some(10)], stall).findings();
            findings.iter().find(|finding| finding.id == "limit-wrong-layer").map(|finding| finding.severity)
        };
        assert_eq!(severity(0.0), Some(Severity::Info));
        assert_eq!(severity(0.5), Some(Severity::Warning));
    }

    #[test]
    fn a_partitions_limit_that_became_the_disks_is_named() {
        let says = |device: &str| {
            let mut host = Written::new();
            host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default());
            host.cgroup("app.service", 0.0, &[]);
            host.configure("app.service", |config| {
                config.io_max = Ok(vec![io_max(0, [Some(18_879), None, None, None])]);
            });
            let (by, device, key) = ("unit/app.service".into(), device.into(), "rbps".into());
            let asked = Statement::LimitAsked { by, device, key, value: 18_879 };
            host.window.pasted = Some(Box::new(Pasted { statements: vec![asked], ..Pasted::default() }));
            host.ids().contains(&"limit-wrong-layer")
        };
        assert!(says("/dev/sda1"));
        assert!(!says("/dev/sda"));
    }
}
