//! Names of containers: the state that the runtimes themselves wrote (`fixtures/state`), and by their documented
//! formats that of those that could not be run.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use quell_engine::identity::identify;
use quell_engine::snapshot::{AskedDevice, AskedKey, AskedLimit, Container, Snapshot};
use quell_host::{Depth, Machine, Ticker, Wake, capture};
use quell_units::{Bytes, DevNum, Micros, MonoMicros};

use crate::tree::{Tree, gaps, path};

const MYSQL: &str = "d9bef164a770a3495149d6c5c659010049323e274e15f0bb46014122befee5c4";
const WEB: &str = "c1dbe0cd2b995c7c53157f5d5bd1cea03236f32ac89f7d25853803ffa963198c";
const CART: &str = "fbf47d586db36ca201abbd5ed4ae33f44392a4fa2d776f6efa04e34e725f1c51";
const DB: &str = "2ac2c0c9de7ad35c2a0ab63c1b798068a7eec4418cd9ae7ca45c2ea11c3795a3";
const PASSING: &str = "865ccf6a6ffe4b6ee051424133c91444d7f3002ba694c470cdc8b7fe61bc7657";
const OTHER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const UID: &str = "8a5f1c2e-77aa-4b6c-9d0e-1f2a3b4c5d6e";

/// A host with the state that a runtime wrote.
fn host(runtime: &str, cgroups: &[&str]) -> Tree {
    let tree = Tree::version2();
    let state = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/state").join(runtime);
    copy(&state, tree.root());
    for cgroup in cgroups.iter().flat_map(|cgroup| path(cgroup.as_bytes()).ancestors().collect::<Vec<_>>()) {
        tree.cgroup(cgroup.as_bytes());
    }
    tree
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn name(snapshot: &Snapshot, cgroup: &str) -> String {
    identify(&path(cgroup.as_bytes()), snapshot).1
}

fn container<'a>(snapshot: &'a Snapshot, cgroup: &str) -> &'a Container {
    snapshot.container(&path(cgroup.as_bytes())).unwrap()
}

#[test]
fn docker_names_its_containers_wherever_their_cgroups_are() {
    let scope = format!("system.slice/docker-{MYSQL}.scope");
    let (bare, of_pod) = (format!("tenants/{WEB}"), format!("kubepods/burstable/pod{UID}/{CART}"));
    let snapshot = host("docker", &["system.slice", &scope, "tenants", &bare, &of_pod]).full();
    assert_eq!(name(&snapshot, &scope), "docker/mysql");
    assert_eq!(name(&snapshot, &bare), "docker/web");
    assert_eq!(name(&snapshot, &of_pod), "pod/shop/cart-7d/cart");
    assert_eq!(name(&snapshot, &format!("kubepods/burstable/pod{UID}")), "pod/shop/cart-7d");
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
}

#[test]
fn docker_tells_what_was_asked_for_and_where_it_writes() {
    let cgroup = format!("docker/{MYSQL}");
    let snapshot = host("docker", &[&cgroup]).full();
    let mysql = container(&snapshot, &cgroup);
    let on_null = |key, value| AskedLimit { device: Some(AskedDevice::Node("/dev/null".into())), key, value };
    assert_eq!(mysql.asked, [on_null(AskedKey::WriteBytes, 10 << 20), on_null(AskedKey::ReadIos, 500)]);
    assert_eq!(mysql.image.as_deref(), Some("shop/mysql:8"));
    assert_eq!((mysql.log_driver.as_deref(), mysql.log_size_max), (Some("json-file"), Some(Bytes(10_000_000))));
    let log = format!("/var/lib/docker/containers/{MYSQL}/{MYSQL}-json.log");
    assert_eq!(mysql.log_path.as_deref(), Some(log.as_str()));
    let layer = "ec8cc50817337e588c8e7aae1202f81659c397fa1ec0a2cdc0cda4362598093e";
    assert_eq!(mysql.upper_dir, Some(format!("/var/lib/docker/overlay2/{layer}/diff")));
    assert_eq!(mysql.storage_size, None);
}

#[test]
fn docker_s_state_is_found_where_its_configuration_put_it() {
    let cgroup = format!("docker/{MYSQL}");
    let tree = host("docker", &[&cgroup]);
    fs::create_dir_all(tree.path("srv")).unwrap();
    fs::rename(tree.path("var/lib/docker"), tree.path("srv/images")).unwrap();
    tree.file("etc/docker/daemon.json", r#"{"log-level":"warn","data-root":"/srv/images"}"#);
    let host = format!("srv/images/containers/{MYSQL}/hostconfig.json");
    tree.file(&host, r#"{"StorageOpt":{"size":"120G"}}"#);
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, &cgroup), "docker/mysql");
    assert_eq!(container(&snapshot, &cgroup).storage_size, Some(Bytes(120 << 30)));
    assert!(container(&snapshot, &cgroup).upper_dir.as_ref().unwrap().starts_with("/srv/images/overlay2/"));
}

