//! `cargo xtask lab`: quell's answers on a real kernel whose trouble is known.
//!
//! A scenario boots a kernel in QEMU over disks whose behaviour is a model in this process, runs fio inside, lets quell
//! watch, and holds the doctor's document against the known cause. Emulation is slow and shared, so that every claim is a
//! ratio within one run, and a run whose situation did not come about is void: it passes as little as a wrong answer does.

mod capture;
mod claim;
mod disk;
mod image;
mod initramfs;
mod kernel;
mod scenario;
mod table;
mod verdict;
mod vm;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{cargo, output, run as run_command};
use crate::interrupt::Interrupt;
use crate::needs;
use crate::test::Outcome;
use crate::workspace::Workspace;
use kernel::{Kernel, Which};
use scenario::Scenario;
use table::Run;
use verdict::Verdict;
use vm::{DiskOf, Ended, Spec};

pub(crate) use capture::{Args as CaptureArgs, run as capture};

/// Arguments of `xtask lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios by name or file; `--list` names them
    scenarios: Vec<String>,
    /// Every scenario
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// The scenarios that `cargo xtask test` runs
    #[arg(long, conflicts_with_all = ["scenarios", "all"])]
    core: bool,
    /// `stock` (the distribution's), `new` (lab/kernel), or a file; may be repeated [default: new if it is there, else stock; both with --all]
    #[arg(long)]
    kernel: Vec<Which>,
    /// How often each is run
    #[arg(long, default_value_t = NonZeroUsize::MIN)]
    runs: NonZeroUsize,
    /// Keep what each run left, below this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Only name the scenarios and their causes
    #[arg(long)]
    list: bool,
}

/// Runs scenarios and holds quell's answers against their causes.
pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let all = Scenario::all(&folder(&workspace))?;
    if args.list {
        all.iter().for_each(|scenario| println!("{:32} {}", scenario.name, scenario.cause));
        return Ok(());
    }
    let chosen = choose(args, all)?;
    let lab = Lab::prepare(&workspace)?;
    let kernels = lab.kernels(args)?;
    let mut runs = Vec::new();
    let ended = lab.run_all(&chosen, &kernels, args, &mut runs);
    // What was seen before an interrupt or an error is told all the same.
    if runs.len() > 1 {
        println!("\n{}", table::of(&runs));
    }
    if !runs.is_empty() {
        println!("{}", table::counts(&runs));
    }
    ended?;
    let failed = runs.iter().filter(|run| !run.verdict.passes()).count();
    ensure!(failed == 0, "{failed} of {} runs failed", runs.len());
    Ok(())
}

/// The step of `xtask test`: the core scenarios on one kernel.
pub(crate) fn step(_: &Workspace) -> Result<Outcome> {
    let runs = NonZeroUsize::MIN;
    run(&Args { scenarios: Vec::new(), all: false, core: true, kernel: Vec::new(), runs, keep: None, list: false })?;
    Ok(Outcome::Passed)
}

/// Where the scenarios are.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root().join("lab/scenarios")
}

fn choose(args: &Args, mut all: Vec<Scenario>) -> Result<Vec<Scenario>> {
    if args.core {
        all.retain(|scenario| scenario.core);
    }
    if args.core || args.all {
        return Ok(all);
    }
    ensure!(!args.scenarios.is_empty(), "which scenario? A name of --list, --core or --all");
    let find = |name: &String| match all.iter().find(|scenario| scenario.name == *name) {
        Some(scenario) => Ok(scenario.clone()),
        None if name.ends_with(".toml") => Scenario::read(Path::new(name)),
        None => bail!("no scenario {name}; --list names them"),
    };
    args.scenarios.iter().map(find).collect()
}

/// All that the runs have in common.
struct Lab {
    root: PathBuf,
    cache: PathBuf,
    /// The guest's programs, unpacked by every kernel.
    base: Vec<u8>,
    /// The ids that quell has a rule for.
    rules: Vec<String>,
    interrupt: Interrupt,
}

