//! From lines to facts: prompts, headings and time stamps are taken off, and each line is offered to the formats.

use std::borrow::Cow;

use crate::formats::{FORMATS, Open};
use crate::line::Line;
use crate::pasted::{Pasted, Piece};

/// Pieces that are listed; the rest are counted with the last.
const PIECES_MAX: usize = 1000;

/// Reads a paste, line by line.
#[derive(Default)]
pub struct Reader {
    pasted: Pasted,
    open: Option<(Box<dyn Open>, Piece)>,
    line_no: u32,
    place: Place,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("line_no", &self.line_no).field("pasted", &self.pasted).finish_non_exhaustive()
    }
}

/// Where in a session the lines are: what was typed last.
#[derive(Debug, Default)]
struct Place {
    directory: Option<String>,
    command: Option<String>,
    file: Option<String>,
}

impl Reader {
    /// Takes the next line, with or without its newline.
    pub fn line(&mut self, bytes: &[u8]) {
        self.line_no = self.line_no.saturating_add(1);
        let text = plain(bytes);
        let text = text.trim_end();
        if let Some(path) = heading(text) {
            self.end_piece();
            self.place.file = Some(self.place.resolve(path));
            return;
        }
        if let Some(command) = prompt(text) {
            self.end_piece();
            self.place.typed(command);
            let taken = self.offer(command, None);
            if !taken {
                // A command that no format makes sense of says at least where the lines below it are from.
                self.place.command = Some(command.to_owned());
            }
            return;
        }
        let (time, text) = stamp(text);
        if !self.offer(text, time) && !text.trim().is_empty() && !is_ruler(text) {
            self.pasted.unread.add(self.line_no, 1, text);
        }
    }

    /// All that was recognised.
    #[must_use]
    pub fn finish(mut self) -> Pasted {
        self.end_piece();
        self.pasted
    }

    /// Offers a line to the piece under way, then to every format; whether one took it.
    fn offer(&mut self, text: &str, time: Option<f64>) -> bool {
        let place = std::mem::take(&mut self.place);
        let (file, command) = (place.file.as_deref(), place.command.as_deref());
        let line = Line { no: self.line_no, text, time, file, command };
        let taken = self.offer_line(&line);
        self.place = place;
        taken
    }

    fn offer_line(&mut self, line: &Line) -> bool {
        if let Some((open, piece)) = &mut self.open {
            if open.take(line) {
                piece.lines = piece.lines.saturating_add(1);
                return true;
            }
            self.end_piece();
        }
        let opened = FORMATS.iter().find_map(|format| Some(((format.open)(line)?, format.name)));
        let Some((open, name)) = opened else { return false };
        self.open = Some((open, Piece { format: name.to_owned(), line_no: line.no, lines: 1 }));
        true
    }

    fn end_piece(&mut self) {
        let Some((open, mut piece)) = self.open.take() else { return };
        if let Some(name) = open.name() {
            name.clone_into(&mut piece.format);
        }
        open.close(&mut self.pasted);
        let is_full = self.pasted.pieces.len() >= PIECES_MAX;
        match self.pasted.pieces.last_mut() {
            // Blocks of one series, and one log, are one piece to a person.
            Some(last) if last.format == piece.format || is_full => {
                last.lines = last.lines.saturating_add(piece.lines);
            }
            _ => self.pasted.pieces.push(piece),
        }
    }
}

impl Place {
    /// A command was typed: what the lines below it are.
    fn typed(&mut self, command: &str) {
        let mut words = command.split_ascii_whitespace().filter(|word| *word != "sudo");
        let program = words.next();
        let arguments: Vec<&str> = words.take_while(|word| !matches!(*word, "|" | ">" | "&&" | ";")).collect();
        let files: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
        self.file = None;
        match (program, files.as_slice()) {
            (Some("cd"), [directory]) => self.directory = Some(self.resolve(directory)),
            (Some("cat" | "head" | "tail" | "more" | "less"), [file]) => self.file = Some(self.resolve(file)),
            _ => {}
        }
        self.command = Some(command.to_owned());
    }

    /// A path as typed, with the directory that was gone to.
    fn resolve(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path.to_owned(),
        }
    }
}

