//! Processes and threads, and the light looks at those that wait.

use quell_units::{Bytes, Gap};

use crate::tree::{Tree, gaps, path, stat};

const KERNEL_THREAD: u64 = 0x0020_0000;

fn tree() -> Tree {
    let tree = Tree::version2();
    tree.process(7, "post gres) D", 'S', "/app");
    tree.file("proc/7/task/7/stat", &stat(7, "post gres) D", 'S', 0));
    tree.file("proc/7/task/8/stat", &stat(8, "checkpointer", 'D', 0));
    tree.file("proc/7/task/8/wchan", "jbd2_log_wait_commit");
    tree.file("proc/7/task/9/stat", &stat(9, "walwriter", 'S', 0));
    tree.file("proc/20/stat", &stat(20, "jbd2/vda1-8", 'D', KERNEL_THREAD));
    tree.file("proc/20/cgroup", "0::/\n");
    tree.file("proc/20/wchan", "folio_wait_bit_common");
    tree
}

#[test]
fn every_process_is_kept_and_of_the_threads_those_that_wait() {
    let snapshot = tree().full();
    let shown: Vec<_> =
        snapshot.tasks.iter().map(|task| (task.pid, task.tid, task.comm.as_str(), task.blocked)).collect();
    assert_eq!(shown, [(7, 8, "checkpointer", true), (7, 7, "post gres) D", false), (20, 20, "jbd2/vda1-8", true)]);
    let [waiter, postgres, journal] = &snapshot.tasks[..] else { panic!("three tasks") };
    assert_eq!(waiter.wait_channel.as_deref(), Some("jbd2_log_wait_commit"));
    assert_eq!((&waiter.cgroup, &postgres.cgroup), (&Ok(path(b"app")), &Ok(path(b"app"))));
    assert_eq!(postgres.io.unwrap().write_bytes, Some(Bytes(4)));
    assert!(journal.kernel_thread && !postgres.kernel_thread);
    assert_eq!(gaps(&snapshot), ["io of process 20: not offered here"]);
}

#[test]
fn a_look_sees_only_what_waits() {
    let tree = tree();
    tree.disk("253:0", "pci0/block/vda");
    let mut machine = tree.machine();
    let look = machine.look();
    let tids: Vec<u32> = look.blocked.iter().map(|task| task.tid).collect();
    assert_eq!(tids, [8, 20]);
    assert_eq!(look.blocked[0].cgroup, Ok(path(b"app")));
    assert_eq!((look.dirty_pages, look.writeback_pages, look.cut), (Some(5), Some(2), false));
    let completed = 1 + 5 + 12 + 16;
    assert_eq!(look.disks.iter().map(|disk| (disk.in_flight, disk.completed)).collect::<Vec<_>>(), [(9, completed)]);
}

#[test]
fn an_io_uring_is_found_among_the_descriptors() {
    let tree = tree();
    tree.link("proc/7/fd/0", "/dev/null");
    tree.link("proc/7/fd/3", "anon_inode:[io_uring]");
    let snapshot = tree.full();
    assert!(snapshot.tasks.iter().find(|task| task.tid == 7).unwrap().io_uring);
    assert!(!snapshot.tasks.iter().find(|task| task.tid == 20).unwrap().io_uring);
}

#[test]
fn a_process_that_ends_while_it_is_read_is_dropped_and_counted() {
    let tree = tree();
    // As a live process does between two reads.
    tree.unreadable("proc/7/cgroup", 3);
    tree.remove("proc/20/stat");
    let snapshot = tree.full();
    assert!(snapshot.tasks.is_empty());
    assert_eq!(gaps(&snapshot), ["2 processes: went away"]);
}

#[test]
fn what_may_not_be_read_of_a_process_is_a_gap_and_not_a_zero() {
    let tree = tree();
    tree.unreadable("proc/7/io", 13);
    tree.unreadable("proc/20/io", 13);
    tree.unreadable("proc/7/fd", 13);
    let snapshot = tree.full();
    assert!(snapshot.tasks.iter().all(|task| task.io.is_err()));
    assert_eq!(snapshot.tasks.iter().find(|task| task.tid == 7).unwrap().io, Err(Gap::Denied));
    assert_eq!(gaps(&snapshot), ["io of 2 processes: no permission", "fd of process 7: no permission"]);
}

#[test]
fn a_wait_channel_that_may_not_be_read_is_a_gap_though_its_file_can() {
    let tree = tree();
    tree.file("proc/20/wchan", "0");
    assert_eq!(gaps(&tree.full()), ["io of process 20: not offered here"], "the kernel knows of none");
    tree.unreadable("proc/20/io", 13);
    assert_eq!(gaps(&tree.full()), ["io of process 20: no permission", "wchan of process 20: no permission"]);
}

#[test]
fn a_process_outside_the_cgroup_namespace_has_no_cgroup_here() {
    let tree = tree();
    tree.file("proc/7/cgroup", "0::/../other\n");
    let snapshot = tree.full();
    assert_eq!(snapshot.tasks.iter().find(|task| task.tid == 7).unwrap().cgroup, Err(Gap::Denied));
}
