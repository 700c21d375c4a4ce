//! `readahead-amplification`: each page that a program touches brings many with it that nobody asked for.

use quell_units::{Bytes, count};

use super::advise;
use super::evidence::{evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, Scene, Workload};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "readahead-amplification",
    explain: Explain {
        means: "The disk reads many times what the program uses: it touches a page here and there, and the kernel brings \
            the pages around it as well.",
        kernel: "A fault in a mapped file that finds no page reads read_ahead_kb around it, half before and half after, \
            unless madvise(MADV_RANDOM) says not to. Where files are read in order the next fault finds its page there and \
            counts as no major fault; where they are read here and there, each one is a major fault and a large read.",
        evidence: "At least 5 reads a second of at least 32 KiB on one workload's disk, at least one major fault for every \
            two of them that is no swapping, in bytes at least four times a page for each fault, and a workload that \
            called read() for less than half of the bytes.",
        change: "Lower read_ahead_kb on that disk, or let the program say MADV_RANDOM.",
        undo: "Write the old value back.",
    },
    find,
};

/// How many times the bytes that were asked for.
const TIMES: f64 = 4.0;
/// Smaller reads bring little that was not asked for.
const READ_BYTES: f64 = 32.0 * 1024.0;
/// What databases that read here and there are told to set.
const READ_AHEAD: u64 = 16;

fn find(scene: &Scene) -> Vec<Finding> {
    let busiest = scene.leaf_disks().max_by(|a, b| read_bytes(a).total_cmp(&read_bytes(b)));
    busiest.and_then(|disk| amplified(scene, disk)).into_iter().collect()
}

fn read_bytes(disk: &Disk) -> f64 {
    disk.rates.map_or(0.0, |rates| rates.read.bytes_per_sec)
}

fn amplified(scene: &Scene, disk: &Disk) -> Option<Finding> {
    let read = disk.rates?.read;
    let (workload, _) = scene.main_user(disk)?;
    let faults = faults_per_sec(scene)?;
    let asked = faults * scene.page_bytes();
    let here_and_there = faults >= read.ios_per_sec / 2.0;
    let large = read.size_bytes_avg.is_some_and(|size| size >= READ_BYTES);
    let enough = read.ios_per_sec >= 5.0 && read.ios >= 50 && disk.util_pct >= 20.0;
    if !enough || !large || !here_and_there || read.bytes_per_sec < TIMES * asked {
        return None;
    }
    // What read() asked for was asked for, however much it is.
    if called_per_sec(scene, workload)? >= read.bytes_per_sec / 2.0 {
        return None;
    }
    let times = read.bytes_per_sec / asked;
    let ahead = disk.queue().and_then(|queue| queue.read_ahead_bytes.ok());
    let source = format!("/sys/block/{}/queue/read_ahead_kb", disk.name);
    let mut out = vec![
        evidence(Aspect::Device, "reads", Value::BytesPerSec(read.bytes_per_sec), "/proc/diskstats"),
        evidence(Aspect::Memory, "major faults", Value::PerSec(faults), "/proc/vmstat"),
    ];
    if let Some(ahead) = ahead {
        out.push(evidence(Aspect::Device, "read-ahead", Value::Bytes(ahead.as_f64()), source));
    }
    out.extend(of_stall(scene, workload, Aspect::Victim));
    out.extend(of_disk(disk));
    Some(Finding {
        confidence: 0.75,
        summary: format!(
            "{} reads {times:.0} times what {} touches: read-ahead brings the rest",
            disk.name, workload.name
        ),
        evidence: out,
        advice: advice(disk, ahead),
        stall_ratio: workload.stall_ratio(),
        ..finding(RULE.id, subject(workload, Some(disk.name)))
    })
}

/// Faults that waited for a disk and were no swapping, per second.
fn faults_per_sec(scene: &Scene) -> Option<f64> {
    let faults = |vmstat: &quell_units::Known<quell_kfile::vmstat::VmStat>| vmstat.as_ref().ok()?.major_faults;
    let (was, now) = (faults(&scene.window.t0.system.vmstat)?, faults(&scene.window.t1.system.vmstat)?);
    let all = count(now.checked_sub(was)?) / scene.rates.seconds.ok()?;
    Some((all - scene.rates.system.swap_in_pages_per_sec.unwrap_or(0.0)).max(0.0))
}