/// A line's text without carriage returns and the escape sequences of a terminal.
fn plain(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(['\x1b', '\r']) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => {}
            // `ESC [ … letter`: colours and the like.
            '\x1b' => drop(chars.find(char::is_ascii_alphabetic)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Whether a line only parts two outputs.
fn is_ruler(text: &str) -> bool {
    text.len() > 3 && text.trim().bytes().all(|b| matches!(b, b'-' | b'=' | b'*' | b'_'))
}

/// The path of `==> path <==`, which `head` and `tail` print above each of several files.
fn heading(text: &str) -> Option<&str> {
    text.strip_prefix("==> ")?.strip_suffix(" <==")
}

/// The command behind a shell's prompt: `$ cmd`, `# cmd`, `user@host:~$ cmd`, `[root@host ~]# cmd`.
fn prompt(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (before, command) = match text.strip_prefix("$ ").or_else(|| text.strip_prefix("# ")) {
        Some(command) => ("", command),
        None => text.split_once("$ ").or_else(|| text.split_once("# "))?,
    };
    let is_prompt = before.is_empty() || {
        let host = before.trim_start_matches('[');
        host.contains('@')
            && host.split(['@', ':', ' ', ']', '~', '/']).all(|part| part.len() <= 64)
            && host.len() <= 120
    };
    // A prompt in front of nothing, or a comment's sign in front of prose, is told by the first word.
    let first = command.split_ascii_whitespace().next()?;
    let is_word = first.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c));
    let is_lower = first.starts_with(|c: char| c.is_ascii_lowercase() || c == '/' || c == '.');
    (is_prompt && is_word && is_lower).then(|| command.trim())
}

/// Takes off a time stamp that a logger put in front: `2023-10-24-09:50:13 `, `2023-10-24T09:50:13Z `; and the time in
/// it, in seconds of its day.
fn stamp(text: &str) -> (Option<f64>, &str) {
    let whole = || {
        let date = text.get(..10)?;
        let is_date = date.char_indices().all(|(at, c)| if at == 4 || at == 7 { c == '-' } else { c.is_ascii_digit() });
        let rest = text.get(10..)?.strip_prefix(['T', '-', ' ', '_'])?;
        let end = rest.find(' ').unwrap_or(rest.len());
        let (clock, rest) = rest.split_at_checked(end)?;
        Some((of_day(clock.trim_end_matches('Z'))?, rest)).filter(|_| is_date)
    };
    whole().map_or((None, text), |(time, rest)| (Some(time), rest.strip_prefix(' ').unwrap_or(rest)))
}

/// `09:50:13.25` as seconds of a day. A zone behind it is of no matter: only differences are used.
fn of_day(clock: &str) -> Option<f64> {
    let clock = clock.split(['+', ',']).next()?;
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok().filter(|part| (0.0..61.0).contains(part)));
    let seconds = parts.next()?? * 3600.0 + parts.next()?? * 60.0 + parts.next()??;
    parts.next().is_none().then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_all_shells_are_taken_off_and_prose_is_not() {
        for (line, command) in [
            ("$ cat io.stat", "cat io.stat"),
            ("# ls -l /dev/sda4", "ls -l /dev/sda4"),
            ("root@web-1:~# iostat -x 1", "iostat -x 1"),
            ("[root@web ~]# dd if=/dev/zero", "dd if=/dev/zero"),
        ] {
            assert_eq!(prompt(line), Some(command), "{line}");
        }
        for line in ["# This is a comment", "cost $ 5", "Device: r/s", "", "$"] {
            assert_eq!(prompt(line), None, "{line}");
        }
    }

    #[test]
    fn a_loggers_time_is_taken_off_and_kept() {
        assert_eq!(stamp("2023-10-24-09:50:13 sdb 0.00"), (Some(35_413.0), "sdb 0.00"));
        assert_eq!(stamp("2023-10-24T00:00:01.5Z sdb"), (Some(1.5), "sdb"));
        assert_eq!(stamp("8:0 rbytes=1"), (None, "8:0 rbytes=1"));
    }

    #[test]
    fn commands_say_whose_content_follows() {
        let mut place = Place::default();
        place.typed("cd /sys/fs/cgroup/a");
        place.typed("sudo cat io.max");
        assert_eq!(place.file.as_deref(), Some("/sys/fs/cgroup/a/io.max"));
        place.typed("cat /proc/mdstat | head");
        assert_eq!(place.file.as_deref(), Some("/proc/mdstat"));
        place.typed("iostat 1");
        assert_eq!(place.file, None);
    }
}
