//! How a cgroup is configured. Read for a full snapshot alone, and closed again.

use std::os::fd::OwnedFd;

use quell_engine::snapshot::CgroupConfig;
use quell_kfile::{
    Parsed, blkio, cgroup_type, controllers, io_cost_model, io_cost_qos, io_latency, io_max, io_weight, single,
};
use quell_units::{Bytes, CgroupPath, Gap, Known, Limit};

use super::files::{Layout, shown};
use super::version1;
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, join};
use crate::values::{many, one};

/// Reads the configuration of the cgroup whose directory is `dir`.
pub(super) fn read_config(
    reader: &mut Reader,
    layout: &Layout,
    path: &CgroupPath,
    dir: &OwnedFd,
    gaps: &mut Gaps,
) -> CgroupConfig {
    let mut files = Dir { reader, layout, path, dir, gaps };
    if layout.io_is_v1 { files.version1() } else { files.version2() }
}

struct Dir<'a> {
    reader: &'a mut Reader,
    layout: &'a Layout,
    path: &'a CgroupPath,
    dir: &'a OwnedFd,
    gaps: &'a mut Gaps,
}

impl Dir<'_> {
    fn version2(&mut self) -> CgroupConfig {
        let controllers = self.one("cgroup.controllers", controllers::parse);
        let on = |of: fn(&controllers::Controllers) -> bool| controllers.as_ref().map_or(true, of);
        let (io, memory) = (on(|on| on.io), on(|on| on.memory));
        // In the root alone: below it the files do not exist, and a thousand tries to open them are not free.
        let root = self.path.is_root();
        CgroupConfig {
            kind: self.one("cgroup.type", cgroup_type::parse),
            subtree_control: self.one("cgroup.subtree_control", controllers::parse),
            memory_max: self.memory_limit("memory.max", memory),
            memory_high: self.memory_limit("memory.high", memory),
            io_max: self.many("io.max", io_max::parse).map_err(|gap| off(gap, io)),
            io_weight: self.one("io.weight", io_weight::parse).map_err(|gap| off(gap, io)),
            bfq_weight: self.one("io.bfq.weight", io_weight::parse).map_err(|gap| off(gap, io)),
            io_latency: self.many("io.latency", io_latency::parse).map_err(|gap| off(gap, io)),
            cost_qos: if root { self.many("io.cost.qos", io_cost_qos::parse) } else { Err(Gap::NotInKernel) },
            cost_model: if root { self.many("io.cost.model", io_cost_model::parse) } else { Err(Gap::NotInKernel) },
            controllers,
        }
    }

    /// Version 1 has no types, no delegation of controllers and no iocost.
    fn version1(&mut self) -> CgroupConfig {
        CgroupConfig {
            kind: Err(Gap::NotInKernel),
            controllers: Err(Gap::NotInKernel),
            subtree_control: Err(Gap::NotInKernel),
            memory_max: self.v1_memory_limit(),
            memory_high: Err(Gap::NotInKernel),
            io_max: self.v1_limits(),
            io_weight: Err(Gap::NotInKernel),
            bfq_weight: self.one("blkio.bfq.weight", io_weight::parse),
            io_latency: Err(Gap::NotInKernel),
            cost_qos: Err(Gap::NotInKernel),
            cost_model: Err(Gap::NotInKernel),
        }
    }

    fn memory_limit(&mut self, name: &'static str, on: bool) -> Known<Limit<Bytes>> {
        if self.layout.memory.is_some() {
            // The memory controller is bound to version 1, which has one limit under another name.
            return if name == "memory.max" { self.v1_memory_limit() } else { Err(Gap::NotInKernel) };
        }
        let limit = self.one(name, single::parse_limit).map_err(|gap| off(gap, on))?;
        Ok(limit.at().map_or(Limit::Max, |n| Limit::At(Bytes(n))))
    }

    fn v1_memory_limit(&mut self) -> Known<Limit<Bytes>> {
        let name = "memory.limit_in_bytes";
        let memory = self.layout.memory.as_ref().ok_or(Gap::NotInKernel)?;
        let path = join(&[&memory.point, self.path.as_bytes(), name.as_bytes()]);
        let bytes = one(self.reader.read(&path), single::parse_number);
        self.note(name, bytes.err());
        bytes.map(version1::memory_limit)
    }

    fn v1_limits(&mut self) -> Known<Vec<io_max::Row>> {
        let read_bytes = self.many("blkio.throttle.read_bps_device", blkio::parse_limits)?;
        let write_bytes = self.many("blkio.throttle.write_bps_device", blkio::parse_limits)?;
        let read_ios = self.many("blkio.throttle.read_iops_device", blkio::parse_limits)?;
        let write_ios = self.many("blkio.throttle.write_iops_device", blkio::parse_limits)?;
        Ok(version1::join_limits([&read_bytes, &write_bytes, &read_ios, &write_ios]))
    }

    fn one<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, quell_kfile::ParseError>,
    ) -> Known<T> {
        let path = || join(&[&self.layout.walked.point, self.path.as_bytes(), name.as_bytes()]);
        let value = one(self.reader.read_in(self.dir, name.as_bytes(), path), parse);
        self.note(name, value.as_ref().err().copied());
        value
    }

    fn many<T>(&mut self, name: &'static str, parse: fn(&[u8]) -> Parsed<T>) -> Known<T> {
        let path = || join(&[&self.layout.walked.point, self.path.as_bytes(), name.as_bytes()]);
        let (value, lost) = many(self.reader.read_in(self.dir, name.as_bytes(), path), parse);
        self.gaps.lost(name, Of::Cgroup, &lost, || shown(self.path));
        self.note(name, value.as_ref().err().copied());
        value
    }

    /// A setting that does not exist is an answer, not a gap: the kernel or the cgroup has no such knob.
    fn note(&mut self, name: &'static str, reason: Option<Gap>) {
        match reason {
            None | Some(Gap::NotInKernel | Gap::Gone) => {}
            Some(reason) => self.gaps.missing(name, Of::Cgroup, reason, || shown(self.path)),
        }
    }
}

/// A file that is not there because its controller is off.
fn off(reason: Gap, on: bool) -> Gap {
    if reason == Gap::NotInKernel && !on { Gap::ControllerOff } else { reason }
}
