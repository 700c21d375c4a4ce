//! The tree of cgroups: what a cgroup may hold, which controllers reach it, and why one does not.
//!
//! A controller reaches a cgroup only when every cgroup above passes it on in `cgroup.subtree_control`, so the answer to
//! "why is there no io.max here" is a list of ancestors and not one file. Some of them cannot pass it on: the kernel
//! lets no cgroup hold processes and give io or memory to its children at once, and gives neither to threads.

use std::collections::HashMap;

use quell_kfile::cgroup_type::CgroupType;
use quell_kfile::controllers::Controllers;
use quell_units::{Bytes, CgroupPath};

use crate::snapshot::{Cgroup, CgroupConfig, Snapshot};

#[cfg(test)]
mod tests;

/// A controller of resources that belong to a whole process and not to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    /// Limits, weights and counters of block devices.
    Io,
    /// Memory; without it write-back is charged to nobody.
    Memory,
}

impl Controller {
    /// The property of a systemd unit that has it enabled for the unit, in every slice above.
    #[must_use]
    pub const fn unit_property(self) -> &'static str {
        match self {
            Self::Io => "IOAccounting",
            Self::Memory => "MemoryAccounting",
        }
    }

    /// Its name in `cgroup.controllers`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Memory => "memory",
        }
    }

    const fn is_in(self, on: &Controllers) -> bool {
        match self {
            Self::Io => on.io,
            Self::Memory => on.memory,
        }
    }
}

/// A cgroup that does not pass a controller on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// It.
    pub at: CgroupPath,
    /// Why it cannot as it stands; `None` where one write to its `cgroup.subtree_control` is enough.
    pub blocked: Option<Blocked>,
}

/// Why a cgroup cannot pass a controller on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It holds processes itself: the write answers `EBUSY`.
    HasProcesses(usize),
    /// It is threaded, or the top of a threaded subtree: the write answers `EOPNOTSUPP`.
    Threaded,
    /// The root has no such controller: it is not in this kernel, switched off at boot, or bound to version 1.
    NotInRoot,
}

impl Blocked {
    /// What is in the way, and the way around it.
    #[must_use]
    pub fn told(self) -> String {
        match self {
            Self::HasProcesses(count) => format!(
                "it holds {count} process{} of its own, and the kernel lets no cgroup with processes give io or memory to \
                 its children (EBUSY): move them into a leaf below it first",
                if count == 1 { "" } else { "es" }
            ),
            Self::Threaded => {
                "its subtree is threaded, and io and memory cannot tell threads apart (EOPNOTSUPP): charge its domain"
                    .into()
            }
            Self::NotInRoot => {
                "the root has it not: absent from this kernel, switched off at boot (cgroup_disable=), or bound to \
                 version 1"
                    .into()
            }
        }
    }
}

/// What a type of cgroup means to who limits it.
#[must_use]
pub const fn type_told(kind: CgroupType) -> &'static str {
    match kind {
        CgroupType::Domain => "processes and every controller",
        CgroupType::DomainThreaded => "the top of a threaded subtree: all its threads' I/O and memory is charged here",
        CgroupType::DomainInvalid => {
            "below a threaded cgroup and not threaded itself: it takes no process until `threaded` is written to its type"
        }
        CgroupType::Threaded => "threads alone: io and memory are charged to the domain above, and limited only there",
    }
}

/// The word for a type, as the kernel prints it.
#[must_use]
pub const fn type_word(kind: CgroupType) -> &'static str {
    match kind {
        CgroupType::Domain => "domain",
        CgroupType::DomainThreaded => "domain threaded",
        CgroupType::DomainInvalid => "domain invalid",
        CgroupType::Threaded => "threaded",
    }
}

/// The names of the controllers that are on, of those that quell knows.
#[must_use]
pub fn controller_words(on: &Controllers) -> Vec<&'static str> {
    let all = [("cpu", on.cpu), ("cpuset", on.cpuset), ("io", on.io), ("memory", on.memory), ("pids", on.pids)];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(word, _)| word).collect()
}

