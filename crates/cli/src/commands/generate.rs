//! `quell completions` and `quell man`: made from the table of arguments, so they cannot tell another story.

use std::fs;
use std::io::Write;

use clap::CommandFactory;
use clap_mangen::Man;

use super::print;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::error::{Exit, Failure};

pub(super) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "quell", &mut script);
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Done)
}

pub(super) fn man(args: &ManArgs, out: &mut dyn Write) -> Result<Exit, Failure> {
    let Some(dir) = &args.dir else {
        Man::new(Cli::command()).render(out)?;
        out.flush()?;
        return Ok(Exit::Done);
    };
    let failed = |error: std::io::Error| Failure::io(Exit::Usage, "write manual pages", dir, &error);
    fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    print(&format!("wrote the manual pages to {}\n", crate::error::path_text(dir)), out)?;
    Ok(Exit::Done)
}
