//! Names: what the runtimes call the containers whose cgroups hold an id at most.
//!
//! Read from the runtimes' own state on disk, without asking a daemon: one may be hung by the very disk that is looked
//! at. A name does not change while its container runs, so it is kept between snapshots, and state is read for new
//! cgroups alone, and only for those that look like a container's or that a bundle names. State that is not there or
//! not readable costs that name; the container is then called by its id.

mod annotations;
mod bundle;
mod docker;
mod homes;
mod pods;
mod state;
mod storage;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quell_engine::identity::{container_shape, is_id, pod_uid};
use quell_engine::snapshot::{Cgroup, Container, Pod};
use quell_kfile::mountinfo;
use quell_units::{CgroupId, CgroupPath, escape};

use crate::gaps::Gaps;
use crate::reader::{Reader, join};
use bundle::{Bundle, Place};
use homes::{homes, user_of};
use pods::Logs;
use state::text;
use storage::Storage;

/// Data roots or stores of one runtime that are looked at: the host's few, and one a user.
const ROOTS_MAX: usize = 64;

/// The names that are known so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    containers: HashMap<CgroupPath, Known>,
    pods: HashMap<CgroupPath, (CgroupId, Option<Pod>)>,
    /// The bundles of containerd, read once each; `None` where one could not be read.
    bundles: BTreeMap<Place, Option<Bundle>>,
}

/// What is known of one cgroup that looks like a container's.
#[derive(Debug)]
struct Known {
    id: CgroupId,
    /// `None` where no state was found.
    container: Option<Container>,
    /// Where its root is mounted, if its bundle tells.
    rootfs: Option<Vec<u8>>,
}

/// A cgroup that may be a container's.
#[derive(Debug)]
struct Candidate<'a> {
    cgroup: &'a Cgroup,
    /// The runtime, as the path tells it.
    runtime: Option<&'static str>,
    id: String,
}

impl Names {
    /// The containers and pods among the cgroups, in their order. The mounts are given for a full snapshot, which looks
    /// again for what was not found before.
    pub(crate) fn read(
        &mut self,
        reader: &mut Reader,
        cgroups: &[Cgroup],
        mounts: Option<&[mountinfo::Row]>,
        gaps: &mut Gaps,
    ) -> (Vec<Container>, Vec<Pod>) {
        let candidates = candidates(cgroups);
        let is_known = |names: &Self, candidate: &Candidate| {
            let known = names.containers.get(&candidate.cgroup.path);
            known
                .is_some_and(|known| known.id == candidate.cgroup.id && (known.container.is_some() || mounts.is_none()))
        };
        let is_new = candidates.iter().any(|candidate| !is_known(self, candidate));
        let mut logs = Logs::default();
        if mounts.is_some() || is_new {
            self.list_bundles(reader, gaps);
        }
        if is_new {
            let mut sources = Sources::default();
            for candidate in &candidates {
                if !is_known(self, candidate) {
                    let known = self.resolve(reader, candidate, &mut sources, &mut logs, gaps);
                    self.containers.insert(candidate.cgroup.path.clone(), known);
                }
            }
        }
        if let Some(mounts) = mounts {
            self.forget_gone(cgroups);
            self.join_bundles(cgroups);
            self.find_upper_dirs(mounts);
        }
        let containers: Vec<Container> = cgroups.iter().filter_map(|cgroup| self.container(cgroup)).collect();
        let pods = self.pods(reader, cgroups, &containers, mounts.is_some(), &mut logs, gaps);
        (containers, pods)
    }

    fn container(&self, cgroup: &Cgroup) -> Option<Container> {
        let known = self.containers.get(&cgroup.path).filter(|known| known.id == cgroup.id);
        known.and_then(|known| known.container.clone())
    }

    /// Reads the bundles that are new, and drops those that are gone.
    fn list_bundles(&mut self, reader: &mut Reader, gaps: &mut Gaps) {
        let mut known = std::mem::take(&mut self.bundles);
        for place in bundle::places(reader, gaps) {
            let bundle = known.remove(&place).flatten().or_else(|| Bundle::read(reader, &place, gaps));
            self.bundles.insert(place, bundle);
        }
    }

