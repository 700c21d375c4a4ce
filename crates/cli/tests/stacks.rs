//! `quell devices` and `quell cgroup` on a host with every kind of layer: docker on an NVMe disk of two controllers, a
//! database on a thin volume over dm-crypt over a mirror of two badly set disks, ZFS. No capture holds all of that, so the
//! tree is written here.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking, as tests do")]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

/// A tree under construction.
struct Tree(tempfile::TempDir);

impl Tree {
    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// A device with its line in `diskstats`, its files, and what it lies on.
    fn device(&self, dev: &str, place: &str, files: &[(&str, &str)], below: &[&str]) {
        let name = place.rsplit('/').next().unwrap();
        let known = fs::read_to_string(self.0.path().join("proc/diskstats")).unwrap_or_default();
        let line = format!("{} {name} 1 0 8 1 1 0 8 1 0 1 1 0 0 0 0 0 0\n", dev.replace(':', " "));
        self.file("proc/diskstats", &(known + &line));
        self.file(&format!("sys/devices/{place}/dev"), &format!("{dev}\n"));
        self.link(&format!("sys/dev/block/{dev}"), &format!("../../devices/{place}"));
        for (file, text) in files {
            self.file(&format!("sys/devices/{place}/{file}"), &format!("{text}\n"));
        }
        let up = "../".repeat(place.matches('/').count() + 2);
        for place_below in below {
            let name_below = place_below.rsplit('/').next().unwrap();
            self.link(&format!("sys/devices/{place}/slaves/{name_below}"), &format!("{up}{place_below}"));
        }
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_quell"))
            .args(args)
            .args(["--root", self.0.path().to_str().unwrap()])
            .env("COLUMNS", "80")
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, text) = self.run(&[args, &["--json"]].concat());
        assert_eq!(code, 0, "{args:?}");
        serde_json::from_str(&text).unwrap()
    }
}

const CONTAINER: &str = "1f2e3d4c5b6a79880716253443526170f1e2d3c4b5a697887960514233241506";

fn host() -> Tree {
    let tree = Tree(tempfile::tempdir().unwrap());
    let spinning = [
        ("queue/rotational", "1"),
        ("queue/scheduler", "[none] mq-deadline bfq"),
        ("queue/nr_requests", "256"),
        ("queue/write_cache", "write back"),
        ("queue/physical_block_size", "4096"),
    ];
    for (at, name, start) in [(0, "sda", "63"), (1, "sdb", "2048")] {
        let place = format!("pci0/ata{at}/block/{name}");
        tree.device(&format!("8:{}", at * 16), &place, &spinning, &[]);
        let files = [("partition", "1"), ("start", start), ("size", "2048")];
        tree.device(&format!("8:{}", at * 16 + 1), &format!("{place}/{name}1"), &files, &[]);
    }
    let mirror = ["pci0/ata0/block/sda/sda1", "pci0/ata1/block/sdb/sdb1"];
    tree.device("9:0", "virtual/block/md0", &[("md/level", "raid1")], &mirror);
    for (minor, uuid, below) in [(0, "CRYPT-LUKS2-a", "md0"), (1, "LVM-a-tpool", "dm-0"), (2, "LVM-b", "dm-1")] {
        let files = [("dm/name", &*format!("volume{minor}")), ("dm/uuid", uuid), ("dm/suspended", "0")];
        let below = format!("virtual/block/{below}");
        tree.device(&format!("252:{minor}"), &format!("virtual/block/dm-{minor}"), &files, &[&below]);
    }
    let head = "virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
    tree.device("259:0", head, &[("queue/rotational", "0")], &[]);
    tree.device("259:1", &format!("{head}/nvme0n1p1"), &[("partition", "1"), ("start", "2048")], &[]);
    tree.link("dev/disk/by-id/nvme-X-part1", "../../nvme0n1p1");
    tree.file(
        "proc/self/mountinfo",
        &format!(
            "24 1 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
             30 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw,prjquota\n\
             31 1 252:2 / /var/lib/pg rw - ext4 /dev/mapper/volume2 rw,nobarrier\n\
             32 1 0:61 / /run/task/{CONTAINER}/rootfs rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/s/3,workdir=/w\n\
             33 1 0:62 / /tank rw - zfs tank rw\n"
        ),
    );
    let all = "cpu io memory pids\n";
    for (path, has, passes) in [
        ("", all, all),
        ("/system.slice", all, "cpu memory\n"),
        (&*format!("/system.slice/docker-{CONTAINER}.scope"), "cpu memory\n", ""),
    ] {
        tree.file(&format!("sys/fs/cgroup{path}/cgroup.controllers"), has);
        tree.file(&format!("sys/fs/cgroup{path}/cgroup.subtree_control"), passes);
        if path == "/system.slice" {
            tree.file("sys/fs/cgroup/system.slice/io.max", "");
        }
    }
    tree
}