#[test]
fn where_the_state_does_not_tell_the_writable_layer_the_mounts_do() {
    let cgroup = format!("docker/{MYSQL}");
    let tree = host("docker", &[&cgroup]);
    tree.remove("var/lib/docker/image");
    let mounts = format!(
        "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         2 0 0:40 / /var/lib/docker/rootfs/overlayfs/{WEB} rw - overlay overlay rw,upperdir=/other\n\
         3 0 0:41 / /var/lib/docker/rootfs/overlayfs/{MYSQL} rw - overlay overlay rw,lowerdir=/l,upperdir=/s/7/fs\n"
    );
    tree.file("proc/self/mountinfo", &mounts);
    assert_eq!(container(&tree.full(), &cgroup).upper_dir.as_deref(), Some("/s/7/fs"));
}

#[test]
fn podman_names_its_containers_and_not_its_supervisors() {
    let (db, conmon) = (format!("libpod_parent/libpod-{DB}"), format!("machine.slice/libpod-conmon-{DB}.scope"));
    let passing = format!("machine.slice/libpod-{PASSING}.scope");
    let snapshot = host("podman", &["libpod_parent", &db, "machine.slice", &passing, &conmon]).full();
    assert_eq!(name(&snapshot, &db), "podman/db");
    assert_eq!(name(&snapshot, &passing), "podman/passing");
    assert!(name(&snapshot, &conmon).starts_with("unit/"));
    let db = container(&snapshot, &db);
    assert_eq!(db.image.as_deref(), Some("localhost/shop/db:1"));
    let layer = "abbc8d232a8dd4fa6baf92e5a64f65e805a33bba63f02d5946792ac4f50e4cd3";
    assert_eq!(db.upper_dir, Some(format!("/var/lib/containers/storage/overlay/{layer}/diff")));
    let device = Some(AskedDevice::Number(DevNum { major: 1, minor: 3 }));
    assert_eq!(db.asked, [AskedLimit { device, key: AskedKey::ReadBytes, value: 1 << 20 }]);
}

#[test]
fn a_user_s_podman_is_found_by_the_home() {
    let cgroup = format!("user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{DB}.scope");
    let tree = host("podman", &[&cgroup]);
    fs::create_dir_all(tree.path("home/alice/.local/share")).unwrap();
    fs::rename(tree.path("var/lib/containers"), tree.path("home/alice/.local/share/containers")).unwrap();
    tree.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000:Alice A.:/home/alice:/bin/sh\n");
    assert_eq!(name(&tree.full(), &cgroup), "podman/db");
}

#[test]
fn containerd_s_bundle_names_a_cgroup_that_no_shape_tells() {
    let tree = host("containerd", &["default", "default/box", "default/box/inner"]);
    let rootfs = "run/containerd/io.containerd.runtime.v2.task/default/box/rootfs";
    let mounts = format!(
        "1 0 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
         2 0 0:40 / /{rootfs} rw - overlay overlay rw,lowerdir=/a,upperdir=/var/lib/containerd/s/2/fs,workdir=/w\n"
    );
    tree.file("proc/self/mountinfo", &mounts);
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, "default/box"), "containerd/cart");
    assert_eq!(container(&snapshot, "default/box").upper_dir.as_deref(), Some("/var/lib/containerd/s/2/fs"));
    assert_eq!(name(&snapshot, "default"), "default");
}

#[test]
fn pods_are_named_by_annotations_of_either_runtime() {
    let uid = UID.replace('-', "_");
    let slice = format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice");
    let (containerd, crio) = (format!("{slice}/cri-containerd-{OTHER}.scope"), format!("{slice}/crio-{DB}.scope"));
    let tree = host("docker", &[&slice, &containerd, &crio]);
    let annotations = r#"{"annotations":{"io.kubernetes.cri.container-name":"web","io.kubernetes.cri.sandbox-name":"cart",
        "io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.image-name":"acme/web:1","token":"hunter2"}}"#;
    tree.file(&format!("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/{OTHER}/config.json"), annotations);
    let annotations = r#"{"annotations":{"io.kubernetes.container.name":"db","io.kubernetes.pod.name":"cart",
        "io.kubernetes.pod.namespace":"shop","io.kubernetes.cri-o.LogPath":"/var/log/pods/x/db/0.log"}}"#;
    tree.file(&format!("run/containers/storage/overlay-containers/{DB}/userdata/config.json"), annotations);
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, &containerd), "pod/shop/cart/web");
    assert_eq!(name(&snapshot, &crio), "pod/shop/cart/db");
    assert_eq!(name(&snapshot, &slice), "pod/shop/cart");
    assert_eq!(container(&snapshot, &crio).runtime, "crio");
    assert_eq!(container(&snapshot, &crio).log_path.as_deref(), Some("/var/log/pods/x/db/0.log"));
}

