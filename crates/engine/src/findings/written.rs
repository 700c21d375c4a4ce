//! Written hosts, for causes that no capture has: ten seconds on a host with what a test puts there.

use quell_kfile::cpu_times::CpuTimes;
use quell_kfile::diskstats::{Counters, Direction};
use quell_kfile::pressure::Pressure;
use quell_kfile::scheduler::Scheduler;
use quell_kfile::{io_max, io_stat};
use quell_units::{Bytes, CgroupId, CgroupPath, DevName, DevNum, Gap, Limit, Micros, Millis, MonoMicros, Sectors};

use super::{Finding, Scene, find};
use crate::rates::Rates;
use crate::snapshot::{
    Cgroup, CgroupConfig, CgroupMode, Clock, Cost, Device, DeviceMapper, DiskLook, Host, Look, Queue, Snapshot, System,
    Task, Window,
};

/// The window's length.
pub(super) const SECONDS: u64 = 10;

/// A host under construction.
pub(crate) struct Written {
    pub(crate) window: Window,
}

/// What a disk did in the window, per second.
#[derive(Clone, Copy, Default)]
pub(super) struct Did {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) read_usec: u64,
    pub(super) writes: u64,
    pub(super) write_bytes: u64,
    pub(super) write_usec: u64,
    pub(super) util_pct: u64,
}

impl Written {
    /// A quiet host of cgroup v2 with a root cgroup and no disk.
    pub(crate) fn new() -> Self {
        let t1 = snapshot(SECONDS);
        let mut written = Self { window: Window { t0: snapshot(0), looks: Vec::new(), t1, pasted: None } };
        written.cgroup("", 0.0, &[]);
        written
    }

    /// A disk of the number `8:minor` that did this, and that `root` in `io.stat` did with it.
    pub(super) fn disk(&mut self, minor: u32, name: &str, sysfs_path: &str, did: Did) -> &mut Self {
        let counters = Counters {
            read: flow(did.reads, did.read_bytes, did.read_usec),
            write: flow(did.writes, did.write_bytes, did.write_usec),
            busy_ms: Millis(did.util_pct * SECONDS * 10),
            weighted_ms: Millis((did.reads * did.read_usec + did.writes * did.write_usec) * SECONDS / 1000),
            ..Counters::default()
        };
        for (snapshot, counters) in [(&mut self.window.t0, Counters::default()), (&mut self.window.t1, counters)] {
            let mut device = device(minor, name, sysfs_path);
            device.counters = counters;
            snapshot.devices.push(device);
            snapshot.devices.sort_by_key(|device| device.dev);
        }
        self
    }

    /// A cgroup stalled for a part of the time that did this on disks: minor, reads, writes and bytes per second.
    pub(super) fn cgroup(&mut self, path: &str, stall: f64, io: &[(u32, u64, u64, u64)]) -> &mut Self {
        let rows = io.iter().map(|&(minor, reads, writes, bytes)| io_stat::Row {
            read_ios: reads * SECONDS,
            read_bytes: Bytes(if reads > 0 { bytes * SECONDS } else { 0 }),
            write_ios: writes * SECONDS,
            write_bytes: Bytes(if writes > 0 { bytes * SECONDS } else { 0 }),
            ..io_stat::Row::idle(number(minor))
        });
        let stalled = format!("{:.0}", stall * 1e6 * 10.0).parse().map(Micros).unwrap_or_default();
        let rows: Vec<_> = rows.collect();
        let idle = rows.iter().map(|row| io_stat::Row::idle(row.dev)).collect();
        for (snapshot, rows, stalled) in [(&mut self.window.t0, idle, Micros(0)), (&mut self.window.t1, rows, stalled)]
        {
            let pressure = Pressure { some_usec: stalled, full_usec: Some(stalled) };
            snapshot.cgroups.push(Cgroup {
                path: CgroupPath::new(path.as_bytes()).unwrap(),
                id: CgroupId(1 + u64::try_from(path.len()).unwrap()),
                io: Ok(rows),
                io_pressure: Ok(pressure),
                memory: Err(Gap::NotInKernel),
                memory_stat: Err(Gap::NotInKernel),
                populated: Ok(true),
                config: Some(Box::new(config())),
            });
            snapshot.cgroups.sort_by(|a, b| a.path.cmp(&b.path));
        }
        self
    }

