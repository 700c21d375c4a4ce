//! Judgements, on hosts of one disk each: right values stay fine, wrong ones are named, and what is not known stays open.

use quell_kfile::scheduler::Scheduler;
use quell_kfile::superblock::{Ext, ExtJournal, Superblock};
use quell_units::{Bytes, DevNum};

use super::*;
use crate::findings::written;
use crate::snapshot::{Device, Mount, OnDisk, Queue, QueueDetail, Setting, Snapshot};

const SATA: &str = "/sys/devices/pci0000:00/ata1/block/sda";

fn host(sysfs_path: &str, name: &str, change: impl Fn(&mut Queue)) -> Snapshot {
    let mut host = written::snapshot(0);
    let mut disk = written::device(0, name, sysfs_path);
    change(disk.queue.as_mut().unwrap());
    host.devices.push(disk);
    host
}

fn runs(queue: &mut Queue, active: &str) {
    let available = ["none", "mq-deadline", "bfq"].map(Box::from).to_vec();
    queue.scheduler = Ok(Scheduler { active: active.into(), available });
}

fn judged(host: &Snapshot, what: &str) -> Judged {
    let disk: &Device = &host.devices[0];
    queue(host, disk).into_iter().find(|judged| judged.what == what).unwrap()
}

#[test]
fn the_scheduler_is_judged_by_the_class_of_the_disk() {
    use Judgement::{Fine, Questionable, Wrong};
    let nvme = "/sys/devices/pci0000:00/nvme/nvme0/nvme0n1";
    let virtio = "/sys/devices/pci0000:00/virtio1/block/vda";
    for (path, name, spins, active, judgement, better) in [
        (nvme, "nvme0n1", false, "none", Fine, None),
        (nvme, "nvme0n1", false, "mq-deadline", Questionable, Some("none")),
        (nvme, "nvme0n1", false, "bfq", Wrong, Some("none")),
        (virtio, "vda", false, "none", Fine, None),
        (virtio, "vda", false, "mq-deadline", Questionable, Some("none")),
        (SATA, "sda", false, "mq-deadline", Fine, None),
        (SATA, "sda", false, "none", Questionable, Some("mq-deadline")),
        (SATA, "sda", true, "bfq", Fine, None),
        (SATA, "sda", true, "none", Wrong, Some("mq-deadline")),
    ] {
        let host = host(path, name, |queue| {
            queue.rotational = Ok(spins);
            runs(queue, active);
        });
        let judged = judged(&host, "scheduler");
        assert_eq!((judged.judgement, judged.better.as_deref()), (judgement, better), "{active} on {name}");
    }
}

#[test]
fn a_depth_is_judged_by_what_waiting_costs_on_the_disk() {
    for (spins, depth, judgement) in [
        (true, 64, Judgement::Fine),
        (true, 128, Judgement::Fine),
        (true, 256, Judgement::Questionable),
        (true, 32, Judgement::Questionable),
        (false, 32, Judgement::Fine),
        (false, 256, Judgement::Fine),
        (false, 16, Judgement::Questionable),
        (false, 1024, Judgement::Questionable),
    ] {
        let host = host(SATA, "sda", |queue| {
            queue.rotational = Ok(spins);
            queue.nr_requests = Ok(depth);
        });
        assert_eq!(judged(&host, "nr_requests").judgement, judgement, "{depth}, spins: {spins}");
    }
}

#[test]
fn the_kernels_own_target_of_write_back_throttling_is_fine() {
    let virtio = "/sys/devices/pci0000:00/virtio1/block/vda";
    for (path, spins, usec, judgement, better) in [
        (virtio, false, 2000, Judgement::Fine, None),
        (virtio, true, 75_000, Judgement::Fine, None),
        (virtio, false, 500, Judgement::Questionable, Some("2000")),
        (SATA, true, 75_000, Judgement::Fine, None),
        (SATA, true, 2000, Judgement::Questionable, Some("75000")),
        (SATA, false, 2000, Judgement::Fine, None),
    ] {
        let host = host(path, "sda", |queue| {
            queue.rotational = Ok(spins);
            queue.wbt_target_usec = Ok(usec);
        });
        let judged = judged(&host, "wbt_lat_usec");
        assert_eq!((judged.judgement, judged.better.as_deref()), (judgement, better), "{usec}, spins: {spins}");
    }
}

#[test]
fn a_value_that_is_there_already_is_no_better_one() {
    let judged = |value: &str| Judged::of("x", value.into(), "/x", Verdict::questionable("why").better("2"));
    assert_eq!((judged("1").better.as_deref(), judged("2").better), (Some("2"), None));
}

#[test]
fn counters_that_are_off_are_wrong_everywhere_and_absent_files_are_not_told() {
    let setting = |file: &str, value: &str| Setting { file: file.into(), value: Ok(value.into()) };
    let host = host(SATA, "sda", |queue| {
        queue.detail = Some(Box::new(QueueDetail {
            settings: vec![setting("queue/iostats", "0"), setting("queue/iosched/read_expire", "100")],
            hardware_queues: Vec::new(),
            numa_node: Ok(0),
            backing_file: None,
            nvme_paths: Vec::new(),
        }));
        runs(queue, "mq-deadline");
    });
    assert_eq!(judged(&host, "iostats").judgement, Judgement::Wrong);
    let expire = judged(&host, "mq-deadline: read_expire");
    assert_eq!((expire.judgement, &*expire.why), (Judgement::Open, "the kernel's default is 500"));
    assert!(queue(&host, &host.devices[0]).iter().all(|judged| judged.what != "nomerges"));
}