#[test]
fn where_no_runtime_tells_the_kubelet_s_logs_do() {
    let pod = format!("kubepods/besteffort/pod{UID}");
    let cgroup = format!("{pod}/{OTHER}");
    let tree = host("docker", &[&cgroup, &pod]);
    let log = format!("/var/log/pods/shop_cart_{UID}/web/0.log");
    tree.link(&format!("var/log/containers/cart_shop_web-{OTHER}.log"), &log);
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, &cgroup), "pod/shop/cart/web");
    assert_eq!(container(&snapshot, &cgroup).log_path.as_deref(), Some(log.as_str()));
    tree.remove("var/log/containers");
    fs::create_dir_all(tree.path(&format!("var/log/pods/shop_cart_{UID}"))).unwrap();
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, &pod), "pod/shop/cart");
    assert_eq!(name(&snapshot, &cgroup), "containerd/0123456789ab");
}

#[test]
fn broken_state_costs_its_name_and_is_told() {
    let (mysql, web) = (format!("docker/{MYSQL}"), format!("docker/{WEB}"));
    let tree = host("docker", &[&mysql, &web]);
    tree.file(&format!("var/lib/docker/containers/{MYSQL}/config.v2.json"), "{\"Name\":\"/mysql\"");
    tree.remove("run/containerd");
    let snapshot = tree.full();
    assert_eq!((name(&snapshot, &mysql), name(&snapshot, &web)), ("docker/d9bef164a770".into(), "docker/web".into()));
    let dir = format!("var/lib/docker/containers/{MYSQL}");
    assert_eq!(gaps(&snapshot), [format!("config.v2.json of /{dir}: not in the expected format")]);
    tree.unreadable(&format!("{dir}/config.v2.json"), 13);
    tree.unreadable(&format!("var/lib/docker/containers/{WEB}/config.v2.json"), 13);
    assert_eq!(gaps(&tree.full()), ["config.v2.json of 2 containers: no permission"]);
}

