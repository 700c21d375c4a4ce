//! `cargo xtask bpf`: the eBPF objects from their C source, and whether the committed ones are what it gives.
//!
//! Compilers differ from version to version in what they make of the same source, so that the objects are made, and
//! compared, under the one that is named here and no other.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{output, run as run_command};
use crate::test::Outcome;
use crate::workspace::Workspace;

/// The version of clang that makes the objects: Debian 12's.
const CLANG: &str = "14.0.6";

const DIR: &str = "crates/trace/bpf";

/// The programs, without `.bpf.c`.
const OBJECTS: [&str; 1] = ["stages"];

/// Arguments of `xtask bpf`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only compare; change nothing
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    if let Some(why) = cannot() {
        bail!("{why}");
    }
    if args.check {
        return check(&workspace);
    }
    OBJECTS.iter().try_for_each(|name| compile(&workspace, name, &object(&workspace, name)))
}

/// The step of `xtask test`.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome> {
    match cannot() {
        Some(why) => Ok(Outcome::Skipped(why)),
        None => check(workspace).map(|()| Outcome::Passed),
    }
}

/// Why the objects cannot be made here.
fn cannot() -> Option<String> {
    match version() {
        Ok(found) if found == CLANG => None,
        Ok(found) => Some(format!("clang {found} is here, and the objects are made by {CLANG}")),
        Err(_) => Some("no clang; hint: apt-get install clang llvm libbpf-dev".into()),
    }
}

fn object(workspace: &Workspace, name: &str) -> std::path::PathBuf {
    workspace.root().join(DIR).join(format!("{name}.bpf.o"))
}

fn check(workspace: &Workspace) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for name in OBJECTS {
        let made = scratch.path().join(name);
        compile(workspace, name, &made)?;
        let committed = object(workspace, name);
        let (made, here) = (std::fs::read(&made)?, std::fs::read(&committed).context(format!("{name}.bpf.o"))?);
        if made != here {
            bail!("{} is not what its source gives; hint: cargo xtask bpf", committed.display());
        }
    }
    Ok(())
}

fn compile(workspace: &Workspace, name: &str, to: &Path) -> Result<()> {
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", "-D__TARGET_ARCH_x86"]);
    // Where Debian keeps asm/types.h, which the target bpf does not look for.
    clang.args(["-I/usr/include/x86_64-linux-gnu", "-fdebug-compilation-dir=.", "-c", &format!("{name}.bpf.c"), "-o"]);
    run_command(clang.arg(to).current_dir(workspace.root().join(DIR)))?;
    // The types stay, which relocation needs; the lines of the source go.
    run_command(Command::new("llvm-strip").arg("-g").arg(to))
}

/// The version of the clang that is here: `Debian clang version 14.0.6`.
fn version() -> Result<String> {
    let text = output(Command::new("clang").arg("--version"))?;
    let number = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    Ok(number.context("clang --version tells no version")?.into())
}
