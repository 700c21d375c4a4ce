//! The table of rules: every diagnosis, in the order in which equals are ranked, and what each one explains away.
//!
//! A new diagnosis is a file beside this one, with its `mod` in `mod.rs`, and a line here.

use super::finding::{Explain, Finding};
use super::scene::Scene;
use super::{
    asymmetric_members, burst_credit_exhausted, cgroup_v1, cgroup_version_mismatch, counter_broken, device_hung,
    device_saturated, dirty_throttled, fragmented_sequential, fsync_bound, healthy, host_memory_thrash,
    io_controller_off, io_not_delegated, io_uring_false_pressure, iocost_model_mismatch, iocost_throttled,
    iops_limit_on_buffered, journal_bound, journal_shared_stall, latency_target_unavailable, latency_target_working,
    limit_device_missing, limit_inert, limit_on_partition, limit_value_zero, limit_vs_backlog, limit_wrong_layer,
    media_without_plp, memcg_thrash, noisy_neighbour, not_disk_bound, not_enough_data, nvme_multipath_hidden,
    provider_cap, psi_disabled, raid_rebuild, readahead_amplification, rotational_misreported, scheduler_mismatch,
    serial_issuer, slow_device, slow_flush, swap_io, system_hog, throttled_by_io_max, throttling_not_in_kernel,
    tool_bug_units, util_untrustworthy, wbt_throttled, weight_engine_conflict, weight_scale_mismatch,
    weight_without_engine, writeback_storm, writeback_unattributed,
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
    /// The other one blames this one's victim, or is about it and blames nobody.
    Blamed,
}

use Over::{Blamed, SameDisk, SameVictim, VictimOrCulprit};

/// One line of the table: a rule, and what its findings explain. Such a finding becomes evidence of the rule's own.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The rule.
    pub rule: Rule,
    /// The ids that it explains, and where.
    pub explains: &'static [(&'static str, Over)],
}

const fn line(rule: Rule, explains: &'static [(&'static str, Over)]) -> Line {
    Line { rule, explains }
}

