//! `host-memory-thrash`: the whole machine waits for memory, and its disks' work is a symptom.

use quell_units::count;

use super::evidence::{disk_subject, evidence, finding, host_subject, of_disk};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "host-memory-thrash",
    explain: Explain {
        means: "For a fifth of the time and more nobody on this host could run, because pages were being reclaimed or read \
            back. The disk is busy with that and not with your work.",
        kernel: "memory.pressure counts direct reclaim, waits for pages that were evicted a moment ago and swap-ins. `full` is \
            the time in which all that wanted to run were in them. The reads and writes are ordinary requests to the disk.",
        evidence: "`full` of /proc/pressure/memory at 20 % or more over the window, in a paste its avg10 column and avg60; and \
            of MemTotal at most a fifth is in MemAvailable, where that is known. With more, a cgroup's own limit is short and \
            not the host.",
        change: "More memory, or fewer programs on the host; a limit for the one that grows. A faster disk only hides it.",
        undo: "Nothing is changed.",
    },
    find,
};

/// Full pressure: below it a short reclaim in a busy host would be named.
const FULL_PCT: f64 = 20.0;

/// `MemAvailable` of `MemTotal`: above it the pressure is that of one cgroup within its limit.
const AVAILABLE_RATIO: f64 = 0.2;

fn find(scene: &Scene) -> Vec<Finding> {
    if !is_short(scene).unwrap_or(true) {
        return Vec::new();
    }
    let full_pct = full_pct(scene).or_else(|| pasted_pct(scene));
    full_pct.filter(|pct| *pct >= FULL_PCT).map(|pct| thrash(scene, pct)).into_iter().collect()
}

/// Whether the host has little memory left; `None` where that is not known.
fn is_short(scene: &Scene) -> Option<bool> {
    let memory = scene.window.t1.system.meminfo.as_ref().ok()?;
    let (total, available) = (count(memory.total_bytes?.get()), count(memory.available_bytes?.get()));
    (total > 0.0).then(|| available / total <= AVAILABLE_RATIO)
}

fn full_pct(scene: &Scene) -> Option<f64> {
    scene.rates.system.memory_pressure.ok()?.full_pct
}

/// A single reading has the kernel's own means: both the short and the longer one must say so.
fn pasted_pct(scene: &Scene) -> Option<f64> {
    let files = scene.window.pasted.as_ref()?.files.iter();
    let mut averages = files.filter(|file| file.path == "proc/pressure/memory").filter_map(|file| {
        let full = quell_kfile::pressure::parse_averages(file.latest()).full?;
        Some(full.avg10_pct.min(full.avg60_pct))
    });
    averages.next_back()
}

fn thrash(scene: &Scene, pct: f64) -> Finding {
    let busiest = busiest(scene);
    let mut out = vec![evidence(Aspect::Memory, "memory pressure full", Value::Pct(pct), "/proc/pressure/memory")];
    out.extend(busiest.map(of_disk).unwrap_or_default());
    let mut subject = host_subject();
    subject.device = busiest.and_then(|disk| disk_subject(disk).device);
    Finding {
        confidence: 0.85,
        summary: format!("this host is short of memory: for {pct:.0} % of the time nobody could run for it"),
        evidence: out,
        advice: vec![Advice::text("give the host more memory or less to do; limit the program that grows")],
        stall_ratio: (pct / 100.0).min(1.0),
        ..finding(RULE.id, subject)
    }
}

/// The disk that the pages come from, as far as can be told.
fn busiest<'s>(scene: &'s Scene) -> Option<&'s Disk<'s>> {
    let bytes = |disk: &Disk| disk.rates.map_or(0.0, crate::rates::DiskRates::bytes_per_sec);
    scene.leaf_disks().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))
}

#[cfg(test)]
mod tests {
    use quell_kfile::meminfo::MemInfo;
    use quell_kfile::pressure::Pressure;
    use quell_paste::{File, Pasted};
    use quell_units::{Bytes, Micros};

    use crate::findings::written::{Did, SECONDS, Written};

    fn pressed(pct: u64) -> Written {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", Did::default());
        host.window.t0.system.memory_pressure = Ok(Pressure { some_usec: Micros(0), full_usec: Some(Micros(0)) });
        let stalled = Micros(pct * SECONDS * 10_000);
        host.window.t1.system.memory_pressure = Ok(Pressure { some_usec: stalled, full_usec: Some(stalled) });
        host
    }

    #[test]
    fn a_host_that_cannot_run_for_want_of_memory_is_named_and_one_that_reclaims_a_little_is_not() {
        assert_eq!(pressed(58).ids()[0], "host-memory-thrash");
        assert_eq!(pressed(8).ids(), ["healthy"]);
    }

    #[test]
    fn pressure_of_one_cgroup_within_its_limit_is_not_the_hosts() {
        let with_available = |bytes| {
            let mut host = pressed(58);
            let memory =
                MemInfo { total_bytes: Some(Bytes(1 << 30)), available_bytes: Some(bytes), ..MemInfo::default() };
            host.window.t1.system.meminfo = Ok(memory);
            host.ids().contains(&"host-memory-thrash")
        };
        assert!(with_available(Bytes(60 << 20)));
        assert!(!with_available(Bytes(600 << 20)));
    }

    #[test]
    fn a_pasted_file_is_read_by_the_kernels_own_means() {
        let ids = |avg60: &str| {
            let mut host = Written::new();
            let text = format!(
                "some avg10=70.24 avg60=68.52 avg300=69.91 total=1\nfull avg10=57.59 avg60={avg60} avg300=60.38 total=1\n"
            );
            let files = vec![File {
                path: "proc/pressure/memory".into(),
                first: text.into_bytes(),
                readings: 1,
                ..File::default()
            }];
            host.window.pasted = Some(Box::new(Pasted { files, ..Pasted::default() }));
            host.ids()
        };
        assert!(ids("58.06").contains(&"host-memory-thrash"));
        assert!(!ids("3.00").contains(&"host-memory-thrash"), "over in a few seconds");
    }
}
