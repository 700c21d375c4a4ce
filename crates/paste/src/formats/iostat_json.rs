//! `iostat -o JSON`, whole or not.
//!
//! iostat prints an object a device, flat and on one line, so each is read alone: a document that was never closed, has
//! a comma too many (sysstat 12.1.4) or is a hundred megabytes long needs no other code.

use serde_json::{Map, Value};

use super::iostat::{Row, column};
use super::{Format, Open};
use crate::json;
use crate::line::Line;
use crate::pasted::{Pasted, Statement};
use crate::table::{self, Table};

pub(crate) const FORMAT: Format = Format { name: "iostat JSON", open };

const DEVICE: &str = "\"disk_device\"";

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let starts = line.text.contains("\"sysstat\"") || line.text.contains(DEVICE);
    let mut document = Document::default();
    (starts && document.take(line)).then(|| -> Box<dyn Open> { Box::new(document) })
}

/// A document under way.
#[derive(Default)]
struct Document {
    done: Vec<Table>,
    block: Table,
    release: Option<String>,
    is_iostat: bool,
}

impl Open for Document {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if text.is_empty() {
            return true;
        }
        // Each line of a document starts like this; a line of prose or of a shell does not.
        if !text.starts_with(['{', '}', '[', ']', ',', '"']) {
            return false;
        }
        let mut rest = text;
        while let Some(at) =
            rest.find("\"disk\"").into_iter().chain(rest.find(DEVICE)).chain(rest.find("\"avg-cpu\"")).min()
        {
            let (before, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
            self.release(before);
            rest = if tail.starts_with(DEVICE) { self.device(tail) } else { self.part(tail) };
        }
        self.release(rest);
        true
    }

    fn close(mut self: Box<Self>, pasted: &mut Pasted) {
        self.end_block();
        if self.is_iostat {
            self.done.into_iter().for_each(|table| table::push(&mut pasted.tables, table));
            pasted.statements.extend(self.release.map(Statement::Kernel));
        }
    }
}

impl Document {
    /// The kernel's release, which stands once at the top.
    fn release(&mut self, text: &str) {
        if let Some((_, tail)) = text.split_once("\"release\":").filter(|_| self.release.is_none()) {
            self.release = tail.split('"').nth(1).map(ToOwned::to_owned);
        }
    }

    /// `"avg-cpu": {…}` or `"disk": […`: either may be the first of a block.
    fn part<'a>(&mut self, text: &'a str) -> &'a str {
        if let Some(tail) = text.strip_prefix("\"disk\"") {
            if !self.block.rows.is_empty() {
                self.end_block();
            }
            return tail;
        }
        self.end_block();
        let tail = text.trim_start_matches("\"avg-cpu\"");
        let Some(end) = tail.find('}') else { return tail };
        let (object, tail) = tail.split_at_checked(end + 1).unwrap_or((tail, ""));
        let of = |object: &Map<String, Value>, key: &str| object.get(key).and_then(json::number);
        if let Some(Value::Object(cpu)) = json::parse(object.trim_start_matches([':', ' '])) {
            let busy = ["user", "nice", "system"].iter().filter_map(|key| of(&cpu, key)).sum();
            self.block.cpu_pct = of(&cpu, "iowait").zip(of(&cpu, "idle")).map(|(iowait, idle)| (busy, iowait, idle));
        }
        tail
    }

    /// One device's object, from its first key on.
    fn device<'a>(&mut self, text: &'a str) -> &'a str {
        let end = text.find('}').map_or(text.len(), |end| end + 1);
        let (object, tail) = text.split_at_checked(end).unwrap_or((text, ""));
        let Some(Value::Object(object)) = json::parse(&format!("{{{object}")) else { return tail };
        let Some(name) = object.get("disk_device").and_then(Value::as_str) else { return tail };
        self.is_iostat = true;
        if self.block.rows.iter().any(|row| row.name == name) {
            self.end_block();
        }
        let mut row = Row::named(name);
        for (key, value) in &object {
            if let Some(column) = column(key) {
                row.put(column, json::number(value), false);
            }
        }
        self.block.rows.push(row.finish());
        tail
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if !block.rows.is_empty() {
            // Whether the first block is of the time since boot (without `-y` it is) is not told: the numbers decide.
            table::push(&mut self.done, block);
        } else {
            self.block.cpu_pct = block.cpu_pct;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    const ROW: &str = "{\"disk_device\": \"sda\", \"r/s\": 10.00, \"w/s\": 5.00, \"rkB/s\": 40.00, \"wkB/s\": 20.00, \
        \"r_await\": 2.00, \"w_await\": 4.00, \"rareq-sz\": 4.00, \"wareq-sz\": 4.00, \"aqu-sz\": 0.04, \"util\": 3.00}";

    #[test]
    fn a_document_is_read_whole_cut_and_on_one_line() {
        let block = format!(
            "{{\n\"avg-cpu\": {{\"user\": 1.5, \"nice\": 0, \"system\": 1, \"iowait\": 2, \"steal\": 0, \"idle\": 95.5}},\n\"disk\": [\n{ROW}\n]\n}}"
        );
        let head = "{\"sysstat\": {\n\"hosts\": [\n{\n\"release\": \"6.1.0\",\n\"statistics\": [\n";
        let whole = format!("{head}{block},\n{block}\n]\n}}\n]\n}}}}\n");
        let cut = format!("{head},\n{block},\n{{\n\"disk\": [\n{ROW}\n");
        let line = whole.replace('\n', "") + "\n";
        for text in [whole, cut, line] {
            let pasted = read(&text);
            assert_eq!((pasted.tables.len(), pasted.unread.lines), (2, 0), "{text}");
            let row = &pasted.tables[1].rows[0];
            assert_eq!(
                (row.read.ios_per_sec, row.write.await_usec, row.util_pct),
                (Some(10.0), Some(4000.0), Some(3.0))
            );
            assert_eq!(pasted.tables[0].cpu_pct, Some((2.5, 2.0, 95.5)));
            assert_eq!(pasted.statements.len(), 1);
        }
    }
}
