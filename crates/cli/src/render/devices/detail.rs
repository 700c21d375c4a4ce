//! Of what was asked for: how it was found, where each knob acts, and every setting with its reason.

use super::{painted, text};
use crate::doc::devices::{Device, Document, HardwareQueue, Knob, Setting};
use crate::screen::{Screen, Style};

/// The width of a name, of a value and of a judgement.
const NAME: usize = 22;
const VALUE: usize = 18;
const JUDGED: usize = 13;

/// Hardware queues that are told; a drive may have one a processor.
const QUEUES_MAX: usize = 8;

/// How what was asked for was found.
pub(super) fn asked(document: &Document, screen: &Screen) -> String {
    let Some(asked) = &document.asked else { return String::new() };
    let mut out = String::new();
    for step in &asked.steps {
        out += &lines("", step, 0, screen);
    }
    if let Some(unseen) = &asked.unseen {
        out += &lines("not seen", unseen, NAME, screen);
    }
    if !asked.disks.is_empty() && !asked.steps.is_empty() {
        out += &lines("counted as", &asked.disks.join(", "), NAME, screen);
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

pub(super) fn page(document: &Document, screen: &Screen) -> String {
    let asked = document.asked.as_ref().map(|asked| asked.devices.as_slice()).unwrap_or_default();
    let mut out = String::new();
    for name in asked {
        let knobs: Vec<&Knob> = document.knobs.iter().filter(|knob| knob.device == *name).collect();
        if !knobs.is_empty() {
            out += &format!("\n{}\n", screen.paint(Style::Bold, &format!("where each knob acts, for {name}")));
            out += &knobs.iter().map(|knob| knob_lines(knob, screen)).collect::<String>();
        }
    }
    for filesystem in document.filesystems.iter().filter(|fs| !fs.settings.is_empty()) {
        let at = filesystem.mount_points.first().or(filesystem.devices.first());
        out += &format!(
            "\n{}\n",
            screen.paint(Style::Bold, &format!("{} on {}", filesystem.fs_type, at.map_or("", |at| at)))
        );
        out += &filesystem.settings.iter().map(|setting| setting_lines(setting, screen)).collect::<String>();
    }
    for device in document.devices.iter().filter(|device| !device.settings.is_empty()) {
        out +=
            &format!("\n{}\n", screen.paint(Style::Bold, &format!("settings of {} ({})", device.name, device.layer)));
        out += &device.settings.iter().map(|setting| setting_lines(setting, screen)).collect::<String>();
        out += &queues(device, screen);
    }
    out
}

fn knob_lines(knob: &Knob, screen: &Screen) -> String {
    let at: Vec<String> = knob.at.iter().map(|at| format!("{} {}", at.name, at.dev)).collect();
    let at = if at.is_empty() { "nowhere".to_owned() } else { format!("at {}", at.join(", ")) };
    lines(knob.knob, &at, NAME, screen) + &lines("", &knob.why, NAME, screen)
}

fn setting_lines(setting: &Setting, screen: &Screen) -> String {
    // A scheduler's own settings stand behind its name, which the line of the scheduler has told.
    let name = setting.name.rsplit_once(": ").map_or(&*setting.name, |(_, name)| name);
    // What somebody should look at stands above, with its reason.
    let is_above = matches!(setting.judgement, "wrong" | "questionable");
    let why = if is_above { "see above" } else { &setting.why };
    let name = text::pad(&format!("  {name}"), NAME);
    let value = text::pad(&setting.value, VALUE);
    let room = screen.width.saturating_sub(NAME + VALUE + JUDGED);
    let head = format!("{name}{value}{}", painted(setting.judgement, JUDGED, screen));
    if text::columns(why) <= room {
        return format!("{head}{why}").trim_end().to_owned() + "\n";
    }
    format!("{}\n{}", head.trim_end(), lines("", why, NAME, screen))
}

/// Which processors submit to which queue.
fn queues(device: &Device, screen: &Screen) -> String {
    let queues = &device.hardware_queues;
    let line = |queue: &HardwareQueue| {
        let cpus = queue.cpus.as_deref().unwrap_or("not known");
        lines(&format!("queue {}", queue.index), &format!("of processors {cpus}"), NAME, screen)
    };
    let mut out: String = queues.iter().take(QUEUES_MAX).map(line).collect();
    if queues.len() > QUEUES_MAX {
        out += &lines("", &format!("and {} more: --json has them all", queues.len() - QUEUES_MAX), NAME, screen);
    }
    if let Some(node) = device.numa_node {
        out += &lines("memory node", &node.to_string(), NAME, screen);
    }
    out
}

/// Text with a label beside its first line.
fn lines(label: &str, words: &str, indent: usize, screen: &Screen) -> String {
    let label = if label.is_empty() { " ".repeat(indent) } else { text::pad(&format!("  {label}"), indent) };
    let mut label = screen.paint(Style::Dim, &label);
    let mut out = String::new();
    for line in text::wrap(words, screen.width.saturating_sub(indent)) {
        out += &format!("{label}{line}\n");
        label = " ".repeat(indent);
    }
    out
}
