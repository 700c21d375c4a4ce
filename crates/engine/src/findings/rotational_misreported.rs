//! `rotational-misreported`: the kernel takes a disk without moving parts for a spinning one.

use quell_kfile::io_cost_qos::Ctrl;

use super::advise;
use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject};
use super::finding::{Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, DiskClass, Engine, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "rotational-misreported",
    explain: Explain {
        means: "The disk says that it spins, and it does not. What the kernel sets by that flag is then set for a disk that \
            seeks.",
        kernel: "RAID controllers, USB bridges and hypervisors often say rotational=1 for flash. By it iocost's ctrl=auto picks \
            a model of some 370 random reads a second, bfq idles 8 ms between readers, write-back throttling aims at \
            75 ms instead of 2, and distributions' udev rules choose a scheduler and read-ahead.",
        evidence: "queue/rotational is 1 on an NVMe disk, on one whose model names an SSD, or on a volume under bfq or \
            iocost's ctrl=auto that answers small reads of several readers more often than a head can move. A warning where \
            those act on it and somebody waits, else information.",
        change: "Write 0 to queue/rotational, and keep it by a udev rule; then look at the scheduler again.",
        undo: "Write 1 back.",
    },
    find,
};

/// More small reads than heads can make: a fast spinning disk does under 200 random ones.
const READS_PER_SEC: f64 = 500.0;
/// bfq on a flash disk with several readers lets it do less than that; a fast spinning disk stays below all the same.
const READS_PER_SEC_UNDER_BFQ: f64 = 250.0;
const SIZE_BYTES: f64 = 16.0 * 1024.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter(|disk| says_it_spins(disk)).filter_map(|disk| misreported(scene, disk)).collect()
}

fn says_it_spins(disk: &Disk) -> bool {
    disk.queue().is_some_and(|queue| queue.rotational == Ok(true))
}

/// Whether its name or model says that nothing spins in it.
pub(super) fn is_flash(disk: &Disk) -> bool {
    let model = disk.queue().and_then(|queue| queue.model.as_deref().ok()).unwrap_or_default();
    let says = model.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        word.eq_ignore_ascii_case("ssd") || word.eq_ignore_ascii_case("nvme") || word.eq_ignore_ascii_case("flash")
    });
    disk.class == DiskClass::Nvme || says
}

/// Whether it does what no head can: many small reads, of several readers, or each of them at once.
fn outruns_heads(disk: &Disk, least: f64) -> bool {
    let Some(rates) = disk.rates else { return false };
    let read = rates.read;
    let small = read.size_bytes_avg.is_some_and(|size| size <= SIZE_BYTES) && read.merged_pct < 10.0;
    // One reader alone may read in order, which a spinning disk does as fast.
    let several = rates.queue_length_avg >= 1.5;
    small && several && read.ios_per_sec >= least
}

fn misreported(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let acts = what_acts(scene, disk);
    let least = if acts == Some("bfq") { READS_PER_SEC_UNDER_BFQ } else { READS_PER_SEC };
    // virtio disks say so by default: where nothing acts on it, it is no news.
    let outruns = disk.class == DiskClass::Virtual && acts.is_some() && outruns_heads(disk, least);
    if !is_flash(disk) && !outruns {
        return None;
    }
    let user = scene.main_user(disk);
    let stall = user.map_or(0.0, |(workload, _)| workload.stall_ratio());
    let warns = acts.is_some() && stall >= 0.2;
    let source = format!("/sys/block/{}/queue/rotational", disk.name);
    let mut out = vec![evidence(Aspect::Device, "rotational", Value::Word("1".into()), source)];
    if let Some(acts) = acts {
        out.push(evidence(Aspect::Device, "acts on it", Value::Word(acts.to_owned()), "/sys/block/*/queue"));
    }
    out.extend(of_disk(disk));
    if let Some((workload, _)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    let by = acts.map_or(String::new(), |acts| format!(", and {acts} acts on it"));
    let advice = advise::set_queue(disk, "rotational", "0", "1", "say that it does not spin, by a udev rule as well");
    Some(Finding {
        severity: if warns { Severity::Warning } else { Severity::Info },
        confidence: if is_flash(disk) { 0.9 } else { 0.6 },
        summary: format!("{} says that it spins and does not{by}", disk.name),
        evidence: out,
        advice: vec![advice],
        stall_ratio: stall,
        ..finding(
            RULE.id,
            user.filter(|_| warns).map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))),
        )
    })
}

/// What takes the flag at its word here, and was not chosen for the weights that somebody set.
fn what_acts(scene: &Scene, disk: &Disk) -> Option<&'static str> {
    let qos = scene.root_config().and_then(|config| config.cost_qos.as_deref().ok()).unwrap_or_default();
    if qos.iter().any(|row| row.dev == disk.dev && row.enabled && row.ctrl == Ctrl::Auto) {
        return Some("iocost");
    }
    let weights = |path| Engine::Bfq.weight(scene.config(path)?, disk.dev);
    let mut set = scene.users(disk).filter_map(|(workload, _)| weights(&workload.path));
    let first = set.next();
    let chosen = first.is_some_and(|first| set.any(|other| other != first));
    (disk.scheduler() == Some("bfq") && !chosen).then_some("bfq")
}

#[cfg(test)]
mod tests {
    use quell_kfile::scheduler::Scheduler;

    use crate::findings::written::{Did, Written};
    use crate::findings::{Finding, Severity};

    fn volume(scheduler: &str, reads: u64, read_usec: u64) -> Vec<Finding> {
        let mut host = Written::new();
        let did = Did { reads, read_bytes: reads * 4096, read_usec, util_pct: 97, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/virtio3/host0/block/sda", did);
        host.cgroup("tenants/app", 0.4, &[(0, reads, 0, reads * 4096)]);
        host.change("sda", |device| {
            let queue = device.queue.as_mut().unwrap();
            queue.rotational = Ok(true);
            queue.scheduler = Ok(Scheduler { active: scheduler.into(), available: vec![scheduler.into()] });
        });
        let findings = host.findings();
        findings.into_iter().filter(|finding| finding.id == "rotational-misreported").collect()
    }

    #[test]
    fn a_volume_that_outruns_any_head_under_bfq_is_a_warning_and_without_it_no_news() {
        assert_eq!(volume("bfq", 380, 6500)[0].severity, Severity::Warning);
        assert!(volume("none", 900, 3000).is_empty());
    }

    #[test]
    fn a_volume_as_slow_as_a_head_may_well_spin() {
        assert!(volume("bfq", 150, 12_000).is_empty());
        assert!(volume("none", 380, 6500).is_empty());
    }

    #[test]
    fn a_model_that_names_itself_needs_no_load() {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", Did::default());
        let with = |host: &mut Written, model: &str| {
            host.change("sda", |device| {
                let queue = device.queue.as_mut().unwrap();
                queue.rotational = Ok(true);
                queue.model = Ok(model.into());
            });
            host.ids().contains(&"rotational-misreported")
        };
        assert!(with(&mut host, "Samsung SSD 870"));
        assert!(!with(&mut host, "ST4000NM0035"));
    }
}
