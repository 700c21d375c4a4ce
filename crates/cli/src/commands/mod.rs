//! The commands, a file each: from arguments to an exit code.

mod capture;
mod cgroup;
pub mod demo;
mod devices;
mod doctor;
mod explain;
mod generate;
mod latency;
mod stat;

use std::io::Write;

use serde::Serialize;

use crate::args::Command;
use crate::error::{Exit, Failure};
use crate::screen::Screen;

/// Runs a command; its answer goes to `out`.
pub(crate) fn run(command: &Command, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    match command {
        Command::Stat(args) => stat::run(args, screen, out),
        Command::Doctor(args) => doctor::run(args, screen, out),
        Command::Latency(args) => latency::run(args, screen, out),
        Command::Devices(args) => devices::run(args, screen, out),
        Command::Cgroup(args) => cgroup::run(args, screen, out),
        Command::Explain(args) => explain::run(args, screen, out),
        Command::Demo(args) => demo::run(args, screen, out),
        Command::Capture(args) => capture::run(args, screen, out),
        Command::Completions(args) => generate::completions(args, out),
        Command::Man(args) => generate::man(args, out),
    }
}

/// Prints a document for people to read too.
fn print_json(document: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Prints a document on one line, for a stream of them.
fn print_json_line(document: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, document).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Prints text.
fn print(text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
