//! Hosts that a review or a report brought up: what must be said of them first, and what must not be said at all.
//!
//! A rule's own tests stand beside it; here are those that show how the rules go together.

use quell_kfile::jbd2_info::Jbd2Info;
use quell_kfile::memory_stat::MemoryStat;
use quell_kfile::vmstat::VmStat;
use quell_units::{Bytes, Gap, Limit, Micros};

use super::Severity;
use super::written::{Did, SECONDS, Written, io_max, number};
use crate::snapshot::Filesystem;

const NVME: &str = "/sys/devices/pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1";
const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:02.0/virtio0/block/vda";
const MIB: u64 = 1 << 20;

fn reads(per_sec: u64, usec: u64, util_pct: u64) -> Did {
    Did { reads: per_sec, read_bytes: per_sec * 4096, read_usec: usec, util_pct, ..Did::default() }
}

fn writes(per_sec: u64, bytes: u64, usec: u64, util_pct: u64) -> Did {
    Did { writes: per_sec, write_bytes: per_sec * bytes, write_usec: usec, util_pct, ..Did::default() }
}

#[test]
fn a_short_burst_of_write_back_is_no_full_disk() {
    let mut host = Written::new();
    // 4000 writes of 512 KiB in half a second of ten: 200 ms each in the burst, aqu-sz 80 over the window.
    host.disk(0, "nvme0n1", NVME, writes(400, 512 << 10, 200_000, 6)).cgroup("ci", 0.05, &[(0, 0, 400, 200 * MIB)]);
    assert_eq!(host.ids(), ["healthy"]);
}

#[test]
fn nine_slow_reads_are_no_queue() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, reads(1, 9_000_000, 95)).cgroup("app", 0.0, &[(0, 1, 0, 4096)]);
    assert_eq!(host.ids(), ["healthy"]);
}

#[test]
fn a_limit_of_reads_that_asynchronous_readers_reach_is_named_though_nobody_seems_to_wait() {
    let mut host = Written::new();
    // Bursts of 100 ms slices: half of the time busy, and a queue in the bursts.
    host.disk(0, "vda", VIRTIO, reads(1000, 9_000, 81)).cgroup("app", 0.0, &[(0, 1000, 0, 1000 * 4096)]);
    assert_eq!(host.ids(), ["device-saturated"]);
    host.configure("app", |config| config.io_max = Ok(vec![io_max(0, [None, None, Some(1000), None])]));
    assert_eq!(host.ids(), ["throttled-by-io-max"]);
}

#[test]
fn a_writer_that_syncs_now_and_then_stays_below_its_limit_and_is_held_by_it_all_the_same() {
    let held = |stall: f64, usec: u64, util_pct: u64| {
        let mut host = Written::new();
        host.disk(0, "vda", VIRTIO, writes(18, 512 << 10, usec, util_pct));
        host.cgroup("app", stall, &[(0, 0, 18, 9 * MIB)]);
        host.configure("app", |config| config.io_max = Ok(vec![io_max(0, [None, Some(10 * MIB), None, None])]));
        host.ids()
    };
    assert_eq!(held(0.5, 4_000, 7), ["throttled-by-io-max"]);
    assert_eq!(held(0.1, 4_000, 7), ["healthy"], "nobody waits");
    assert_eq!(held(0.45, 22_000, 40), ["healthy"], "the disk itself accounts for the wait");
}

#[test]
fn write_back_that_is_held_above_an_idle_disk_is_the_limits_whatever_the_rate() {
    let mut host = shared_journal(500);
    host.disk(1, "vdb", VIRTIO, Did::default());
    // Of the 2 MiB/s that are allowed a quarter was counted in this window; 40 MiB are under way.
    host.now("capped", |cgroup| cgroup.io.as_mut().unwrap()[0].write_bytes = Bytes(SECONDS * MIB / 2));
    assert_eq!(host.ids(), ["throttled-by-io-max"]);
}

