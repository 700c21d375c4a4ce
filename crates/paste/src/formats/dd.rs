//! The last line of `dd`, in any language: `104857600 bytes (105 MB, 100 MiB) copied, 9.90693 s, 10.6 MB/s`.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::decimal;
use crate::pasted::{Copied, Pasted, Statement};
use quell_units::{Bytes, whole};

pub(crate) const FORMAT: Format = Format { name: "dd", open };

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut copy = Copy { command: command(line.text).or(line.command.and_then(command)), done: Vec::new() };
    (command(line.text).is_some() || copy.take(line)).then(|| -> Box<dyn Open> { Box::new(copy) })
}

#[derive(Default)]
struct Copy {
    command: Option<Copied>,
    done: Vec<Copied>,
}

impl Open for Copy {
    fn take(&mut self, line: &Line) -> bool {
        if is_records(line.text) {
            return true;
        }
        let Some((bytes, seconds)) = result(line.text) else { return false };
        self.done.push(Copied { bytes, seconds, ..self.command.unwrap_or_default() });
        true
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.statements.extend(self.done.into_iter().map(Statement::Copied));
    }
}

/// What a command line with `dd` in it says of the copy.
fn command(text: &str) -> Option<Copied> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';')).collect();
    let at = words.iter().position(|word| *word == "dd" || word.ends_with("/dd"))?;
    let options = words.get(at + 1..)?;
    let of = |key: &str| options.iter().find_map(|word| word.strip_prefix(key));
    let has = |key: &str, flag: &str| of(key).is_some_and(|flags| flags.split(',').any(|one| one == flag));
    of("of=").or(of("if="))?;
    let writes = of("of=").map(|to| !matches!(to, "/dev/null" | "/dev/zero"));
    let flags = if writes == Some(true) { "oflag=" } else { "iflag=" };
    Some(Copied {
        bytes: Bytes(0),
        seconds: 0.0,
        direct: Some(has(flags, "direct")),
        synced: has("conv=", "fsync") || has("conv=", "fdatasync") || has("oflag=", "sync") || has("oflag=", "dsync"),
        writes,
    })
}

/// `100+0 records in`, `100+0 Datensätze ein`.
fn is_records(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    let is_count = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    first.split_once('+').is_some_and(|(whole, part)| is_count(whole) && is_count(part)) && text.trim().contains(' ')
}

/// The bytes and the seconds of the result. The words differ by language; that a number of bytes with a size in
/// parentheses comes first, and a time in `s` or `seconds` with a rate behind it, does not.
fn result(text: &str) -> Option<(Bytes, f64)> {
    let text = text.trim();
    let (bytes, rest) = text.split_once(' ')?;
    let bytes = bytes.parse().ok()?;
    let (_, behind) = rest.split_once(')')?;
    behind.trim_end().ends_with("/s").then_some(())?;
    let words: Vec<&str> = behind.split(|c: char| c.is_whitespace()).collect();
    let seconds = words.windows(2).find_map(|pair| match pair {
        [number, unit] if matches!(unit.trim_end_matches(','), "s" | "sec" | "seconds" | "Sekunden") => decimal(number),
        _ => None,
    });
    let packed = || words.iter().find_map(|word| decimal(word.trim_end_matches(',').strip_suffix('s')?));
    let seconds = seconds.or_else(packed).filter(|seconds| *seconds > 0.0)?;
    Some((Bytes(bytes), seconds))
}

impl Copied {
    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        let whole = whole(self.seconds * 1e6).max(1);
        self.bytes.as_f64() * 1e6 / quell_units::count(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    #[test]
    fn results_of_all_kinds_of_dd_are_read() {
        for line in [
            "104857600 bytes (105 MB, 100 MiB) copied, 9.90693 s, 10.6 MB/s",
            "104857600 bytes (105 MB) copied, 9.90693 s, 10.6 MB/s",
            "104857600 Bytes (105 MB, 100 MiB) kopiert, 9,90693 s, 10,6 MB/s",
            "104857600 bytes (100.0MB) copied, 9.90693 seconds, 10.1MB/s",
        ] {
            assert_eq!(result(line), Some((Bytes(104_857_600), 9.90693)), "{line}");
        }
        assert_eq!(result("104857600 bytes were lost"), None);
    }

    #[test]
    fn the_command_says_whether_the_page_cache_was_in_between() {
        let text = "$ dd if=/dev/zero of=file bs=1M count=100 oflag=direct\n100+0 records in\n100+0 records out\n\
            104857600 bytes (105 MB, 100 MiB) copied, 9.90693 s, 10.6 MB/s\n";
        let pasted = read(text);
        let [Statement::Copied(copied)] = pasted.statements.as_slice() else { panic!("{pasted:?}") };
        assert_eq!((copied.direct, copied.writes, copied.synced), (Some(true), Some(true), false));
        assert!((copied.bytes_per_sec() - 10.584e6).abs() < 1e4 && pasted.unread.lines == 0);
    }
}
