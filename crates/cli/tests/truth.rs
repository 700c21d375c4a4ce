//! Every capture of a real kernel with a known cause: the doctor must name that cause first and say nothing that is
//! known to be wrong.
//!
//! The captures are the project's ground truth. `meta.json` says what was done to the host, which other answers are
//! right as well, and which would be wrong; the load's own numbers stand in its notes.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking, as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use quell_engine::findings::{Aspect, Finding, Scene, Subject, find};
use quell_engine::rates::Rates;
use quell_engine::snapshot::Window;
use quell_host::{Depth, Machine};
use serde_json::Value;

/// Every capture, unpacked and read once for all tests.
static CAPTURES: LazyLock<Vec<Capture>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/captures");
    let mut all: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.to_string_lossy().ends_with(".tar.xz"));
    all.sort();
    all.iter().map(|packed| open(packed)).collect()
});

/// An unpacked capture: its window and its `meta.json`.
struct Capture {
    name: String,
    window: Window,
    meta: Value,
}

fn open(packed: &Path) -> Capture {
    let dir = quell::archive::scratch().unwrap();
    let top = quell::archive::unpack(&fs::read(packed).unwrap(), dir.path()).unwrap();
    let moment = |name: &str| Machine::under(&top.join(name)).unwrap().snapshot(Depth::Full);
    let meta = serde_json::from_slice(&fs::read(top.join("meta.json")).unwrap()).unwrap();
    let window = Window { t0: moment("t0"), looks: Vec::new(), t1: moment("t1"), pasted: None };
    Capture { name: top.file_name().unwrap().to_string_lossy().into_owned(), window, meta }
}