fn named<'v>(list: &'v Value, key: &str, name: &str) -> &'v Value {
    list.as_array().unwrap().iter().find(|one| one[key] == name).unwrap()
}

#[test]
fn a_link_a_path_and_a_container_come_to_the_disk_that_the_kernel_counts() {
    let host = host();
    for asked in ["/dev/disk/by-id/nvme-X-part1", "/var/lib/docker", "259:1", "docker/1f2e3d4c5b6a"] {
        let document = host.json(&["devices", asked]);
        assert_eq!(document["asked"]["disks"], serde_json::json!(["nvme0n1 259:0"]), "{asked}");
        assert!(document["asked"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{asked}");
    }
    let linked = host.json(&["devices", "/dev/disk/by-id/nvme-X-part1"]);
    assert_eq!(linked["asked"]["steps"][0], "/dev/disk/by-id/nvme-X-part1 leads to /dev/nvme0n1p1");
    assert_eq!(host.run(&["devices", "/dev/disk/by-id/nvme-Y"]).0, 2);
}

#[test]
fn each_layer_is_called_by_its_name_and_a_cap_goes_above_the_one_that_loses_the_cgroup() {
    let document = host().json(&["devices", "/var/lib/pg/base"]);
    let layers = |name: &str| named(&document["devices"], "name", name)["layer"].clone();
    let names = ["dm-2", "dm-1", "dm-0", "md0", "sda1", "sda"];
    assert_eq!(names.map(layers), ["lvm-thin", "lvm-thin-pool", "crypt", "md", "partition", "disk"]);
    assert_eq!(named(&document["knobs"], "knob", "io.max")["at"][0]["dev"], "252:0");
    assert_eq!(named(&document["knobs"], "knob", "queue/scheduler")["at"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_wrong_is_said_of_the_right_disk_and_why() {
    let document = host().json(&["devices"]);
    let judged = |list: &str, key: &str, name: &str, what: &str| {
        named(&named(&document[list], key, name)["settings"], "name", what).clone()
    };
    let scheduler = judged("devices", "name", "sda", "scheduler");
    assert_eq!((&scheduler["judgement"], &scheduler["better"]), (&"wrong".into(), &"mq-deadline".into()));
    assert_eq!(judged("devices", "name", "sda1", "start")["judgement"], "wrong");
    assert_eq!(judged("devices", "name", "sdb1", "start")["judgement"], "fine");
    let postgres = document["filesystems"].as_array().unwrap().iter().find(|fs| fs["mount_points"][0] == "/var/lib/pg");
    let barrier = named(&postgres.unwrap()["settings"], "name", "barrier");
    assert_eq!(barrier["judgement"], "wrong");
    assert!(barrier["why"].as_str().unwrap().contains("sda has a volatile write cache"));
}

#[test]
fn what_cannot_be_seen_is_said_and_a_quota_that_can_hold() {
    let host = host();
    let document = host.json(&["devices"]);
    assert_eq!(document["unseen"][0]["mount_point"], "/tank");
    assert_eq!(
        (&document["overlays"][0]["quota"], &document["overlays"][0]["devices"][0]),
        (&"holds".into(), &"nvme0n1p1".into())
    );
    let tank = host.json(&["devices", "/tank/x"]);
    assert_eq!(tank["asked"]["disks"], serde_json::json!([]));
    assert!(tank["asked"]["unseen"].as_str().unwrap().contains("zpool status tank"));
}

#[test]
fn a_controller_that_stops_above_a_unit_is_asked_of_systemd() {
    let host = host();
    let document = host.json(&["cgroup", "show", "docker/1f2e3d4c5b6a"]);
    let lack = &document["lacks"][0];
    assert_eq!((&lack["controller"], &lack["at"]), (&"io".into(), &"system.slice".into()));
    let command = format!("systemctl set-property --runtime docker-{CONTAINER}.scope IOAccounting=yes");
    assert_eq!(lack["command"], command);
    assert!(host.run(&["cgroup", "tree"]).1.contains("does not pass io on"));
}

#[test]
fn a_container_s_log_and_writable_layer_are_told_where_somebody_asks_for_it() {
    let host = host();
    let dir = format!("var/lib/docker/containers/{CONTAINER}");
    let log = format!("{CONTAINER}-json.log");
    let config = format!(r#"{{"Name":"/web","Driver":"overlay2","LogPath":"/{dir}/{log}"}}"#);
    host.file(&format!("{dir}/config.v2.json"), &config);
    host.file(&format!("{dir}/hostconfig.json"), r#"{"LogConfig":{"Type":"json-file"},"StorageOpt":{"size":"20G"}}"#);
    host.file(&format!("{dir}/.stat.{log}"), "259:1 7 5000000000 1\n");
    host.file(&format!("var/lib/docker/image/overlay2/layerdb/mounts/{CONTAINER}/mount-id"), "1c7d");
    host.file("var/lib/docker/overlay2/1c7d/diff/var/log/app.log", "a line\n");
    let kept = host.json(&["cgroup", "show", "docker/web"])["kept"].clone();
    assert_eq!((&kept["log"]["size_bytes"], &kept["log"]["rotated"]), (&5_000_000_000_u64.into(), &false.into()));
    let layer = &kept["writable_layer"];
    assert_eq!(layer["upper_dir"], "/var/lib/docker/overlay2/1c7d/diff");
    assert_eq!((&layer["inodes"], &layer["cut"]), (&4.into(), &false.into()));
    assert_eq!((&layer["size_asked_bytes"], &layer["quota"]), (&(20_u64 << 30).into(), &"holds".into()));
    let (_, text) = host.run(&["cgroup", "show", "docker/web"]);
    assert!(text.contains("json-file, 4.66 GiB, never begun anew: no max-size"), "{text}");
    assert!(text.contains(" in 4 inodes") && text.contains("held to 20.0 GiB by a project quota"), "{text}");
    host.file(&format!("{dir}/hostconfig.json"), r#"{"LogConfig":{"Type":"json-file","Config":{"max-size":"10m"}}}"#);
    let (_, text) = host.run(&["cgroup", "show", "docker/web"]);
    assert!(text.contains("begun anew at 9.54 MiB") && text.contains("no size was asked for; storage-opt"), "{text}");
    assert_eq!(host.json(&["cgroup", "show", "cgroup/"])["kept"], Value::Null);
}

#[test]
fn a_page_fits_into_80_columns_but_for_commands_and_names() {
    let host = host();
    let fits = |line: &&str| line.chars().count() > 80 && !line.contains("echo ") && !line.contains(CONTAINER);
    for args in [&["devices"][..], &["devices", "/var/lib/pg"], &["cgroup", "tree"], &["cgroup", "show", "cgroup/"]] {
        let (_, text) = host.run(args);
        assert_eq!(text.lines().filter(fits).collect::<Vec<_>>(), Vec::<&str>::new(), "{args:?}");
    }
}
