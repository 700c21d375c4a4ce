//! Holds quell's answer against the known cause of a run.

#![expect(clippy::indexing_slicing, reason = "a key that a JSON value lacks is null and no panic")]

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::disk::Counters;
use super::scenario::Scenario;
use super::vm::Results;

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The truth came first and nothing wrong was said; the numbers that prove the situation.
    Right(Vec<String>),
    /// The situation was real and quell's answer is wrong.
    Wrong(Vec<String>),
    /// The situation did not come about, so nothing is proved.
    Void(Vec<String>),
    /// The situation was real, and quell has no rule of the truth's name yet; what it said instead.
    NoRule(String),
    /// This kernel cannot show the situation.
    Skipped(String),
    /// The lab failed.
    Broken(String),
}

impl Verdict {
    /// The word for it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Right(_) => "right",
            Self::Wrong(_) => "WRONG",
            Self::Void(_) => "VOID",
            Self::NoRule(_) => "no rule",
            Self::Skipped(_) => "skipped",
            Self::Broken(_) => "BROKEN",
        }
    }

    /// Whether a run that ended so lets the lab pass.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Self::Right(_) | Self::NoRule(_) | Self::Skipped(_))
    }

    /// What to say of it, a line each.
    pub(crate) fn details(&self) -> Vec<String> {
        match self {
            Self::Right(lines) | Self::Wrong(lines) | Self::Void(lines) => lines.clone(),
            Self::NoRule(line) | Self::Skipped(line) | Self::Broken(line) => vec![line.clone()],
        }
    }
}

/// The verdict on a run; `rules` are the ids that quell knows.
pub(crate) fn judge(scenario: &Scenario, results: &Results, rules: &[String]) -> Verdict {
    judge_files(scenario, results, rules).unwrap_or_else(|error| judge_broken(scenario, format!("{error:#}")))
}

/// The verdict on a run without results.
pub(crate) fn judge_broken(scenario: &Scenario, why: String) -> Verdict {
    match &scenario.breaks {
        Some(reason) if why.contains(reason.as_str()) => Verdict::Right(vec![why]),
        _ => Verdict::Broken(why),
    }
}

fn judge_files(scenario: &Scenario, results: &Results, rules: &[String]) -> Result<Verdict> {
    let files = files(&results.archive)?;
    let mut measures = measures(scenario, &files, results)?;
    if let Some(reason) = &scenario.breaks {
        return Ok(Verdict::Wrong(vec![format!("the run came to its end; right is: {reason}")]));
    }
    let (real, holds) = held(&scenario.real, &measures)?;
    if !holds {
        return Ok(Verdict::Void(real));
    }
    measures["quell"] = answer(&files)?;
    Ok(judge_real(scenario, &measures, rules, real))
}

/// The claims that prove the situation, with their numbers; an error where one does not hold.
pub(crate) fn proof(scenario: &Scenario, results: &Results) -> Result<Vec<String>> {
    let (real, holds) = held(&scenario.real, &measures(scenario, &files(&results.archive)?, results)?)?;
    ensure!(holds, "the situation did not come about: {}", real.join("; "));
    Ok(real)
}

fn judge_real(scenario: &Scenario, measures: &Value, rules: &[String], real: Vec<String>) -> Verdict {
    let answer = &measures["quell"];
    if !rules.contains(&scenario.truth) {
        return Verdict::NoRule(format!("{} is not a rule yet; said: {}", scenario.truth, summary(answer)));
    }
    let mut wrong = wrong(scenario, answer);
    match held(&scenario.numbers, measures) {
        Ok((_, true)) => {}
        Ok((lines, false)) => wrong.extend(lines),
        Err(error) => wrong.push(format!("{error:#}")),
    }
    if wrong.is_empty() {
        return Verdict::Right(real);
    }
    wrong.push(format!("said: {}", summary(answer)));
    wrong.extend(real);
    Verdict::Wrong(wrong)
}