    /// A light look so many milliseconds after the start: disks by minor with what is in flight and completed, and the
    /// threads that wait, by cgroup, number and kernel function.
    pub(super) fn look(&mut self, ms: u64, disks: &[(u32, u64, u64)], blocked: &[(&str, u32, &str)]) -> &mut Self {
        let at = MonoMicros(self.window.t0.clock.system.0 + ms * 1000);
        let disks = disks.iter().map(|&(minor, in_flight, completed)| DiskLook {
            dev: number(minor),
            in_flight,
            completed,
            bytes: Some(Bytes(completed * 4096)),
        });
        let blocked = blocked.iter().map(|&(path, tid, channel)| task(path, tid, channel));
        self.window.looks.push(Look { at, disks: disks.collect(), blocked: blocked.collect(), ..Look::default() });
        self
    }

    /// A thread that waits at both moments, in one function at the first and in another at the second.
    pub(super) fn waits(&mut self, path: &str, tid: u32, first: &str, second: &str) -> &mut Self {
        self.window.t0.tasks.push(task(path, tid, first));
        self.window.t1.tasks.push(task(path, tid, second));
        self
    }

    /// Changes a cgroup at the later moment.
    pub(super) fn now(&mut self, path: &str, change: impl Fn(&mut Cgroup)) -> &mut Self {
        let mut cgroups = self.window.t1.cgroups.iter_mut();
        change(cgroups.find(|cgroup| cgroup.path.as_bytes() == path.as_bytes()).unwrap());
        self
    }

    /// Changes a cgroup's configuration at both moments.
    pub(super) fn configure(&mut self, path: &str, change: impl Fn(&mut CgroupConfig)) -> &mut Self {
        for snapshot in [&mut self.window.t0, &mut self.window.t1] {
            let cgroup = snapshot.cgroups.iter_mut().find(|cgroup| cgroup.path.as_bytes() == path.as_bytes());
            change(cgroup.unwrap().config.as_mut().unwrap());
        }
        self
    }

    /// Changes a device at both moments.
    pub(super) fn change(&mut self, name: &str, change: impl Fn(&mut Device)) -> &mut Self {
        for snapshot in [&mut self.window.t0, &mut self.window.t1] {
            change(snapshot.devices.iter_mut().find(|device| device.name.as_str() == name).unwrap());
        }
        self
    }

    /// What is found.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let rates = Rates::of(&self.window);
        find(&Scene::of(&self.window, &rates))
    }

    /// The ids of what is found, worst first.
    pub(super) fn ids(&self) -> Vec<&'static str> {
        self.findings().iter().map(|finding| finding.id).collect()
    }
}

fn task(path: &str, tid: u32, channel: &str) -> Task {
    Task {
        pid: tid,
        tid,
        comm: "app".into(),
        blocked: true,
        kernel_thread: false,
        cgroup: CgroupPath::new(path.as_bytes()).map_err(|_| Gap::Malformed),
        wait_channel: Some(channel.into()),
        io: Err(Gap::NotInKernel),
        io_uring: false,
    }
}

/// Limits for one written disk, in the order of io.max.
pub(super) fn io_max(minor: u32, limits: [Option<u64>; 4]) -> io_max::Row {
    let bytes = |limit: Option<u64>| limit.map_or(Limit::Max, |limit| Limit::At(Bytes(limit)));
    let ios = |limit: Option<u64>| limit.map_or(Limit::Max, Limit::At);
    let [rbps, wbps, riops, wiops] = limits;
    io_max::Row {
        dev: number(minor),
        read_bytes_per_sec: bytes(rbps),
        write_bytes_per_sec: bytes(wbps),
        read_ios_per_sec: ios(riops),
        write_ios_per_sec: ios(wiops),
    }
}

/// The number of a written disk.
pub(super) fn number(minor: u32) -> DevNum {
    DevNum { major: 8, minor }
}

