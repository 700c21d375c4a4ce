//! Holds quell's answer against the known cause of a run.

#![expect(clippy::indexing_slicing, reason = "a key that a JSON value lacks is null and no panic")]

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::disk::Counters;
use super::scenario::{RuleIs, Scenario};
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
    /// The situation was real, and quell has no rule of the truth's name yet; it said nothing false.
    NoRule(Vec<String>),
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
            Self::Right(lines) | Self::Wrong(lines) | Self::Void(lines) | Self::NoRule(lines) => lines.clone(),
            Self::Skipped(line) | Self::Broken(line) => vec![line.clone()],
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
    match answer(&files, &measures["seen"]) {
        Ok(answer) => measures["quell"] = answer,
        Err(error) => return Ok(Verdict::Wrong([vec![format!("{error:#}")], real].concat())),
    }
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
    let findings = list(answer, "findings");
    let mut wrong = false_alarms(scenario, &findings);
    match held(&scenario.numbers, measures) {
        Ok((_, true)) => {}
        Ok((lines, false)) => wrong.extend(lines),
        Err(error) => wrong.push(format!("{error:#}")),
    }
    match (scenario.rule, rules.contains(&scenario.truth)) {
        (None, true) => wrong.extend(misjudged(scenario, &findings)),
        (Some(RuleIs::Later), false) => {}
        (None, false) => wrong.push(format!("{} is no rule of quell; say `rule = \"later\"`", scenario.truth)),
        (Some(RuleIs::Later), true) => wrong.push(format!("{} is a rule now: `rule` is out of date", scenario.truth)),
    }
    let said = format!("said: {}", summary(&findings));
    if !wrong.is_empty() {
        return Verdict::Wrong([wrong, vec![said], real].concat());
    }
    match scenario.rule {
        None => Verdict::Right(real),
        Some(RuleIs::Later) => Verdict::NoRule([vec![said], real].concat()),
    }
}

/// What is wrong with the first finding; empty where nothing is.
fn misjudged(scenario: &Scenario, findings: &[&Value]) -> Vec<String> {
    let Some(first) = findings.first() else { return vec!["nothing is said".into()] };
    let id = word(first, "id");
    if !scenario.is_right(id) {
        return vec![format!("first is {id}, right is {}", scenario.truth)];
    }
    // The truth must also be said of the right one and blame the right one; another verdict that is right may leave
    // them open.
    let is_truth = id == scenario.truth;
    let names = [
        ("victim", &scenario.victim, &first["subject"]["cgroup"]),
        ("culprit", &scenario.culprit, &first["culprit"]["cgroup"]),
        ("disk", &scenario.device, &first["subject"]["device"]),
    ];
    let differs = |right: &str, said: &Value| said.as_str().map_or(is_truth, |said| said != right);
    let wrong = names.iter().filter_map(|(what, right, said)| {
        let right = right.as_deref().filter(|right| differs(right, said))?;
        Some(format!("the {what} is {said}, right is {right}"))
    });
    wrong.collect()
}

/// Every warning that the scenario does not allow, on its own or as evidence of another one.
fn false_alarms(scenario: &Scenario, findings: &[&Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for finding in findings.iter().filter(|finding| word(finding, "severity") != "info") {
        let id = word(finding, "id");
        if !scenario.allows(id) {
            wrong.push(format!("says {id}, which is not so"));
        }
        for evidence in list(finding, "evidence").iter().filter(|evidence| word(evidence, "aspect") == "explains") {
            let folded = word(evidence, "what");
            if !scenario.allows_as_evidence(folded) {
                wrong.push(format!("explains {folded}, which is not so"));
            }
        }
    }
    wrong
}

/// The findings, a sentence each.
fn summary(findings: &[&Value]) -> String {
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
        let error = job["error"].as_i64().with_context(|| format!("{name}: no `error`"))?;
        let excused = scenario.may_fail.iter().any(|name| name == load);
        ensure!(error == 0 || excused, "load {load} ended with error {error}");
        loads.insert(load.to_owned(), job);
    }
    let seen = files.get("notes").map(|bytes| notes(bytes)).transpose()?.unwrap_or_default();
    Ok(json!({"fio": loads, "disk": disks(results)?, "seen": seen}))
}

/// What the doctor said; it must have ended well.
fn answer(files: &BTreeMap<String, Vec<u8>>, seen: &Value) -> Result<Value> {
    let answer = files.get("doctor.json").context("the script never called `watch`")?;
    let complaint = files.get("quell.err").map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    ensure!(seen["quell_status"].is_null(), "quell ended with status {}: {}", seen["quell_status"], complaint.trim());
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

/// What the disks themselves served while quell watched: rates, the mean time of a request in the disk, and how many
/// were in it at the end.
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
    let [reads, writes, flushes] = [count(|disk| disk.reads), count(|disk| disk.writes), count(|disk| disk.flushes)];
    json!({
        "reads_per_sec": reads / seconds,
        "writes_per_sec": writes / seconds,
        "flushes_per_sec": flushes / seconds,
        "read_bytes_per_sec": count(|disk| disk.read_bytes) / seconds,
        "write_bytes_per_sec": count(|disk| disk.write_bytes) / seconds,
        "read_await_usec": usec(|disk| disk.read_time, reads),
        "write_await_usec": usec(|disk| disk.write_time, writes),
        "flush_await_usec": usec(|disk| disk.flush_time, flushes),
        "in_flight": end.in_flight,
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
            "cause = ''\ntruth = 'slow-device'\nexplains = ['serial-issuer']\nreal = ['seen.x >= 1']\nscript = ''\n{more}\n[disk]"
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
    fn a_wrong_victim_is_wrong_and_so_is_a_culprit_that_is_not_named() {
        let truth = [finding("slow-device", "warning")];
        assert!(matches!(verdict(&scenario("victim = 'a'"), 1.0, &truth), Verdict::Right(_)));
        assert!(matches!(verdict(&scenario("victim = 'b'"), 1.0, &truth), Verdict::Wrong(_)));
        assert!(matches!(verdict(&scenario("culprit = 'b'"), 1.0, &truth), Verdict::Wrong(_)));
    }

    #[test]
    fn a_truth_without_a_rule_must_say_so_and_no_false_alarm_passes_there() {
        let said = |later: &str, may_say: &[&str]| {
            let mut new = scenario(later);
            new.truth = "raid-rebuild".into();
            new.may_say = may_say.iter().map(|id| (*id).to_owned()).collect();
            verdict(&new, 1.0, &[finding("slow-device", "warning")])
        };
        assert!(matches!(said("rule = 'later'", &["slow-device"]), Verdict::NoRule(_)));
        assert!(matches!(said("rule = 'later'", &[]), Verdict::Wrong(_)));
        assert!(matches!(said("", &["slow-device"]), Verdict::Wrong(_)));
        let known = scenario("rule = 'later'");
        assert!(matches!(verdict(&known, 1.0, &[finding("slow-device", "warning")]), Verdict::Wrong(_)));
    }

    #[test]
    fn what_may_be_evidence_may_not_stand_alone() {
        let findings = [finding("slow-device", "warning"), finding("serial-issuer", "warning")];
        assert!(matches!(verdict(&scenario(""), 1.0, &findings), Verdict::Wrong(_)));
        assert!(matches!(verdict(&scenario("may_say = ['serial-issuer']"), 1.0, &findings), Verdict::Right(_)));
    }
}
