//! The table of all formats, for the properties beside it and for the fuzz targets in `fuzz/`.
//!
//! A new format is one line here. Each is tried through [`Format::read`], which also checks what must hold of every
//! value that was read, from whatever bytes: it is printed and read back as the same, and so it is by way of JSON.

use std::fmt::Debug;

use quell_kfile::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) shape: Shape,
    /// A file of a real kernel, but for the devices of `io_weight`, which were written.
    pub(crate) sample: &'static [u8],
    /// Parses; `None` where the bytes are refused.
    pub(crate) read: fn(&[u8]) -> Option<Seen>,
}

/// Where the files of a format come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Devices,
    Cgroup,
    Proc,
    Fs,
}

/// How a format is made, and so what must be harmless to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text that may lack its newline.
    Text,
    /// Lines whose order or number says something.
    Lines,
    /// A fact a line: order is harmless, and so is this line, which no kernel prints.
    Keyed(&'static str),
    /// `MAJ:MIN key=value ...`: the order of the keys is harmless, and so is a new one.
    DeviceKeys,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The value, in Rust's notation.
    pub(crate) value: String,
    /// The lines that were lost.
    pub(crate) lost: u32,
}

/// What a parser returns, of either kind.
pub(crate) trait Outcome {
    type Value;
    fn value(self) -> Option<(Self::Value, u32)>;
}

impl<T> Outcome for Parsed<T> {
    type Value = T;
    fn value(self) -> Option<(T, u32)> {
        Some((self.value, self.lost.lines))
    }
}

impl<T> Outcome for Result<T, ParseError> {
    type Value = T;
    fn value(self) -> Option<(T, u32)> {
        self.ok().map(|value| (value, 0))
    }
}

fn read<O, T, R>(bytes: &[u8], parse: impl Fn(&[u8]) -> O, render: impl Fn(&T) -> R) -> Option<Seen>
where
    O: Outcome<Value = T>,
    T: Debug + PartialEq + Serialize + DeserializeOwned,
    R: Into<Vec<u8>>,
{
    let (value, lost) = parse(bytes).value()?;
    let printed = render(&value).into();
    let seen = Seen { value: format!("{value:?}"), lost };
    let printed_text = String::from_utf8_lossy(&printed);
    assert_eq!(parse(&printed).value().as_ref(), Some(&(value, 0)), "printed as {printed_text:?}");
    let (value, _) = parse(&printed).value()?;
    let by_json = serde_json::to_string(&value).and_then(|json| serde_json::from_str(&json));
    assert_eq!(by_json.ok(), Some(value), "by way of JSON");
    Some(seen)
}

macro_rules! formats {
    ($($family:ident $name:literal $shape:expr, $parse:expr, $render:expr;)*) => {
        &[$(Format {
            name: $name,
            family: Family::$family,
            shape: $shape,
            sample: include_bytes!(concat!("../samples/", $name)),
            read: |bytes| read(bytes, $parse, $render),
        }),*]
    };
}

use Shape::{DeviceKeys, Keyed, Lines, Text};

/// Every format of the crate.
pub(crate) static FORMATS: &[Format] = formats! {
    Devices "diskstats" Lines, diskstats::parse, |v| diskstats::render(v);
    Devices "block_stat" Lines, diskstats::parse_stat, diskstats::render_stat;
    Devices "inflight" Lines, inflight::parse, inflight::render;
    Devices "scheduler" Lines, scheduler::parse, scheduler::render;
    Devices "wbt" Keyed("3: inflight 7\n"), wbt::parse, wbt::render;
    Devices "wbt_lat_usec" Lines, single::parse_number, single::render;
    Devices "numa_node" Lines, single::parse_signed, single::render;
    Devices "write_cache" Text, |b| single::parse_word(b).map(String::from), single::render;
    Cgroup "io_stat" DeviceKeys, io_stat::parse, |v| io_stat::render(v);
    Cgroup "io_max" DeviceKeys, io_max::parse, |v| io_max::render(v);
    Cgroup "io_weight" Lines, io_weight::parse, io_weight::render;
    Cgroup "io_latency" DeviceKeys, io_latency::parse, |v| io_latency::render(v);
    Cgroup "io_cost_qos" DeviceKeys, io_cost_qos::parse, |v| io_cost_qos::render(v);
    Cgroup "io_cost_model" DeviceKeys, io_cost_model::parse, |v| io_cost_model::render(v);
    Cgroup "memory_stat" Keyed("new_pages 7\n"), memory_stat::parse, memory_stat::render;
    Cgroup "memory_stat_v1" Keyed("new_pages 7\n"), memory_stat::parse, memory_stat::render;
    Cgroup "memory_events" Keyed("new 7\n"), memory_events::parse, memory_events::render;
    Cgroup "memory_max" Lines, single::parse_limit, single::render;
    Cgroup "pressure" Keyed("most avg10=0.00 total=7\n"), pressure::parse, pressure::render;
    Cgroup "cgroup_events" Keyed("new 7\n"), cgroup_events::parse, cgroup_events::render;
    Cgroup "cgroup_stat" Keyed("new 7\n"), cgroup_stat::parse, cgroup_stat::render;
    Cgroup "cgroup_type" Lines, cgroup_type::parse, cgroup_type::render;
    Cgroup "controllers" Lines, controllers::parse, controllers::render;
    Cgroup "blkio_counts" Lines, blkio::parse_counts, |v| blkio::render_counts(v);
    Cgroup "blkio_limits" Lines, blkio::parse_limits, |v| blkio::render_limits(v);
    Proc "vmstat" Keyed("new_pages 7\n"), vmstat::parse, vmstat::render;
    Proc "meminfo" Keyed("New:            7 kB\n"), meminfo::parse, meminfo::render;
    Proc "cpu_times" Keyed("new 7 7 7\n"), cpu_times::parse, cpu_times::render;
    Proc "uptime" Lines, uptime::parse, uptime::render;
    Proc "pid_stat" Lines, pid_stat::parse, pid_stat::render;
    Proc "pid_status" Keyed("New:\t7\n"), pid_status::parse, pid_status::render;
    Proc "pid_cgroup" Lines, pid_cgroup::parse, pid_cgroup::render;
    Proc "pid_fdinfo" Keyed("new:\t7\n"), pid_fdinfo::parse, pid_fdinfo::render;
    Proc "pid_io" Keyed("new: 7\n"), pid_io::parse, pid_io::render;
    Proc "wchan" Text, |b| wchan::parse(b).map(|f| f.map(String::from)), |f| wchan::render(f.as_deref());
    Fs "mountinfo" Lines, mountinfo::parse, |v| mountinfo::render(v);
    Fs "swaps" Lines, swaps::parse, |v| swaps::render(v);
    Fs "jbd2_info" Keyed("  7 news per transaction\n"), jbd2_info::parse, jbd2_info::render;
};