/// The processes in each cgroup itself, its descendants' left out. Empty where processes were not read.
#[must_use]
pub fn processes(snapshot: &Snapshot) -> HashMap<&CgroupPath, usize> {
    let mut counts = HashMap::new();
    for task in snapshot.tasks.iter().filter(|task| task.pid == task.tid) {
        if let Ok(path) = &task.cgroup {
            *counts.entry(path).or_insert(0) += 1;
        }
    }
    counts
}

/// Every ancestor that does not pass a controller on to a cgroup, from the root down; empty where it has it, or where
/// version 1 has no such thing.
#[must_use]
pub fn lacks(snapshot: &Snapshot, path: &CgroupPath, controller: Controller) -> Vec<Lack> {
    let counts = processes(snapshot);
    let mut above: Vec<CgroupPath> = path.ancestors().filter(|at| at != path).collect();
    above.sort_by_key(|at| at.as_bytes().len());
    above.into_iter().filter_map(|at| lack(snapshot, at, controller, &counts)).collect()
}

fn lack(
    snapshot: &Snapshot,
    at: CgroupPath,
    controller: Controller,
    counts: &HashMap<&CgroupPath, usize>,
) -> Option<Lack> {
    let config = config(snapshot, &at)?;
    if controller.is_in(config.subtree_control.as_ref().ok()?) {
        return None;
    }
    let blocked = if at.is_root() {
        // The root may hold processes: it is the one exception.
        let offered = config.controllers.as_ref().is_ok_and(|on| controller.is_in(on));
        (!offered).then_some(Blocked::NotInRoot)
    } else {
        match (config.kind, counts.get(&at)) {
            (Ok(CgroupType::Threaded | CgroupType::DomainThreaded), _) => Some(Blocked::Threaded),
            (_, Some(&count)) => Some(Blocked::HasProcesses(count)),
            _ => None,
        }
    };
    Some(Lack { at, blocked })
}

fn config<'s>(snapshot: &'s Snapshot, path: &CgroupPath) -> Option<&'s CgroupConfig> {
    snapshot.cgroup(path)?.config.as_deref()
}

/// The lowest unit of the system's own systemd that a cgroup is or lies in, where systemd keeps that part of the tree.
///
/// There a raw write to `cgroup.subtree_control` is lost when systemd next sets up the slice. What looks like a unit below
/// a service or scope is another manager's, a user's or a container's: the system's has no unit of that name, or one of
/// its own that is meant by it.
#[must_use]
pub fn unit_of(path: &CgroupPath) -> Option<CgroupPath> {
    let mut at: Vec<CgroupPath> = path.ancestors().filter(|at| !at.is_root()).collect();
    at.sort_by_key(|at| at.as_bytes().len());
    let slices = at.iter().take_while(|at| at.name().ends_with(b".slice")).count();
    let is_leaf = |at: &&CgroupPath| {
        let name = at.name();
        // In the root slice systemd keeps its own scope alone.
        name == b"init.scope" || slices > 0 && (name.ends_with(b".service") || name.ends_with(b".scope"))
    };
    let leaf = at.get(slices).filter(is_leaf);
    leaf.or_else(|| at.get(slices.checked_sub(1)?)).cloned()
}

/// What of a cgroup's files is not on disk yet: dirty and under write-back. `None` where its memory is not counted.
#[must_use]
pub fn backlog(cgroup: &Cgroup) -> Option<Bytes> {
    let stat = cgroup.memory_stat.as_ref().ok()?;
    let (dirty, writeback) = (stat.file_dirty_bytes, stat.file_writeback_bytes);
    (dirty.is_some() || writeback.is_some())
        .then(|| dirty.unwrap_or_default().saturating_add(writeback.unwrap_or_default()))
}
