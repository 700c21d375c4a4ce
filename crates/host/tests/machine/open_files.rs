//! What containers have open for writing, and the size of docker's json logs.

use std::path::Path;

use quell_engine::snapshot::{OpenFile, Snapshot};
use quell_host::{Depth, Machine, Ticker, Wake, capture};
use quell_units::{Bytes, DevNum, Micros, MonoMicros, UnixMicros};

use crate::tree::{Tree, gaps, path};

const WEB: &str = "c1dbe0cd2b995c7c53157f5d5bd1cea03236f32ac89f7d25853803ffa963198c";

/// A descriptor of process 7, with what a capture holds of it.
fn descriptor(tree: &Tree, fd: u32, target: &str, flags: &str, mount: u32) {
    tree.link(&format!("proc/7/fd/{fd}"), target);
    tree.file(&format!("proc/7/fdinfo/{fd}"), &format!("pos:\t512\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t9\n"));
    tree.file(&format!("proc/7/fd/.stat.{fd}"), &format!("0:60 {fd}9 4096 1700000000000000\n"));
}

/// A container of docker's whose process writes a log in its writable layer and a file of a volume.
fn host() -> Tree {
    let tree = Tree::version2();
    let cgroup = format!("docker/{WEB}");
    tree.cgroup(b"docker");
    tree.cgroup(cgroup.as_bytes());
    tree.process(7, "payroll", 'S', &format!("/{cgroup}"));
    tree.file(
        "proc/7/mountinfo",
        "900 1 0:60 / / rw - overlay overlay rw,upperdir=/var/lib/docker/overlay2/payroll/diff\n\
         901 900 253:1 /payroll /data rw - ext4 /dev/vda1 rw\n",
    );
    descriptor(&tree, 3, "/var/log/payroll/app.log", "0102001", 900);
    descriptor(&tree, 4, "/data/payroll.db (deleted)", "0100002", 901);
    let dir = format!("var/lib/docker/containers/{WEB}");
    let log = format!("/{dir}/{WEB}-json.log");
    tree.file(&format!("{dir}/config.v2.json"), &format!(r#"{{"Name":"/payroll","LogPath":"{log}"}}"#));
    tree.file(&format!("{dir}/hostconfig.json"), r#"{"LogConfig":{"Type":"json-file","Config":{}}}"#);
    tree.file(&format!("{dir}/.stat.{WEB}-json.log"), "253:1 77 123456789 1700000000000000\n");
    tree
}

#[test]
fn a_container_s_files_are_told_with_the_file_system_that_they_were_opened_through() {
    let snapshot = host().full();
    let log = OpenFile {
        pid: 7,
        fd: 3,
        cgroup: path(format!("docker/{WEB}").as_bytes()),
        path: "/var/log/payroll/app.log".into(),
        fs_type: "overlay".into(),
        dev: DevNum { major: 0, minor: 60 },
        inode: 39,
        size: Bytes(4096),
        modified: UnixMicros(1_700_000_000_000_000),
        pos: Bytes(512),
        write_only: true,
    };
    let database = OpenFile {
        fd: 4,
        path: "/data/payroll.db (deleted)".into(),
        fs_type: "ext4".into(),
        inode: 49,
        write_only: false,
        ..log.clone()
    };
    assert_eq!(snapshot.open_files, [log, database]);
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
}

#[test]
fn what_is_no_file_or_is_only_read_is_left_out() {
    let tree = host();
    descriptor(&tree, 5, "/usr/bin/payroll", "0100000", 900);
    descriptor(&tree, 6, "socket:[4711]", "02", 900);
    descriptor(&tree, 7, "/dev/null", "0100001", 901);
    descriptor(&tree, 8, "/memfd:payroll (deleted)", "02", 5);
    descriptor(&tree, 9, "/var/log/torn.log", "0100001", 900);
    tree.file("proc/7/fd/.stat.9", "0:60 99 40");
    let fds: Vec<u32> = tree.full().open_files.iter().map(|file| file.fd).collect();
    assert_eq!(fds, [3, 4]);
    assert_eq!(tree.machine().snapshot(Depth::Counters).open_files, []);
}

#[test]
fn only_processes_of_containers_that_wrote_something_are_asked() {
    let tree = host();
    tree.process(7, "payroll", 'S', "/payroll.slice");
    assert_eq!(tree.full().open_files, []);
    tree.process(7, "payroll", 'S', &format!("/docker/{WEB}/worker"));
    assert_eq!(tree.full().open_files.len(), 2, "what a container makes below is the container's");
    tree.file("proc/7/io", "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 0\n");
    assert_eq!(tree.full().open_files, []);
}

#[test]
fn without_permission_there_is_a_gap_and_the_rest() {
    let tree = host();
    tree.unreadable("proc/7/fdinfo/3", 13);
    let snapshot = tree.full();
    assert_eq!(snapshot.open_files.len(), 1);
    assert_eq!(gaps(&snapshot), ["open files of process 7: no permission"]);
    tree.unreadable("proc/7/fd", 13);
    tree.unreadable("proc/7/io", 13);
    let snapshot = tree.full();
    assert_eq!((snapshot.open_files.len(), snapshot.tasks.len()), (0, 1));
    assert_eq!(gaps(&snapshot), ["io of process 7: no permission", "fd of process 7: no permission"]);
}

#[test]
fn the_size_of_a_json_log_is_told_and_of_no_other() {
    let tree = host();
    let of = |snapshot: &Snapshot| snapshot.containers.iter().map(|known| known.log_size).collect::<Vec<_>>();
    let snapshot = tree.full();
    assert_eq!(of(&snapshot), [Some(Bytes(123_456_789))]);
    assert!(snapshot.containers[0].log_grows_without_end());
    assert_eq!(of(&tree.machine().snapshot(Depth::Counters)), [None]);
    let dir = format!("var/lib/docker/containers/{WEB}");
    tree.unreadable(&format!("{dir}/.stat.{WEB}-json.log"), 13);
    assert_eq!(gaps(&tree.full()), ["json log of c1dbe0cd2b99: no permission"]);
    tree.file(&format!("{dir}/hostconfig.json"), r#"{"LogConfig":{"Type":"journald","Config":{}}}"#);
    let snapshot = tree.full();
    assert_eq!((of(&snapshot), gaps(&snapshot)), (vec![None], Vec::new()));
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

fn read_back(dir: &Path) -> Snapshot {
    Machine::under(&dir.join("t1")).unwrap().snapshot(Depth::Full)
}

#[test]
fn a_capture_holds_what_was_read_of_files_and_not_the_files() {
    let tree = host();
    descriptor(&tree, 5, "/usr/bin/payroll", "0100000", 900);
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), false).unwrap();
    let back = read_back(out.path());
    assert_eq!(back.open_files, captured.window.t1.open_files);
    assert_eq!(back.open_files.len(), 2);
    assert_eq!(back.containers, captured.window.t1.containers);
    for unread in ["proc/7/fd/5", "proc/7/fdinfo/5", "proc/7/fd/.stat.5"] {
        assert!(std::fs::symlink_metadata(out.path().join("t0").join(unread)).is_err(), "{unread}");
    }
}

#[test]
fn a_scrubbed_capture_has_the_sizes_and_none_of_the_paths() {
    let tree = host();
    tree.link("proc/7/fd/9", "anon_inode:[io_uring]");
    let out = tempfile::tempdir().unwrap();
    let captured = capture(&mut tree.machine(), &mut NoWait, Micros(1), out.path(), true).unwrap();
    assert_eq!(captured.left_out, Vec::<String>::new());
    let back = read_back(out.path());
    let numbers = |snapshot: &Snapshot| {
        let of =
            |file: &OpenFile| (file.fd, file.inode, file.size, file.fs_type.clone(), file.path.ends_with("(deleted)"));
        snapshot.open_files.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&back), numbers(&captured.window.t1));
    assert_eq!(back.containers[0].log_size, Some(Bytes(123_456_789)));
    assert!(back.tasks.iter().any(|task| task.io_uring));
    assert!(back.open_files[0].path.starts_with("/var/log/name"), "{}", back.open_files[0].path);
    assert_eq!(super::capture::names_in(out.path(), &["payroll", &WEB[..12]]), Vec::<String>::new());
}
