//! The bytes of the maps, as `bpf/stages.bpf.c` lays them out, into the engine's types.
//!
//! By hand and not by casting structures: that would be `unsafe`, and here a field is one line.

use quell_engine::snapshot::{BUCKETS, Operation, StageCounters, TraceCounts, TraceGroup, TraceKey, TraceLosses};
use quell_units::{CgroupId, DevNum, Nanos};

/// The bytes of `struct group_key`.
pub(crate) const KEY_BYTES: usize = 16;
/// The bytes of `struct stage_sum`.
const STAGE_BYTES: usize = 32;
/// The bytes of `struct group`.
pub(crate) const GROUP_BYTES: usize = 32 + 7 * STAGE_BYTES;
/// The bytes of `struct losses`, which lies alone in its section.
pub(crate) const LOSSES_BYTES: usize = 32;

/// Reads one number after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        let head = *head;
        self.0 = rest;
        head
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

/// A group, whose histograms are looked up by their place. `None` where the key is of an operation that is not known.
pub(crate) fn group(
    key: &[u8; KEY_BYTES],
    value: &[u8; GROUP_BYTES],
    histogram: &mut dyn FnMut(u32) -> Vec<u32>,
) -> Option<TraceGroup> {
    let mut key = Fields(key);
    let (dev, operation, cgroup) = (key.u32(), key.u32(), key.u64());
    let mut value = Fields(value);
    let counts = TraceCounts { requests: value.u64(), bios: value.u64(), errors: value.u64(), requeues: value.u64() };
    let mut stage = || {
        let (sum, max, bios_loose) = (value.u64(), value.u64(), value.u64());
        let (place, _) = (value.u32(), value.u32());
        let buckets = place.checked_sub(1).map_or_else(Vec::new, &mut *histogram);
        StageCounters { sum_nsec: Nanos(sum), max_nsec: Nanos(max), bios_loose, buckets }
    };
    let stages = [stage(), stage(), stage(), stage(), stage(), stage(), stage()];
    let key = TraceKey {
        // The kernel's own packing of a device's number: 12 bits and 20.
        dev: DevNum { major: dev >> 20, minor: dev & 0xf_ffff },
        cgroup: (cgroup != 0).then_some(CgroupId(cgroup)),
        operation: *Operation::ALL.get(usize::try_from(operation).ok()?)?,
    };
    Some(TraceGroup { key, counts, stages })
}

/// The losses.
pub(crate) fn losses(bytes: &[u8; LOSSES_BYTES]) -> TraceLosses {
    let mut fields = Fields(bytes);
    let (bios, requests, nsec, unmatched) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
    TraceLosses { bios, requests, requests_nsec: Nanos(nsec), unmatched }
}

/// The bytes of one histogram.
pub(crate) type Histogram = [u32; BUCKETS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_field_by_field() {
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(&(253_u32 << 20 | 16).to_ne_bytes());
        key[4..8].copy_from_slice(&2_u32.to_ne_bytes());
        key[8..].copy_from_slice(&77_u64.to_ne_bytes());
        let mut value = [0; GROUP_BYTES];
        value[8..16].copy_from_slice(&9_u64.to_ne_bytes());
        let device = 32 + 4 * STAGE_BYTES;
        value[device..device + 8].copy_from_slice(&5000_u64.to_ne_bytes());
        value[device + 24..device + 28].copy_from_slice(&3_u32.to_ne_bytes());
        let mut asked = Vec::new();
        let group = group(&key, &value, &mut |at| {
            asked.push(at);
            vec![1, 2]
        });
        let group = group.unwrap();
        assert_eq!((group.key.dev, group.key.cgroup), (DevNum { major: 253, minor: 16 }, Some(CgroupId(77))));
        assert_eq!((group.key.operation, group.counts.bios), (Operation::SyncWrite, 9));
        assert_eq!((group.stages[4].sum_nsec, &group.stages[4].buckets[..]), (Nanos(5000), &[1, 2][..]));
        assert_eq!(asked, [2], "only what was used, and from 0");
    }

    #[test]
    fn an_operation_that_is_not_known_is_left_out_and_the_disk_itself_has_no_cgroup() {
        let mut key = [0; KEY_BYTES];
        assert_eq!(group(&key, &[0; GROUP_BYTES], &mut |_| Vec::new()).unwrap().key.cgroup, None);
        key[4] = 9;
        assert_eq!(group(&key, &[0; GROUP_BYTES], &mut |_| Vec::new()), None);
    }
}
