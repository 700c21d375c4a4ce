//! `cargo xtask bench`: what quell costs, beside the least that the kernel allows.
//!
//! Both sides run in turn in one process on one core, and the ratio is what counts: an absolute time says as much of the
//! machine as of quell. A claim that does not hold is a non-zero exit. Never part of the tests: a shared machine would
//! make them fail by chance.

mod paste;
mod program;
mod sample;
mod tree;

use anyhow::{Result, ensure};

use crate::command::{cargo, run as run_command};
use crate::interrupt::Interrupt;
use crate::workspace::Workspace;

/// The benchmarks.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// A sample of many cgroups against the bare reads of their files; memory; the doctor's time
    Sample(Args),
    /// A hundred megabytes of pasted iostat: time and memory
    Paste,
}

/// Arguments of `xtask bench sample`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many cgroups the tree has whose sample is timed
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    cgroups: u32,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    if cfg!(debug_assertions) {
        let mut again = cargo();
        again.args(["run", "--release", "--quiet", "--package", "xtask", "--", "bench"]);
        match command {
            Command::Sample(args) => again.args(["sample", "--cgroups", &args.cgroups.to_string()]),
            Command::Paste => again.arg("paste"),
        };
        return run_command(&mut again);
    }
    let interrupt = Interrupt::take_over()?;
    run_command(cargo().args(["build", "--release", "--quiet", "--package", "quell"]))?;
    let quell = Workspace::load()?.binary("release", "quell");
    let claims = match command {
        Command::Paste => paste::claims(&quell)?,
        Command::Sample(args) => vec![
            sample::ratio(args.cgroups, &interrupt)?,
            program::memory(&quell, 1_000, &interrupt)?,
            // Told without a claim: how it grows.
            Claim { most: None, ..program::memory(&quell, 5_000, &interrupt)? },
            program::doctor(&quell)?,
        ],
    };
    claims.iter().for_each(|claim| println!("{}", claim.line()));
    let broken = claims.iter().filter(|claim| !claim.holds()).count();
    ensure!(broken == 0, "{broken} of {} claims do not hold", claims.len());
    Ok(())
}

/// Something that is said of quell, as it was measured.
#[derive(Debug)]
struct Claim {
    what: String,
    measured: f64,
    /// The most that it may be; `None` where it is only told.
    most: Option<f64>,
    unit: &'static str,
    /// The numbers behind it.
    detail: String,
}

impl Claim {
    fn holds(&self) -> bool {
        self.most.is_none_or(|most| self.measured <= most)
    }

    fn line(&self) -> String {
        let Self { what, measured, most, unit, detail } = self;
        let Some(most) = most else { return format!("{what}: {measured:.2}{unit}, nothing claimed ({detail})") };
        let verdict = if self.holds() { "holds" } else { "DOES NOT HOLD" };
        format!("{what}: {measured:.2}{unit}, at most {most:.2}{unit}: {verdict} ({detail})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_up_to_its_bound() {
        let claim = |measured| Claim { what: "x".into(), measured, most: Some(1.5), unit: " s", detail: "why".into() };
        assert!(claim(1.5).holds() && !claim(1.51).holds());
        assert!(!claim(f64::NAN).holds(), "nothing measured");
        assert_eq!(claim(2.0).line(), "x: 2.00 s, at most 1.50 s: DOES NOT HOLD (why)");
        let told = Claim { most: None, ..claim(2.0) };
        assert!(told.holds());
        assert_eq!(told.line(), "x: 2.00 s, nothing claimed (why)");
    }
}
