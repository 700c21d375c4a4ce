//! `cargo xtask test`: every check in one command, the README's and CI's.
//!
//! A step that fails does not stop the others: who reads the end of a long run wants all that is wrong, once. A step that
//! cannot run here is counted as a skip with its reason, and in CI, where everything can be installed, it is a failure.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::command::{cargo, run as run_command};
use crate::workspace::Workspace;
use crate::{bpf, fuzz, iostat, lab, needs, tidy};

/// Arguments of `xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave out what boots a kernel; where the lab's programs are missing this is the way to run the rest
    #[arg(long)]
    no_lab: bool,
}

/// How a step that did not fail ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// It could not run here, and why.
    Skipped(String),
}

/// A step: its name, and what it does.
type Step = (&'static str, fn(&Workspace) -> Result<Outcome>);

/// Cheap and telling first.
const STEPS: [Step; 11] = [
    ("programs", |_| install().context("the lab cannot run here, and --no-lab leaves it out")),
    ("format", |_| cargo_step(&["fmt", "--all", "--check"])),
    ("tidy", |_| tidy::run().map(|()| Outcome::Passed)),
    ("bpf", bpf::step),
    ("clippy", |_| cargo_step(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("test", |_| cargo_step(&["test", "--workspace"])),
    ("test as root", |_| as_root()),
    ("doc", |_| {
        let mut doc = cargo();
        run_command(doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
        Ok(Outcome::Passed)
    }),
    ("fuzz", fuzz::step),
    ("iostat", iostat::step),
    ("lab", lab::step),
];

/// The steps that `--no-lab` leaves out.
const OF_THE_LAB: [&str; 2] = ["programs", "lab"];

/// Installs what the steps run, where that can be done.
fn install() -> Result<Outcome> {
    needs::install_missing(needs::LAB)?;
    needs::install_missing(needs::BPF)?;
    Ok(Outcome::Passed)
}

/// The tests that `cargo test` leaves out because they change the host: they make a cgroup of their own and remove it.
fn as_root() -> Result<Outcome> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Outcome::Skipped("they make cgroups, so they need root".into()));
    }
    cargo_step(&["test", "--workspace", "--tests", "--", "--ignored"])
}

/// Runs every step and says how each ended.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let wanted = |&(name, step): &Step| {
        let step = if args.no_lab && OF_THE_LAB.contains(&name) { left_out } else { step };
        (name, step)
    };
    let done: Vec<Done> = STEPS.iter().map(|step| perform(&wanted(step), &workspace)).collect();
    println!("\n{}", report(&done));
    let failed = done.iter().filter(|done| done.outcome.is_err()).count();
    ensure!(failed == 0, "{failed} of {} steps failed", done.len());
    Ok(())
}

fn left_out(_: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Skipped("--no-lab".into()))
}

/// A step that ended.
struct Done {
    name: &'static str,
    outcome: Result<Outcome>,
    took: Duration,
}

fn perform(&(name, step): &Step, workspace: &Workspace) -> Done {
    println!("\n=== {name}");
    let start = Instant::now();
    let outcome = step(workspace);
    let done = Done { name, outcome, took: start.elapsed() };
    println!("=== {}", done.line());
    done
}

impl Done {
    fn line(&self) -> String {
        let (name, seconds) = (self.name, self.took.as_secs_f64());
        match &self.outcome {
            Ok(Outcome::Passed) => format!("{name}: passed in {seconds:.1} s"),
            Ok(Outcome::Skipped(why)) => format!("{name}: skipped: {why}"),
            Err(error) => format!("{name}: FAILED after {seconds:.1} s: {error:#}"),
        }
    }
}

/// A line a step, and the counts alone on the last line, which CI reads.
fn report(done: &[Done]) -> String {
    let count = |which: fn(&Result<Outcome>) -> bool| done.iter().filter(|done| which(&done.outcome)).count();
    let passed = count(|outcome| matches!(outcome, Ok(Outcome::Passed)));
    let skipped = count(|outcome| matches!(outcome, Ok(Outcome::Skipped(_))));
    let failed = count(Result::is_err);
    let lines: String = done.iter().map(|done| format!("{}\n", done.line())).collect();
    format!("{lines}{passed} passed, {failed} failed, {skipped} skipped")
}

fn cargo_step(args: &[&str]) -> Result<Outcome> {
    run_command(cargo().args(args))?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_every_step_once() {
        let done = |outcome| Done { name: "x", outcome, took: Duration::from_millis(1500) };
        let all = [
            done(Ok(Outcome::Passed)),
            done(Err(anyhow::anyhow!("no").context("cargo test"))),
            done(Ok(Outcome::Skipped("no iostat".into()))),
            done(Ok(Outcome::Passed)),
        ];
        let report = report(&all);
        assert_eq!(report.lines().last(), Some("2 passed, 1 failed, 1 skipped"));
        assert!(report.contains("x: FAILED after 1.5 s: cargo test: no\n"), "{report}");
        assert!(report.contains("x: skipped: no iostat\n"), "{report}");
    }
}
