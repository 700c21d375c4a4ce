//! The host as a whole: its counters, and what it is.

use quell_engine::snapshot::{Host, System};
use quell_kfile::{cpu_times, meminfo, pressure, single, swaps, vmstat};
use quell_units::{Bytes, Gap, Known, escape};

use crate::cgroups::Hierarchies;
use crate::gaps::Gaps;
use crate::reader::Reader;
use crate::values::{many_of_host, one, word};

/// Reads the host's counters.
pub(crate) fn read_system(reader: &mut Reader, gaps: &mut Gaps) -> System {
    // The counters first and close together; what seldom changes last.
    let vmstat = many_of_host(reader.read(b"proc/vmstat"), "vmstat", gaps, vmstat::parse);
    let cpu = one(reader.read(b"proc/stat"), cpu_times::parse);
    let mut stalled = |path: &[u8]| one(reader.read(path), pressure::parse);
    let io_pressure = stalled(b"proc/pressure/io");
    let memory_pressure = stalled(b"proc/pressure/memory");
    let cpu_pressure = stalled(b"proc/pressure/cpu");
    let meminfo = many_of_host(reader.read(b"proc/meminfo"), "meminfo", gaps, meminfo::parse);
    let swaps = many_of_host(reader.read(b"proc/swaps"), "swaps", gaps, swaps::parse);
    let mut vm = |path: &[u8]| one(reader.read(path), single::parse_number);
    System {
        cpu: gaps.note("stat", cpu),
        vmstat,
        meminfo,
        io_pressure: gaps.note("pressure/io", io_pressure),
        memory_pressure: gaps.note("pressure/memory", memory_pressure),
        cpu_pressure: gaps.note("pressure/cpu", cpu_pressure),
        dirty_background_bytes: gaps
            .note("vm.dirty_background_bytes", vm(b"proc/sys/vm/dirty_background_bytes").map(Bytes)),
        dirty_background_ratio_pct: gaps.note("vm.dirty_background_ratio", vm(b"proc/sys/vm/dirty_background_ratio")),
        dirty_bytes: gaps.note("vm.dirty_bytes", vm(b"proc/sys/vm/dirty_bytes").map(Bytes)),
        dirty_ratio_pct: gaps.note("vm.dirty_ratio", vm(b"proc/sys/vm/dirty_ratio")),
        swaps,
    }
}

/// Reads what the host is. What is missing here is no gap: nothing is judged by it.
pub(crate) fn read_host(reader: &mut Reader, hierarchies: &Hierarchies) -> Host {
    let mount = hierarchies.io().map(|walked| format!("/{}", escape(&walked.point)));
    Host {
        name: word(reader, b"proc/sys/kernel/hostname"),
        kernel: word(reader, b"proc/sys/kernel/osrelease"),
        cgroups: hierarchies.mode(),
        cgroup_mount: mount.ok_or(Gap::NotInKernel),
        virtualised: read_virtualised(reader),
        // Filled in from `/proc/stat` by whoever read it: a processor can go off line.
        cpus: Err(Gap::NotInKernel),
    }
}

/// Whether a hypervisor is below, by whatever of the machine tells it.
fn read_virtualised(reader: &mut Reader) -> Known<bool> {
    // On x86 the processor says it. The first processor's flags are in the first 4 KiB, and a file of 200 is long.
    const HEAD_BYTES: usize = 4096;
    if let Ok(head) = reader.read_head(b"proc/cpuinfo", HEAD_BYTES)
        && let Some(flags) = head.split(|&b| b == b'\n').find(|line| line.starts_with(b"flags"))
    {
        return Ok(flags.split(|&b| b == b' ').any(|flag| flag == b"hypervisor"));
    }
    // Xen, and any hypervisor that the kernel knows by name.
    if word(reader, b"sys/hypervisor/type").is_ok() {
        return Ok(true);
    }
    const VENDORS: [&str; 16] = [
        "QEMU",
        "KVM",
        "Amazon EC2",
        "Google",
        "VMware",
        "Xen",
        "Bochs",
        "Microsoft",
        "Alibaba Cloud",
        "Hetzner",
        "OpenStack",
        "Huawei Cloud",
        "DigitalOcean",
        "Parallels",
        "Apple",
        "innotek",
    ];
    let vendor = word(reader, b"sys/class/dmi/id/sys_vendor");
    if vendor.as_ref().is_ok_and(|vendor| VENDORS.iter().any(|known| vendor.starts_with(known))) {
        return Ok(true);
    }
    // A virtio bus has no other maker. Its absence proves nothing.
    let virtio = reader.list(b"sys/block").is_ok_and(|disks| {
        disks.iter().any(|disk| {
            let link = reader.read_link(&[b"sys/block/", disk.name.as_slice()].concat());
            link.is_ok_and(|target| contains(&target, b"/virtio"))
        })
    });
    if virtio { Ok(true) } else { vendor.map(|_| false) }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
