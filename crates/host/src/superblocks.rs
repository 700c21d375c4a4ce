//! What ext4 and XFS say on the disk itself.
//!
//! Reading a device can wait for the very disk whose trouble is looked into. So a mounted one is read as far as the
//! kernel has it in memory and no further (`RWF_NOWAIT`); only a device that nothing uses, with nothing in flight, may
//! cost an I/O, and not while a capture is made. What is kept for a capture is the superblock's known fields, rendered
//! anew: nothing else of a disk's content ever leaves it.

use quell_engine::snapshot::{Device, OnDisk};
use quell_kfile::superblock::{self, READ_BYTES};
use quell_units::{DevNum, Gap, Known};
use rustix::io::Errno;

use crate::error::gap;
use crate::gaps::{Gaps, Of};
use crate::reader::Reader;

/// Reads the superblock of every device that may hold a file system: what is no layer's part and no disk of partitions.
pub(crate) fn read_superblocks(reader: &mut Reader, devices: &[Device], gaps: &mut Gaps) -> Vec<OnDisk> {
    let covered = |dev: DevNum| {
        devices.iter().any(|other| other.partition_of == Some(dev) || (!is_loop(other) && other.slaves.contains(&dev)))
    };
    let mut out = Vec::new();
    for device in devices.iter().filter(|device| !covered(device.dev) && has_medium(device)) {
        match read_superblock(reader, device) {
            Ok(superblock) => out.push(OnDisk { dev: device.dev, superblock: Ok(superblock) }),
            // Other file systems, swap and raw disks are no gap, and a tree without the node has nothing to say.
            Err(Gap::Malformed | Gap::NotInKernel) => {}
            Err(reason) => {
                gaps.missing("superblock", Of::Device, reason, || device.name.as_str());
                out.push(OnDisk { dev: device.dev, superblock: Err(reason) });
            }
        }
    }
    out
}

fn read_superblock(reader: &mut Reader, device: &Device) -> Known<superblock::Superblock> {
    // The kernel writes the `/` of a name as `!`.
    let node = format!("dev/{}", device.name.as_str().replace('!', "/"));
    let may_wait = device.counters.in_flight == 0 && reader.recording().is_none();
    let bytes = match reader.read_device(node.as_bytes(), READ_BYTES, false) {
        Err(Errno::AGAIN) if may_wait => reader.read_device(node.as_bytes(), READ_BYTES, true),
        bytes => bytes,
    };
    let seen = bytes.map(superblock::parse);
    match (&seen, reader.recording()) {
        (Ok(Ok(seen)), Some(recording)) => recording.file(node.as_bytes(), &superblock::render(seen)),
        (Err(errno), Some(recording)) => recording.failed(node.as_bytes(), *errno),
        _ => {}
    }
    seen.map_err(gap)?.map_err(|_| Gap::Malformed)
}

/// A loop lies on a file of the file system below it, which is a file system all the same.
fn is_loop(device: &Device) -> bool {
    device.name.as_str().starts_with("loop")
}

/// A drive without a medium and a loop without a file have no size; what is suspended would not answer.
fn has_medium(device: &Device) -> bool {
    let queue = device.queue.as_deref();
    let empty = queue.is_some_and(|queue| queue.size == Ok(quell_units::Bytes(0)));
    let suspended =
        queue.and_then(|queue| queue.device_mapper.as_ref()).is_some_and(|mapper| mapper.suspended == Ok(true));
    !empty && !suspended
}
