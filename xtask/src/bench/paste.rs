//! A hundred megabytes of iostat through `quell doctor --from -`: how long, beside a plain read of the same lines, and how
//! much memory.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::Claim;
use super::program::{kib, megabytes};

const BYTES: usize = 100 << 20;

const SECONDS_MAX: f64 = 2.0;

/// Megabytes, decimal ones: the series that is kept, and the program itself.
const MEMORY_MB_MAX: f64 = 100.0;

/// Runs of either side, in turn; the best of each counts, since the other ones were disturbed.
const ROUNDS: usize = 3;

pub(super) fn claims(quell: &Path) -> Result<Vec<Claim>> {
    let text = iostat();
    let (mut plain, mut read, mut peak) = (f64::MAX, f64::MAX, 0);
    for _ in 0..ROUNDS {
        plain = plain.min(plain_read(&text));
        let (seconds, kib) = through_quell(quell, &text)?;
        (read, peak) = (read.min(seconds), kib.max(peak));
    }
    let megabytes_in = f64::from(u32::try_from(text.len() >> 20)?);
    let detail =
        format!("{:.0} MiB/s; {:.1} times a read of its lines alone, {plain:.2} s", megabytes_in / read, read / plain);
    let time = Claim {
        what: format!("quell doctor --from - of {megabytes_in:.0} MiB of iostat"),
        measured: read,
        most: Some(SECONDS_MAX),
        unit: " s",
        detail,
    };
    let memory = Claim {
        what: "memory of that".into(),
        measured: megabytes(peak),
        most: Some(MEMORY_MB_MAX),
        unit: " MB",
        detail: format!("VmHWM {peak} kB"),
    };
    Ok(vec![time, memory])
}

/// What `iostat -x 1` prints over some days on a host with four disks; the numbers change from block to block.
fn iostat() -> Vec<u8> {
    const HEAD: &str = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await \
        wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n";
    let mut out = String::with_capacity(BYTES + 4096);
    let mut at = 0_u32;
    while out.len() < BYTES {
        at += 1;
        out += "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n          48.89    6.84    7.93    0.87    0.47   35.00\n\n";
        out += HEAD;
        for disk in ["sda", "sdb", "nvme0n1", "dm-0"] {
            let (reads, writes) = (at % 977, at % 613);
            out += &format!(
                "{disk:<12}{reads:>9}.00 {:>9}.25     0.00   0.00    0.{:02}    16.00 {writes:>7}.00 {:>9}.75     0.00   0.00    1.25     8.00    \
                 0.00      0.00     0.00   0.00    0.00     0.00   12.00    0.25    0.{:02}  {:>5}.5\n",
                reads * 16,
                at % 97,
                writes * 8,
                at % 89,
                at % 100
            );
        }
        out.push('\n');
    }
    out.into_bytes()
}

fn plain_read(mut text: &[u8]) -> f64 {
    let start = Instant::now();
    let mut line = Vec::new();
    let mut lines = 0_u64;
    while text.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        lines += 1;
        line.clear();
    }
    std::hint::black_box(lines);
    start.elapsed().as_secs_f64()
}

/// The time from start to verdict, and the most memory at the end of the paste, while quell waits for more.
fn through_quell(quell: &Path, text: &[u8]) -> Result<(f64, u32)> {
    let start = Instant::now();
    let mut command = Command::new(quell);
    command.args(["doctor", "--from", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start quell")?;
    let mut stdin = child.stdin.take().context("quell without stdin")?;
    stdin.write_all(text).context("quell did not read on")?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "quell doctor: {}", output.status);
    ensure!(String::from_utf8_lossy(&output.stdout).contains("iostat"), "quell recognised nothing");
    Ok((start.elapsed().as_secs_f64(), kib(&status, "VmHWM:")?))
}
