//! Text in a given width.

/// The text in lines of at most `width` columns, broken at spaces; a word that is longer keeps its line to itself, and a
/// number keeps its unit.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in with_units(text) {
        let room = columns(&line) + 1 + columns(&word);
        if !line.is_empty() && room > width {
            lines.push(std::mem::take(&mut line));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    lines.push(line);
    lines
}

/// The words of a text, a number and the word after it as one.
fn with_units(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(number) if number.parse::<f64>().is_ok() => *number += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The items with ` · ` between them, in lines of at most `width` columns, broken between items where that is possible.
#[must_use]
pub fn wrap_items(items: &[String], width: usize) -> Vec<String> {
    const DOT: &str = " · ";
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(DOT) + columns(item) <= width => {
                line.push_str(DOT);
                line.push_str(item);
            }
            _ => lines.extend(wrap(item, width)),
        }
    }
    lines
}

/// The columns that a text takes on a terminal, one a character.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text and spaces up to `width` columns.
#[must_use]
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// The text, cut to `width` columns with `…` where it is longer.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.into();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// `1 disk`, `2 disks`.
#[must_use]
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a verylongword b", 6), ["a", "verylongword", "b"]);
        assert_eq!(wrap("", 6), [""]);
        assert_eq!(wrap("it is 4 % busy", 7), ["it is", "4 %", "busy"]);
    }

    #[test]
    fn items_stay_whole_where_they_fit() {
        let items = ["read await 34.5 ms".to_string(), "aqu-sz 32.4".into(), "%util 100".into()];
        assert_eq!(wrap_items(&items, 34), ["read await 34.5 ms · aqu-sz 32.4", "%util 100"]);
        assert_eq!(wrap_items(&items, 11), ["read await", "34.5 ms", "aqu-sz 32.4", "%util 100"]);
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("tenants/victim", 8), "tenants…");
        assert_eq!(cut("short", 8), "short");
    }
}
