//! What names mean on a host: containers by the beginning of their id, units with and without their ending, the rest by
//! path; and containers and pods by the names that their runtimes' state gives them. The tree is written here, since no
//! capture holds all the shapes.

#![expect(clippy::expect_used, reason = "without its tree the test has nothing to say")]

use std::fs;

use quell::target::{Target, find_disk};
use quell_engine::snapshot::Snapshot;
use quell_host::{Depth, Machine};
use quell_units::CgroupPath;

const ID: &str = "1f2e3d4c5b6a79880716253443526170f1e2d3c4b5a697887960514233241506";

/// Containers with a name.
const MYSQL: &str = "3f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c";
const TWIN: &str = "4f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c";
const CART: &str = "5f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c9d2ab1e03f5c";
const USER: &str = "user.slice/user-7.slice/user@7.service/user.slice";
const POD: &str = "kubepods/burstable/pod8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e";

/// The cgroups of a host, by path, that have names.
fn named() -> Vec<String> {
    vec![
        format!("docker/{MYSQL}"),
        format!("machine.slice/libpod-{MYSQL}.scope"),
        format!("{USER}/libpod-{TWIN}.scope"),
        POD.into(),
        format!("{POD}/{CART}"),
        "system.slice/slurmstepd.scope/job_42".into(),
        "system.slice/slurmstepd.scope/job_421".into(),
        "lxc.payload.web".into(),
    ]
}

fn write_state(write: &dyn Fn(&str, &str)) {
    for cgroup in named() {
        write(&format!("sys/fs/cgroup/{cgroup}/cgroup.controllers"), "io memory\n");
    }
    write(&format!("var/lib/docker/containers/{MYSQL}/config.v2.json"), r#"{"Name":"/mysql"}"#);
    let store = |id: &str, name: &str| format!(r#"[{{"id":"{id}","names":["{name}"]}}]"#);
    write("var/lib/containers/storage/overlay-containers/containers.json", &store(MYSQL, "db"));
    write("etc/passwd", "alice:x:7:7::/home/alice:/bin/sh\n");
    write("home/alice/.local/share/containers/storage/overlay-containers/containers.json", &store(TWIN, "db"));
    write(
        &format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{CART}/config.json"),
        r#"{"annotations":{"io.kubernetes.cri.container-name":"server","io.kubernetes.cri.sandbox-name":"cart",
            "io.kubernetes.cri.sandbox-namespace":"shop"}}"#,
    );
}

fn host() -> Snapshot {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    write(
        "proc/self/mountinfo",
        "24 1 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n25 1 253:1 / /var/lib/docker rw - ext4 /dev/vda1 rw\n",
    );
    write("proc/diskstats", " 253 0 vda 1 0 8 1 0 0 0 0 0 1 1\n 253 1 vda1 1 0 8 1 0 0 0 0 0 1 1\n");
    for (name, target) in
        [("block/vda", "../devices/virtio0/block/vda"), ("dev/block/253:1", "../../devices/virtio0/block/vda/vda1")]
    {
        let link = dir.path().join("sys").join(name);
        fs::create_dir_all(link.parent().expect("a parent")).expect("a directory");
        std::os::unix::fs::symlink(target, link).expect("a link");
    }
    write("sys/devices/virtio0/block/vda/dev", "253:0\n");
    write("sys/devices/virtio0/block/vda/vda1/dev", "253:1\n");
    write("sys/devices/virtio0/block/vda/vda1/partition", "1\n");
    for cgroup in [
        "".into(),
        format!("system.slice/docker-{ID}.scope"),
        "system.slice/nginx.service/worker".into(),
        "tenants/etl".into(),
        "tenants/vda".into(),
        "twins/etl".into(),
    ] {
        write(&format!("sys/fs/cgroup/{cgroup}/cgroup.controllers"), "io memory\n");
    }
    write_state(&write);
    write("proc/42/stat", &format!("42 (nginx) S 1 {}\n", "0 ".repeat(48).trim_end()));
    write("proc/42/cgroup", "0::/system.slice/nginx.service/worker\n");
    Machine::under(dir.path()).expect("a tree").snapshot(Depth::Full)
}

fn cgroup(path: &str) -> Option<Target> {
    CgroupPath::new(path.as_bytes()).ok().map(Target::Cgroup)
}

