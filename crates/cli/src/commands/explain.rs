//! `quell explain`: what a finding means, from the same table that the rules stand in.

use std::io::Write;

use quell_engine::findings::{RULES, rule};

use super::{print, print_json};
use crate::args::ExplainArgs;
use crate::doc::explain::Document;
use crate::error::{Exit, Failure};
use crate::near::{did_you_mean, nearest};
use crate::render;
use crate::screen::Screen;

pub(super) fn run(args: &ExplainArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let document = match &args.id {
        None => Document::of(RULES),
        Some(id) => Document::of([rule(id).ok_or_else(|| unknown(id))?]),
    };
    if args.json {
        print_json(&document, out)?;
    } else if let (Some(_), Some(rule)) = (&args.id, document.rules.first()) {
        print(&render::explain::rule(rule, screen), out)?;
    } else {
        print(&render::explain::list(&document, screen), out)?;
    }
    Ok(Exit::Done)
}

fn unknown(id: &str) -> Failure {
    let hint = did_you_mean(&nearest(id, RULES.iter().map(|line| line.rule.id)));
    Failure::usage(format!("no such finding: {}", quell_units::escape(id.as_bytes())))
        .hint(hint.unwrap_or_else(|| "quell explain lists all ids".into()))
}
