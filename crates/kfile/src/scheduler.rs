//! `queue/scheduler`: the I/O scheduler of a disk, `none [mq-deadline] kyber bfq`, the active one in brackets.
//!
//! Only what is loaded is listed: a kernel may have bfq as a module and not name it here until somebody asks for it.

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::scan;

/// A disk's scheduler and its choices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// The one in use; `none` where requests go to the driver in the order they come.
    pub active: Box<str>,
    /// All that are listed, the active one among them, in the kernel's order.
    pub available: Vec<Box<str>>,
}

/// Parses `queue/scheduler`. A word alone is the active one: devices without a choice print no brackets.
///
/// # Errors
/// Not one whole line of words with one of them active.
pub fn parse(bytes: &[u8]) -> Result<Scheduler, ParseError> {
    let fail = |what| ParseError { line_no: 1, what };
    let line = std::str::from_utf8(scan::one_line(bytes)?).map_err(|_| fail("words of UTF-8"))?;
    let mut active = None;
    let mut available: Vec<Box<str>> = Vec::new();
    for word in line.split_ascii_whitespace() {
        let bracketed = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        let name = bracketed.unwrap_or(word);
        if name.is_empty() || name.contains(['[', ']']) {
            return Err(fail("names with no brackets in them"));
        }
        available.push(name.into());
        if bracketed.is_some() && active.replace(Box::from(name)).is_some() {
            return Err(fail("no second word in brackets"));
        }
    }
    if let ([only], None) = (&available[..], &active) {
        active = Some(only.clone());
    }
    Ok(Scheduler { active: active.ok_or(fail("a word in brackets"))?, available })
}

/// The file as the kernel prints it, with the space at the end that it has where there is a choice.
#[must_use]
pub fn render(scheduler: &Scheduler) -> String {
    if let [only] = &scheduler.available[..] {
        return format!("{only}\n");
    }
    let at = scheduler.available.iter().position(|name| *name == scheduler.active);
    let words = scheduler.available.iter().enumerate();
    words.map(|(i, name)| if Some(i) == at { format!("[{name}] ") } else { format!("{name} ") }).collect::<String>()
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_active() {
        let text = b"none [mq-deadline] kyber bfq \n";
        let scheduler = parse(text).unwrap();
        assert_eq!((&*scheduler.active, scheduler.available.len()), ("mq-deadline", 4));
        assert_eq!(render(&scheduler).as_bytes(), text);
    }

    #[test]
    fn a_word_alone_is_active() {
        assert_eq!(&*parse(b"none\n").unwrap().active, "none");
    }

    #[test]
    fn no_active_word_or_two_are_errors() {
        for wrong in [&b"none kyber\n"[..], b"[none] [kyber]\n", b"\n", b"[none] kyb", b"", b"[]\n", b"[[a]]\n"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
