//! One cgroup: what it is, what reaches it, what holds it, and what else its files say.

use quell_units::count;

use super::{limits, rooted, weights};
use crate::doc::cgroup::Cgroup;
use crate::doc::cgroup::kept::{Kept, Layer, Log};
use crate::doc::cgroup::show::{Document, File, Lack};
use crate::render::number::{bytes, three, usec};
use crate::render::{gap_lines, host_items, text};
use crate::screen::{Screen, Style};

/// What the files say of a cgroup that nobody set up, or to which nothing happened.
const AS_MADE: [(&str, &str); 13] = [
    ("cgroup.freeze", "0"),
    ("cgroup.max.depth", "max"),
    ("cgroup.max.descendants", "max"),
    ("cgroup.stat", "nr_descendants 0 nr_dying_descendants 0"),
    ("cpu.weight", "100"),
    ("cpu.max", "max 100000"),
    ("memory.low", "0"),
    ("memory.min", "0"),
    ("memory.events", "low 0 high 0 max 0 oom 0 oom_kill 0 oom_group_kill 0"),
    ("memory.swap.current", "0"),
    ("memory.swap.max", "max"),
    ("pids.max", "max"),
    ("io.prio.class", "no-change"),
];

/// The width of a label's column.
const LABEL: usize = 14;

/// The page.
#[must_use]
pub fn page(document: &Document, screen: &Screen) -> String {
    let cgroup = &document.cgroup;
    let mut items = host_items(&document.host, None);
    items.truncate(3);
    let mut page = Page { out: text::wrap_items(&items, screen.width).join("\n") + "\n\n", screen };
    page.out += &format!("{}\n", screen.paint(Style::Bold, &cgroup.name));
    page.line("path", &rooted(&cgroup.cgroup));
    if let (Some(kind), Some(told)) = (cgroup.kind, cgroup.type_told) {
        page.line("type", &format!("{kind}: {told}"));
    }
    page.line("processes", &processes(cgroup));
    page.reach(document);
    page.holds(document);
    page.uses(cgroup);
    if let Some(kept) = &document.kept {
        page.kept(kept);
    }
    page.files(&document.files);
    let gaps = gap_lines(&document.gaps, screen);
    if gaps.is_empty() { page.out } else { format!("{}\n{gaps}", page.out) }
}

fn processes(cgroup: &Cgroup) -> String {
    let own = cgroup.processes.map_or("not known".into(), |n| n.to_string());
    let below = match (cgroup.children, cgroup.populated) {
        (0, _) => String::new(),
        (n, Some(false)) => format!(", and none in {}", text::counted(n, "child", "children")),
        (n, _) => format!(", and {} below", text::counted(n, "child", "children")),
    };
    format!("{own}{below}")
}

struct Page<'a> {
    out: String,
    screen: &'a Screen,
}

