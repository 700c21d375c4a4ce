//! What quell prints, word for word, without colour; the folders of `tests/cmd` are the widths of the page.
//!
//! The captures are unpacked into a directory of this run, and the commands run there, so that `--root NAME` reads the
//! same on every machine. The README's own examples run with them. `TRYCMD=overwrite cargo test -p quell --test golden` writes what is printed now; read the
//! difference before committing it.

use std::path::Path;

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