/// Every rule. Of findings alike in severity and stall the earlier rule's comes first.
pub static RULES: &[Line] = &[
    line(
        device_hung::RULE,
        &[
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
            ("slow-flush", SameDisk),
            ("asymmetric-members", SameDisk),
            ("journal-bound", SameDisk),
        ],
    ),
    line(
        journal_shared_stall::RULE,
        &[
            ("throttled-by-io-max", VictimOrCulprit),
            ("limit-vs-backlog", VictimOrCulprit),
            ("dirty-throttled", VictimOrCulprit),
            ("fsync-bound", SameVictim),
            ("journal-bound", SameDisk),
            ("slow-flush", SameDisk),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
        ],
    ),
    line(
        memcg_thrash::RULE,
        &[
            ("noisy-neighbour", Blamed),
            ("system-hog", Blamed),
            ("device-saturated", Blamed),
            ("serial-issuer", SameVictim),
            ("host-memory-thrash", SameDisk),
        ],
    ),
    line(
        swap_io::RULE,
        &[
            ("host-memory-thrash", SameDisk),
            ("device-saturated", SameDisk),
            ("serial-issuer", SameDisk),
            ("slow-device", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("memcg-thrash", SameVictim),
        ],
    ),
    line(
        host_memory_thrash::RULE,
        &[
            ("device-saturated", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
        ],
    ),
    line(
        raid_rebuild::RULE,
        &[
            ("asymmetric-members", SameDisk),
            ("slow-device", SameDisk),
            ("device-saturated", SameDisk),
            ("system-hog", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("serial-issuer", SameDisk),
        ],
    ),
    line(
        asymmetric_members::RULE,
        &[("slow-device", SameDisk), ("device-saturated", SameDisk), ("serial-issuer", SameDisk)],
    ),
    line(
        latency_target_working::RULE,
        &[
            ("noisy-neighbour", SameVictim),
            ("system-hog", SameVictim),
            ("device-saturated", SameDisk),
            ("wbt-throttled", SameDisk),
            ("weight-without-engine", SameDisk),
        ],
    ),
    line(
        iocost_model_mismatch::RULE,
        &[
            ("iocost-throttled", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("device-saturated", SameDisk),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
            ("rotational-misreported", SameDisk),
        ],
    ),
    line(
        iocost_throttled::RULE,
        &[
            ("device-saturated", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
        ],
    ),
    line(
        wbt_throttled::RULE,
        &[
            ("slow-device", SameDisk),
            ("serial-issuer", SameDisk),
            ("device-saturated", SameDisk),
            ("fsync-bound", SameVictim),
            ("dirty-throttled", SameVictim),
        ],
    ),
    line(
        writeback_storm::RULE,
        &[
            ("device-saturated", SameDisk),
            ("noisy-neighbour", SameDisk),
            ("system-hog", SameDisk),
            ("wbt-throttled", SameDisk),
            ("dirty-throttled", SameDisk),
            ("fsync-bound", SameVictim),
        ],
    ),
    line(
        weight_engine_conflict::RULE,
        &[
            ("iocost-throttled", SameDisk),
            ("iocost-model-mismatch", SameDisk),
            ("weight-scale-mismatch", SameDisk),
            ("device-saturated", SameDisk),
            ("noisy-neighbour", SameDisk),
        ],
    ),
    line(weight_scale_mismatch::RULE, &[("device-saturated", SameDisk)]),
    line(weight_without_engine::RULE, &[("device-saturated", SameDisk)]),
    line(
        burst_credit_exhausted::RULE,
        &[("provider-cap", SameDisk), ("device-saturated", SameDisk), ("slow-device", SameDisk)],
    ),
    line(provider_cap::RULE, &[("device-saturated", SameDisk), ("slow-device", SameDisk)]),
    line(system_hog::RULE, &[("device-saturated", SameDisk)]),
    line(noisy_neighbour::RULE, &[("device-saturated", SameDisk)]),
    line(
        iops_limit_on_buffered::RULE,
        &[
            ("throttled-by-io-max", SameVictim),
            ("dirty-throttled", SameVictim),
            ("fsync-bound", SameVictim),
            ("serial-issuer", SameVictim),
            ("slow-device", SameVictim),
            ("device-saturated", SameVictim),
        ],
    ),
    // A limit that is not where the I/O is explains why the disk is left to it.
    line(limit_wrong_layer::RULE, &[("limit-vs-backlog", SameVictim)]),
    line(limit_inert::RULE, &[("limit-vs-backlog", SameVictim)]),
    line(
        throttled_by_io_max::RULE,
        &[
            ("limit-vs-backlog", SameVictim),
            ("dirty-throttled", SameVictim),
            ("fsync-bound", SameVictim),
            ("serial-issuer", SameVictim),
            ("slow-device", SameVictim),
            ("device-saturated", SameVictim),
        ],
    ),
    line(
        dirty_throttled::RULE,
        &[("device-saturated", SameDisk), ("serial-issuer", SameDisk), ("slow-device", SameDisk)],
    ),
    line(
        readahead_amplification::RULE,
        &[("serial-issuer", SameDisk), ("slow-device", SameDisk), ("device-saturated", SameDisk)],
    ),
    line(fragmented_sequential::RULE, &[("serial-issuer", SameDisk)]),
    line(rotational_misreported::RULE, &[("scheduler-mismatch", SameDisk)]),
    line(slow_flush::RULE, &[("fsync-bound", SameDisk), ("serial-issuer", SameDisk), ("slow-device", SameDisk)]),
    line(journal_bound::RULE, &[("fsync-bound", SameDisk), ("serial-issuer", SameDisk)]),
    line(scheduler_mismatch::RULE, &[("device-saturated", SameDisk), ("slow-device", SameDisk)]),
    line(fsync_bound::RULE, &[("serial-issuer", SameDisk), ("slow-device", SameDisk)]),
    line(device_saturated::RULE, &[]),
    // A layer that hands its requests down one at a time: the issuer below is that layer.
    line(slow_device::RULE, &[("serial-issuer", SameDisk)]),
    line(serial_issuer::RULE, &[]),
    line(nvme_multipath_hidden::RULE, &[("not-disk-bound", SameDisk)]),
    line(counter_broken::RULE, &[("util-untrustworthy", SameDisk)]),
    line(limit_on_partition::RULE, &[]),
    line(limit_device_missing::RULE, &[]),
    line(limit_value_zero::RULE, &[]),
    line(cgroup_version_mismatch::RULE, &[]),
    line(throttling_not_in_kernel::RULE, &[]),
    line(latency_target_unavailable::RULE, &[]),
    line(io_controller_off::RULE, &[]),
    line(tool_bug_units::RULE, &[]),
    line(not_enough_data::RULE, &[]),
    line(healthy::RULE, &[]),
    line(media_without_plp::RULE, &[]),
    line(not_disk_bound::RULE, &[]),
    line(psi_disabled::RULE, &[]),
    line(writeback_unattributed::RULE, &[]),
    line(io_not_delegated::RULE, &[]),
    line(util_untrustworthy::RULE, &[]),
    line(limit_vs_backlog::RULE, &[]),
    line(cgroup_v1::RULE, &[]),
    line(io_uring_false_pressure::RULE, &[]),
];

/// The line of the rule of this name.
#[must_use]
pub fn rule(id: &str) -> Option<&'static Line> {
    RULES.iter().find(|line| line.rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_that_is_explained_is_a_rules_and_no_rule_explains_itself() {
        for line in RULES {
            for (id, _) in line.explains {
                assert!(rule(id).is_some() && *id != line.rule.id, "{} explains {id}", line.rule.id);
            }
        }
    }

    #[test]
    fn no_rule_stands_twice() {
        let mut ids: Vec<&str> = RULES.iter().map(|line| line.rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
    }

    #[test]
    fn no_two_rules_explain_each_other() {
        let explains = |winner: &Line, loser: &Line| winner.explains.iter().any(|(id, _)| *id == loser.rule.id);
        for a in RULES {
            for b in RULES {
                assert!(!(explains(a, b) && explains(b, a)), "{} and {}", a.rule.id, b.rule.id);
            }
        }
    }
}
