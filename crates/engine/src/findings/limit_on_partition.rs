//! `limit-on-partition`: a limit names a partition, and the kernel limits whole disks only.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Named, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-on-partition",
    explain: Explain {
        means: "The limit was asked for a partition. The kernel knows limits for whole disks only: it refuses the number, or \
            systemd turns it into the disk's and the limit holds more than was meant.",
        kernel: "io.max, io.latency and the files of version 1 look a number up among the whole disks; a partition's is \
            answered with ENODEV (\"No such device\"), as if it did not exist. Of several partitions of one disk that a \
            unit names, one value is left.",
        evidence: "A setting or a refused write with the number or the name of a partition: by lsblk or ls, by the host's \
            own devices, or by the kernel's numbering (8:4 is sda4).",
        change: "Name the disk, and add up what its partitions may do. For one file system alone, put it on a volume of its \
            own (LVM) and limit that.",
        undo: "Nothing took effect, so there is nothing to take back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for finding in scene.statements().iter().filter_map(|said| on_partition(scene, said)) {
        match found.iter_mut().find(|earlier| earlier.subject == finding.subject) {
            // A unit that names several partitions made one mistake.
            Some(earlier) => earlier.evidence.extend(finding.evidence),
            None => found.push(finding),
        }
    }
    found
}

fn on_partition(scene: &Scene, said: &Statement) -> Option<Finding> {
    let (by, device, refused, what) = match said {
        Statement::Refused { by, file, dev: Some(dev), value, refusal: Refusal::NoDevice, .. } => {
            (by, dev.to_string(), true, format!("{} into {}", value.clone().unwrap_or_else(|| dev.to_string()), file))
        }
        Statement::LimitAsked { by, device, key, value } => {
            (by, device.clone(), false, format!("{key}={value} {device}"))
        }
        _ => return None,
    };
    let Named::Partition(disk) = scene.named(&device) else { return None };
    let device = safe(&device);
    let whole = disk.as_deref().map_or("the whole disk".into(), |disk| format!("/dev/{}", safe(disk)));
    let says = if refused { "the kernel refused it" } else { "the kernel limits whole disks only" };
    let how = if refused { "refused" } else { "asked for" };
    Some(Finding {
        confidence: 0.95,
        summary: format!("{device} is a partition: a limit must name {whole}, and {says}"),
        evidence: vec![evidence(Aspect::Limit, how, Value::Word(safe(&what)), PASTE)],
        advice: vec![
            Advice::text(format!("name {whole}, with what all of its partitions may do together"))
                .risk("every partition of the disk comes under the limit, the one with the root and swap too"),
            Advice::text("to hold one file system alone, give it a volume of its own and limit that"),
        ],
        ..finding(RULE.id, asker(by))
    })
}

#[cfg(test)]
mod tests {
    use quell_paste::{DeviceFact, Pasted, Refusal, Statement};
    use quell_units::DevNum;

    use crate::findings::written::{Did, Written, number};

    fn refused(dev: DevNum, refusal: Refusal) -> Statement {
        let (by, file) = ("docker".into(), "blkio.throttle.write_bps_device".into());
        Statement::Refused { by, file, path: None, dev: Some(dev), value: None, refusal }
    }

    fn asked(device: &str) -> Statement {
        Statement::LimitAsked { by: "docker".into(), device: device.into(), key: "rbps".into(), value: 10 << 20 }
    }

    fn says(statements: Vec<Statement>, devices: Vec<DeviceFact>) -> bool {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default());
        host.disk(3, "sda3", "", Did::default()).change("sda3", |device| device.partition_of = Some(number(0)));
        host.window.pasted = Some(Box::new(Pasted { statements, devices, ..Pasted::default() }));
        host.ids().contains(&"limit-on-partition")
    }

    #[test]
    fn a_partition_is_known_by_its_number_its_name_and_what_lsblk_says() {
        assert!(says(vec![refused(number(4), Refusal::NoDevice)], Vec::new()));
        assert!(says(vec![asked("/dev/sda2")], Vec::new()));
        assert!(says(vec![asked("8:3")], Vec::new()));
        let part = DeviceFact { name: "nvme0n1p1".into(), kind: Some("part".into()), ..DeviceFact::default() };
        let dev = DevNum { major: 259, minor: 1 };
        assert!(says(vec![refused(dev, Refusal::NoDevice)], vec![DeviceFact { dev: Some(dev), ..part }]));
    }

    #[test]
    fn a_whole_disk_and_a_number_that_tells_nothing_are_none() {
        assert!(!says(vec![asked("/dev/sda"), asked("/dev/nvme0n1"), asked("/dev/mapper/vg-a")], Vec::new()));
        assert!(!says(vec![refused(DevNum { major: 259, minor: 2 }, Refusal::NoDevice)], Vec::new()));
        assert!(!says(vec![refused(number(4), Refusal::OutOfRange)], Vec::new()));
    }
}
