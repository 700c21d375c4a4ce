//! What kind of disk lies behind a device, and what a healthy one of that kind takes for a request.

use crate::snapshot::{Device, Snapshot};

/// What kind of disk lies behind a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskClass {
    /// A local NVMe drive.
    Nvme,
    /// A SATA or SAS flash drive.
    Ssd,
    /// A spinning disk.
    Hdd,
    /// A disk that a hypervisor or a cloud serves; what lies behind it is not known.
    Virtual,
    /// Not told.
    Unknown,
}

impl DiskClass {
    /// The class of a device; for a layer above disks that of the slowest of them.
    #[must_use]
    pub fn of(snapshot: &Snapshot, device: &Device) -> Self {
        let leaves = snapshot.leaves(device.dev).into_iter().filter_map(|dev| snapshot.device(dev));
        let slowest = |a: Self, b: Self| if a.fast_usec(4096.0) >= b.fast_usec(4096.0) { a } else { b };
        leaves.map(|leaf| leaf_class(snapshot, leaf)).reduce(slowest).unwrap_or(Self::Unknown)
    }

    /// The time a healthy disk of this class takes for one request of this size, in microseconds.
    ///
    /// A base and a bandwidth, generous on purpose: a request is called slow at three times this. The classes' usual
    /// data-sheet figures (NVMe 0.3 ms and 2 GB/s, SATA flash 1 ms and 400 MB/s, 7200 rpm 15 ms and 120 MB/s), and for
    /// a cloud volume 2 ms and 100 MB/s; what is not known gets the volume's.
    #[must_use]
    pub fn fast_usec(self, size_bytes: f64) -> f64 {
        let (base_usec, bytes_per_usec) = match self {
            Self::Nvme => (300.0, 2000.0),
            Self::Ssd => (1000.0, 400.0),
            Self::Hdd => (15_000.0, 120.0),
            Self::Virtual | Self::Unknown => (2000.0, 100.0),
        };
        base_usec + size_bytes / bytes_per_usec
    }

    /// The word people use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvme => "nvme",
            Self::Ssd => "ssd",
            Self::Hdd => "hdd",
            Self::Virtual => "virtual",
            Self::Unknown => "unknown",
        }
    }
}

/// Parts of a sysfs path or a name that say that the disk is served by a hypervisor or over a network.
const REMOTE: [&str; 10] = [
    "/virtio",
    "/vbd-",
    "/vmbus",
    "/xen",
    "/nvme-fabrics/",
    "/session",
    "/rport-",
    "/block/rbd",
    "/block/nbd",
    "/block/drbd",
];

/// Models that a hypervisor or a cloud gives its disks. QEMU's emulated NVMe is left out: it behaves like one.
const VIRTUAL_MODELS: [&str; 9] = [
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Virtual Disk",
    "Virtual disk",
    "Virtual NVMe Disk",
    "QEMU HARDDISK",
    "VBOX HARDDISK",
];

fn leaf_class(snapshot: &Snapshot, device: &Device) -> DiskClass {
    let Some(queue) = device.queue.as_deref() else { return DiskClass::Unknown };
    let model = queue.model.as_deref().unwrap_or_default();
    let name = device.name.as_str();
    let is_remote = REMOTE.iter().any(|part| queue.sysfs_path.contains(part))
        || VIRTUAL_MODELS.iter().any(|name| model.contains(name));
    match queue.rotational {
        _ if is_remote => DiskClass::Virtual,
        _ if name.starts_with("nvme") => DiskClass::Nvme,
        // A guest's SATA or SCSI disk is a file of its host's, whatever it says.
        _ if snapshot.host.virtualised == Ok(true) => DiskClass::Virtual,
        // Cards of flash are slower than either, and tell nothing of it.
        _ if name.starts_with("mmcblk") => DiskClass::Unknown,
        Ok(true) => DiskClass::Hdd,
        Ok(false) => DiskClass::Ssd,
        Err(_) => DiskClass::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::written::{device, snapshot};

    #[test]
    fn a_disk_that_a_network_serves_is_no_local_one() {
        let class = |path: &str| {
            let mut host = snapshot(0);
            host.devices.push(device(0, "sda", path));
            DiskClass::of(&host, &host.devices[0])
        };
        let pci = "/sys/devices/pci0000:00/0000:00:03.0";
        assert_eq!(class(&format!("{pci}/host0/rport-0:0-1/target0:0:0/0:0:0:1/block/sda")), DiskClass::Virtual);
        assert_eq!(class("/sys/devices/platform/host2/session1/target2:0:0/2:0:0:1/block/sda"), DiskClass::Virtual);
        assert_eq!(
            class(&format!("{pci}/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda")),
            DiskClass::Ssd
        );
    }
}
