//! The doctor's voice: worst first; who suffers, who does it, what to type, how to take it back.
//!
//! One block a finding, a label at the left of each line and its text in a column beside it. Text is wrapped under its
//! column; a command never is, because half a command is worse than none: it stands on a line of its own, whole.

use quell_engine::findings::{Advice, Aspect, Disk, Evidence, Finding, Scene, Severity, SubjectKind, Workload};
use quell_engine::identity::WorkloadKind;

use super::text::{columns, counted, pad, wrap, wrap_items};
use super::{gap_lines, host_items, number};
use crate::doc::doctor::{Document, Paste, is_active};
use crate::screen::{Screen, Style};

/// How the verdict is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Whether each number is shown with the file it came from.
    pub verbose: bool,
}

/// The width of the label beside a headline, and of the label below it with its indent.
const HEAD: usize = 10;
const LABEL: usize = 12;

/// The verdict.
#[must_use]
pub fn page(scene: &Scene, findings: &[(usize, &Finding)], document: &Document, view: View, screen: &Screen) -> String {
    let mut out = head(scene, document, screen);
    for (_, finding) in findings {
        out.push('\n');
        out += &block(finding, view, screen);
    }
    let tail = tail(scene, findings, document, view, screen);
    if !tail.is_empty() {
        out.push('\n');
        out += &tail;
    }
    out
}

/// The line about the host, or about the paste.
fn head(scene: &Scene, document: &Document, screen: &Screen) -> String {
    let mut items = match &document.paste {
        Some(paste) => paste_items(paste, document.host.kernel.as_deref()),
        None => host_items(&document.host, document.observed_seconds),
    };
    let containers = scene.workloads.iter().filter(|w| w.kind == WorkloadKind::Container).count();
    let disks = counted(scene.disks.iter().filter(|disk| disk.leaf && was_used(disk)).count(), "disk", "disks");
    items.push(match containers {
        0 => disks,
        n => format!("{}, {disks}", counted(n, "container", "containers")),
    });
    items.extend(document.target.as_ref().map(|target| format!("only {target}")));
    wrap_items(&items, screen.width).join("\n") + "\n"
}

/// What a paste is made of, an item each.
fn paste_items(paste: &Paste, kernel: Option<&str>) -> Vec<String> {
    let mut formats: Vec<(&str, u32)> = Vec::new();
    for piece in &paste.recognised {
        match formats.iter_mut().find(|(format, _)| *format == piece.format) {
            Some((_, lines)) => *lines = lines.saturating_add(piece.lines),
            None => formats.push((&piece.format, piece.lines)),
        }
    }
    let lines = |n: u32| if n == 1 { "1 line".into() } else { format!("{n} lines") };
    let mut items = vec!["a paste".to_owned()];
    items.extend(formats.into_iter().map(|(format, n)| format!("{format}, {}", lines(n))));
    items.extend(paste.judged.iter().map(|judged| format!("judged: {judged}")));
    items.extend(kernel.map(|release| format!("Linux {release}")));
    items
}

fn block(finding: &Finding, view: View, screen: &Screen) -> String {
    let mut page = Lines { out: String::new(), screen };
    page.headline(finding);
    for aspect in aspects(finding) {
        let of_aspect = finding.evidence.iter().filter(|evidence| evidence.aspect == aspect);
        if view.verbose {
            let evidence = of_aspect.flat_map(|evidence| page.with_source(evidence));
            page.labelled(aspect.as_str(), name_of(finding, aspect).into_iter().chain(evidence).collect());
        } else {
            let (names, rest): (Vec<&Evidence>, Vec<&Evidence>) = of_aspect.partition(|evidence| is_name(evidence));
            let items = names.into_iter().chain(rest).map(item);
            let items: Vec<String> = name_of(finding, aspect).into_iter().chain(items).collect();
            page.labelled(aspect.as_str(), wrap_items(&items, page.room()));
        }
    }
    for (at, advice) in finding.advice.iter().enumerate() {
        page.advice(if at == 0 { "do" } else { "or" }, advice);
    }
    page.why(finding, view);
    page.out
}

/// The aspects that a finding has evidence of, in the order of [`Aspect`], but for what it explains.
fn aspects(finding: &Finding) -> Vec<Aspect> {
    let mut aspects: Vec<Aspect> = finding.evidence.iter().map(|evidence| evidence.aspect).collect();
    aspects.retain(|aspect| *aspect != Aspect::Explains);
    aspects.sort_unstable();
    aspects.dedup();
    aspects
}

