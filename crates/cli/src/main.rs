//! The program: its arguments in, its exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    quell::run(std::env::args_os())
}
