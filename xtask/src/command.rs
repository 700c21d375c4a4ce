//! Running other programs: what is run is named when it fails.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Cargo, the one that runs this.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end; it must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = shown(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| name.clone())?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// Runs a command to its end and gives what it printed; it must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let name = shown(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| name.clone())?;
    ensure!(output.status.success(), "{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).with_context(|| format!("{name}: output is not UTF-8"))
}

/// Whether a program is there and does what these arguments ask for.
pub(crate) fn works(program: impl AsRef<OsStr>, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether CI runs this. There, what is missing is an error and not a skip.
pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