/// The name that a line about somebody or some disk starts with.
fn name_of(finding: &Finding, aspect: Aspect) -> Option<String> {
    let subject = match aspect {
        Aspect::Victim => Some(&finding.subject),
        Aspect::Culprit => finding.culprit.as_ref(),
        Aspect::Device if finding.evidence.iter().all(|evidence| !is_name(evidence)) => {
            return finding.subject.device.map(|name| name.to_string());
        }
        _ => None,
    };
    subject.filter(|subject| subject.kind != SubjectKind::Host).map(|subject| subject.name.clone())
}

/// Whether a piece of evidence is the disk's own name with what it is.
fn is_name(evidence: &Evidence) -> bool {
    evidence.aspect == Aspect::Device && evidence.what == "disk"
}

/// A piece of evidence in a row of others: `read await 34.5 ms`; a word about the thing itself stands alone.
fn item(evidence: &Evidence) -> String {
    let value = number::value(&evidence.value);
    if is_name(evidence) { value } else { format!("{} {value}", evidence.what) }
}

/// What is fine, what is not known, and what quell cost.
fn tail(scene: &Scene, findings: &[(usize, &Finding)], document: &Document, view: View, screen: &Screen) -> String {
    let mut page = Lines { out: String::new(), screen };
    let says_so = findings.iter().any(|(_, finding)| finding.id == "healthy");
    if document.observed_seconds.is_some() && !says_so {
        let items = match document.target {
            Some(_) if findings.is_empty() => vec!["nothing was found that concerns it".into()],
            Some(_) => Vec::new(),
            None => healthy(scene, findings),
        };
        page.head_line(Style::Green, "healthy", wrap_items(&items, screen.width - HEAD));
    }
    if let Some(paste) = document.paste.as_ref().filter(|paste| paste.unread_lines > 0) {
        page.head_line(Style::Dim, "unread", unread(paste, screen));
    }
    let gaps = document.gaps.iter().filter(|gap| view.verbose || matters(&gap.what));
    page.out += &gap_lines(gaps, screen);
    if let Some(cost) = document.cost {
        let cpu = number::usec(quell_units::count(cost.cpu_usec));
        let text = format!("quell     its own cost: {cpu} of CPU, {} files read", cost.files);
        page.out += &format!("{}\n", screen.paint(Style::Dim, &text));
    }
    page.out
}

/// The lines of a paste that were not recognised: how many, and the first.
fn unread(paste: &Paste, screen: &Screen) -> Vec<String> {
    let count = usize::try_from(paste.unread_lines).unwrap_or(usize::MAX);
    let mut lines = vec![format!("{} not recognised", counted(count, "line", "lines"))];
    let room = screen.width - HEAD;
    lines.extend(paste.unread.iter().map(|unread| {
        let text = format!("line {}: {}", unread.line, unread.text);
        if columns(&text) <= room { text } else { text.chars().take(room - 1).chain(['…']).collect() }
    }));
    lines
}

/// Whether a verdict may be another one for want of this.
fn matters(what: &str) -> bool {
    const DECIDING: [&str; 7] = ["rates", "diskstats", "io.stat", "io.pressure", "memory.stat", "wchan", "cgroup"];
    DECIDING.iter().any(|word| what.contains(word))
}

/// The disks and the number of workloads of which no finding speaks.
fn healthy(scene: &Scene, findings: &[(usize, &Finding)]) -> Vec<String> {
    let said = || findings.iter().filter(|(_, finding)| finding.severity > Severity::Info);
    let subjects = || said().flat_map(|(_, finding)| std::iter::once(&finding.subject).chain(&finding.culprit));
    let spoken_of: Vec<_> = subjects()
        .filter_map(|subject| scene.disks.iter().find(|disk| Some(disk.name) == subject.device))
        .flat_map(|disk| scene.window.t1.leaves(disk.dev))
        .collect();
    let fine = scene.leaf_disks().filter(|disk| was_used(disk) && !spoken_of.contains(&disk.dev));
    let (busy, idle): (Vec<&Disk>, Vec<&Disk>) = fine.partition(|disk| disk.rates.is_some_and(|rates| rates.ios() > 0));
    let mut items: Vec<String> = busy.iter().map(|disk| disk.name.to_string()).collect();
    let named = |workload: &Workload| subjects().any(|subject| subject.cgroup.as_ref() == Some(&workload.path));
    let others = scene.workloads.iter().filter(|w| !w.is_kernel() && is_active(w) && !named(w));
    let (containers, rest): (Vec<&Workload>, Vec<&Workload>) =
        others.partition(|workload| workload.kind == WorkloadKind::Container);
    let other = if subjects().next().is_some() { "other " } else { "" };
    for (many, word) in [(containers, "container"), (rest, "workload")] {
        if !many.is_empty() {
            items.push(counted(many.len(), &format!("{other}{word}"), &format!("{other}{word}s")));
        }
    }
    items.extend(idle.iter().map(|disk| format!("{} idle", disk.name)));
    items
}