/// What is wrong with the doctor's document; empty where nothing is.
fn wrong(scenario: &Scenario, answer: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let findings = list(answer, "findings");
    let first = findings.first().map_or("nothing", |finding| word(finding, "id"));
    if !scenario.is_right(first) {
        wrong.push(format!("first is {first}, right is {}", scenario.truth));
    }
    for id in warnings(&findings).into_iter().filter(|id| !scenario.allows(id)) {
        wrong.push(format!("says {id}, which is not so"));
    }
    // Where the truth itself comes first, it must also be said of the right one, and blame the right one.
    let Some(finding) = findings.first().filter(|finding| word(finding, "id") == scenario.truth) else { return wrong };
    let names = [
        ("victim", &scenario.victim, &finding["subject"]["cgroup"]),
        ("culprit", &scenario.culprit, &finding["culprit"]["cgroup"]),
        ("disk", &scenario.device, &finding["subject"]["device"]),
    ];
    for (what, right, said) in names {
        if right.as_ref().is_some_and(|right| said.as_str() != Some(right)) {
            wrong.push(format!("the {what} is {said}, right is {}", right.as_deref().unwrap_or_default()));
        }
    }
    wrong
}

/// Every id that is said with at least a warning, and those that became evidence of one.
fn warnings<'a>(findings: &[&'a Value]) -> Vec<&'a str> {
    let warnings = findings.iter().filter(|finding| word(finding, "severity") != "info");
    let mut ids = Vec::new();
    for finding in warnings {
        ids.push(word(finding, "id"));
        let evidence = list(finding, "evidence").into_iter();
        ids.extend(evidence.filter(|evidence| word(evidence, "aspect") == "explains").map(|one| word(one, "what")));
    }
    ids
}

/// The findings, a sentence each.
fn summary(answer: &Value) -> String {
    let findings = list(answer, "findings");
    let said = findings.iter().map(|finding| format!("{} ({})", word(finding, "id"), word(finding, "summary")));
    said.collect::<Vec<_>>().join("; ")
}

/// The claims with their numbers, and whether all hold.
fn held(claims: &[super::claim::Claim], measures: &Value) -> Result<(Vec<String>, bool)> {
    let held = claims.iter().map(|claim| claim.hold(measures)).collect::<Result<Vec<_>>>()?;
    let all = held.iter().all(|held| held.holds);
    let shown = held.into_iter().map(|held| if held.holds { held.shown } else { format!("{} (NOT SO)", held.shown) });
    Ok((shown.collect(), all))
}

/// The guest's files by their names.
pub(crate) fn files(archive: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().context("the results")? {
        let mut entry = entry.context("the results")?;
        let name = entry.path().context("the results")?.to_string_lossy().trim_start_matches("./").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).with_context(|| name.clone())?;
        files.insert(name, bytes);
    }
    Ok(files)
}

/// Every number of the run that a claim may name.
fn measures(scenario: &Scenario, files: &BTreeMap<String, Vec<u8>>, results: &Results) -> Result<Value> {
    let mut loads = Map::new();
    for (name, bytes) in files {
        let Some(load) = name.strip_prefix("fio/").and_then(|name| name.strip_suffix(".json")) else { continue };
        let job = fio(bytes).with_context(|| name.clone())?;
        let error = job["error"].as_i64().unwrap_or_default();
        let excused = scenario.may_fail.iter().any(|name| name == load);
        ensure!(error == 0 || excused, "load {load} ended with error {error}");
        loads.insert(load.to_owned(), job);
    }
    let seen = files.get("notes").map(|bytes| notes(bytes)).transpose()?.unwrap_or_default();
    Ok(json!({"fio": loads, "disk": disks(results)?, "seen": seen}))
}

/// What the doctor said.
fn answer(files: &BTreeMap<String, Vec<u8>>) -> Result<Value> {
    let answer = files.get("doctor.json").context("the script never called `watch`")?;
    let complaint = files.get("quell.err").map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    serde_json::from_slice(answer).with_context(|| format!("quell: {}", complaint.trim()))
}

/// The first job of fio's report. What fio says of the signal that ended it comes before.
fn fio(bytes: &[u8]) -> Result<Value> {
    let start = bytes.iter().position(|byte| *byte == b'{').context("no report")?;
    let report: Value = serde_json::from_slice(bytes.get(start..).unwrap_or_default())?;
    report["jobs"].get(0).cloned().context("no job in the report")
}

/// `NAME NUMBER` lines.
fn notes(bytes: &[u8]) -> Result<Map<String, Value>> {
    let text = String::from_utf8_lossy(bytes);
    let note = |line: &str| {
        let (name, number) = line.split_once(' ').with_context(|| format!("note `{line}` has no number"))?;
        let number: f64 = number.trim().parse().with_context(|| format!("note `{line}`: not a number"))?;
        Ok((name.to_owned(), json!(number)))
    };
    text.lines().map(note).collect()
}

