//! `quell doctor`: watch, judge, say it.

use std::io::Write;
use std::time::Duration;

use quell_engine::findings::{Finding, Scene, Severity, find};
use quell_engine::paste::Joined;
use quell_engine::rates::Rates;
use quell_engine::snapshot::{Snapshot, Window};
use quell_host::{Depth, Machine};

use super::{print, print_json};
use crate::args::{DoctorArgs, FailOn};
use crate::doc::Cost;
use crate::doc::doctor::Document;
use crate::error::{Exit, Failure};
use crate::pasted;
use crate::render::doctor as render;
use crate::screen::Screen;
use crate::source::{self, Source};
use crate::target::Target;
use crate::watching;

/// How long the doctor watches where nothing was said: long enough for two of jbd2's commits and the flusher's rounds.
const WATCH: Duration = Duration::from_secs(10);

/// What was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    /// The target, as typed.
    pub target: Option<&'a str>,
    /// How long to watch.
    pub watch: Option<Duration>,
    /// From which severity on the exit code is 1.
    pub fail_on: Option<Severity>,
    /// Whether each number is shown with its file.
    pub verbose: bool,
    /// Whether the answer is JSON.
    pub json: bool,
}

pub(super) fn run(args: &DoctorArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let asked = Asked {
        target: args.target.as_deref(),
        watch: args.watch,
        fail_on: args.fail_on.map(severity),
        verbose: args.verbose,
        json: args.json,
    };
    match &args.from {
        Some(from) => examine_paste(&pasted::read(from)?, &asked, screen, out),
        None => examine(&Source::of(&args.root.roots)?, &asked, screen, out),
    }
}

/// The doctor on what somebody pasted.
fn examine_paste(joined: &Joined, asked: &Asked, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let target = asked.target.map(|text| Target::find(text, &joined.window.t1)).transpose()?;
    let scene = Scene::of(&joined.window, &joined.rates);
    verdict(&scene, &Around { target: target.as_ref(), cost: None, judged: &joined.judged }, asked, screen, out)
}

/// What a verdict is said with.
struct Around<'a> {
    /// What was asked for, as it was understood.
    target: Option<&'a Target>,
    /// What quell itself spent.
    cost: Option<Cost>,
    /// What was judged of a paste.
    judged: &'a [String],
}

const fn severity(level: FailOn) -> Severity {
    match level {
        FailOn::Info => Severity::Info,
        FailOn::Warning => Severity::Warning,
        FailOn::Critical => Severity::Critical,
    }
}

/// The doctor on a source: what `quell doctor` and `quell demo` do alike.
pub(super) fn examine(source: &Source, asked: &Asked, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let wanted = |snapshot: &Snapshot| asked.target.map(|text| Target::find(text, snapshot)).transpose();
    let followed = |machine: &mut Machine, text: &str| {
        Target::find(&source::followed(machine, text), &machine.snapshot(Depth::Full))
    };
    let (window, target) = match source {
        Source::Live => {
            let mut machine = source::live()?;
            // Before the watch: nobody should wait ten seconds to hear that a name was misspelt.
            let target = asked.target.map(|text| followed(&mut machine, text)).transpose()?;
            (watching::watch(&mut machine, asked.watch.unwrap_or(WATCH))?, target)
        }
        Source::Moments(t0, t1) => {
            let window = source::between(t0, t1)?;
            let target = wanted(&window.t1)?;
            (window, target)
        }
        Source::Moment(dir) => {
            // The same moment twice: whatever needs a rate finds that no time passed.
            let t1 = source::moment(dir)?;
            let target = wanted(&t1)?;
            (Window { t0: t1.clone(), looks: Vec::new(), t1, pasted: None }, target)
        }
    };
    let rates = Rates::of(&window);
    let cost = (*source == Source::Live).then(|| Cost::of(&window, watching::cpu_time()));
    let around = Around { target: target.as_ref(), cost, judged: &[] };
    verdict(&Scene::of(&window, &rates), &around, asked, screen, out)
}

fn verdict(
    scene: &Scene,
    around: &Around,
    asked: &Asked,
    screen: &Screen,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let now = &scene.window.t1;
    let all = find(scene);
    let concerns = |finding: &Finding| around.target.is_none_or(|target| target.concerns(finding, now));
    let findings: Vec<(usize, &Finding)> = (1..).zip(&all).filter(|(_, finding)| concerns(finding)).collect();
    let target = around.target.map(|target| target.name(now));
    let document = Document::of(scene, &findings, target, around.cost).with_paste(scene, around.judged);
    if asked.json {
        print_json(&document, out)?;
    } else {
        let view = render::View { verbose: asked.verbose };
        print(&render::page(scene, &findings, &document, view, screen), out)?;
    }
    Ok(exit(scene, &findings, asked.fail_on))
}

fn exit(scene: &Scene, findings: &[(usize, &Finding)], fail_on: Option<Severity>) -> Exit {
    let says_something = |finding: &Finding| !matches!(finding.id, "healthy" | "not-enough-data");
    let judged = scene.disks.iter().any(|disk| disk.rates.is_some())
        || findings.iter().any(|(_, finding)| says_something(finding));
    if !judged {
        return Exit::NotJudged;
    }
    let at_least =
        |level: Severity| findings.iter().any(|(_, finding)| says_something(finding) && finding.severity >= level);
    if fail_on.is_some_and(at_least) { Exit::Found } else { Exit::Done }
}
