//! JSON as it is pasted: cut off, with a stray comma, with `nan` in it, and with text around it.

use serde_json::Value;

/// Values within values that are followed. Deeper ones are no document of a tool.
const DEPTH_MAX: usize = 64;

/// A document, mended where it is not whole: what is open is closed, commas without a value are left out, and what is no
/// number of JSON's (`nan`, `inf`) is null. `None` where even that is no JSON.
pub(crate) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&mend(text)?).ok())
}

/// The text with its faults mended; `None` where it nests too deep or closes what is not open.
fn mend(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut open: Vec<char> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => string(&mut chars, &mut out),
            '{' | '[' => {
                open.push(if c == '{' { '}' } else { ']' });
                if open.len() > DEPTH_MAX {
                    return None;
                }
                out.push(c);
            }
            '}' | ']' => {
                drop_tail(&mut out, &[',']);
                if open.pop() != Some(c) {
                    return None;
                }
                out.push(c);
                if open.is_empty() {
                    return Some(out);
                }
            }
            ',' if ends_with_any(&out, "{[,") => {}
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '+') => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')) {
                    word.push(c);
                }
                out += if serde_json::from_str::<Value>(&word).is_ok() { &word } else { "null" };
            }
            c => out.push(c),
        }
    }
    // The text ended in the middle: a key without its value is given none.
    if ends_with_any(&out, ":") {
        out += "null";
    }
    drop_tail(&mut out, &[',']);
    if open.last() == Some(&'}') && dangling_key(&out) {
        out += ":null";
    }
    out.extend(open.into_iter().rev());
    Some(out)
}

/// Copies a string's rest, and closes it where the text ends.
fn string(chars: &mut std::iter::Peekable<std::str::Chars>, out: &mut String) {
    out.push('"');
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => {
                let Some(next) = chars.next() else { break };
                out.extend(['\\', next]);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn ends_with_any(text: &str, chars: &str) -> bool {
    text.trim_end().ends_with(|c| chars.contains(c))
}

/// Takes trailing white space and one of these off.
fn drop_tail(out: &mut String, tails: &[char]) {
    let kept = out.trim_end().len();
    out.truncate(kept);
    if out.ends_with(tails) {
        out.pop();
    }
}

/// Whether an object's text ends in a key that no colon follows.
fn dangling_key(text: &str) -> bool {
    let Some(body) = text.trim_end().strip_suffix('"') else { return false };
    let Some(start) = body.rfind('"') else { return false };
    body.get(..start).is_some_and(|before| ends_with_any(before, "{,"))
}

/// A number, whether it is written as one or as text.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| crate::number::decimal(value.as_str()?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_whole_is_mended() {
        for (text, value) in [
            ("[\n,\n{\"a\": 1}]", json!([{"a": 1}])),
            ("{\"a\": [{\"b\": 2}", json!({"a": [{"b": 2}]})),
            ("{\"a\": [1, 2, ", json!({"a": [1, 2]})),
            ("{\"a\": nan, \"b\": -inf, \"c\": 1.5}", json!({"a": null, "b": null, "c": 1.5})),
            ("{\"a\": 1, \"b\":", json!({"a": 1, "b": null})),
            ("{\"a\": 1, \"b", json!({"a": 1, "b": null})),
            ("{\"a\": 1,}\ntext behind", json!({"a": 1})),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
        assert_eq!(parse("]"), None);
        assert_eq!(parse(&"[".repeat(10_000)), None);
    }
}
