//! `cargo xtask`: what this repository's developers and its CI run. Never shipped.
//!
//! A program and not a folder of scripts, so that it needs nothing but Rust and is held to the same lints as the rest.
//! Each command is a module; a check that can be wrong has a unit test with an input that it must refuse.

mod bench;
mod bpf;
mod command;
mod fuzz;
mod interrupt;
mod iostat;
mod lab;
mod needs;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of quell.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check what the compiler does not: arrows between crates, purity, sizes, the list of dependencies
    Tidy,
    /// Run every check and test; what CI runs
    Test(test::Args),
    /// Compare quell stat -x with iostat -x, column by column (needs root and sysstat)
    Iostat(iostat::Args),
    /// Boot a kernel whose trouble is known and hold quell's answer against it
    Lab(lab::Args),
    /// Turn a scenario of the lab into a recorded host in fixtures/captures
    Capture(lab::CaptureArgs),
    /// Make the eBPF objects from their source
    Bpf(bpf::Args),
    /// Measure what quell costs, beside the least that the kernel allows
    #[command(subcommand)]
    Bench(bench::Command),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Tidy => tidy::run(),
        Command::Test(args) => test::run(&args),
        Command::Iostat(args) => iostat::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Capture(args) => lab::capture(&args),
        Command::Bpf(args) => bpf::run(&args),
        Command::Bench(command) => bench::run(&command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
