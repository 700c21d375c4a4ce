//! The table of rules: every diagnosis, in the order in which equals are ranked, and what each one explains away.
//!
//! A new diagnosis is a file beside this one and a line here.

use super::finding::{Explain, Finding};
use super::scene::Scene;
use super::{
    cgroup_v1, device_hung, device_saturated, dirty_throttled, fsync_bound, healthy, io_controller_off,
    io_uring_false_pressure, iocost_model_mismatch, iocost_throttled, journal_shared_stall, latency_target_working,
    memcg_thrash, noisy_neighbour, not_enough_data, scheduler_mismatch, serial_issuer, slow_device, swap_io,
    system_hog, throttled_by_io_max, util_untrustworthy, wbt_throttled, weight_without_engine, writeback_storm,
};

/// One diagnosis.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, which users and scripts know it by.
    pub id: &'static str,
    /// What it means.
    pub explain: Explain,
    /// The findings it makes of a scene.
    pub find: fn(&Scene) -> Vec<Finding>,
    /// What its findings explain: such a finding becomes evidence of this one.
    pub explains: &'static [(&'static str, Over)],
}

/// Over what a finding explains another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both are about the same disk, or a disk and one above it.
    SameDisk,
    /// Both are about the same victim.
    SameVictim,
    /// The other one's victim is this one's victim or culprit.
    VictimOrCulprit,
    /// Wherever both are found.
    Host,
}

use Over::{Host, SameDisk, SameVictim, VictimOrCulprit};

/// Every rule. Of findings alike in severity and stall the earlier rule's comes first.
pub static RULES: &[Rule] = &[
    Rule {
        explains: &[
            ("slow-device", SameDisk),
            ("device-saturated", SameDisk),
            ("serial-issuer", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("util-untrustworthy", SameDisk),
            ("dirty-throttled", SameDisk),
            ("fsync-bound", SameDisk),
            ("journal-shared-stall", SameDisk),
            ("throttled-by-io-max", SameDisk),
        ],
        ..device_hung::RULE
    },
    Rule {
        explains: &[
            ("throttled-by-io-max", VictimOrCulprit),
            ("dirty-throttled", VictimOrCulprit),
            ("fsync-bound", SameVictim),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
        ],
        ..journal_shared_stall::RULE
    },
    Rule {
        explains: &[("noisy-neighbour", SameDisk), ("device-saturated", SameDisk), ("serial-issuer", SameDisk)],
        ..memcg_thrash::RULE
    },
    Rule {
        explains: &[
            ("device-saturated", SameDisk),
            ("serial-issuer", SameDisk),
            ("slow-device", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("memcg-thrash", SameVictim),
        ],
        ..swap_io::RULE
    },
    Rule {
        explains: &[
            ("noisy-neighbour", SameDisk),
            ("device-saturated", SameDisk),
            ("wbt-throttled", SameDisk),
            ("weight-without-engine", SameDisk),
        ],
        ..latency_target_working::RULE
    },
    Rule {
        explains: &[
            ("iocost-throttled", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("device-saturated", SameDisk),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
        ],
        ..iocost_model_mismatch::RULE
    },
    Rule {
        explains: &[("device-saturated", SameDisk), ("noisy-neighbour", SameDisk), ("slow-device", SameDisk)],
        ..iocost_throttled::RULE
    },
    Rule {
        explains: &[
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
            ("device-saturated", SameDisk),
            ("fsync-bound", SameVictim),
            ("dirty-throttled", SameVictim),
        ],
        ..wbt_throttled::RULE
    },
    Rule {
        explains: &[
            ("device-saturated", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("wbt-throttled", SameDisk),
            ("dirty-throttled", SameDisk),
            ("fsync-bound", SameVictim),
        ],
        ..writeback_storm::RULE
    },
    Rule { explains: &[("device-saturated", SameDisk)], ..weight_without_engine::RULE },
    Rule { explains: &[("noisy-neighbour", SameDisk), ("device-saturated", SameDisk)], ..system_hog::RULE },
    Rule { explains: &[("device-saturated", SameDisk)], ..noisy_neighbour::RULE },
    Rule {
        explains: &[
            ("dirty-throttled", SameVictim),
            ("fsync-bound", SameVictim),
            ("serial-issuer", SameVictim),
            ("slow-device", SameVictim),
        ],
        ..throttled_by_io_max::RULE
    },
    Rule {
        explains: &[("device-saturated", SameDisk), ("serial-issuer", SameDisk), ("slow-device", SameDisk)],
        ..dirty_throttled::RULE
    },
    Rule { explains: &[("device-saturated", SameDisk), ("slow-device", SameDisk)], ..scheduler_mismatch::RULE },
    Rule { explains: &[("serial-issuer", SameDisk), ("slow-device", SameDisk)], ..fsync_bound::RULE },
    Rule { explains: &[], ..device_saturated::RULE },
    Rule { explains: &[], ..slow_device::RULE },
    Rule { explains: &[], ..serial_issuer::RULE },
    Rule { explains: &[], ..io_controller_off::RULE },
    Rule { explains: &[("serial-issuer", SameDisk), ("device-saturated", SameDisk)], ..util_untrustworthy::RULE },
    Rule { explains: &[], ..not_enough_data::RULE },
    Rule { explains: &[], ..healthy::RULE },
    Rule { explains: &[], ..cgroup_v1::RULE },
    Rule { explains: &[("not-disk-bound", Host)], ..io_uring_false_pressure::RULE },
];

/// The rule of this name.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
