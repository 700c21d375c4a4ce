//! `tool-bug-units`: a tool's number is wrong by a factor, and no verdict may be built on it.

use quell_paste::{Statement, TableRow};
use quell_units::{Bytes, count};

use super::evidence::{PASTE, asker, evidence, finding, safe};
use super::finding::{Advice, Aspect, Evidence, Explain, Finding, Value};
use super::scene::Scene;
use super::table::Rule;
use crate::snapshot::Cgroup;

pub(super) const RULE: Rule = Rule {
    id: "tool-bug-units",
    explain: Explain {
        means: "A tool prints a number that its own other numbers, or the kernel's, contradict: bytes in another unit than \
            the heading says, or the same bytes counted once for a volume and once more for the disk below it.",
        kernel: "io.stat and blkio.* have a row for every layer that a bio passes: the bytes of a logical volume show at the \
            volume and again at the disk. A sum over all rows, as docker stats prints it, counts them twice.",
        evidence: "A container's block I/O that is the sum of several layers with like counters, within 2 %; or an iostat \
            table whose bytes a second are not its requests times their size.",
        change: "Go by one layer, the disk's.",
        undo: "Nothing is changed.",
    },
    find,
};

fn find(scene: &Scene) -> Vec<Finding> {
    let summed = scene.statements().iter().find_map(|said| summed(scene, said));
    let rows = scene.pasted().into_iter().flat_map(|pasted| &pasted.tables).flat_map(|table| &table.rows);
    let wrong = rows.filter_map(wrong_unit).next();
    summed.into_iter().chain(wrong).collect()
}

/// A container's bytes that are those of a volume and of the disk below it, added up.
fn summed(scene: &Scene, said: &Statement) -> Option<Finding> {
    let Statement::BlockIo { container, read, write } = said else { return None };
    let told = read.get().max(write.get());
    let writes = *write >= *read;
    let rows = scene.window.t1.cgroups.iter().find_map(|cgroup| layers(cgroup, told, writes))?;
    let (largest, times) = rows;
    let evidence = vec![
        of_bytes(if writes { "written, as the tool says" } else { "read, as the tool says" }, count(told)),
        of_bytes("at the largest layer alone", largest),
    ];
    Some(Finding {
        severity: super::Severity::Warning,
        confidence: 0.95,
        summary: format!(
            "{} of {} is {times:.1} times the truth: the tool adds up a volume and the disk below it",
            Bytes(told),
            safe(container)
        ),
        evidence,
        advice: vec![Advice::text("go by the row of the disk alone; build no verdict about load on the sum")],
        ..finding(RULE.id, asker(container))
    })
}

/// The largest layer's bytes and by how much the sum exceeds it, where the sum is what was told and the layers are alike.
fn layers(cgroup: &Cgroup, told: u64, writes: bool) -> Option<(f64, f64)> {
    let rows = cgroup.io.as_ref().ok()?;
    let bytes =
        |row: &quell_kfile::io_stat::Row| count(if writes { row.write_bytes.get() } else { row.read_bytes.get() });
    let sum: f64 = rows.iter().map(bytes).sum();
    let largest = rows.iter().map(bytes).fold(0.0, f64::max);
    let alike = rows.iter().filter(|row| bytes(row) >= largest * 0.98).count();
    let is_sum = sum > 0.0 && (count(told) / sum - 1.0).abs() <= 0.02;
    (is_sum && alike >= 2 && largest > 0.0).then(|| (largest, sum / largest))
}

fn wrong_unit(row: &TableRow) -> Option<Finding> {
    let times = row.bytes_over_truth.filter(|times| !(0.5..=2.0).contains(times))?;
    let name = safe(&row.name);
    Some(Finding {
        confidence: 0.9,
        summary: format!("the tool's bytes a second for {name} are {times:.3} times its requests times their size"),
        evidence: vec![evidence(Aspect::Device, "bytes by column over bytes by requests", Value::Number(times), PASTE)],
        advice: vec![Advice::text("go by requests a second and their mean size; another version of the tool is right")],
        ..finding(RULE.id, super::evidence::host_subject())
    })
}

fn of_bytes(what: &str, bytes: f64) -> Evidence {
    evidence(Aspect::Limit, what, Value::Bytes(bytes), PASTE)
}

#[cfg(test)]
mod tests {
    use quell_paste::{Pasted, Statement};
    use quell_units::Bytes;

    use crate::findings::written::{Did, Written};

    fn says(told: u64, layers: &[(u32, u64, u64, u64)]) -> bool {
        let mut host = Written::new();
        host.disk(0, "sda", "/sys/devices/pci0000:00/ata1/block", Did::default());
        host.cgroup("docker/aa", 0.0, layers);
        let said = Statement::BlockIo { container: "aa".into(), read: Bytes(0), write: Bytes(told) };
        host.window.pasted = Some(Box::new(Pasted { statements: vec![said], ..Pasted::default() }));
        host.ids().contains(&"tool-bug-units")
    }

    #[test]
    fn a_sum_of_a_volume_and_its_disk_is_named() {
        let twice = [(0, 0, 10, 5000), (16, 0, 10, 5000), (17, 0, 1, 10)];
        assert!(says(100_100, &twice));
        assert!(!says(50_000, &twice), "the tool gives one layer");
        assert!(!says(70_000, &[(0, 0, 10, 5000), (16, 0, 10, 2000)]), "two disks are two disks");
    }
}