fn words<'a>(meta: &'a Value, key: &str) -> Vec<&'a str> {
    meta[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Every id that the findings say, those that became another one's evidence included.
fn said(findings: &[Finding]) -> Vec<&str> {
    let folded = findings.iter().flat_map(|finding| &finding.evidence);
    let folded = folded.filter(|evidence| evidence.aspect == Aspect::Explains).map(|evidence| evidence.what.as_str());
    findings.iter().map(|finding| finding.id).chain(folded).collect()
}

/// The verdicts that are worth nothing without a name.
const BLAMES: [&str; 4] = ["noisy-neighbour", "writeback-storm", "journal-shared-stall", "latency-target-working"];

/// What is wrong with the verdict on one capture; empty where nothing is.
fn judge(capture: &Capture) -> Vec<String> {
    let rates = Rates::of(&capture.window);
    let scene = Scene::of(&capture.window, &rates);
    let findings = find(&scene);
    let meta = &capture.meta;
    let mut wrong = Vec::new();

    let first = findings.first().map_or("nothing", |finding| finding.id);
    let right = [vec![meta["truth"].as_str().unwrap()], words(meta, "acceptable")].concat();
    if !right.contains(&first) {
        wrong.push(format!("first is {first}, right is {right:?}; all: {:?}", said(&findings)));
    }
    for id in words(meta, "must_not").into_iter().filter(|id| said(&findings).contains(id)) {
        wrong.push(format!("says {id}, which is wrong"));
    }
    // Where the truth itself comes first, it must also be said of the right one, and blame the right one.
    if let Some(finding) = findings.first().filter(|finding| finding.id == right[0]) {
        let cgroup_of = |subject: &Subject| subject.cgroup.as_ref().map(ToString::to_string);
        let victim = cgroup_of(&finding.subject);
        if victim.as_deref().zip(meta["subject"].as_str()).is_some_and(|(named, right)| named != right) {
            wrong.push(format!("the victim is {victim:?}, right is {}", meta["subject"]));
        }
        let culprit = finding.culprit.as_ref().and_then(cgroup_of);
        if culprit.as_deref().zip(meta["layer"].as_str()).is_some_and(|(named, right)| named != right) {
            wrong.push(format!("the culprit is {culprit:?}, right is {}", meta["layer"]));
        }
        if BLAMES.contains(&finding.id) && culprit.is_none() {
            wrong.push("nobody is blamed".into());
        }
    }
    wrong
}

#[test]
fn every_capture_gets_its_true_cause_first_and_no_wrong_one() {
    assert!(CAPTURES.len() >= 40, "only {} captures: fixtures are missing", CAPTURES.len());
    let mut wrong = BTreeMap::new();
    let mut right = 0;
    for capture in CAPTURES.iter() {
        let faults = judge(capture);
        if faults.is_empty() {
            right += 1;
        } else {
            wrong.insert(&capture.name, faults);
        }
    }
    println!("{right} of {} captures are right", CAPTURES.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Captures whose load was not even over the window: iostat's 8 s lie inside the 8.5 to 9.5 s between the two moments, so
/// its means are those of another stretch.
const UNEVEN: [&str; 8] = [
    "10-writeback-storm",
    "12c-journal-big-reference",
    "18-scheduler-mismatch",
    "25-io-latency",
    "28-swap-io",
    "29b-btrfs-dirty",
    "32-xfs-shared-log-reference",
    "612-08-noisy-neighbour",
];

/// The numbers that iostat gave for a device on the host itself, from the notes: name and columns.
fn iostat_of_notes(notes: &str) -> Vec<(String, Vec<(String, f64)>)> {
    let parts = notes.split(" | ").filter_map(|part| part.strip_prefix("iostat "));
    parts
        .map(|part| {
            let (name, columns) = part.split_once(": ").unwrap();
            let words: Vec<&str> = columns.split_whitespace().collect();
            let pairs = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap()));
            (name.to_owned(), pairs.collect())
        })
        .collect()
}

#[test]
fn rates_and_latencies_are_those_that_iostat_saw_on_the_host() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for capture in CAPTURES.iter() {
        let rates = Rates::of(&capture.window);
        for (name, columns) in iostat_of_notes(capture.meta["notes"].as_str().unwrap()) {
            let device = rates.devices.iter().find(|device| device.name.as_str() == name).unwrap();
            let disk = device.rates.as_ref().unwrap();
            for (column, theirs) in columns {
                let (ours, ios) = match column.as_str() {
                    "r/s" => (disk.read.ios_per_sec, disk.read.ios),
                    "w/s" => (disk.write.ios_per_sec, disk.write.ios),
                    "rkB/s" => (disk.read.bytes_per_sec / 1024.0, disk.read.ios),
                    "wkB/s" => (disk.write.bytes_per_sec / 1024.0, disk.write.ios),
                    "r_await" => (disk.read.await_usec.unwrap_or(0.0) / 1e3, disk.read.ios),
                    "w_await" => (disk.write.await_usec.unwrap_or(0.0) / 1e3, disk.write.ios),
                    _ => continue,
                };
                // Below a hundred requests the edges of the window are more than 3 %.
                if ios < 100 || UNEVEN.contains(&capture.name.as_str()) {
                    continue;
                }
                compared += 1;
                // Ticks are whole milliseconds, which shows in means below one.
                if (ours - theirs).abs() > (theirs * 0.03).max(0.03) {
                    wrong.push(format!("{}: {name} {column}: {ours:.2}, iostat saw {theirs}", capture.name));
                }
            }
        }
    }
    println!("{compared} numbers compared");
    assert!(compared > 80 && wrong.is_empty(), "{compared} compared; {wrong:#?}");
}

#[test]
fn what_is_used_of_a_limit_is_told_within_three_percent() {
    for capture in CAPTURES.iter() {
        // In 12c and 32 a bio is a quarter of a second's budget, so the window holds a part of one more or less.
        let coarse = ["12c-journal-big-reference", "32-xfs-shared-log-reference"].contains(&capture.name.as_str());
        if capture.meta["truth"] != "throttled-by-io-max" || coarse {
            continue;
        }
        let rates = Rates::of(&capture.window);
        let scene = Scene::of(&capture.window, &rates);
        let reached: Vec<f64> =
            scene.caps.iter().filter(|cap| cap.reached()).map(|cap| cap.used_ratio().unwrap()).collect();
        assert!(!reached.is_empty(), "{}: no limit is reached", capture.name);
        for ratio in reached {
            assert!((ratio - 1.0).abs() <= 0.03, "{}: {ratio:.3} of the limit", capture.name);
        }
    }
}
