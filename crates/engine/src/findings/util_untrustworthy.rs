//! `util-untrustworthy`: a disk claims to be busier than its requests can have made it.

use super::evidence::{disk_subject, evidence, finding};
use super::finding::{Advice, Aspect, Explain, Finding, Severity, Value};
use super::scene::{Disk, Scene, Trust};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "util-untrustworthy",
    explain: Explain {
        means: "This disk's %util is wrong: it claims more busy time than all its requests together took.",
        kernel: "Some kernels add a whole jiffy to io_ticks whenever a request starts in a new one, so a fast disk with a few \
            hundred short requests a second reads 40 to 100 %. Others under-read behind partitions. await and aqu-sz come \
            from each request's own time and are right.",
        evidence: "%util of at least 20 that exceeds the sum of the requests' own times by more than a quarter and a jiffy at \
            either end, with nothing in flight at the end. Information: nobody waits longer for it.",
        change: "Nothing; alert on await and aqu-sz. Rules of quell that read %util are silent for this disk.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter_map(untrustworthy).collect()
}

fn untrustworthy(disk: &Disk) -> Option<Finding> {
    let Trust::BusierThanItsRequests { util_pct, ticks_pct } = disk.trust else { return None };
    Some(Finding {
        // Nobody waits longer for it; what must not happen is that somebody acts on it.
        severity: Severity::Info,
        confidence: 0.9,
        summary: format!(
            "{}'s %util of {util_pct:.0} is not true: its requests took {ticks_pct:.1} % of the time",
            disk.name
        ),
        evidence: vec![
            evidence(Aspect::Device, "util", Value::Pct(util_pct), "/proc/diskstats"),
            evidence(Aspect::Device, "sum of its requests' times", Value::Pct(ticks_pct), "/proc/diskstats"),
            evidence(Aspect::Device, "aqu-sz", Value::Number(disk.queue_length_avg()), "/proc/diskstats"),
        ],
        advice: vec![Advice::text("go by await and aqu-sz, not by %util")],
        ..finding(RULE.id, disk_subject(disk))
    })
}

#[cfg(test)]
mod tests {
    use crate::findings::Severity;
    use crate::findings::written::{Did, Written};

    const NVME: &str = "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";

    #[test]
    fn a_jiffy_for_each_start_is_named_and_not_taken_for_a_serial_issuer() {
        let mut host = Written::new();
        // 250 reads a second of 100 us each are 2.5 % of the time; a jiffy of 4 ms for each is all of it.
        let did = Did { reads: 250, read_bytes: 250 * 4096, read_usec: 100, util_pct: 98, ..Did::default() };
        let findings = host.disk(0, "nvme0n1", NVME, did).findings();
        assert!(findings.iter().all(|finding| finding.severity == Severity::Info));
        assert_eq!(host.ids(), ["healthy", "util-untrustworthy"]);
    }

    #[test]
    fn busy_time_that_the_requests_account_for_is_believed() {
        let mut host = Written::new();
        let did = Did { reads: 2500, read_bytes: 2500 * 4096, read_usec: 100, util_pct: 30, ..Did::default() };
        assert_eq!(host.disk(0, "nvme0n1", NVME, did).ids(), ["healthy"]);
    }
}