/// What the disks themselves served while quell watched: rates, and the mean time of a request in the disk.
fn disks(results: &Results) -> Result<Value> {
    let Some([begin, end]) = &results.watched else { return Ok(Value::Null) };
    let mut disks = Map::new();
    for (name, begin) in begin {
        let end = end.get(name).with_context(|| format!("disk {name} is gone"))?;
        disks.insert(name.clone(), served(begin, end));
    }
    Ok(Value::Object(disks))
}

fn served(begin: &Counters, end: &Counters) -> Value {
    let seconds = (end.at - begin.at).as_secs_f64();
    let count = |of: fn(&Counters) -> u64| precise(of(end) - of(begin));
    let usec =
        |of: fn(&Counters) -> Duration, ios: f64| (ios > 0.0).then(|| (of(end) - of(begin)).as_secs_f64() * 1e6 / ios);
    let (reads, writes) = (count(|disk| disk.reads), count(|disk| disk.writes));
    json!({
        "reads_per_sec": reads / seconds,
        "writes_per_sec": writes / seconds,
        "flushes_per_sec": count(|disk| disk.flushes) / seconds,
        "read_bytes_per_sec": count(|disk| disk.read_bytes) / seconds,
        "write_bytes_per_sec": count(|disk| disk.write_bytes) / seconds,
        "read_usec": usec(|disk| disk.read_time, reads),
        "write_usec": usec(|disk| disk.write_time, writes),
    })
}

/// A count of one run as a number to divide.
#[expect(clippy::as_conversions, reason = "exact: a run counts far less than 2^53 bytes")]
fn precise(count: u64) -> f64 {
    count as f64
}

fn list<'a>(value: &'a Value, key: &str) -> Vec<&'a Value> {
    value[key].as_array().into_iter().flatten().collect()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "cause = ''\ntruth = 'slow-device'\nmay_say = ['serial-issuer']\nreal = ['seen.x >= 1']\nscript = ''\n{more}\n[disk]"
        );
        toml::from_str(&text).unwrap()
    }

    fn finding(id: &str, severity: &str) -> Value {
        json!({"id": id, "severity": severity, "summary": "", "subject": {"cgroup": "a"}, "culprit": null,
            "evidence": [{"aspect": "explains", "what": "serial-issuer"}]})
    }

    fn verdict(scenario: &Scenario, seen: f64, findings: &[Value]) -> Verdict {
        let document = json!({ "findings": findings }).to_string();
        let mut archive = tar::Builder::new(Vec::new());
        for (name, text) in [("./doctor.json", document), ("./notes", format!("x {seen}\n"))] {
            let mut header = tar::Header::new_gnu();
            header.set_size(u64::try_from(text.len()).unwrap());
            header.set_mode(0o644);
            archive.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let results = Results { archive: archive.into_inner().unwrap(), watched: None };
        judge(scenario, &results, &["slow-device".into()])
    }

    #[test]
    fn only_a_real_situation_with_its_truth_first_is_right() {
        let truth = finding("slow-device", "warning");
        let plain = scenario("");
        assert!(matches!(verdict(&plain, 1.0, std::slice::from_ref(&truth)), Verdict::Right(_)));
        assert!(matches!(verdict(&plain, 0.5, std::slice::from_ref(&truth)), Verdict::Void(_)));
        assert!(matches!(verdict(&plain, 1.0, &[]), Verdict::Wrong(_)));
        let other = finding("device-hung", "critical");
        assert!(matches!(verdict(&plain, 1.0, &[other.clone(), truth.clone()]), Verdict::Wrong(_)));
        assert!(matches!(verdict(&plain, 1.0, &[truth.clone(), other]), Verdict::Wrong(_)));
        assert!(matches!(verdict(&plain, 1.0, &[truth, finding("cgroup-v1", "info")]), Verdict::Right(_)));
    }

    #[test]
    fn a_wrong_victim_is_wrong_and_a_truth_without_a_rule_is_said() {
        let truth = [finding("slow-device", "warning")];
        assert!(matches!(verdict(&scenario("victim = 'a'"), 1.0, &truth), Verdict::Right(_)));
        assert!(matches!(verdict(&scenario("victim = 'b'"), 1.0, &truth), Verdict::Wrong(_)));
        assert!(matches!(verdict(&scenario("culprit = 'b'"), 1.0, &truth), Verdict::Wrong(_)));
        let mut new = scenario("");
        new.truth = "raid-rebuild".into();
        assert!(matches!(verdict(&new, 1.0, &truth), Verdict::NoRule(_)));
    }
}
