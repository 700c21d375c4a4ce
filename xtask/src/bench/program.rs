//! The program as users run it: how much memory it takes over many cgroups, how long the doctor takes.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Claim;
use super::tree::Tree;
use crate::interrupt::Interrupt;

/// Megabytes, decimal ones.
const MEMORY_MB_MAX: f64 = 25.0;

/// The doctor watches for one second here.
const DOCTOR_SECONDS_MAX: f64 = 1.3;

/// The most memory that `quell stat` had at once, over a tree of two moments.
pub(super) fn memory(quell: &Path, cgroups: u32, interrupt: &Interrupt) -> Result<Claim> {
    let tree = Tree::make(cgroups, interrupt)?;
    let mut command = Command::new(quell);
    command.args(["stat", "--json", "--all"]);
    for moment in [0, 1] {
        command.arg("--root").arg(tree.root(moment));
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("start quell")?;
    let mut answer = child.stdout.take().context("quell without stdout")?;
    // With its first byte the whole answer has been made, and most of it waits in the program: a pipe holds 64 KiB.
    let begun = answer.read_exact(&mut [0]).context("quell gave no answer");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let drained = std::io::copy(&mut answer, &mut std::io::sink());
    let ended = child.wait()?;
    begun?;
    ensure!(ended.success(), "quell stat: {ended}");
    let (status, answer_bytes) = (status?, drained?);
    ensure!(answer_bytes > 128 << 10, "an answer of {answer_bytes} bytes is too short: quell may have ended before");
    let (peak, now) = (kib(&status, "VmHWM:")?, kib(&status, "VmRSS:")?);
    Ok(Claim {
        what: format!("memory of quell stat over {cgroups} cgroups, two moments at once"),
        measured: megabytes(peak),
        most: Some(MEMORY_MB_MAX),
        unit: " MB",
        detail: format!("VmHWM {peak} kB, VmRSS {now} kB"),
    })
}

/// A field of `/proc/PID/status`, which calls a KiB a kB.
pub(super) fn kib(status: &str, field: &str) -> Result<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|number| number.parse().ok());
    number.with_context(|| format!("no {field} in /proc/PID/status: the program had ended"))
}

pub(super) fn megabytes(kib: u32) -> f64 {
    f64::from(kib) * 1024.0 / 1e6
}

/// The time of a doctor that watches this host for a second.
pub(super) fn doctor(quell: &Path) -> Result<Claim> {
    let start = Instant::now();
    let output = Command::new(quell).args(["doctor", "--for", "1s"]).stdin(Stdio::null()).output()?;
    let took = start.elapsed();
    // 3: a host without a disk or a cgroup that it could judge. It has read and waited all the same.
    let code = output.status.code();
    ensure!(matches!(code, Some(0 | 3)), "quell doctor: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Claim {
        what: "quell doctor --for 1s".into(),
        measured: took.as_secs_f64(),
        most: Some(DOCTOR_SECONDS_MAX),
        unit: " s",
        detail: format!("wall time, exit code {}", code.unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_a_living_process_only() {
        let status = "Name:\tquell\nVmHWM:\t   12345 kB\nVmRSS:\t   10000 kB\n";
        assert_eq!(kib(status, "VmHWM:").unwrap(), 12_345);
        assert!(kib("Name:\tquell\nState:\tZ (zombie)\n", "VmHWM:").is_err());
    }
}
