//! `cargo xtask capture`: a scenario as a recorded host, so that `cargo test` has its cause for good.
//!
//! The situation must have come about by the scenario's own claims, else nothing is written: a fixture whose cause is not
//! there would teach the rules something false.

#![expect(clippy::indexing_slicing, reason = "a key that a JSON value lacks is null and no panic")]

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lzma_rust2::{XzOptions, XzWriter};
use serde_json::{Value, json};

use super::kernel::Which;
use super::scenario::Scenario;
use super::vm::Ended;
use super::{Lab, verdict};
use crate::workspace::Workspace;

/// Arguments of `xtask capture`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario; `cargo xtask lab --list` names them
    scenario: String,
    /// `stock`, `new` or a file [default: new if it is there, else stock]
    #[arg(long)]
    kernel: Option<Which>,
    /// The recording's name [default: `lab-` and the scenario's]
    #[arg(long)]
    name: Option<String>,
}

/// Runs a scenario and writes `fixtures/captures/NAME.tar.xz`.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let scenario = Scenario::read(&super::folder(&workspace).join(format!("{}.toml", args.scenario)))?;
    ensure!(scenario.breaks.is_none(), "{} is about the lab itself: there is nothing to record", scenario.name);
    let lab = Lab::prepare(&workspace)?;
    let kernel = lab.kernel(args.kernel.as_ref())?;
    let name = args.name.clone().unwrap_or_else(|| format!("lab-{}", scenario.name));
    let packed = workspace.root().join("fixtures/captures").join(format!("{name}.tar.xz"));
    ensure!(!packed.exists(), "{} is there already", packed.display());
    let results = match lab.boot(&scenario, &kernel, true)? {
        Ended::Results(results) => results,
        Ended::Skipped(why) | Ended::NotBooted(why) | Ended::Broken(why) => bail!("{}: {why}", scenario.name),
    };
    let proof = verdict::proof(&scenario, &results)?;
    let meta = |kernel: &str, seconds: f64| meta(&scenario, &lab.rules, &name, kernel, seconds, &proof);
    let bytes = pack(&name, &results.archive, meta)?;
    std::fs::write(&packed, bytes).with_context(|| format!("{}", packed.display()))?;
    println!("{}", packed.display());
    Ok(())
}

/// What the recording is, in the words of the other ones.
fn meta(scenario: &Scenario, rules: &[String], name: &str, kernel: &str, seconds: f64, proof: &[String]) -> Value {
    let must_not: Vec<&String> =
        rules.iter().filter(|id| !scenario.allows_as_evidence(id) && *id != "healthy").collect();
    json!({
        "name": name,
        "kernel": kernel,
        "origin": "captured",
        "interval_s": seconds,
        "truth": scenario.truth,
        "acceptable": scenario.accept,
        "must_not": must_not,
        "notes": format!("{} | {}", scenario.cause, proof.join(" | ")),
        "subject": scenario.victim,
        "device": scenario.device,
        "layer": scenario.culprit,
    })
}

/// Packs what the guest captured below a folder of this name.
fn pack(name: &str, results: &[u8], meta: impl Fn(&str, f64) -> Value) -> Result<Vec<u8>> {
    let writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).context("xz")?;
    let mut packed = tar::Builder::new(writer);
    let (mut report, mut kernel) = (None, String::new());
    for entry in tar::Archive::new(results).entries().context("the results")? {
        let mut entry = entry.context("the results")?;
        let path = entry.path().context("the results")?.into_owned();
        let path = path.strip_prefix("./").unwrap_or(&path);
        if path == Path::new("capture.json") {
            report = Some(serde_json::from_reader(&mut entry).context("what quell capture said")?);
            continue;
        }
        if path == Path::new("kernel") {
            entry.read_to_string(&mut kernel).context("the kernel's name")?;
        }
        let Some(path) = place(name, path) else { continue };
        let mut header = entry.header().clone();
        if let Some(link) = entry.link_name().context("the results")? {
            packed.append_link(&mut header, &path, &link).with_context(|| format!("{}", path.display()))?;
        } else {
            packed.append_data(&mut header, &path, &mut entry).with_context(|| format!("{}", path.display()))?;
        }
    }
    let report: Value = report.context("the script never called `watch`")?;
    let seconds = report["observed_seconds"].as_f64().context("quell capture gave no time")?;
    let text = serde_json::to_string_pretty(&meta(kernel.trim(), seconds))?;
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len().try_into()?);
    header.set_mode(0o644);
    packed.append_data(&mut header, Path::new(name).join("meta.json"), text.as_bytes()).context("meta.json")?;
    packed.into_inner().context("tar")?.finish().context("xz")
}

/// Where a file of the guest's results goes: the two moments and fio's reports, and nothing else.
fn place(name: &str, path: &Path) -> Option<PathBuf> {
    if let Ok(inner) = path.strip_prefix("capture") {
        return Some(Path::new(name).join(inner));
    }
    let load = path.strip_prefix("fio").ok()?.to_str().filter(|load| load.ends_with(".json"))?;
    Some(Path::new(name).join(format!("fio-{load}")))
}