#[test]
fn write_back_that_the_disks_queue_cannot_hold_is_the_limits_on_a_busy_disk_too() {
    let held = |queue_usec, limit: u64| {
        let mut host = Written::new();
        host.disk(0, "vda", VIRTIO, writes(150, 64 << 10, queue_usec, 65));
        host.cgroup("victim", 0.1, &[(0, 0, 149, 149 << 16)]).cgroup("capped", 0.5, &[(0, 0, 1, MIB)]);
        host.configure("capped", |config| config.io_max = Ok(vec![io_max(0, [None, Some(limit), None, None])]));
        waits_to_be_written(&mut host, "capped", [0, 50 * MIB]);
        host.ids().contains(&"throttled-by-io-max")
    };
    assert!(held(7_000, 2 * MIB), "one request of 64 KiB at a time is not 50 MiB");
    assert!(!held(3_000_000, 2 * MIB), "450 of them are half of it: the disk has them");
    assert!(!held(7_000, 20 * MIB), "a limit of which a twentieth is used holds nobody");
}

#[test]
fn a_writer_that_no_look_met_in_its_pause_is_known_by_the_pages_that_keep_it_there() {
    let paused = |backlog_pages: [u64; 4]| {
        let mut host = Written::new();
        host.disk(0, "vda", VIRTIO, writes(22, 720 << 10, 590_000, 99));
        host.cgroup("writer", 0.32, &[(0, 0, 22, 22 * (720 << 10))]);
        waits_to_be_written(&mut host, "writer", [2 * MIB, 12 * MIB]);
        let [first, early, late, last] = backlog_pages;
        // 8 and 16 MiB: writers run free up to 3072 pages.
        host.window.t0.system.vmstat = Ok(backlog(first, [2048, 4096]));
        host.window.t1.system.vmstat = Ok(backlog(last, [2048, 4096]));
        host.look(2_000, &[(0, 13, 44)], &[]).look(4_000, &[(0, 13, 88)], &[]);
        for (look, pages) in host.window.looks.iter_mut().zip([early, late]) {
            (look.dirty_pages, look.writeback_pages) = (Some(0), Some(pages));
        }
        host.ids()
    };
    assert_eq!(paused([3500, 3600, 2900, 3700]), ["dirty-throttled"]);
    assert_eq!(paused([3500, 2600, 2900, 3700]), ["device-saturated"], "half of the time it may run free");
}

#[test]
fn the_writer_of_a_storm_is_the_child_and_not_its_parent_whose_backlog_holds_the_childs() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, writes(50, 512 << 10, 400_000, 99));
    host.cgroup("tenants", 0.4, &[(0, 0, 55, 28 * MIB)]);
    host.cgroup("tenants/hog", 0.1, &[(0, 0, 45, 25 * MIB - 5 * 4096)]).cgroup(
        "tenants/victim",
        0.4,
        &[(0, 0, 5, 5 * 4096)],
    );
    for (path, dirty) in [("tenants", 31), ("tenants/hog", 30)] {
        waits_to_be_written(&mut host, path, [dirty * MIB, 30 * MIB]);
    }
    host.window.t1.system.vmstat = Ok(backlog(60 * MIB / 4096, [12_000, 300_000]));
    let findings = host.findings();
    let first = findings.first().unwrap();
    let culprit = first.culprit.as_ref().and_then(|culprit| culprit.cgroup.as_ref()).map(ToString::to_string);
    assert_eq!((first.id, culprit.as_deref()), ("writeback-storm", Some("tenants/hog")));
}

/// Gives a cgroup this much page cache that is dirty, and under write-back.
fn waits_to_be_written(host: &mut Written, path: &str, [dirty, writeback]: [u64; 2]) {
    host.now(path, |cgroup| {
        let (file_dirty_bytes, file_writeback_bytes) = (Some(Bytes(dirty)), Some(Bytes(writeback)));
        cgroup.memory_stat = Ok(MemoryStat { file_dirty_bytes, file_writeback_bytes, ..MemoryStat::default() });
    });
}

