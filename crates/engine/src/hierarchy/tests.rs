//! Which ancestor keeps a controller from a cgroup, on small trees that are written here.

use quell_units::{CgroupId, Gap};

use super::*;
use crate::findings::written;
use crate::snapshot::Task;

fn path(text: &str) -> CgroupPath {
    CgroupPath::new(text.as_bytes()).unwrap()
}

fn on(io: bool) -> Controllers {
    Controllers { io, memory: true, ..Controllers::default() }
}

/// `a/b/c`, of which the root passes io on and the others do not.
fn host() -> Snapshot {
    let mut host = written::snapshot(0);
    for at in ["", "a", "a/b", "a/b/c"] {
        let is_root = at.is_empty();
        let config = CgroupConfig {
            subtree_control: Ok(on(is_root)),
            controllers: Ok(on(is_root)),
            kind: if is_root { Err(Gap::NotInKernel) } else { Ok(CgroupType::Domain) },
            ..written::config()
        };
        host.cgroups.push(Cgroup {
            path: path(at),
            id: CgroupId(1),
            io: Err(Gap::ControllerOff),
            io_pressure: Err(Gap::NotInKernel),
            memory: Err(Gap::NotInKernel),
            memory_stat: Err(Gap::NotInKernel),
            populated: Ok(true),
            config: Some(Box::new(config)),
        });
    }
    host
}

fn configure(host: &mut Snapshot, at: &str, change: impl Fn(&mut CgroupConfig)) {
    let cgroup = host.cgroups.iter_mut().find(|cgroup| cgroup.path == path(at)).unwrap();
    change(cgroup.config.as_mut().unwrap());
}

#[test]
fn every_ancestor_that_does_not_pass_it_on_is_named_from_the_top() {
    let host = host();
    let found = lacks(&host, &path("a/b/c"), Controller::Io);
    assert_eq!(found, ["a", "a/b"].map(|at| Lack { at: path(at), blocked: None }));
    assert_eq!(lacks(&host, &path("a"), Controller::Io), []);
    assert_eq!(lacks(&host, &path("a/b/c"), Controller::Memory), []);
}

#[test]
fn what_the_root_has_not_nobody_can_have() {
    let mut host = host();
    configure(&mut host, "", |config| {
        config.controllers = Ok(on(false));
        config.subtree_control = Ok(on(false));
    });
    let found = lacks(&host, &path("a"), Controller::Io);
    assert_eq!(found, [Lack { at: CgroupPath::root(), blocked: Some(Blocked::NotInRoot) }]);
}

#[test]
fn processes_and_threads_are_in_the_way_but_not_in_the_root() {
    let mut host = host();
    configure(&mut host, "a/b", |config| config.kind = Ok(CgroupType::DomainThreaded));
    configure(&mut host, "", |config| config.subtree_control = Ok(on(false)));
    for at in ["", "a"] {
        host.tasks.push(Task {
            pid: 7,
            tid: 7,
            comm: "app".into(),
            blocked: false,
            kernel_thread: false,
            cgroup: Ok(path(at)),
            wait_channel: None,
            io: Err(Gap::NotInKernel),
            io_uring: false,
        });
    }
    let blocked: Vec<_> = lacks(&host, &path("a/b/c"), Controller::Io).into_iter().map(|lack| lack.blocked).collect();
    assert_eq!(blocked, [None, Some(Blocked::HasProcesses(1)), Some(Blocked::Threaded)]);
}

#[test]
fn without_a_reading_nothing_is_called_missing() {
    let mut host = host();
    configure(&mut host, "a", |config| config.subtree_control = Err(Gap::Denied));
    assert_eq!(lacks(&host, &path("a/b"), Controller::Io), []);
}

#[test]
fn the_unit_is_the_lowest_one_that_systemd_keeps() {
    for (at, unit) in [
        ("system.slice/nginx.service/worker", Some("system.slice/nginx.service")),
        ("kubepods.slice/cri-containerd-1.scope", Some("kubepods.slice/cri-containerd-1.scope")),
        ("user.slice/user-1.slice/user@1.service/app.slice/x.service", Some("user.slice/user-1.slice/user@1.service")),
        ("user.slice/user-1.slice/session-2.scope", Some("user.slice/user-1.slice/session-2.scope")),
        ("system.slice/docker-1.scope/system.slice/nginx.service", Some("system.slice/docker-1.scope")),
        ("system.slice/lxc/x.service", Some("system.slice")),
        ("init.scope", Some("init.scope")),
        ("kubepods/besteffort/pod1", None),
        ("lxc/x.service", None),
    ] {
        assert_eq!(unit_of(&path(at)), unit.map(path), "{at}");
    }
    assert_eq!(unit_of(&CgroupPath::root()), None);
}
