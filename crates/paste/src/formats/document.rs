//! A JSON document, whose content says which tool it is of.
//!
//! Which tool printed it is known only when it was read to its end, so the formats of JSON share one reading: a document,
//! or a part of one as people cut it out, is collected and given to each in turn.

use serde_json::Value;

use super::{Format, Open, docker_inspect, fio_json, limits_json, lsblk_json};
use crate::json;
use crate::line::Line;
use crate::pasted::Pasted;

pub(crate) const FORMAT: Format = Format { name: "JSON", open };

/// The largest document that is kept; of a larger one the rest is left out, and it is mended as if it was cut off.
const BYTES_MAX: usize = 64 << 20;

/// Takes what it knows out of a document; whether it was its.
type Take = fn(&Value, &mut Pasted) -> bool;

static KINDS: [Take; 4] = [fio_json::take, docker_inspect::take, lsblk_json::take, limits_json::take];

/// A key that only one tool's documents have, and what they are called.
const NAMES: [(&str, &str); 4] = [
    ("\"fio version\"", "fio JSON"),
    ("\"jobname\"", "fio JSON"),
    ("\"HostConfig\"", "docker inspect"),
    ("\"blockdevices\"", "lsblk JSON"),
];

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let text = line.text.trim_start();
    // A part cut out of an object starts with a key whose value is an object or a list.
    let is_part = text.starts_with('"') && text.trim_end().ends_with(['{', '[']) && text.contains("\":");
    let is_list =
        text.strip_prefix('[').is_some_and(|rest| matches!(rest.trim_start().chars().next(), None | Some('{')));
    if !(text.starts_with('{') || is_list || is_part) {
        return None;
    }
    let mut document = Document { first: line.no, is_part, ..Document::default() };
    document.add(line.text);
    Some(Box::new(document))
}

#[derive(Default)]
struct Document {
    text: String,
    first: u32,
    lines: u32,
    is_part: bool,
    /// What is open: brackets and braces, those in strings left out.
    depth: i64,
    over: bool,
}

impl Document {
    fn add(&mut self, line: &str) {
        let mut in_string = false;
        let mut escaped = false;
        for c in line.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                '{' | '[' if !in_string => self.depth += 1,
                '}' | ']' if !in_string => self.depth -= 1,
                _ => {}
            }
        }
        self.lines = self.lines.saturating_add(1);
        if self.text.len() + line.len() < BYTES_MAX {
            self.text += line;
            self.text.push('\n');
        }
        self.over = self.depth <= 0 && !line.trim_end().ends_with(',');
    }
}

impl Open for Document {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim_start();
        let is_json = text.is_empty()
            || text.starts_with(['{', '}', '[', ']', ',', '"', '-'])
            || text.starts_with(|c: char| c.is_ascii_digit())
            || ["null", "true", "false"].iter().any(|word| text.starts_with(word));
        if self.over || !is_json {
            return false;
        }
        self.add(line.text);
        true
    }

    fn name(&self) -> Option<&'static str> {
        NAMES.iter().find(|(key, _)| self.text.contains(key)).map(|(_, name)| *name)
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        let text = if self.is_part { format!("{{{}", self.text) } else { self.text };
        let value = json::parse(&text);
        if !value.is_some_and(|value| KINDS.iter().any(|take| take(&value, pasted))) {
            pasted.unread.add(self.first, self.lines, &text);
        }
    }
}

/// Every object in a value, the value itself included, outermost first.
pub(super) fn objects<'a>(value: &'a Value, out: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            out.push(object);
            object.values().for_each(|value| objects(value, out));
        }
        Value::Array(values) => values.iter().for_each(|value| objects(value, out)),
        _ => {}
    }
}
