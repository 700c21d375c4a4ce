//! `limit-device-missing`: a limit names a device that no disk has.

use quell_paste::{Refusal, Statement};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Aspect, Explain, Finding, Value};
use super::scene::{Named, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "limit-device-missing",
    explain: Explain {
        means: "The limit names a device that is no disk: a character device such as /dev/random, or a number that no block \
            device has, or has no longer.",
        kernel: "The number is looked up among the whole disks, and ENODEV is the answer where there is none. Numbers of dm, \
            loop and NVMe devices change over a reboot, so that one in a file may mean another disk tomorrow.",
        evidence: "A write that was refused with ENODEV for a number that is no partition, or a setting whose device is a \
            character device.",
        change: "Name the disk by a link that stays (/dev/disk/by-id), and look its number up when the limit is set: lsblk \
            -o NAME,MAJ:MIN.",
        undo: "Nothing took effect, so there is nothing to take back.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.statements().iter().find_map(|said| missing(scene, said)).into_iter().collect()
}

fn missing(scene: &Scene, said: &Statement) -> Option<Finding> {
    let (by, device, refused) = match said {
        Statement::Refused { by, dev: Some(dev), refusal: Refusal::NoDevice, .. } => (by, dev.to_string(), true),
        Statement::LimitAsked { by, device, .. } => (by, device.clone(), false),
        _ => return None,
    };
    let named = scene.named(&device);
    let confidence = match named {
        Named::NoDisk => 0.95,
        // The kernel says that no whole disk has this number; it may still be a partition's.
        Named::Unknown if refused => 0.6,
        // A disk of that number would not have been refused: the kernel's numbering knows it, the host does not.
        Named::Whole if refused => 0.7,
        _ => return None,
    };
    let device = safe(&device);
    let summary = if named == Named::NoDisk {
        format!("{device} is no disk but a character device: nothing can be limited there")
    } else {
        format!("no disk has the number {device}: the kernel refused the limit")
    };
    Some(Finding {
        confidence,
        summary,
        evidence: vec![evidence(Aspect::Limit, "names", Value::Word(device), PASTE)],
        advice: vec![super::advise::look(
            "name the disk that the data lies on; this lists what there is, with numbers and mount points",
            Some("lsblk -o NAME,MAJ:MIN,TYPE,MOUNTPOINTS".into()),
        )],
        ..finding(RULE.id, asker(by))
    })
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Refusal, Statement};
    use quell_units::DevNum;

    use crate::findings::written::Written;

    fn says(statement: Statement) -> bool {
        let mut host = Written::new();
        host.window.pasted = Some(Box::new(Pasted { statements: vec![statement], ..Pasted::default() }));
        host.ids().contains(&"limit-device-missing")
    }

    fn refused(major: u32, minor: u32, refusal: Refusal) -> Statement {
        let (by, file) = ("docker".into(), "io.max".into());
        Statement::Refused { by, file, path: None, dev: Some(DevNum { major, minor }), value: None, refusal }
    }

    #[test]
    fn a_character_device_and_an_unknown_number_are_named() {
        assert!(says(refused(1, 8, Refusal::NoDevice)));
        assert!(says(refused(253, 9, Refusal::NoDevice)));
        let (by, device, key) = ("docker".into(), "/dev/random".into(), "rbps".into());
        assert!(says(Statement::LimitAsked { by, device, key, value: 1024 }));
    }

    #[test]
    fn a_partition_and_another_refusal_are_not_this() {
        assert!(!says(refused(8, 4, Refusal::NoDevice)));
        assert!(!says(refused(259, 2, Refusal::OutOfRange)));
        let (by, device, key) = ("docker".into(), "/dev/vdc".into(), "rbps".into());
        assert!(!says(Statement::LimitAsked { by, device, key, value: 1024 }));
    }
}
