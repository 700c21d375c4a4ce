//! What quell prints, word for word, without colour; the folders of `tests/cmd` are the widths of the page.
//!
//! The captures are unpacked into a directory of this run, and the commands run there, so that `--root NAME` reads the
//! same on every machine. The README's own examples run with them. `TRYCMD=overwrite cargo test -p quell --test golden` writes what is printed now; read the
//! difference before committing it.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking, as tests do")]

use std::path::Path;

/// A container's whole id.
const BACKUP: &str = "3f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c";

const CAPTURES: [&str; 9] = [
    "02-healthy-busy",
    "08-noisy-neighbour",
    "12-journal-shared-stall",
    "15-weights-iocost",
    "20-dm-linear-lvm",
    "23-device-hung",
    "26-io-controller-off",
    "27-cgroup-v1",
    "30-swarm-healthy",
];

/// What people pasted.
const CASES: [&str; 6] = [
    "04-xen-volume-queue-138",
    "25-systemd-limit-on-two-partitions",
    "34-docker-v1-limit-on-sda4",
    "43-nvme-command-timeout-reset",
    "45-etcd-wal-sync-2880ms",
    "47-raid6-check-running",
];

#[test]
fn commands_print_what_is_written_down() {
    let packed = |name: &str| {
        std::fs::read(format!("{}/../../fixtures/captures/{name}.tar.xz", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let dir = quell::archive::scratch().unwrap();
    for name in CAPTURES {
        quell::archive::unpack(&packed(name), dir.path()).unwrap();
    }
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    // Two cgroups of one name, so that the name alone says too little.
    quell::archive::unpack(&packed("08-noisy-neighbour"), &dir.path().join("twins")).unwrap();
    std::fs::create_dir_all(dir.path().join("twins/08-noisy-neighbour/t1/sys/fs/cgroup/backup/victim")).unwrap();
    // A disk that was plugged in anew between the two moments.
    let replugged = quell::archive::unpack(&packed("08-noisy-neighbour"), &dir.path().join("replugged")).unwrap();
    let diskstats = replugged.join("t1/proc/diskstats");
    let text = std::fs::read_to_string(&diskstats).unwrap().replace(" vdb 1 ", " vdb 0 ");
    std::fs::write(diskstats, text).unwrap();
    let docker = quell::archive::unpack(&packed("08-noisy-neighbour"), &dir.path().join("docker")).unwrap();
    make_docker(&docker);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    for name in CASES {
        std::fs::copy(cases.join(name).join("input.txt"), dir.path().join(format!("{name}.txt"))).unwrap();
    }
    std::fs::write(dir.path().join("prose.txt"), "the database is slow\nsince monday\n").unwrap();
    std::fs::write(dir.path().join("nothing.txt"), "").unwrap();
    std::fs::write(dir.path().join("bytes.bin"), [0, 159, 146, 150, b'\n', 27, b'[', b'2', b'J']).unwrap();
    std::fs::write(
        dir.path().join("plain.txt"),
        "Device tps kB_read/s kB_wrtn/s kB_read kB_wrtn\nsda 80.00 0.00 1300.00 0 1300\n",
    )
    .unwrap();
    std::env::set_current_dir(dir.path()).unwrap();
    for width in ["80", "120", "200"] {
        let cases = trycmd::TestCases::new();
        cases.env("COLUMNS", width).env("NO_COLOR", "1");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        cases.case(here.join(format!("tests/cmd/{width}/*.trycmd")));
        if width == "80" {
            cases.case(here.join("../../README.md"));
        }
        cases.run();
    }
}

/// Makes the two tenants of a capture docker's containers, with what a capture holds of the files that one writes: two in
/// its writable layer, one in a volume, and its json log.
fn make_docker(capture: &Path) {
    for (moment, written_mib) in [("t0", 0), ("t1", 9)] {
        let root = capture.join(moment);
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let cgroups = root.join("sys/fs/cgroup");
        std::fs::rename(cgroups.join("tenants"), cgroups.join("docker")).unwrap();
        std::fs::rename(cgroups.join("docker/hog"), cgroups.join("docker").join(BACKUP)).unwrap();
        for (pids, cgroup) in [([82, 86], "docker/victim".to_owned()), ([83, 87], format!("docker/{BACKUP}"))] {
            pids.iter().for_each(|pid| write(&format!("proc/{pid}/cgroup"), &format!("0::/{cgroup}\n")));
        }
        write("etc/docker/daemon.json", r#"{"data-root":"/mnt/data/docker"}"#);
        let dir = format!("mnt/data/docker/containers/{BACKUP}");
        let log = format!("{BACKUP}-json.log");
        let config = format!(r#"{{"Name":"/backup","Driver":"overlay2","LogPath":"/{dir}/{log}"}}"#);
        write(&format!("{dir}/config.v2.json"), &config);
        let host = r#"{"LogConfig":{"Type":"json-file","Config":{}},"StorageOpt":{"size":"20G"}}"#;
        write(&format!("{dir}/hostconfig.json"), host);
        let mib = |at_first: u64, per_step: u64| (at_first + written_mib * per_step) << 20;
        write(&format!("{dir}/.stat.{log}"), &format!("253:1 7 {} {written_mib}\n", mib(3277, 2)));
        write(&format!("mnt/data/docker/image/overlay2/layerdb/mounts/{BACKUP}/mount-id"), "1c7d");
        write(
            "proc/87/mountinfo",
            "900 1 0:60 / / rw - overlay overlay rw\n901 900 253:1 /in /data rw - ext4 /dev/vda1 rw\n",
        );
        let files = [
            (3, "/var/log/backup/progress.log", 900, mib(100, 4)),
            (4, "/var/cache/index.db", 900, 64 << 20),
            (5, "/data/archive.tar", 901, mib(5000, 40)),
        ];
        for (fd, path, mount, size) in files {
            std::fs::create_dir_all(root.join("proc/87/fd")).unwrap();
            std::os::unix::fs::symlink(path, root.join(format!("proc/87/fd/{fd}"))).unwrap();
            write(&format!("proc/87/fdinfo/{fd}"), &format!("pos:\t0\nflags:\t0100002\nmnt_id:\t{mount}\n"));
            let dev = if mount == 900 { "0:60" } else { "253:1" };
            write(&format!("proc/87/fd/.stat.{fd}"), &format!("{dev} {fd} {size} {written_mib}\n"));
        }
    }
}