/// Whether a disk ever did anything: a loop device that nobody set up is no disk to a person.
fn was_used(disk: &Disk) -> bool {
    let counters = &disk.device.counters;
    disk.rates.is_some_and(|rates| rates.ios() > 0)
        || counters.read.ios > 0
        || counters.write.ios > 0
        || counters.in_flight > 0
}

/// A page under construction.
struct Lines<'a> {
    out: String,
    screen: &'a Screen,
}

impl Lines<'_> {
    /// The columns beside a label.
    fn room(&self) -> usize {
        self.screen.width - LABEL
    }

    fn headline(&mut self, finding: &Finding) {
        let (style, word) = match finding.severity {
            _ if finding.id == "healthy" => (Style::Green, "HEALTHY"),
            Severity::Critical => (Style::Red, "CRITICAL"),
            Severity::Warning => (Style::Yellow, "WARNING"),
            Severity::Info => (Style::Cyan, "INFO"),
        };
        let lines = wrap(&finding.summary, self.screen.width - HEAD);
        let bold = lines.iter().map(|line| self.screen.paint(Style::Bold, line)).collect();
        self.head_line(style, word, bold);
    }

    /// A line at the left edge, its label in a style.
    fn head_line(&mut self, style: Style, label: &str, lines: Vec<String>) {
        let mut label = self.screen.paint(style, label) + &" ".repeat(HEAD.saturating_sub(columns(label)));
        for line in lines {
            self.out += &format!("{label}{line}\n");
            label = " ".repeat(HEAD);
        }
    }

    /// Lines with a label beside the first.
    fn labelled(&mut self, label: &str, lines: Vec<String>) {
        let style = if matches!(label, "do" | "or" | "undo") { Style::Bold } else { Style::Dim };
        let mut label = pad(&format!("  {label}"), LABEL);
        for line in lines {
            self.out += &format!("{}{line}\n", self.screen.paint(style, &label));
            label = " ".repeat(LABEL);
        }
    }

    /// A piece of evidence on lines of its own, with the file it came from.
    fn with_source(&self, evidence: &Evidence) -> Vec<String> {
        let text = match evidence.aspect {
            Aspect::Explains => format!("{}: {}", evidence.what, number::value(&evidence.value)),
            _ => item(evidence),
        };
        let mut lines = wrap(&text, self.room());
        if !evidence.source.is_empty() {
            let source = self.screen.paint(Style::Dim, &format!("({})", evidence.source));
            match lines.last_mut() {
                Some(last) if columns(last) + evidence.source.len() + 4 <= self.room() => {
                    *last += &format!("  {source}")
                }
                _ => lines.push(format!("  {source}")),
            }
        }
        lines
    }

    fn advice(&mut self, label: &str, advice: &Advice) {
        let mut lines = wrap(&advice.text, self.room());
        lines.extend(advice.command.as_ref().map(|command| self.screen.paint(Style::Bold, command)));
        self.labelled(label, lines);
        if let Some(undo) = &advice.undo {
            self.labelled("undo", vec![undo.clone()]);
        }
        if let Some(risk) = &advice.risk {
            self.labelled("risk", wrap(risk, self.room()));
        }
    }

    /// Where to read more, and which other findings this one is the cause of.
    fn why(&mut self, finding: &Finding, view: View) {
        let explained = || finding.evidence.iter().filter(|evidence| evidence.aspect == Aspect::Explains);
        if view.verbose {
            self.labelled("explains", explained().flat_map(|evidence| self.with_source(evidence)).collect());
        } else {
            let ids: Vec<String> = explained().map(|evidence| evidence.what.clone()).collect();
            self.labelled("explains", wrap_items(&ids, self.room()));
        }
        if finding.id != "healthy" {
            self.labelled("why", vec![format!("quell explain {}", finding.id)]);
        }
    }
}
