//! `cargo xtask iostat`: an oracle for the numbers of `quell stat -x` that quell's authors did not write.
//!
//! sysstat's `iostat -x` is what users compare with. Prepared counters are fed to both, so that every column must be the
//! same text; and with `--live` both watch one device under load, where they must agree within a bound.

mod compare;
mod input;
mod live;
mod programs;

use anyhow::{Result, ensure};
use rustix::process::geteuid;

use crate::command::{cargo, in_ci, run as run_command, works};
use crate::test::Outcome;
use crate::workspace::Workspace;
use compare::Cells;
use programs::{Quell, Source};

/// Differences that are printed: one wrong formula makes hundreds.
const SHOWN_MAX: usize = 40;

/// Arguments of `xtask iostat`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Watch a loop device under load with both programs, in place of prepared counters
    #[arg(long)]
    live: bool,
}

/// Compares; what is missing for it is an error.
pub(crate) fn run(args: &Args) -> Result<()> {
    let missing = missing();
    ensure!(missing.is_empty(), "iostat cannot be compared with: {}", missing.join("; "));
    let workspace = Workspace::load()?;
    run_command(cargo().args(["build", "--package", "quell"]))?;
    let quell = Quell(workspace.binary("debug", "quell"));
    if args.live { live::compare(&quell) } else { prepared(&quell) }
}

/// The step of `xtask test`.
pub(crate) fn step(_: &Workspace) -> Result<Outcome> {
    let missing = missing();
    if missing.is_empty() || in_ci() {
        return run(&Args { live: false }).map(|()| Outcome::Passed);
    }
    Ok(Outcome::Skipped(missing.join("; ")))
}

/// What this machine lacks.
fn missing() -> Vec<&'static str> {
    let needs = [
        (geteuid().is_root(), "not root: it takes a mount namespace"),
        (works("iostat", &["-V"]), "no iostat: install sysstat"),
        (works("unshare", &["--mount", "true"]), "no mount namespace of its own: unshare --mount fails"),
    ];
    needs.into_iter().filter(|(there, _)| !there).map(|(_, what)| what).collect()
}

/// Every prepared pair of moments, through both programs.
fn prepared(quell: &Quell) -> Result<()> {
    let mut all = Cells::default();
    let mut wrong = Vec::new();
    for pair in input::pairs() {
        let mut both = Cells::default();
        for source in Source::BOTH {
            let (theirs, ours) = (programs::iostat(&pair, source)?, quell.stat(&pair, source)?);
            let (cells, problems) = compare::same(&pair, &theirs, &ours);
            wrong.extend(problems.into_iter().map(|problem| format!("{}, {source:?}: {problem}", pair.name)));
            both.add(cells);
        }
        println!("{:<33} {both}", pair.name);
        all.add(both);
    }
    wrong.iter().take(SHOWN_MAX).for_each(|problem| println!("{problem}"));
    ensure!(wrong.is_empty(), "quell stat -x and iostat -x differ {} times ({all})", wrong.len());
    println!("the same text in all: {all}");
    Ok(())
}
