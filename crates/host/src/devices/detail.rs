//! The settings that no rate depends on, and what lies behind a disk's node: read where somebody asks for settings alone.
//!
//! A disk with a hundred queues has hundreds of these files, so a watch never reads them.

use quell_engine::snapshot::{HardwareQueue, NvmePath, QueueDetail, Setting};
use quell_units::escape;

use super::places::{Place, parent, resolve};
use crate::reader::{Reader, join};
use crate::values::{number, one, word};

/// The files that are read of each disk, where it has them.
const FILES: [&str; 11] = [
    "queue/max_hw_sectors_kb",
    "queue/rq_affinity",
    "queue/nomerges",
    "queue/io_poll",
    "queue/logical_block_size",
    "queue/physical_block_size",
    "queue/iostats",
    "queue/add_random",
    "alignment_offset",
    "ro",
    "device/queue_depth",
];

/// Hardware queues that are read of one disk. A drive has one a processor at the most.
const QUEUES_MAX: usize = 1024;

/// Reads the settings of the disk at a place; `None` where `/sys` does not show it.
pub(crate) fn read_detail(reader: &mut Reader, place: &Place) -> Option<QueueDetail> {
    let dir = place.dir.as_deref()?;
    let device = resolve(reader, &join(&[dir, b"device"])).unwrap_or_default();
    Some(QueueDetail {
        settings: read_settings(reader, dir, &device),
        hardware_queues: read_hardware_queues(reader, dir),
        numa_node: one(reader.read(&join(&[&device, b"numa_node"])), quell_kfile::single::parse_signed),
        backing_file: place.backing_file.as_deref().map(|path| escape(path).into_owned()),
        nvme_paths: read_nvme_paths(reader, dir),
    })
}

fn read_settings(reader: &mut Reader, dir: &[u8], device: &[u8]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut read = |reader: &mut Reader, file: &str| {
        // By the real path of the device, so that a capture of the file needs no link to be whole.
        let path = match file.strip_prefix("device/") {
            Some(_) if device.is_empty() => return,
            Some(name) => join(&[device, name.as_bytes()]),
            None => join(&[dir, file.as_bytes()]),
        };
        let value = word(reader, &path).map(|text| escape(text.as_bytes()).into_owned());
        // What a kernel or a disk has no file for is no setting of it.
        if value != Err(quell_units::Gap::NotInKernel) {
            settings.push(Setting { file: file.to_owned(), value });
        }
    };
    for file in FILES {
        read(reader, file);
    }
    let mut names: Vec<String> = reader
        .list(&join(&[dir, b"queue/iosched"]))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| String::from_utf8(entry.name).ok())
        .collect();
    names.sort_unstable();
    for name in names {
        read(reader, &format!("queue/iosched/{name}"));
    }
    settings
}

fn read_hardware_queues(reader: &mut Reader, dir: &[u8]) -> Vec<HardwareQueue> {
    let listed = reader.list(&join(&[dir, b"mq"])).unwrap_or_default();
    let number_of = |name: &[u8]| std::str::from_utf8(name).ok()?.parse().ok();
    let mut indexes: Vec<u32> = listed.iter().filter_map(|entry| number_of(&entry.name)).collect();
    indexes.sort_unstable();
    indexes.truncate(QUEUES_MAX);
    indexes
        .into_iter()
        .map(|index| {
            let file = |name: &str| join(&[dir, format!("mq/{index}/{name}").as_bytes()]);
            HardwareQueue {
                index,
                cpus: word(reader, &file("cpu_list")).map(|text| escape(text.as_bytes()).into_owned()),
                tags: number(reader, &file("nr_tags")),
            }
        })
        .collect()
}

/// The paths of the head of an NVMe namespace: its subsystem's directory links to each controller, and in the
/// controller's lies the hidden disk of the same namespace.
fn read_nvme_paths(reader: &mut Reader, dir: &[u8]) -> Vec<NvmePath> {
    let subsystem = parent(dir);
    let Some(head) = dir.rsplit(|&b| b == b'/').next().filter(|_| contains(dir, b"/nvme-subsystem/")) else {
        return Vec::new();
    };
    let entries = reader.list(subsystem).unwrap_or_default();
    let mut controllers: Vec<Vec<u8>> = entries.into_iter().filter(|entry| !entry.is_dir).map(|e| e.name).collect();
    controllers.retain(|name| name.strip_prefix(b"nvme").is_some_and(|n| n.iter().all(u8::is_ascii_digit)));
    controllers.sort_unstable();
    let mut paths = Vec::new();
    for name in controllers {
        let Ok(controller) = resolve(reader, &join(&[subsystem, &name])) else { continue };
        let disks = reader.list(&controller).unwrap_or_default();
        for disk in disks.into_iter().filter(|disk| is_path_of(&disk.name, head)) {
            paths.push(NvmePath {
                name: escape(&disk.name).into_owned(),
                controller: escape(&name).into_owned(),
                transport: word(reader, &join(&[&controller, b"transport"])),
                state: word(reader, &join(&[&controller, b"state"])),
                ana_state: word(reader, &join(&[&controller, &disk.name, b"ana_state"])),
            });
        }
    }
    paths
}

/// Whether `nvme0c1n2` is a path of `nvme0n2`. The kernel makes both names of the same numbers.
fn is_path_of(path: &[u8], head: &[u8]) -> bool {
    let Some(at) = head.iter().rposition(|&b| b == b'n') else { return false };
    let (subsystem, namespace) = head.split_at(at);
    let between = path.strip_prefix(subsystem).and_then(|rest| rest.strip_suffix(namespace));
    let number = between.and_then(|between| between.strip_prefix(b"c"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_disk_of_the_same_numbers() {
        assert!(is_path_of(b"nvme0c12n1", b"nvme0n1"));
        for other in [&b"nvme0n1"[..], b"nvme1c0n1", b"nvme0c0n11", b"nvme0cn1", b"nvme0c0n1p1", b""] {
            assert!(!is_path_of(other, b"nvme0n1"), "{other:?}");
        }
    }
}