#[test]
fn a_bad_row_of_the_store_costs_that_row() {
    let (db, passing) = (format!("libpod_parent/libpod-{DB}"), format!("libpod_parent/libpod-{PASSING}"));
    let tree = host("podman", &[&db, &passing]);
    let list = format!(r#"[{{"id":"{DB}","names":7}},{{"id":"{PASSING}","names":["passing"],"metadata":"x"}}]"#);
    tree.file("var/lib/containers/storage/overlay-containers/containers.json", &list);
    let snapshot = tree.full();
    assert_eq!(name(&snapshot, &passing), "podman/passing");
    assert_eq!(name(&snapshot, &db), "podman/2ac2c0c9de7a");
}

#[test]
fn a_name_is_safe_to_print() {
    let cgroup = format!("docker/{MYSQL}");
    let tree = host("docker", &[&cgroup]);
    tree.file(&format!("var/lib/docker/containers/{MYSQL}/config.v2.json"), r#"{"Name":"/a\u001b[2J\u202eb"}"#);
    assert_eq!(name(&tree.full(), &cgroup), "docker/a\\x1b[2J\\xe2\\x80\\xaeb");
}

#[test]
fn state_is_read_once_and_a_new_container_is_named_at_the_next_sample() {
    let (mysql, web) = (format!("docker/{MYSQL}"), format!("docker/{WEB}"));
    let tree = host("docker", &[&mysql, "tenants"]);
    let mut machine = tree.machine();
    machine.snapshot(Depth::Full);
    let state_files = |machine: &mut Machine| {
        let begun = machine.snapshot(Depth::Counters);
        (begun.cost.files, name(&begun, &mysql))
    };
    let (files, shown) = state_files(&mut machine);
    assert_eq!(shown, "docker/mysql");
    tree.remove("var/lib/docker");
    assert_eq!(state_files(&mut machine), (files, "docker/mysql".into()), "a known name needs no state");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/state/docker"), tree.root());
    tree.cgroup(web.as_bytes());
    assert_eq!(name(&machine.snapshot(Depth::Counters), &web), "docker/web");
}

/// A clock that is never waited for.
struct NoWait;

impl Ticker for NoWait {
    fn now(&mut self) -> MonoMicros {
        MonoMicros(0)
    }

    fn sleep_until(&mut self, _: MonoMicros) -> Wake {
        Wake::Reached
    }
}

/// A host with all of it, and cgroups for each.
fn everything() -> (Tree, Vec<String>) {
    let uid = UID.replace('-', "_");
    let cgroups = vec![
        format!("docker/{MYSQL}"),
        format!("tenants/{WEB}"),
        format!("kubepods/burstable/pod{UID}/{CART}"),
        format!("kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{OTHER}.scope"),
        format!("libpod_parent/libpod-{DB}"),
        "default/box".to_owned(),
        "slurm/uid_1000/job_42".to_owned(),
    ];
    let tree = host("docker", &cgroups.iter().map(String::as_str).collect::<Vec<_>>());
    for runtime in ["podman", "containerd"] {
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/state").join(runtime), tree.root());
    }
    tree.link(
        &format!("var/log/containers/payroll_shop_web-{OTHER}.log"),
        &format!("/var/log/pods/shop_payroll_{UID}/web/0.log"),
    );
    let kept = format!("libpod_parent/libpod-{DB}");
    let user = kept.replace("libpod_parent", "user.slice/user-1000.slice/user@1000.service/user.slice");
    tree.cgroup(user.as_bytes());
    tree.file("etc/passwd", "alice:$6$hunter2:1000:1000:Alice A.:/home/alice:/bin/sh\n");
    let list = format!(r#"[{{"id":"{DB}","names":["payroll"],"env":"hunter2"}}]"#);
    tree.file("home/alice/.local/share/containers/storage/overlay-containers/containers.json", &list);
    (tree, cgroups)
}

#[test]
fn a_capture_has_the_names_and_none_of_the_secrets() {
    let (tree, cgroups) = everything();
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), false).unwrap();
    let back = Machine::under(&out.path().join("t0")).unwrap().snapshot(Depth::Full);
    assert_eq!(back.containers, captured.window.t0.containers);
    assert_eq!(back.pods, captured.window.t0.pods);
    assert_eq!((back.containers.len(), back.pods.len()), (7, 2), "{:?}", back.containers);
    for cgroup in &cgroups {
        assert_eq!(name(&back, cgroup), name(&captured.window.t0, cgroup));
    }
    assert_eq!(super::capture::names_in(tree.root(), &["hunter2"]).len(), 5, "what must not come along was there");
    let secrets = ["hunter2", "PASSWORD", "SECRET_TOKEN", "payments", "$6$", "Alice A.", "/bin/sleep"];
    assert_eq!(super::capture::names_in(out.path(), &secrets), Vec::<String>::new());
}

#[test]
fn a_scrubbed_capture_joins_as_the_host_did_and_names_nobody() {
    let (tree, _) = everything();
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), true).unwrap();
    assert_eq!(captured.left_out, Vec::<String>::new());
    let back = Machine::under(&out.path().join("t1")).unwrap().snapshot(Depth::Full);
    let was = &captured.window.t1;
    // Paths change their order with their names, so the kinds are compared as a set.
    let kinds = |snapshot: &Snapshot| {
        let kind = |container: &Container| {
            let Container { runtime, name, image, pod, asked, upper_dir, log_path, log_size_max, .. } = container;
            let has = [name.is_some(), image.is_some(), pod.is_some(), upper_dir.is_some(), log_path.is_some()];
            format!("{runtime} {has:?} {asked:?} {log_size_max:?}")
        };
        let mut kinds: Vec<String> = snapshot.containers.iter().map(kind).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&back), kinds(was));
    assert_eq!(back.pods.len(), was.pods.len());
    for pod in &back.pods {
        let inside = back.containers.iter().filter(|container| container.cgroup.is_within(&pod.cgroup));
        let names: Vec<_> = inside.filter_map(|container| Some(&container.pod.as_ref()?.pod)).collect();
        assert_eq!(names, [&pod.name]);
    }
    assert!(back.cgroups.iter().any(|cgroup| identify(&cgroup.path, &back).1 == "slurm/job_42"));
    let names = ["mysql", "payroll", "cart", "shop", "alice", "hunter2", "payments", &MYSQL[..12], &UID[..8], "/box"];
    assert_eq!(super::capture::names_in(out.path(), &names), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn no_bytes_of_state_and_no_prefix_of_it_break_a_snapshot(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cut in any::<proptest::sample::Index>(),
    ) {
        let (tree, cgroups) = everything();
        let files = [
            format!("var/lib/docker/containers/{MYSQL}/config.v2.json"),
            format!("var/lib/docker/containers/{MYSQL}/hostconfig.json"),
            "var/lib/containers/storage/overlay-containers/containers.json".to_owned(),
            "run/containerd/io.containerd.runtime.v2.task/default/box/config.json".to_owned(),
        ];
        for file in &files {
            let whole = fs::read(tree.path(file)).unwrap();
            let end = cut.index(whole.len());
            for content in [&bytes[..], &whole[..end]] {
                fs::write(tree.path(file), content).unwrap();
                let snapshot = tree.full();
                prop_assert_eq!(snapshot.cgroups.len() > cgroups.len(), true);
            }
            fs::write(tree.path(file), whole).unwrap();
        }
        prop_assert_eq!(tree.full().containers.len(), 7);
    }
}
