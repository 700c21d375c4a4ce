//! `quell.stat/1`: devices, and on each the workloads by what they did there.

use quell_engine::findings::Scene;
use schemars::JsonSchema;
use serde::Serialize;

use super::device::Device;
use super::{Gap, Host};

/// One report of `quell stat`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "quell stat")]
pub struct Document {
    /// `quell.stat/1`.
    #[schemars(extend("const" = "quell.stat/1"))]
    pub schema: &'static str,
    /// The host.
    pub host: Host,
    /// When it was, in microseconds since 1970; null for a capture.
    pub unix_usec: Option<u64>,
    /// The time over which the rates were measured; null where there are none.
    pub observed_seconds: Option<f64>,
    /// How `--device` was resolved, where it was not a disk's own name; null without it.
    pub device: Option<String>,
    /// Every whole device, partitions counted with their disk.
    pub devices: Vec<Device>,
    /// What is not known, and why.
    pub gaps: Vec<Gap>,
}

impl Document {
    /// The report on a scene.
    #[must_use]
    pub fn of(scene: &Scene) -> Self {
        Self {
            schema: "quell.stat/1",
            host: Host::of(&scene.window.t1.host),
            unix_usec: scene.window.t1.clock.wall.map(|wall| wall.0),
            observed_seconds: scene.rates.seconds.ok(),
            device: None,
            devices: scene.disks.iter().map(|disk| Device::of(scene, disk)).collect(),
            gaps: super::gaps(scene.window, scene.rates),
        }
    }
}
