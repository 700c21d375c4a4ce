//! The command `quell`: arguments in, text or JSON out, an exit code at the end.
//!
//! The rightmost crate of the pipeline. `args` is what was typed, `commands` is what is done about it, `doc` is what is
//! said as data and `render` as text. It decides nothing about storage: every judgement is the engine's. It is a library
//! so that tests and the documentation's generator can reach the documents, the argument table and the captures.

pub mod archive;
pub mod args;
pub mod commands;
pub mod doc;
pub mod error;
mod interrupt;
mod near;
mod pasted;
pub mod render;
pub mod screen;
mod source;
pub mod target;
mod watching;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use error::{Exit, Failure};
use screen::Screen;

/// Runs quell with these arguments, the program's name first.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(not_parsed(&error)),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let exit = commands::run(&cli.command, &Screen::of_stdout(), &mut out).unwrap_or_else(|failure| {
        // The answer so far stays in front of the reason why there is no more of it.
        let _ = out.flush();
        let _ = write!(io::stderr(), "{failure}");
        failure.exit()
    });
    ExitCode::from(exit.code())
}

/// Tells what the parser has to say: help and version on stdout, what is wrong on stderr in quell's own form.
fn not_parsed(error: &clap::Error) -> u8 {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NoCommand;
    if !error.use_stderr() || error.kind() == NoCommand {
        // A closed pipe is no failure of ours.
        let _ = error.print();
        return if error.use_stderr() { Exit::Usage.code() } else { Exit::Done.code() };
    }
    let _ = write!(io::stderr(), "{}", usage_failure(&error.render().to_string()));
    Exit::Usage.code()
}

/// The parser's message: what is wrong in its first paragraph, tips after it, the usage line and a pointer to `--help`.
fn usage_failure(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n");
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what).split_whitespace().collect::<Vec<_>>().join(" ");
    let hints = paragraphs.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty());
    let hints = hints.map(|line| match line.strip_prefix("tip: ") {
        Some(tip) => tip.into(),
        None => line.replace("Usage: ", "usage: ").replace("For more information, try", "for more, try"),
    });
    Failure::usage(what).hint(hints.collect::<Vec<String>>().join("\n"))
}