    /// Asks the runtimes' state, the one with the most to tell first.
    fn resolve(
        &self,
        reader: &mut Reader,
        candidate: &Candidate,
        sources: &mut Sources,
        logs: &mut Logs,
        gaps: &mut Gaps,
    ) -> Known {
        let Candidate { cgroup, runtime, id } = candidate;
        let path = &cgroup.path;
        let mut container = None;
        let mut read = None;
        // Under a kubelet the path does not tell docker from containerd.
        if is_id(id) && matches!(runtime, None | Some("docker" | "containerd")) {
            let roots = sources.docker_roots(reader, path, gaps);
            container = docker::find(reader, roots, id, path, gaps);
        }
        if is_id(id) && container.is_none() && matches!(runtime, None | Some("podman" | "crio")) {
            let storages = sources.storages(reader, path, gaps);
            container = storages.iter().find_map(|storage| storage.find(id, path));
            let stored = storages.iter().find_map(|storage| storage.bundle(id));
            read = Bundle::read_stored(reader, stored, runtime.unwrap_or("podman"), id, gaps);
        }
        // Docker's bundles say no more than its own state.
        let same_id = || self.bundles.values().flatten().find(|bundle| bundle.id == *id);
        let bundle = read.as_ref().or_else(|| container.is_none().then(same_id).flatten());
        let rootfs = bundle.map(Bundle::rootfs);
        if let Some(bundle) = bundle {
            container = Some(joined(container, bundle.container(path)));
        }
        let is_bare = container.as_ref().is_none_or(|known| known.pod.is_some() && known.log_path.is_none());
        if is_id(id)
            && is_bare
            && path.components().any(|part| part.starts_with(b"kubepods"))
            && let Some((pod, log)) = logs.container(reader, id, gaps)
        {
            let runtime = runtime.unwrap_or("containerd");
            let told = Container { pod: Some(pod), log_path: Some(log), ..nameless(path, runtime, id) };
            container = Some(joined(container, told));
        }
        Known { id: cgroup.id, container, rootfs }
    }

    fn forget_gone(&mut self, cgroups: &[Cgroup]) {
        let is_there = |path: &CgroupPath| cgroups.binary_search_by(|cgroup| cgroup.path.cmp(path)).is_ok();
        self.containers.retain(|path, _| is_there(path));
        self.pods.retain(|path, _| is_there(path));
    }

    /// Finds the cgroups that have no shape of a container but are named by a bundle, such as `default/box`.
    fn join_bundles(&mut self, cgroups: &[Cgroup]) {
        let found: BTreeSet<&str> =
            self.containers.values().filter_map(|known| Some(known.container.as_ref()?.id.as_str())).collect();
        let others = self.bundles.values().flatten().filter(|bundle| !found.contains(bundle.id.as_str()));
        let joined: Vec<(CgroupPath, Known)> = others
            .filter_map(|bundle| {
                let cgroup = cgroups.iter().find(|cgroup| bundle.is_of(&cgroup.path))?;
                let container = Some(bundle.container(&cgroup.path));
                Some((cgroup.path.clone(), Known { id: cgroup.id, container, rootfs: Some(bundle.rootfs()) }))
            })
            .collect();
        self.containers.extend(joined);
    }

    /// Fills in where a container writes, from the overlay that is mounted as its root.
    fn find_upper_dirs(&mut self, mounts: &[mountinfo::Row]) {
        for known in self.containers.values_mut() {
            let Some(container) = known.container.as_mut().filter(|container| container.upper_dir.is_none()) else {
                continue;
            };
            let rootfs = known.rootfs.as_deref();
            let id = Some(container.id.as_bytes()).filter(|_| is_id(&container.id));
            let is_root = |mount: &mountinfo::Row| {
                let point = &mount.mount_point;
                (rootfs.is_some() && point.strip_prefix(b"/") == rootfs)
                    || id.is_some_and(|id| point.split(|&b| b == b'/').any(|part| part == id))
            };
            let overlays = mounts.iter().rev().filter(|mount| &*mount.fs_type == b"overlay");
            container.upper_dir = overlays.filter(|mount| is_root(mount)).find_map(upper_dir);
        }
    }

    /// The pods: named by their containers, else by their logs.
    fn pods(
        &mut self,
        reader: &mut Reader,
        cgroups: &[Cgroup],
        containers: &[Container],
        full: bool,
        logs: &mut Logs,
        gaps: &mut Gaps,
    ) -> Vec<Pod> {
        let mut by_parent: HashMap<CgroupPath, &quell_engine::snapshot::PodContainer> = HashMap::new();
        for container in containers {
            if let (Some(pod), Some(parent)) = (&container.pod, container.cgroup.parent()) {
                by_parent.insert(parent, pod);
            }
        }
        let mut pods = Vec::new();
        for cgroup in cgroups {
            let Some(uid) = pod_uid(&cgroup.path) else { continue };
            let known = self.pods.get(&cgroup.path).filter(|(id, pod)| *id == cgroup.id && (pod.is_some() || !full));
            let pod = match known {
                Some((_, pod)) => pod.clone(),
                None => {
                    let told = by_parent.get(&cgroup.path).map(|pod| (pod.namespace.clone(), pod.pod.clone()));
                    let named = told.or_else(|| logs.pod(reader, &uid, gaps));
                    let pod = named.map(|(namespace, name)| Pod { cgroup: cgroup.path.clone(), namespace, name });
                    self.pods.insert(cgroup.path.clone(), (cgroup.id, pod.clone()));
                    pod
                }
            };
            pods.extend(pod);
        }
        pods
    }
}