/// A host with one mount on `sda`.
fn mounted(fs_type: &str, options: &str, cache: Option<&str>) -> Snapshot {
    let mut host = host(SATA, "sda", |queue| {
        if let Some(cache) = cache {
            queue.write_cache = Ok(cache.into());
        }
    });
    let dev = host.devices[0].dev;
    host.mounts.push(mount("/data", dev, fs_type, options));
    host
}

fn mount(point: &str, dev: DevNum, fs_type: &str, options: &str) -> Mount {
    Mount {
        mount_point: point.into(),
        root: "/".into(),
        dev,
        fs_type: fs_type.into(),
        source: "/dev/sda".into(),
        options: "rw".into(),
        fs_options: options.into(),
        upper_dir: None,
        on: if dev.major == 0 { Vec::new() } else { vec![dev] },
    }
}

fn of_fs(host: &Snapshot, what: &str) -> Option<(String, Judgement)> {
    let report = filesystems(host).into_iter().next().unwrap();
    report.settings.into_iter().find(|judged| judged.what == what).map(|judged| (judged.value, judged.judgement))
}

#[test]
fn nobarrier_is_unsafe_only_where_a_cache_is_volatile() {
    for (options, cache, judgement) in [
        ("rw,nobarrier", Some("write back"), Judgement::Wrong),
        ("rw,barrier=0", Some("write back"), Judgement::Wrong),
        ("rw,nobarrier", Some("write through"), Judgement::Fine),
        ("rw,nobarrier", None, Judgement::Questionable),
        ("rw,barrier", Some("write back"), Judgement::Fine),
        ("rw", Some("write back"), Judgement::Fine),
    ] {
        let host = mounted("ext4", options, cache);
        assert_eq!(of_fs(&host, "barrier").unwrap().1, judgement, "{options} {cache:?}");
    }
}

#[test]
fn a_superblock_tells_the_journal_and_its_defaults_where_the_mount_is_silent() {
    let mut host = mounted("ext4", "rw", Some("write back"));
    let dev = host.devices[0].dev;
    let mut set = |ext: Ext| {
        host.on_disk = vec![OnDisk { dev, superblock: Ok(Superblock::Ext(ext)) }];
        host.clone()
    };
    let small = set(Ext { journal: ExtJournal::Internal(Some(Bytes(16 << 20))), ..Ext::default() });
    assert_eq!(of_fs(&small, "journal"), Some(("internal, 16.0 MiB".into(), Judgement::Questionable)));
    assert_eq!(of_fs(&small, "data").unwrap().0, "ordered");
    let external = set(Ext { journal: ExtJournal::External(0x0800), ..Ext::default() });
    assert_eq!(of_fs(&external, "journal").unwrap().0, "external, sda 8:0");
    let without = set(Ext { errors: 2, default_nobarrier: true, ..Ext::default() });
    assert_eq!(of_fs(&without, "journal").unwrap().1, Judgement::Questionable);
    assert_eq!(of_fs(&without, "data"), None, "without a journal there is no data mode");
    assert_eq!(of_fs(&without, "errors").unwrap().1, Judgement::Wrong);
    assert_eq!(of_fs(&without, "barrier").unwrap().1, Judgement::Wrong);
}

#[test]
fn a_file_system_that_is_not_mounted_is_told_from_its_superblock() {
    let mut host = mounted("ext4", "rw", None);
    host.mounts.clear();
    let dev = host.devices[0].dev;
    let journal = ExtJournal::Internal(Some(Bytes(1 << 30)));
    host.on_disk = vec![OnDisk { dev, superblock: Ok(Superblock::Ext(Ext { journal, ..Ext::default() })) }];
    let reports = filesystems(&host);
    assert_eq!((reports.len(), reports[0].mount_points.len()), (1, 0));
    assert_eq!(of_fs(&host, "journal").unwrap().0, "internal, 1.00 GiB");
}

#[test]
fn one_file_system_is_told_once_however_often_it_is_mounted() {
    let mut host = mounted("xfs", "rw,prjquota", None);
    let dev = host.devices[0].dev;
    host.mounts.push(mount("/var/lib/docker", dev, "xfs", "rw,prjquota"));
    let reports = filesystems(&host);
    assert_eq!((reports.len(), reports[0].mount_points.len()), (1, 2));
}

#[test]
fn the_size_of_a_writable_layer_holds_on_xfs_with_project_quotas_alone() {
    for (fs_type, options, quota) in [
        ("xfs", "rw,inode64,prjquota", LayerQuota::Holds),
        ("xfs", "rw,pquota", LayerQuota::Holds),
        ("xfs", "rw,pqnoenforce", LayerQuota::CountedOnly),
        ("xfs", "rw,noquota", LayerQuota::Off),
        ("ext4", "rw,prjquota", LayerQuota::OtherFilesystem),
    ] {
        let mut host = mounted(fs_type, options, None);
        host.mounts[0].mount_point = "/var/lib/docker".into();
        let anonymous = DevNum { major: 0, minor: 60 };
        let upper_dir = Some("/var/lib/docker/overlay2/f/diff".to_owned());
        let overlay = Mount { upper_dir, ..mount("/run/merged", anonymous, "overlay", "rw") };
        assert_eq!(writable_layer_quota(&overlay, &host), Some(quota), "{fs_type} {options}");
        assert_eq!(writable_layer_quota(&host.mounts[0], &host), None);
        host.mounts.clear();
        assert_eq!(writable_layer_quota(&overlay, &host), Some(LayerQuota::Unseen));
    }
}
