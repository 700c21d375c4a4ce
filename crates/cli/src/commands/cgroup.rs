//! `quell cgroup`: the tree of cgroups, or one of them. It reads and changes nothing.

use std::io::Write;

use quell_engine::snapshot::Snapshot;
use quell_host::Depth;
use quell_units::{CgroupPath, escape};

use super::{print, print_json};
use crate::args::{CgroupArgs, CgroupCommand, CgroupShowArgs, CgroupTreeArgs};
use crate::doc::cgroup::{show, tree};
use crate::error::{Exit, Failure};
use crate::render::cgroup as render;
use crate::screen::Screen;
use crate::source::{Source, followed};
use crate::target::Target;

pub(super) fn run(args: &CgroupArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    match &args.command {
        CgroupCommand::Tree(args) => show_tree(args, screen, out),
        CgroupCommand::Show(args) => show_one(args, screen, out),
    }
}

fn show_tree(args: &CgroupTreeArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let snapshot = Source::of(&args.root.roots)?.latest()?.snapshot(Depth::Full);
    must_have_cgroups(&snapshot)?;
    let top = match args.path.as_deref() {
        None | Some("/") => CgroupPath::root(),
        Some(text) => find(text, &snapshot)?,
    };
    let document = tree::Document::of(&snapshot, &top, args.all);
    if args.json {
        print_json(&document, out)?;
    } else {
        print(&render::tree(&document, screen), out)?;
    }
    Ok(Exit::Done)
}

fn show_one(args: &CgroupShowArgs, screen: &Screen, out: &mut dyn Write) -> Result<Exit, Failure> {
    let mut machine = Source::of(&args.root.roots)?.latest()?;
    let snapshot = machine.snapshot(Depth::Full);
    must_have_cgroups(&snapshot)?;
    let path = find(&args.target, &snapshot)?;
    let files = machine.cgroup_details(&path);
    let gone = || Failure::usage(format!("no such cgroup: {path}"));
    let upper = snapshot.container(&path).and_then(|container| container.upper_dir.as_deref());
    let layer = upper.map(|upper| {
        // Docker's directory may have been moved to another disk and left as a link.
        let upper = followed(&mut machine, upper);
        let usage = machine.layer_usage(&upper);
        (upper, usage)
    });
    let document = show::Document::of(&snapshot, &path, files, layer).ok_or_else(gone)?;
    if args.json {
        print_json(&document, out)?;
    } else {
        print(&render::show(&document, screen), out)?;
    }
    Ok(Exit::Done)
}

fn must_have_cgroups(snapshot: &Snapshot) -> Result<(), Failure> {
    match snapshot.cgroups.is_empty() {
        true => Err(Failure::not_judged("no cgroup could be read").hint("is a cgroup hierarchy mounted?")),
        false => Ok(()),
    }
}

/// A path below the cgroup root, with or without where that is mounted, or any target.
fn find(text: &str, snapshot: &Snapshot) -> Result<CgroupPath, Failure> {
    let mount = snapshot.host.cgroup_mount.as_deref().unwrap_or("/sys/fs/cgroup");
    let below = text.strip_prefix(mount).filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let path = CgroupPath::new(below.as_bytes()).ok();
    if let Some(path) = path.filter(|path| snapshot.cgroup(path).is_some()) {
        return Ok(path);
    }
    match Target::find(text, snapshot)? {
        Target::Cgroup(path) => Ok(path),
        Target::Disk(_) => {
            let what = format!("{} is a disk and no cgroup", escape(text.as_bytes()));
            Err(Failure::usage(what).hint("quell devices shows disks"))
        }
    }
}
