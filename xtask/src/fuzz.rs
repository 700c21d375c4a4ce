//! A short fuzz of every target under `fuzz/`: enough to meet a parser that panics on a torn line, not to search a night.

use anyhow::{Result, bail};

use crate::command::{cargo, in_ci, run, works};
use crate::test::Outcome;
use crate::workspace::Workspace;

/// Seconds for each target.
const SECONDS: u32 = 10;

/// Builds the targets and runs each for a short time.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome> {
    let Some(fuzz) = workspace.fuzz() else { return Ok(Outcome::Skipped("there is no fuzz/ yet".into())) };
    if !installed() {
        if !in_ci() {
            return Ok(Outcome::Skipped("cargo-fuzz is not installed: cargo install cargo-fuzz --locked".into()));
        }
        run(cargo().args(["install", "cargo-fuzz", "--locked"]))?;
    }
    if fuzz.programs.is_empty() {
        bail!("fuzz/Cargo.toml names no target");
    }
    // Sanitizers need a nightly compiler; a panic and a hang are found without. All targets at once use all cores.
    run(cargo().args(["fuzz", "build", "-s", "none"]).current_dir(workspace.root()))?;
    for target in &fuzz.programs {
        let limit = format!("-max_total_time={SECONDS}");
        // A line for each input that reaches new code says nothing here; a crash is told in full all the same.
        let args = ["fuzz", "run", "-s", "none", target, "--", &limit, "-verbosity=0", "-print_funcs=0"];
        run(cargo().args(args).current_dir(workspace.root()))?;
        println!("{target}: {SECONDS} s without a crash");
    }
    Ok(Outcome::Passed)
}

fn installed() -> bool {
    works("cargo", &["fuzz", "--version"])
}
