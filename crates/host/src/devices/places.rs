//! Where a device lies under `/sys/devices`, and what lies below it.

use quell_units::{DevName, DevNum};
use rustix::io::Errno;

use crate::reader::{Reader, join};
use crate::values::{one, word};

/// Where one device lies, and what is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) dev: DevNum,
    pub(crate) name: DevName,
    /// Its directory below the root, such as `sys/devices/virtual/block/dm-0`. `None` where `/sys` does not show it.
    pub(crate) dir: Option<Vec<u8>>,
    pub(crate) partition_of: Option<DevNum>,
    pub(crate) slaves: Vec<DevNum>,
    /// Its name under `/dev/mapper`, for a device-mapper node.
    pub(crate) mapper: Option<String>,
    /// The file behind a loop device.
    pub(crate) backing_file: Option<Vec<u8>>,
}

/// Reads the place of one device.
pub(crate) fn read_place(reader: &mut Reader, dev: DevNum, name: DevName) -> Place {
    let dir = resolve(reader, format!("sys/dev/block/{dev}").as_bytes()).ok();
    let mut place = Place { dev, name, dir, partition_of: None, slaves: Vec::new(), mapper: None, backing_file: None };
    let Some(dir) = &place.dir else { return place };
    // A partition's directory lies in its disk's. The file says that it is one; its number says nothing.
    if reader.read(&join(&[dir, b"partition"])).is_ok() {
        place.partition_of = read_dev(reader, parent(dir));
        return place;
    }
    place.mapper = word(reader, &join(&[dir, b"dm/name"])).ok();
    place.slaves = read_slaves(reader, dir);
    place.backing_file = reader.read(&join(&[dir, b"loop/backing_file"])).ok().map(|path| path.trim_ascii_end().into());
    place
}

fn read_slaves(reader: &mut Reader, dir: &[u8]) -> Vec<DevNum> {
    let slaves = join(&[dir, b"slaves"]);
    let entries = reader.list(&slaves).unwrap_or_default();
    let below = entries.into_iter().filter_map(|entry| {
        let slave = resolve(reader, &join(&[&slaves, &entry.name])).ok()?;
        read_dev(reader, &slave)
    });
    let mut below: Vec<DevNum> = below.collect();
    below.sort_unstable();
    below
}

fn read_dev(reader: &mut Reader, dir: &[u8]) -> Option<DevNum> {
    word(reader, &join(&[dir, b"dev"])).ok()?.parse().ok()
}

/// The path below the root that a link leads to.
///
/// Worked out from the link's text, so that all reads go by real paths and a capture of them needs no link to be whole.
/// The directories in `/sys` that links lead through are no links themselves.
pub(crate) fn resolve(reader: &mut Reader, link: &[u8]) -> Result<Vec<u8>, Errno> {
    let target = reader.read_link(link)?;
    let from = if target.starts_with(b"/") { &[] } else { parent(link) };
    let mut parts: Vec<&[u8]> = from.split(|&b| b == b'/').filter(|part| !part.is_empty()).collect();
    for part in target.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Ok(parts.join(&b'/'))
}

/// The directory that a path lies in.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

/// The model of a disk, from the device behind it.
pub(crate) fn read_model(reader: &mut Reader, dir: &[u8]) -> quell_units::Known<String> {
    let device = resolve(reader, &join(&[dir, b"device"])).map_err(crate::error::gap)?;
    one(reader.read(&join(&[&device, b"model"])), |bytes| quell_kfile::single::parse_word(bytes).map(str::to_owned))
}
