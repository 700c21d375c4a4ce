//! The JSON documents: what each command says, with the unit in every field's name.
//!
//! A document is plain data made from the engine's values, and the tables for people are made from the same document,
//! so both tell one story. A value that is not known is `null`, and `gaps` says why.

pub mod capture;
pub mod cgroup;
pub mod demo;
pub mod device;
pub mod devices;
pub mod doctor;
pub mod explain;
pub mod latency;
pub mod stat;

use quell_engine::rates::Rates;
use quell_engine::snapshot::{self, CgroupMode, Snapshot, Window};
use quell_units::Micros;
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

/// The host that was looked at.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Which cgroup hierarchy carries the I/O controller: `v2`, `v1`, `hybrid-io-v1`, `hybrid-io-v2` or `none`.
    pub cgroup: &'static str,
    /// Whether a hypervisor is below.
    pub virtualised: Option<bool>,
    /// Online processors.
    pub cpus: Option<u32>,
}

/// Something that is not known, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gap {
    /// What is missing.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What quell itself spent.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Cost {
    /// CPU time of the whole process, from its start to the verdict.
    pub cpu_usec: u64,
    /// Files read for the two snapshots.
    pub files: u64,
}

impl Host {
    /// The host of a snapshot.
    #[must_use]
    pub fn of(host: &snapshot::Host) -> Self {
        let text = |text: &quell_units::Known<String>| {
            text.as_ref().ok().map(|text| quell_units::escape(text.as_bytes()).into_owned())
        };
        Self {
            name: text(&host.name),
            kernel: text(&host.kernel),
            cgroup: match host.cgroups {
                CgroupMode::V2 => "v2",
                CgroupMode::V1 => "v1",
                CgroupMode::HybridIoV1 => "hybrid-io-v1",
                CgroupMode::HybridIoV2 => "hybrid-io-v2",
                CgroupMode::Absent => "none",
            },
            virtualised: host.virtualised.ok(),
            cpus: host.cpus.ok(),
        }
    }
}

impl Cost {
    /// What a window's snapshots and the process so far cost.
    #[must_use]
    pub fn of(window: &Window, cpu: Micros) -> Self {
        Self { cpu_usec: cpu.get(), files: window.t0.cost.files.saturating_add(window.t1.cost.files) }
    }
}

/// What is not known of a window: what could not be read, and what could not be compared.
#[must_use]
pub fn gaps(window: &Window, rates: &Rates) -> Vec<Gap> {
    let gap = |what: String, reason: quell_units::Gap| Gap { what, reason: reason.to_string() };
    let unread = |snapshot: &'_ Snapshot| -> Vec<Gap> {
        snapshot.gaps.iter().map(|missing| gap(missing.what.clone(), missing.reason)).collect()
    };
    let mut gaps = unread(&window.t1);
    for earlier in unread(&window.t0) {
        if !gaps.contains(&earlier) {
            gaps.push(earlier);
        }
    }
    let cut = window.looks.iter().filter(|look| look.cut).count();
    if cut > 0 {
        let reason = format!("{cut} of {} looks met more threads than one may read", window.looks.len());
        gaps.push(Gap { what: "threads that wait".into(), reason });
    }
    match rates.seconds {
        // Not the kernel's gap but the asker's: there is nothing to compare with.
        Err(_) if window.pasted.is_none() => {
            gaps.push(Gap { what: ALL_RATES.into(), reason: "one moment alone".into() });
        }
        // Of a paste not-enough-data says so, where it matters.
        Err(_) => {}
        Ok(_) => gaps.extend(not_comparable(rates)),
    }
    gaps
}

/// What the gap is called where there is one moment alone.
const ALL_RATES: &str = "all rates";

/// What was read twice and cannot be compared: the counters went back.
fn not_comparable(rates: &Rates) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = rates
        .devices
        .iter()
        .filter_map(|device| {
            let reason = device.rates.as_ref().err()?;
            Some(Gap { what: device::gap_of(&device.name.to_string()), reason: reason.to_string() })
        })
        .collect();
    // For any other reason it was not read in the first place, and that is told already.
    let reset = rates.cgroups.iter().filter(|cgroup| cgroup.io == Err(quell_units::Gap::CounterReset)).count();
    if reset > 0 {
        let reason = quell_units::Gap::CounterReset.to_string();
        gaps.push(Gap { what: format!("I/O rates of cgroups: {reset}"), reason });
    }
    gaps
}

/// The JSON schema of every document, by the name of its file without `.json`.
#[doc(hidden)]
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("quell.capture.1", schema_for!(capture::Document)),
        ("quell.cgroup-show.1", schema_for!(cgroup::show::Document)),
        ("quell.cgroup-tree.1", schema_for!(cgroup::tree::Document)),
        ("quell.demo.1", schema_for!(demo::Document)),
        ("quell.devices.1", schema_for!(devices::Document)),
        ("quell.doctor.1", schema_for!(doctor::Document)),
        ("quell.explain.1", schema_for!(explain::Document)),
        ("quell.latency.1", schema_for!(latency::Document)),
        ("quell.stat.1", schema_for!(stat::Document)),
    ]
}
