//! `quell explain` for people: one rule's text, or the list of all.

use super::text::{columns, cut, pad, wrap};
use crate::doc::explain::{Document, Explained};
use crate::screen::{Screen, Style};

/// The list: a line a rule, its name and the first sentence of what it means.
#[must_use]
pub fn list(document: &Document, screen: &Screen) -> String {
    let width = document.rules.iter().map(|rule| columns(rule.id)).max().unwrap_or(0) + 2;
    let mut out = String::new();
    for rule in &document.rules {
        let first_sentence = rule.means.split_once(". ").map_or(rule.means, |(first, _)| first);
        let text = cut(first_sentence.trim_end_matches('.'), screen.table_width.saturating_sub(width));
        out += &format!("{}{text}\n", screen.paint(Style::Bold, &pad(rule.id, width)));
    }
    out + "\nquell explain ID tells more.\n"
}

/// All that one rule says.
#[must_use]
pub fn rule(rule: &Explained, screen: &Screen) -> String {
    let mut out = format!("{}\n", screen.paint(Style::Bold, rule.id));
    let explains = rule.explains.join(", ");
    let parts = [
        ("means", rule.means),
        ("kernel", rule.kernel),
        ("evidence", rule.evidence),
        ("change", rule.change),
        ("undo", rule.undo),
        ("explains", explains.as_str()),
    ];
    for (label, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        out.push('\n');
        out += &labelled(label, text, screen);
    }
    out
}

fn labelled(label: &str, text: &str, screen: &Screen) -> String {
    const LABEL: usize = 12;
    let lines = wrap(text, (screen.width - LABEL).min(88));
    let mut label = format!("  {label}");
    let mut out = String::new();
    for line in lines {
        out += &format!("{}{line}\n", screen.paint(Style::Dim, &pad(&label, LABEL)));
        label.clear();
    }
    out
}
