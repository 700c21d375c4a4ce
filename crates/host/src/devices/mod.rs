//! Block devices: counters from `diskstats`, everything else from `/sys`.
//!
//! `diskstats` says which devices there are, `/sys/dev/block/MAJ:MIN` where each lies; a name or a minor number is
//! never taken apart. What a device lies on is kept between samples and read again when the list of devices changes: a
//! sample of counters would otherwise read more files for the topology than for the numbers.

mod detail;
mod places;
mod queue;

pub(crate) use places::{Place, resolve};

use quell_engine::snapshot::{Device, DiskLook, Partition};
use quell_kfile::{diskstats, mountinfo};
use quell_units::{DevName, DevNum, Gap, Known, Sectors};

use crate::gaps::{Gaps, Of};
use crate::machine::Depth;
use crate::mounts;
use crate::reader::{Reader, join};
use crate::values::{many_of_host, number};
use places::read_place;

/// The block devices, as far as they are kept between samples.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    rows: Vec<diskstats::Row>,
    places: Vec<Place>,
}

impl Devices {
    /// Reads the counters of all devices. The first step of a sample, so that they belong to its time.
    pub(crate) fn read_counters(&mut self, reader: &mut Reader, gaps: &mut Gaps) {
        self.rows.clear();
        let rows = &mut self.rows;
        let read = many_of_host(reader.read(b"proc/diskstats"), "diskstats", gaps, |bytes| {
            let lost = diskstats::parse_into(bytes, rows);
            quell_kfile::Parsed { value: (), lost }
        });
        if read.is_ok() {
            self.rows.sort_unstable_by_key(|row| row.dev);
        }
    }

    /// Whether devices came or went since their places were read.
    pub(crate) fn changed(&self) -> bool {
        let known = self.places.iter().map(|place| (place.dev, place.name));
        !known.eq(self.rows.iter().map(|row| (row.dev, row.name)))
    }

    /// Reads where the devices lie and what is below each.
    pub(crate) fn read_places(&mut self, reader: &mut Reader, mounts: &[mountinfo::Row], gaps: &mut Gaps) {
        let mut places: Vec<Place> = self.rows.iter().map(|row| read_place(reader, row.dev, row.name)).collect();
        for place in places.iter().filter(|place| place.dir.is_none()) {
            gaps.missing("sys/dev/block", Of::Device, Gap::NotInKernel, || place.name.as_str());
        }
        let backing: Vec<Option<DevNum>> = places
            .iter()
            .map(|place| mounts::device_of_file(mounts, &places, place.backing_file.as_deref()?))
            .collect();
        for (place, below) in places.iter_mut().zip(backing) {
            place.slaves.extend(below);
        }
        self.places = places;
    }

    /// Where the devices lie.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The devices with their counters, and with the settings of their queues as far as `depth` asks for them.
    pub(crate) fn build(&self, reader: &mut Reader, depth: Depth, gaps: &mut Gaps) -> Vec<Device> {
        self.rows
            .iter()
            .map(|row| {
                let place = self.place(row.dev);
                let dir = place.filter(|place| place.partition_of.is_none()).and_then(|place| place.dir.as_deref());
                let dir = dir.filter(|_| depth >= Depth::Full);
                let mut queue = dir.map(|dir| Box::new(queue::read_queue(reader, dir, row.name, gaps)));
                if let (Some(queue), Some(place), Depth::Settings) = (&mut queue, place, depth) {
                    queue.detail = detail::read_detail(reader, place).map(Box::new);
                }
                Device {
                    dev: row.dev,
                    name: row.name,
                    counters: row.counters,
                    partition_of: place.and_then(|place| place.partition_of),
                    slaves: place.map(|place| place.slaves.clone()).unwrap_or_default(),
                    diskseq: self.read_diskseq(reader, place),
                    queue,
                }
            })
            .collect()
    }

    /// Where the partitions lie.
    pub(crate) fn read_partitions(&self, reader: &mut Reader) -> Vec<Partition> {
        let mut sectors = |dir: &[u8], file: &[u8]| number(reader, &join(&[dir, file])).map(|n| Sectors(n).bytes());
        let partitions = self.places.iter().filter(|place| place.partition_of.is_some());
        partitions
            .filter_map(|place| {
                let dir = place.dir.as_deref()?;
                Some(Partition { dev: place.dev, start: sectors(dir, b"start"), size: sectors(dir, b"size") })
            })
            .collect()
    }

    /// What each whole disk has in flight and has completed, of the counters last read.
    pub(crate) fn look(&self) -> Vec<DiskLook> {
        let disk_of = |row: &diskstats::Row| self.place(row.dev).and_then(|place| place.partition_of);
        let disks = self.rows.iter().filter(|row| disk_of(row).is_none());
        // As `Snapshot::in_flight`: recent kernels count a partition's requests there alone.
        let in_partitions = |dev: DevNum| {
            let partitions = self.rows.iter().filter(|row| disk_of(row) == Some(dev));
            partitions.map(|row| row.counters.in_flight).fold(0, u64::saturating_add)
        };
        let look = |diskstats::Row { dev, counters, .. }: &diskstats::Row| DiskLook {
            dev: *dev,
            in_flight: counters.in_flight.max(in_partitions(*dev)),
            completed: counters.completed(),
            bytes: Some(counters.read.sectors.bytes().saturating_add(counters.write.sectors.bytes())),
        };
        disks.map(look).collect()
    }

    fn place(&self, dev: DevNum) -> Option<&Place> {
        find(&self.places, dev)
    }

    /// Read at every sample: it is what tells a disk from another one that took its number in between.
    fn read_diskseq(&self, reader: &mut Reader, place: Option<&Place>) -> Known<u64> {
        let place = place.ok_or(Gap::NotInKernel)?;
        let disk = place.partition_of.and_then(|disk| self.place(disk)).unwrap_or(place);
        number(reader, &join(&[disk.dir.as_deref().ok_or(Gap::NotInKernel)?, b"diskseq"]))
    }
}

/// The place of a device, in a list that is ordered by number.
pub(crate) fn find(places: &[Place], dev: DevNum) -> Option<&Place> {
    let at = places.binary_search_by_key(&dev, |place| place.dev).ok()?;
    places.get(at)
}

/// The device of a node's name: what follows `/dev/`, or what follows `/dev/mapper/` for device-mapper.
pub(crate) fn by_node(places: &[Place], node: &[u8]) -> Option<DevNum> {
    let name = node.strip_prefix(b"/dev/")?;
    let mapped = name.strip_prefix(b"mapper/");
    let place = places.iter().find(|place| match mapped {
        Some(mapped) => place.mapper.as_deref().map(str::as_bytes) == Some(mapped),
        None => DevName::new(name) == Some(place.name),
    });
    place.map(|place| place.dev)
}