/// A device-mapper node's own facts.
pub(super) fn device_mapper(name: &str, suspended: bool) -> DeviceMapper {
    DeviceMapper { name: Ok(name.into()), uuid: Err(Gap::NotInKernel), suspended: Ok(suspended) }
}

fn flow(ios: u64, bytes: u64, usec: u64) -> Direction {
    Direction {
        ios: ios * SECONDS,
        merges: 0,
        sectors: Sectors(bytes * SECONDS / 512),
        ticks_ms: Millis(ios * usec * SECONDS / 1000),
    }
}

/// A disk that did nothing.
pub(crate) fn device(minor: u32, name: &str, sysfs_path: &str) -> Device {
    let none = || Err(Gap::NotInKernel);
    Device {
        dev: number(minor),
        name: DevName::new(name.as_bytes()).unwrap(),
        counters: Counters::default(),
        partition_of: None,
        slaves: Vec::new(),
        diskseq: Err(Gap::NotInKernel),
        queue: Some(Box::new(Queue {
            sysfs_path: sysfs_path.into(),
            model: none(),
            size: Ok(Bytes(1 << 40)),
            rotational: Ok(false),
            scheduler: Ok(Scheduler { active: "none".into(), available: vec!["none".into()] }),
            nr_requests: Err(Gap::NotInKernel),
            read_ahead_bytes: Err(Gap::NotInKernel),
            request_bytes_max: Err(Gap::NotInKernel),
            write_cache: none(),
            wbt_target_usec: Err(Gap::NotInKernel),
            wbt: Err(Gap::NotInKernel),
            device_mapper: None,
            multi_disk: None,
            detail: None,
        })),
    }
}

/// The configuration of a cgroup of which nothing was read.
pub(crate) fn config() -> CgroupConfig {
    CgroupConfig {
        kind: Err(Gap::NotInKernel),
        controllers: Err(Gap::NotInKernel),
        subtree_control: Err(Gap::NotInKernel),
        memory_max: Err(Gap::NotInKernel),
        memory_high: Err(Gap::NotInKernel),
        io_max: Ok(Vec::new()),
        io_weight: Err(Gap::NotInKernel),
        bfq_weight: Err(Gap::NotInKernel),
        io_latency: Ok(Vec::new()),
        cost_qos: Ok(Vec::new()),
        cost_model: Ok(Vec::new()),
    }
}

/// A host without disks and cgroups.
pub(crate) fn snapshot(seconds: u64) -> Snapshot {
    let at = MonoMicros(1_000_000_000 + seconds * 1_000_000);
    Snapshot {
        clock: Clock { system: at, cgroups: at, tasks: at, wall: None },
        host: Host {
            name: Ok("written".into()),
            kernel: Ok("6.1.0".into()),
            cgroups: CgroupMode::V2,
            cgroup_mount: Ok("/sys/fs/cgroup".into()),
            virtualised: Ok(false),
            cpus: Ok(4),
        },
        system: System {
            cpu: Ok(CpuTimes { online: 4, idle_ticks: 400 * seconds, ..CpuTimes::default() }),
            vmstat: Err(Gap::NotInKernel),
            meminfo: Err(Gap::NotInKernel),
            io_pressure: Ok(Pressure::default()),
            memory_pressure: Ok(Pressure::default()),
            cpu_pressure: Ok(Pressure::default()),
            dirty_background_bytes: Err(Gap::NotInKernel),
            dirty_background_ratio_pct: Err(Gap::NotInKernel),
            dirty_bytes: Err(Gap::NotInKernel),
            dirty_ratio_pct: Err(Gap::NotInKernel),
            swaps: Ok(Vec::new()),
        },
        devices: Vec::new(),
        cgroups: Vec::new(),
        containers: Vec::new(),
        pods: Vec::new(),
        tasks: Vec::new(),
        open_files: Vec::new(),
        filesystems: Vec::new(),
        mounts: Vec::new(),
        on_disk: Vec::new(),
        partitions: Vec::new(),
        gaps: Vec::new(),
        cost: Cost::default(),
    }
}
