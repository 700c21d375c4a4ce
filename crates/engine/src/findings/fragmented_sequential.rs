//! `fragmented-sequential`: a spinning disk is read in order, in small pieces that nobody merges.
//!
//! The counters name no sector, so order is seen only where it is the one explanation: a spinning disk that answers small
//! reads faster than its head can move.

use super::evidence::{disk_subject, evidence, finding, of_disk, of_stall, subject};
use super::finding::{Advice, Aspect, Explain, Finding, Value};
use super::scene::{Disk, DiskClass, Scene, Trust};
use super::table::Rule;

pub(super) const RULE: Rule = Rule {
    id: "fragmented-sequential",
    explain: Explain {
        means: "The disk is read from end to end, in small requests: each costs a round trip, and in larger ones the disk \
            would give many times as much.",
        kernel: "Read-ahead and the plug list join neighbouring pages to large requests; direct reads, and those of a \
            program that asks for a block and waits, pass them one by one. A spinning disk serves them out of its own \
            cache's track: quickly, and yet far below what it can read.",
        evidence: "A spinning disk with at least 300 reads a second of at most 32 KiB, hardly any merged, one or two at a \
            time, in less than 3 ms each: no head moves that often.",
        change: "Read in larger blocks (256 KiB and more), through the page cache, or with several requests in flight.",
        undo: "Nothing is changed.",
    },
    find,
};

/// A seek and half a turn of 7200 rpm take 8 to 12 ms, of 15,000 rpm 5 to 6: some 80 to 180 random reads a second.
const READS_PER_SEC: f64 = 300.0;
/// As long as no head has moved.
const AWAIT_USEC: f64 = 3000.0;
const SIZE_BYTES: f64 = 32.0 * 1024.0;

fn find(scene: &Scene) -> Vec<Finding> {
    scene.leaf_disks().filter(|disk| is_fragmented(disk)).map(|disk| fragmented(scene, disk)).collect()
}

fn is_fragmented(disk: &Disk) -> bool {
    let Some(rates) = disk.rates else { return false };
    let read = rates.read;
    let small = read.size_bytes_avg.is_some_and(|size| size <= SIZE_BYTES) && read.merged_pct < 10.0;
    let in_order = read.ios_per_sec >= READS_PER_SEC && read.await_usec.is_some_and(|usec| usec < AWAIT_USEC);
    // A disk without an engine of its own for many requests at once: a deep queue hides the head's way.
    let alone = (0.5..=2.0).contains(&rates.queue_length_avg) && disk.trust == Trust::Trusted && disk.util_pct >= 60.0;
    disk.class == DiskClass::Hdd && !disk.says_flash() && small && in_order && alone
}

fn fragmented(scene: &Scene, disk: &Disk) -> Finding {
    let user = scene.main_user(disk);
    let who = user.map_or("its user".to_owned(), |(workload, _)| workload.name.clone());
    let size = disk.rates.and_then(|rates| rates.read.size_bytes_avg).unwrap_or(0.0);
    let mut out = vec![evidence(Aspect::Device, "size of a read", Value::Bytes(size), "/proc/diskstats")];
    out.extend(of_disk(disk));
    if let Some((workload, _)) = user {
        out.extend(of_stall(scene, workload, Aspect::Victim));
    }
    Finding {
        confidence: 0.6,
        summary: format!("{who} reads {} in order, in pieces of {:.0} KiB", disk.name, size / 1024.0),
        evidence: out,
        advice: vec![Advice::text("read in blocks of 256 KiB and more, or through the page cache, which reads ahead")],
        stall_ratio: user.map_or(0.3, |(workload, _)| workload.stall_ratio()),
        ..finding(RULE.id, user.map_or(disk_subject(disk), |(workload, _)| subject(workload, Some(disk.name))))
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::written::{Did, Written};

    fn spinning(reads: u64, size: u64, read_usec: u64) -> Vec<&'static str> {
        let mut host = Written::new();
        let util_pct = (reads * read_usec / 10_000).min(99);
        let did = Did { reads, read_bytes: reads * size, read_usec, util_pct, ..Did::default() };
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block/sda", did);
        host.change("sda", |device| device.queue.as_mut().unwrap().rotational = Ok(true));
        host.ids()
    }

    #[test]
    fn small_reads_faster_than_a_head_can_move_are_in_order() {
        assert_eq!(spinning(450, 4096, 2000), ["fragmented-sequential"]);
    }

    #[test]
    fn seeks_and_large_reads_are_not() {
        assert!(!spinning(90, 4096, 10_000).contains(&"fragmented-sequential"));
        assert!(!spinning(450, 262_144, 2000).contains(&"fragmented-sequential"));
    }
}
