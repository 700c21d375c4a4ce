//! Public problem reports: what somebody pasted, and what the doctor must find in it.
//!
//! `fixtures/cases/NN-slug/input.*` is the paste, numbers as posted and names neutral; `case.json` says what is right, what
//! would be wrong, and how sure that is. The binary itself is run. Every case of `high` confidence must be right and nine
//! in ten of the `medium` ones; `low` ones are for reading.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking, as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    let mut all: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.is_dir());
    all.sort();
    all
}

/// The paste of a case.
fn input(case: &Path) -> PathBuf {
    let mut files = fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.file_stem().unwrap() == "input").unwrap()
}

fn words<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What is wrong with the doctor's answer to a case; `None` where nothing is.
fn fault(case: &Path, meta: &Value) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_quell"))
        .args(["doctor", "--json", "--from"])
        .arg(input(case))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else { return Some(errors) };
    let findings = document["findings"].as_array().unwrap();
    let ids = |wanted: fn(&str) -> bool| -> Vec<&str> {
        let findings = findings.iter().filter(|finding| wanted(finding["severity"].as_str().unwrap()));
        findings.map(|finding| finding["id"].as_str().unwrap()).collect()
    };
    let (all, loud) = (ids(|_| true), ids(|severity| severity != "info"));
    let expected = words(meta, "expected");
    if let Some(id) = words(meta, "must_not").into_iter().find(|id| all.contains(id)) {
        return Some(format!("says {id}, which is wrong; all: {all:?}"));
    }
    let right = match loud.first() {
        Some(first) => expected.contains(first),
        // Saying nothing loud is right where health is, or that there is too little to say.
        None => all.iter().any(|id| expected.contains(id)),
    };
    let all_right = expected[0] != "healthy" || loud.iter().all(|id| expected.contains(id));
    (!right || !all_right).then(|| format!("says {all:?}, right is {expected:?}"))
}

#[test]
fn every_sure_case_is_right_and_nine_in_ten_of_the_likely_ones() {
    let mut wrong = BTreeMap::new();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for case in cases() {
        let meta: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        let confidence = meta["confidence"].as_str().unwrap().to_owned();
        let (right, all) = counts.entry(confidence.clone()).or_default();
        *all += 1;
        match fault(&case, &meta) {
            None => *right += 1,
            Some(fault) => {
                wrong.insert(case.file_name().unwrap().to_owned(), format!("{confidence}: {fault}"));
            }
        }
    }
    println!("right: {counts:?}; wrong: {wrong:#?}");
    let (high, medium) = (counts["high"], counts["medium"]);
    assert!(high.1 >= 30, "only {} cases: fixtures are missing", high.1);
    assert!(high.0 == high.1 && 10 * medium.0 >= 9 * medium.1, "{counts:?}: {wrong:#?}");
}