/// What the workload's processes asked for by read(), per second. `None` where no process was there at both moments.
fn called_per_sec(scene: &Scene, workload: &Workload) -> Option<f64> {
    let (t0, t1) = (&scene.window.t0, &scene.window.t1);
    let seconds = t1.clock.tasks.since(t0.clock.tasks)?.seconds();
    let own = t1.tasks.iter().filter(|task| task.tid == task.pid);
    let own = own.filter(|task| task.cgroup.as_ref().is_ok_and(|path| path.is_within(&workload.path)));
    let grown = own.filter_map(|task| {
        let was = t0.tasks.iter().find(|was| was.tid == task.tid)?.io.ok()?.called_read_bytes?;
        task.io.ok()?.called_read_bytes?.get().checked_sub(was.get())
    });
    let grown: Vec<f64> = grown.map(count).collect();
    (!grown.is_empty()).then(|| grown.iter().sum::<f64>() / seconds)
}

fn advice(disk: &Disk, ahead: Option<Bytes>) -> Vec<Advice> {
    let text = format!("read less ahead: {READ_AHEAD} KiB is what programs that read here and there ask for");
    let kib = ahead.map(|ahead| ahead.get() / 1024).filter(|kib| *kib > READ_AHEAD);
    let lower =
        kib.map(|kib| advise::set_queue(disk, "read_ahead_kb", &READ_AHEAD.to_string(), &kib.to_string(), text));
    let lower = lower.map(|advice| advice.risk("programs that read in order on this disk become slower"));
    lower.into_iter().chain([Advice::text("or let the program call madvise(MADV_RANDOM) for its mapping")]).collect()
}

#[cfg(test)]
mod tests {
    use quell_kfile::pid_io::PidIo;
    use quell_kfile::vmstat::VmStat;
    use quell_units::{Bytes, CgroupPath, Gap};

    use crate::findings::written::{Did, SECONDS, Written};
    use crate::snapshot::Task;

    /// 43 reads a second of so many bytes, with so many major faults and so much asked for by read().
    fn reader(size: u64, faults: u64, called: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let did = Did { reads: 43, read_bytes: 43 * size, read_usec: 20_000, util_pct: 80, ..Did::default() };
        host.disk(0, "vda", "/sys/devices/pci0000:00/0000:00:05.0/virtio2/block/vda", did);
        host.cgroup("tenants/app", 0.4, &[(0, 43, 0, 43 * size)]);
        for (snapshot, seconds) in [(&mut host.window.t0, 0), (&mut host.window.t1, SECONDS)] {
            snapshot.system.vmstat = Ok(VmStat { major_faults: Some(1000 + faults * seconds), ..VmStat::default() });
            let io = PidIo { called_read_bytes: Some(Bytes(called * seconds)), ..PidIo::default() };
            snapshot.tasks.push(Task {
                pid: 7,
                tid: 7,
                comm: "db".into(),
                blocked: false,
                kernel_thread: false,
                cgroup: CgroupPath::new(b"tenants/app").map_err(|_| Gap::Malformed),
                wait_channel: None,
                io: Ok(io),
                io_uring: false,
            });
        }
        host.ids()
    }

    #[test]
    fn a_large_read_for_each_page_touched_is_read_ahead() {
        assert!(reader(680_000, 40, 0).contains(&"readahead-amplification"));
    }

    #[test]
    fn a_file_read_in_order_has_few_major_faults_and_one_that_is_asked_for_has_its_calls() {
        assert!(!reader(680_000, 3, 0).contains(&"readahead-amplification"));
        assert!(!reader(680_000, 40, 43 * 680_000).contains(&"readahead-amplification"));
        assert!(!reader(4096, 43, 0).contains(&"readahead-amplification"));
    }
}