/// State that several containers share, read when the first of them asks.
#[derive(Debug, Default)]
struct Sources {
    docker_roots: HashMap<Option<u32>, Vec<Vec<u8>>>,
    storages: HashMap<Option<u32>, Vec<Storage>>,
}

impl Sources {
    /// The data roots of the docker that made a cgroup: the host's, or its user's.
    fn docker_roots(&mut self, reader: &mut Reader, path: &CgroupPath, gaps: &mut Gaps) -> &[Vec<u8>] {
        let user = user_of(path);
        self.docker_roots.entry(user).or_insert_with(|| match user {
            None => docker::roots(reader, gaps),
            Some(uid) => in_home(reader, uid, b".local/share/docker"),
        })
    }

    /// The stores of the podman or CRI-O that made a cgroup.
    fn storages(&mut self, reader: &mut Reader, path: &CgroupPath, gaps: &mut Gaps) -> &[Storage] {
        let user = user_of(path);
        self.storages.entry(user).or_insert_with(|| {
            let roots = match user {
                None => vec![storage::ROOT.to_vec()],
                Some(uid) => in_home(reader, uid, b".local/share/containers/storage"),
            };
            roots.iter().map(|root| Storage::read(reader, root, gaps)).collect()
        })
    }
}

/// A place in a user's home.
fn in_home(reader: &mut Reader, uid: u32, below: &[u8]) -> Vec<Vec<u8>> {
    let homes = homes(reader, &BTreeSet::from([uid]));
    homes.iter().map(|home| join(&[home.strip_prefix(b"/").unwrap_or(home), below])).collect()
}

/// The cgroups that look like a container's, without those inside of another.
fn candidates(cgroups: &[Cgroup]) -> Vec<Candidate<'_>> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for cgroup in cgroups {
        // A parent comes before its children, and they directly after it.
        if candidates.last().is_some_and(|last| cgroup.path.is_within(&last.cgroup.path)) {
            continue;
        }
        candidates.extend(candidate(cgroup));
    }
    candidates
}

fn candidate(cgroup: &Cgroup) -> Option<Candidate<'_>> {
    /// The runtimes that have state to read. The others' paths tell the name.
    const WITH_STATE: [&str; 4] = ["docker", "podman", "containerd", "crio"];
    match container_shape(&cgroup.path) {
        Some(shape) => WITH_STATE.contains(&shape.runtime).then_some(Candidate {
            cgroup,
            runtime: Some(shape.runtime),
            id: shape.id,
        }),
        // Below a parent of somebody's choice (docker's `--cgroup-parent`) there is nothing but the id.
        None => {
            let id = std::str::from_utf8(cgroup.path.name()).ok().filter(|name| is_id(name))?;
            Some(Candidate { cgroup, runtime: None, id: id.to_owned() })
        }
    }
}

/// A container of which nothing but its cgroup and its id is known.
fn nameless(cgroup: &CgroupPath, runtime: &str, id: &str) -> Container {
    Container {
        cgroup: cgroup.clone(),
        runtime: runtime.to_owned(),
        id: text(id).unwrap_or_default(),
        name: None,
        image: None,
        pod: None,
        asked: Vec::new(),
        upper_dir: None,
        storage_size: None,
        log_driver: None,
        log_path: None,
        log_size_max: None,
        log_size: None,
    }
}

/// What two sources say of one container; the first has the word.
fn joined(first: Option<Container>, second: Container) -> Container {
    let Some(first) = first else { return second };
    Container {
        name: first.name.or(second.name),
        image: first.image.or(second.image),
        pod: first.pod.or(second.pod),
        asked: if first.asked.is_empty() { second.asked } else { first.asked },
        upper_dir: first.upper_dir.or(second.upper_dir),
        storage_size: first.storage_size.or(second.storage_size),
        log_driver: first.log_driver.or(second.log_driver),
        log_path: first.log_path.or(second.log_path),
        log_size_max: first.log_size_max.or(second.log_size_max),
        ..first
    }
}

/// The directory that takes the writes of an overlay.
fn upper_dir(mount: &mountinfo::Row) -> Option<String> {
    let mut options = mount.super_options.split(|&b| b == b',');
    options.find_map(|option| option.strip_prefix(b"upperdir=")).and_then(|dir| text(&escape(dir)))
}