/// Pages under write-back beside the two limits.
fn backlog(pages: u64, [background, limit]: [u64; 2]) -> VmStat {
    VmStat {
        dirty_pages: Some(0),
        writeback_pages: Some(pages),
        dirty_background_threshold_pages: Some(background),
        dirty_threshold_pages: Some(limit),
        ..VmStat::default()
    }
}

#[test]
fn a_container_that_thrashes_a_little_does_not_hide_another_ones_neighbour() {
    let mut host = Written::new();
    let did = Did { writes: 900, write_bytes: 900 << 16, write_usec: 35_000, ..reads(130, 35_000, 99) };
    host.disk(0, "vda", VIRTIO, did);
    host.cgroup("hog", 0.0, &[(0, 0, 900, 900 << 16)]).cgroup("victim", 0.8, &[(0, 30, 0, 30 * 4096)]);
    host.cgroup("small", 0.15, &[(0, 100, 0, 100 * 4096)]);
    host.configure("small", |config| config.memory_max = Ok(Limit::At(Bytes(48 * MIB))));
    for (snapshot, refaults) in [(&mut host.window.t0, 0), (&mut host.window.t1, 100 * SECONDS)] {
        let small = snapshot.cgroups.iter_mut().find(|cgroup| cgroup.path.as_bytes() == b"small").unwrap();
        small.memory = Ok(Bytes(47 * MIB));
        small.memory_stat = Ok(MemoryStat { refault_file_pages: Some(refaults), ..MemoryStat::default() });
    }
    assert_eq!(host.ids(), ["noisy-neighbour", "memcg-thrash"]);
}

#[test]
fn what_ended_cgroups_did_is_not_answered_with_a_cap_on_the_victim_too() {
    let mut host = Written::new();
    let did = Did { writes: 900, write_bytes: 900 << 16, write_usec: 35_000, ..reads(30, 35_000, 99) };
    host.disk(0, "vda", VIRTIO, did);
    host.cgroup("tenants", 0.0, &[(0, 0, 900, 900 << 16)]).cgroup("tenants/victim", 0.8, &[(0, 30, 0, 30 * 4096)]);
    let findings = host.findings();
    assert!(
        findings.iter().flat_map(|finding| &finding.advice).all(|advice| advice.command.is_none()),
        "{findings:#?}"
    );
}

#[test]
fn children_without_the_controller_leave_the_parent_its_known_share() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, reads(2000, 16_000, 100));
    host.cgroup("system.slice", 0.0, &[(0, 2000, 0, 2000 * 4096)]).cgroup("system.slice/db.service", 0.5, &[]);
    for snapshot in [&mut host.window.t0, &mut host.window.t1] {
        let db = snapshot.cgroups.iter_mut().find(|cgroup| cgroup.path.as_bytes().ends_with(b"db.service")).unwrap();
        db.io = Err(Gap::ControllerOff);
    }
    let findings = host.findings();
    assert_eq!(findings[0].id, "device-saturated");
    assert_eq!(findings[0].subject.name, "unit/system.slice");
}

#[test]
fn a_disk_that_stops_inside_the_window_hangs_and_its_counters_are_believed() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, reads(30, 400, 93));
    host.window.t1.devices[0].counters.in_flight = 7;
    // 300 reads in the first 2 s, then none.
    host.look(1000, &[(0, 1, 150)], &[]);
    for ms in (2000..10_000).step_by(1000) {
        host.look(ms, &[(0, 7, 300)], &[]);
    }
    let findings = host.findings();
    assert_eq!((findings[0].id, findings[0].severity), ("device-hung", Severity::Critical));
    assert!(findings[0].summary.contains("none completed for 8.0 s"), "{}", findings[0].summary);
    assert_eq!(host.ids().len(), 1);
}