impl Lab {
    /// Builds quell and the guest.
    fn prepare(workspace: &Workspace) -> Result<Self> {
        needs::install_missing(needs::LAB)?;
        run_command(cargo().args(["build", "--quiet", "--release", "--package", "quell"]))?;
        run_command(cargo().args(["build", "--quiet", "--package", "xtask", "--bin", "idle-io-uring"]))?;
        let quell = workspace.binary("release", "quell");
        let rules = rules(&output(Command::new(&quell).args(["explain", "--json"]))?)?;
        let guest = workspace.root().join("lab/guest");
        let read = |name: &str| std::fs::read(guest.join(name)).with_context(|| format!("lab/guest/{name}"));
        let own = [("quell", quell), ("idle-io-uring", workspace.binary("debug", "idle-io-uring"))];
        let base = initramfs::base(&own, &read("init")?, &read("lib.sh")?)?;
        let cache = workspace.target().join("lab");
        Ok(Self { root: workspace.root().into(), cache, base, rules, interrupt: Interrupt::take_over()? })
    }

    fn kernels(&self, args: &Args) -> Result<Vec<Kernel>> {
        let which = match args.kernel.as_slice() {
            [] if args.all => &[Which::Stock, Which::New],
            [] => return Ok(vec![self.kernel(None)?]),
            named => named,
        };
        which.iter().map(|which| self.kernel(Some(which))).collect()
    }

    /// The kernel that was asked for, or the usual one.
    fn kernel(&self, which: Option<&Which>) -> Result<Kernel> {
        which.map_or_else(
            || kernel::usual(&self.root, &self.cache),
            |which| kernel::find(which, &self.root, &self.cache),
        )
    }

    /// Every scenario on every kernel, each told as it ends.
    fn run_all(&self, chosen: &[Scenario], kernels: &[Kernel], args: &Args, runs: &mut Vec<Run>) -> Result<()> {
        for kernel in kernels {
            for scenario in chosen {
                for _ in 0..args.runs.get() {
                    let run = self.run(scenario, kernel)?;
                    println!("{}", run.line());
                    run.verdict.details().iter().for_each(|line| println!("    {line}"));
                    if let Some(dir) = &args.keep {
                        run.keep(dir, runs.len())?;
                    }
                    runs.push(run);
                }
            }
        }
        Ok(())
    }

    /// One scenario on one kernel.
    fn run(&self, scenario: &Scenario, kernel: &Kernel) -> Result<Run> {
        let start = Instant::now();
        let (verdict, archive) = match self.boot(scenario, kernel, false)? {
            Ended::Results(results) => (verdict::judge(scenario, &results, &self.rules), Some(results.archive)),
            Ended::Skipped(why) => (Verdict::Skipped(why), None),
            Ended::NotBooted(why) => (Verdict::Broken(why), None),
            Ended::Broken(why) => (verdict::judge_broken(scenario, why), None),
        };
        Ok(Run {
            scenario: scenario.name.clone(),
            kernel: kernel.name.clone(),
            verdict,
            took: start.elapsed(),
            archive,
        })
    }

    /// Boots a scenario, to have quell judge it or to record what quell reads. A guest that was never ready gets a second
    /// chance: one of some sixty starts of QEMU's emulation fails by itself.
    fn boot(&self, scenario: &Scenario, kernel: &Kernel, capture: bool) -> Result<Ended> {
        match self.boot_once(scenario, kernel, capture)? {
            Ended::NotBooted(why) => {
                eprintln!("xtask: {}: booted again: {why}", scenario.name);
                self.boot_once(scenario, kernel, capture)
            }
            ended => Ok(ended),
        }
    }

    fn boot_once(&self, scenario: &Scenario, kernel: &Kernel, capture: bool) -> Result<Ended> {
        let script = initramfs::scenario(&scenario.script, capture)?;
        let modules = initramfs::modules(&kernel.modules)?;
        let mut disks = Vec::new();
        for (name, disk) in &scenario.disk {
            let content = image::open(disk.image, &self.cache)?;
            disks.push(DiskOf { name, content, model: &disk.model, properties: &disk.properties });
        }
        let spec = Spec {
            kernel: &kernel.image,
            kernel_args: &scenario.kernel_args,
            initramfs: &[&self.base, &modules, &script],
            disks,
            limit: Duration::from_secs(scenario.limit_seconds),
        };
        vm::run(spec, &self.interrupt)
    }
}

/// The ids of `quell explain --json`.
fn rules(document: &str) -> Result<Vec<String>> {
    let document: Value = serde_json::from_str(document).context("quell explain --json")?;
    let rules = document.get("rules").and_then(Value::as_array).context("quell explain --json: no rules")?;
    let ids: Vec<String> = rules.iter().filter_map(|rule| Some(rule["id"].as_str()?.to_owned())).collect();
    if ids.is_empty() {
        bail!("quell explain --json: no ids");
    }
    Ok(ids)
}