#[test]
fn one_thing_is_found_by_each_of_its_names() {
    let host = host();
    let docker = format!("system.slice/docker-{ID}.scope");
    for (names, path) in [
        (&["docker/1f2e3d4c5b6a", "docker/1f", "1f2e", ID][..], docker.as_str()),
        (&["unit/nginx.service", "unit/nginx", "nginx", "nginx.service"], "system.slice/nginx.service"),
        (&["pid/42", "worker"], "system.slice/nginx.service/worker"),
        (&["cgroup/tenants/etl", "cgroup//tenants/etl/", "tenants/etl"], "tenants/etl"),
        (&["cgroup/"], ""),
    ] {
        for name in names {
            assert_eq!(Target::find(name, &host).ok(), cgroup(path), "{name}");
        }
    }
    let disk = Target::find("/dev/vda", &host).expect("a disk");
    assert_eq!(disk.name(&host), "/dev/vda");
}

#[test]
fn containers_and_pods_are_found_by_the_names_people_gave_them() {
    let host = host();
    for (names, path) in [
        (&["docker/mysql", "mysql", "docker/3f5c"][..], format!("docker/{MYSQL}")),
        (&["podman/3f5c9d2ab1e0"], format!("machine.slice/libpod-{MYSQL}.scope")),
        (&["pod/shop/cart", "cart"], POD.into()),
        (&["pod/shop/cart/server", "server", "containerd/5f5c9d2ab1e0"], format!("{POD}/{CART}")),
        (&["slurm/job_42", "job_42"], "system.slice/slurmstepd.scope/job_42".into()),
        (&["lxc/web", "web"], "lxc.payload.web".into()),
    ] {
        for name in names {
            assert_eq!(Target::find(name, &host).ok(), cgroup(&path), "{name}");
        }
    }
    // The beginning of a name is no name: only ids are taken so.
    for name in ["docker/mysq", "lxc/we", "slurm/job_", "pod/shop", "pod/other/cart"] {
        assert!(Target::find(name, &host).is_err(), "{name}");
    }
}

#[test]
fn two_users_containers_of_one_name_are_told_apart_by_their_cgroups() {
    let host = host();
    let told = |name: &str| Target::find(name, &host).expect_err(name).to_string();
    let both = format!("hint: cgroup/machine.slice/libpod-{MYSQL}.scope\nhint: cgroup/{USER}/libpod-{TWIN}.scope\n");
    assert_eq!(told("podman/db"), format!("quell: podman/db can mean several things: say which\n{both}"));
    assert_eq!(told("pod/shop/card"), "quell: no such target: pod/shop/card\nhint: did you mean pod/shop/cart?\n");
}

#[test]
fn a_path_means_the_disk_that_the_kernel_accounts_on_and_the_way_there_is_told() {
    let host = host();
    let found =
        |text| find_disk(text, &host).map(|found| (found.dev.to_string(), found.steps.unwrap_or_default())).ok();
    let vda = |steps: &str| Some(("253:0".to_owned(), steps.to_owned()));
    assert_eq!(found("vda"), vda(""));
    assert_eq!(found("/dev/vda1"), vda("vda1 253:1 is on disk vda 253:0"));
    assert_eq!(found("/var/lib/docker/overlay2/x"), vda("/var/lib/docker/overlay2/x is on vda1 253:1, disk vda 253:0"));
    assert_eq!(found("/var/lib/dockers"), None);
    assert_eq!(found("/dev/vdb"), None);
    assert_eq!(Target::find("/tenants/etl", &host).ok(), cgroup("tenants/etl"));
}

#[test]
fn a_name_of_two_things_is_asked_back_and_one_of_none_is_told() {
    let host = host();
    let told = |name: &str| Target::find(name, &host).expect_err(name).to_string();
    assert_eq!(
        told("etl"),
        "quell: etl can mean several things: say which\nhint: cgroup/tenants/etl\nhint: cgroup/twins/etl\n"
    );
    assert_eq!(
        told("vda"),
        "quell: vda can mean several things: say which\nhint: /dev/vda\nhint: cgroup/tenants/vda\n"
    );
    assert_eq!(told("ngimx"), "quell: no such target: ngimx\nhint: did you mean unit/nginx.service?\n");
    assert_eq!(told("podman/1f2e"), "quell: no such target: podman/1f2e\nhint: did you mean docker/1f2e3d4c5b6a?\n");
    assert_eq!(
        told("a\x1b[2J"),
        "quell: no such target: a\\x1b[2J\nhint: quell stat --all lists devices and workloads\n"
    );
    assert_eq!(told("pid/7"), "quell: no such process, or its cgroup is not known: 7\n");
}

#[test]
fn the_name_that_is_shown_finds_the_same_thing_again() {
    let host = host();
    for cgroup in &host.cgroups {
        let target = Target::Cgroup(cgroup.path.clone());
        let name = target.name(&host);
        assert_eq!(Target::find(&name, &host).ok(), Some(target), "{name}");
    }
}