/// A file system on vda with so many commits in the window, a victim and a neighbour held at its limit.
fn shared_journal(commits: u64) -> Written {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, writes(16, 128 << 10, 5_000, 8));
    host.cgroup("capped", 0.8, &[(0, 0, 16, 2 * MIB)]).cgroup("victim", 0.0, &[(0, 0, 0, 0)]);
    host.configure("capped", |config| config.io_max = Ok(vec![io_max(0, [None, Some(2 * MIB), None, None])]));
    waits_to_be_written(&mut host, "capped", [8 * MIB, 40 * MIB]);
    for (snapshot, transactions) in [(&mut host.window.t0, 100), (&mut host.window.t1, 100 + commits)] {
        snapshot.filesystems.push(Filesystem {
            dev: number(0),
            fs_type: "ext4".into(),
            mount_point: "/data".into(),
            options: String::new(),
            journal: Ok(Jbd2Info {
                transactions: Some(transactions),
                requested: Some(transactions),
                commit_usec_avg: Some(Micros(200_000)),
                ..Jbd2Info::default()
            }),
            journal_file: Some("/proc/fs/jbd2/vda-8/info".into()),
        });
    }
    host
}

#[test]
fn a_journals_waiter_may_go_from_one_of_its_functions_to_the_next() {
    let mut host = shared_journal(40);
    host.waits("victim", 7, "add_transaction_credits", "jbd2_log_wait_commit");
    let findings = host.findings();
    assert_eq!(findings[0].id, "journal-shared-stall");
    assert_eq!(findings[0].subject.name, "victim");
    assert_eq!(findings[0].culprit.as_ref().unwrap().name, "capped");
    assert_eq!(host.ids().len(), 1, "the neighbour's limit is evidence: {:?}", host.ids());
}

#[test]
fn a_journal_that_commits_swiftly_is_shared_and_does_not_stall() {
    let mut host = shared_journal(500);
    host.waits("victim", 7, "jbd2_log_wait_commit", "jbd2_log_wait_commit");
    assert!(!host.ids().contains(&"journal-shared-stall"), "{:?}", host.ids());
}

#[test]
fn a_task_seen_now_and_then_does_not_wait_throughout() {
    let mut host = shared_journal(5);
    for ms in (100..10_000).step_by(100) {
        let blocked: &[(&str, u32, &str)] = if ms % 1000 == 0 { &[("victim", 7, "jbd2_log_wait_commit")] } else { &[] };
        host.look(ms, &[], blocked);
    }
    assert_eq!(host.ids(), ["throttled-by-io-max"]);
}

#[test]
fn a_device_that_delays_above_idle_disks_is_held_up_at_any_depth() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, reads(70, 1_000, 7));
    host.disk(1, "dm-0", "/sys/devices/virtual/block/dm-0", reads(70, 57_000, 100));
    host.change("dm-0", |device| device.slaves = vec![number(0)]);
    let findings = host.findings();
    assert_eq!(findings[0].id, "slow-device");
    assert!(findings[0].summary.starts_with("dm-0 is held up above the disks below it"), "{}", findings[0].summary);
}

#[test]
fn two_readers_of_one_request_each_are_no_serial_issuer() {
    let mut host = Written::new();
    host.disk(0, "vda", VIRTIO, reads(600, 1_600, 90));
    host.cgroup("a", 0.4, &[(0, 300, 0, 300 * 4096)]).cgroup("b", 0.4, &[(0, 300, 0, 300 * 4096)]);
    assert_eq!(host.ids(), ["healthy"]);
}

#[test]
fn findings_that_explain_one_another_end_in_one() {
    // The victim's stall, the queue and the weights: one block, and the rest is its evidence.
    let mut host = Written::new();
    let did = Did { writes: 900, write_bytes: 900 << 16, write_usec: 35_000, ..reads(30, 35_000, 99) };
    host.disk(0, "vda", VIRTIO, did);
    host.cgroup("hog", 0.0, &[(0, 0, 900, 900 << 16)]).cgroup("victim", 0.8, &[(0, 30, 0, 30 * 4096)]);
    let findings = host.findings();
    let folded: Vec<&str> = findings[0]
        .evidence
        .iter()
        .filter(|evidence| evidence.aspect == super::Aspect::Explains)
        .map(|evidence| evidence.what.as_str())
        .collect();
    assert_eq!((findings.len(), folded), (1, vec!["device-saturated"]));
}