impl Page<'_> {
    /// What reaches it and what it passes on.
    fn reach(&mut self, document: &Document) {
        let list = |of: &Option<Vec<&str>>| match of {
            Some(on) if on.is_empty() => "none".to_owned(),
            Some(on) => on.join(" "),
            None => "version 1 has one hierarchy a controller".to_owned(),
        };
        self.line("has", &list(&document.cgroup.controllers));
        self.line("passes on", &list(&document.cgroup.subtree_control));
        for (at, lack) in document.lacks.iter().enumerate() {
            // One command of systemd's does for several of them, and stands below the last.
            let again = document.lacks.get(at + 1).is_some_and(|next| next.command == lack.command);
            self.lack(lack, !again);
        }
    }

    fn lack(&mut self, lack: &Lack, with_command: bool) {
        let what = format!("{} stops at {}", lack.controller, rooted(&lack.at));
        let why = lack.blocked.as_deref().unwrap_or("it is not in its cgroup.subtree_control");
        let cost = if lack.controller == "memory" { "; without it buffered writes are charged to nobody" } else { "" };
        self.styled("lacks", &format!("{what}: {why}{cost}"), Style::Yellow);
        if let Some(command) = lack.command.as_ref().filter(|_| with_command) {
            self.out += &format!("{}{}\n", " ".repeat(LABEL), self.screen.paint(Style::Bold, command));
        }
    }

    /// Every limit that holds it: its own, and those above.
    fn holds(&mut self, document: &Document) {
        let mut any = false;
        for above in document.ancestors.iter().chain([&document.cgroup]) {
            let own = above.cgroup == document.cgroup.cgroup;
            for limit in limits(above) {
                let limit = if own { limit } else { format!("{limit} (of {})", rooted(&above.cgroup)) };
                self.line(if any { "" } else { "held by" }, &limit);
                any = true;
            }
        }
        if !any {
            self.line("held by", "no limit of its own or above it");
        }
        // Told though it is the default: 100 is a weight as any other, against a neighbour's 900.
        for weight in weights(&document.cgroup, true) {
            self.line("weighs", &weight);
        }
    }

    fn uses(&mut self, cgroup: &Cgroup) {
        let amount = |of: Option<u64>| of.map(|n| bytes(count(n)));
        let memory = [("", amount(cgroup.memory_bytes)), ("not yet written ", amount(cgroup.backlog_bytes))];
        let memory = memory.into_iter().filter_map(|(word, amount)| Some(format!("{word}{}", amount?)));
        let memory: Vec<String> = memory.collect();
        if !memory.is_empty() {
            self.line("memory", &memory.join(", "));
        }
        if let Some(some) = cgroup.io_some_usec {
            let full = cgroup.io_full_usec.map(|full| format!(", all of it {}", usec(count(full)))).unwrap_or_default();
            self.line("stalled", &format!("on I/O for {}{full}, since it was made", usec(count(some))));
        }
    }

    /// Its log and its writable layer.
    fn kept(&mut self, kept: &Kept) {
        if let Some(log) = &kept.log {
            self.log(log);
        }
        if let Some(layer) = &kept.writable_layer {
            self.layer(layer);
        }
    }

    fn log(&mut self, log: &Log) {
        let size = log.size_bytes.map(|size| bytes(count(size)));
        let what: Vec<String> = log.driver.clone().into_iter().chain(size).collect();
        let ends = match (log.rotated, log.size_max_bytes) {
            (Some(true), Some(size)) => Some(format!("begun anew at {}", bytes(count(size)))),
            (Some(true), None) => Some("begun anew by its runtime before it grows large".into()),
            (Some(false), _) => {
                Some("never begun anew: no max-size (--log-opt max-size=10m, or log-opts in daemon.json)".into())
            }
            (None, _) => None,
        };
        let words: Vec<String> = what.into_iter().chain(ends).collect();
        let style = if log.rotated == Some(false) { Style::Yellow } else { Style::Dim };
        let words = if words.is_empty() { "of its runtime".into() } else { words.join(", ") };
        self.styled("log", &words, style);
        self.path(log.path.as_deref());
    }

    /// What lies in the writable layer, and whether something can hold it to a size.
    fn layer(&mut self, layer: &Layer) {
        let more = if layer.cut { "more than " } else { "" };
        let counted = match (layer.used_bytes, layer.inodes) {
            (Some(used), Some(inodes)) => {
                format!("{more}{} in {more}{} inodes", bytes(count(used)), three(count(inodes)))
            }
            _ => format!("not counted: {}", layer.not_counted.as_deref().unwrap_or("not known")),
        };
        self.line("layer", &counted);
        self.path(Some(&layer.upper_dir));
        match layer.size_asked_bytes {
            Some(size) if layer.quota == "holds" => {
                self.line("", &format!("held to {} by a project quota", bytes(count(size))))
            }
            Some(size) => {
                let text = format!("{} was asked for; {}", bytes(count(size)), layer.quota_told);
                self.styled("lacks", &text, Style::Yellow);
            }
            None => self.line("", &format!("no size was asked for; {}", layer.quota_told)),
        }
    }

    /// A path on a line of its own: it may be longer than any line.
    fn path(&mut self, path: Option<&str>) {
        if let Some(path) = path {
            self.out += &format!("{}{path}\n", " ".repeat(LABEL));
        }
    }

    /// Its other files: a line each for those that say something, one for all the rest.
    fn files(&mut self, files: &[File]) {
        let is_as_made = |file: &&File| {
            AS_MADE.iter().any(|(name, value)| file.file == *name && file.value.as_deref() == Some(value))
        };
        let (as_made, told): (Vec<&File>, Vec<&File>) = files.iter().partition(is_as_made);
        for file in told {
            let value = file.value.as_deref().unwrap_or("could not be read");
            self.line("", &format!("{} {value}", file.file));
        }
        if !as_made.is_empty() {
            let names: Vec<&str> = as_made.iter().map(|file| file.file.as_str()).collect();
            self.line("as made", &names.join(", "));
        }
    }

    fn line(&mut self, label: &str, words: &str) {
        self.styled(label, words, Style::Dim);
    }

    fn styled(&mut self, label: &str, words: &str, style: Style) {
        let mut label = text::pad(&format!("  {label}"), LABEL);
        for line in text::wrap(words, self.screen.width.saturating_sub(LABEL)) {
            self.out += &format!("{}{line}\n", self.screen.paint(style, &label));
            label = " ".repeat(LABEL);
        }
    }
}
