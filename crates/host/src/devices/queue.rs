//! What a whole disk is and how its queue is set.

use quell_engine::snapshot::{DeviceMapper, MultiDisk, Queue, Wbt};
use quell_kfile::{scheduler, single, wbt};
use quell_units::{Bytes, DevName, Gap, Known, Micros, Sectors};
use rustix::io::Errno;

use super::places::read_model;
use crate::gaps::{Gaps, Of};
use crate::reader::{Reader, join};
use crate::values::{many, number, one, word};

/// Reads the settings of the queue of the disk in `dir`.
pub(crate) fn read_queue(reader: &mut Reader, dir: &[u8], name: DevName, gaps: &mut Gaps) -> Queue {
    let path = |file: &str| join(&[dir, file.as_bytes()]);
    let shown = dir.strip_prefix(b"sys/devices/").unwrap_or(dir);
    let wbt_target_usec = read_wbt_target(reader, &path("queue/wbt_lat_usec"));
    let kib = |kib: u64| Bytes(kib.saturating_mul(1024));
    let queue = Queue {
        sysfs_path: String::from_utf8_lossy(shown).into_owned(),
        model: read_model(reader, dir),
        size: number(reader, &path("size")).map(|sectors| Sectors(sectors).bytes()),
        rotational: number(reader, &path("queue/rotational")).map(|flag| flag != 0),
        scheduler: one(reader.read(&path("queue/scheduler")), scheduler::parse),
        nr_requests: number(reader, &path("queue/nr_requests")),
        read_ahead_bytes: number(reader, &path("queue/read_ahead_kb")).map(kib),
        request_bytes_max: number(reader, &path("queue/max_sectors_kb")).map(kib),
        write_cache: word(reader, &path("queue/write_cache")),
        wbt: read_wbt(reader, dir, gaps),
        wbt_target_usec,
        device_mapper: read_device_mapper(reader, dir),
        multi_disk: read_multi_disk(reader, dir),
        detail: None,
    };
    note(&queue, name, gaps);
    queue
}

/// Counts what a queue lacks. A file that does not exist is not a gap here: an old kernel, a virtual disk has fewer.
fn note(queue: &Queue, name: DevName, gaps: &mut Gaps) {
    let settings = [
        ("queue/rotational", queue.rotational.err()),
        ("queue/scheduler", queue.scheduler.as_ref().err().copied()),
        ("queue/nr_requests", queue.nr_requests.err()),
        ("queue/write_cache", queue.write_cache.as_ref().err().copied()),
        ("queue/wbt_lat_usec", queue.wbt_target_usec.err()),
        // Where nothing is throttled its state is not asked for.
        ("debug/block/rqos/wbt", queue.wbt.err().filter(|_| queue.wbt_target_usec.is_ok_and(|target| target > 0))),
    ];
    for (file, reason) in settings {
        match reason {
            None | Some(Gap::NotInKernel | Gap::Disabled) => {}
            Some(reason) => gaps.missing(file, Of::Device, reason, || name.as_str()),
        }
    }
}

/// The kernel answers EINVAL where the queue has no write-back throttling, as under bfq or without a request queue.
fn read_wbt_target(reader: &mut Reader, path: &[u8]) -> Known<i64> {
    match one(reader.read(path), single::parse_signed) {
        Err(Gap::Errno(errno)) if errno == Errno::INVAL.raw_os_error() => Err(Gap::Disabled),
        target => target,
    }
}

fn read_wbt(reader: &mut Reader, dir: &[u8], gaps: &mut Gaps) -> Known<Wbt> {
    // debugfs names a disk as its directory is named: a `/` in the name is a `!` there.
    let disk = dir.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let path = |file: &str| join(&[b"sys/kernel/debug/block", disk, b"rqos/wbt", file.as_bytes()]);
    let (in_flight, lost) = many(reader.read(&path("inflight")), wbt::parse);
    gaps.lost("debug/block/rqos/wbt/inflight", Of::Device, &lost, || disk);
    let in_flight = in_flight?;
    let target_nsec = number(reader, &path("min_lat_nsec"))?;
    Ok(Wbt {
        // A kernel without the queue for swap or discards has none of them in flight.
        in_flight: [
            in_flight.writes.ok_or(Gap::Malformed)?,
            in_flight.swap.unwrap_or(0),
            in_flight.discards.unwrap_or(0),
        ],
        normal_depth: number(reader, &path("wb_normal"))?,
        background_depth: number(reader, &path("wb_background"))?,
        target_usec: Micros(target_nsec / 1000),
    })
}

fn read_device_mapper(reader: &mut Reader, dir: &[u8]) -> Option<DeviceMapper> {
    let name = word(reader, &join(&[dir, b"dm/name"]));
    let suspended = number(reader, &join(&[dir, b"dm/suspended"])).map(|flag| flag != 0);
    if matches!((&name, &suspended), (Err(Gap::NotInKernel), Err(Gap::NotInKernel))) {
        return None;
    }
    Some(DeviceMapper { name, uuid: word(reader, &join(&[dir, b"dm/uuid"])), suspended })
}

fn read_multi_disk(reader: &mut Reader, dir: &[u8]) -> Option<MultiDisk> {
    let level = word(reader, &join(&[dir, b"md/level"]));
    if matches!(level, Err(Gap::NotInKernel)) {
        return None;
    }
    let sync_action = word(reader, &join(&[dir, b"md/sync_action"]));
    let sync_speed_max = word(reader, &join(&[dir, b"md/sync_speed_max"]));
    Some(MultiDisk { level, sync_action, sync_speed_max })
}
