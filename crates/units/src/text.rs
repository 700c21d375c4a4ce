//! Names from the host are data: what they must not do to a terminal or a page.

use std::borrow::Cow;

/// The bytes as text that is safe to print: control characters, and bytes that are no UTF-8, become `\xNN`.
///
/// A backslash stays as it is, since systemd writes `\x2d` into unit names and people know them so.
#[must_use]
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(must_escape) => Cow::Borrowed(text),
        _ => Cow::Owned(escape_chunks(bytes, must_escape)),
    }
}

/// As [`escape`], with the backslash escaped too, so that [`unescape`] gives the same bytes back: for files of our own.
#[must_use]
pub fn escape_reversible(bytes: &[u8]) -> String {
    escape_chunks(bytes, |c| c == '\\' || must_escape(c))
}

/// The bytes that [`escape_reversible`] was given; `None` where a `\` is not followed by `xNN`.
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('\\');
    let mut out = Vec::from(parts.next()?);
    for part in parts {
        let (hex, plain) = part.strip_prefix('x')?.split_at_checked(2)?;
        // `from_str_radix` alone would take a sign.
        if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(hex, 16).ok()?);
        out.extend_from_slice(plain.as_bytes());
    }
    Some(out)
}

/// Control characters, and the marks that reorder text around them (U+202A..E, U+2066..9).
fn must_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_chunks(bytes: &[u8], escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    let push_hex = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if escaped(c) {
                push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(c);
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(escape(b"a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
        assert_eq!(escape(b"caf\xc3\xa9 \xff"), "café \\xff");
        assert_eq!(escape(b"dev-disk\\x2dby.device"), "dev-disk\\x2dby.device");
        assert_eq!(escape("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
    }

    #[test]
    fn what_only_looks_like_an_escape_is_refused() {
        for wrong in ["\\", "\\x", "\\x4", "\\x+1", "\\x€", "\\n"] {
            assert_eq!(unescape(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn unescape_undoes_escape(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(unescape(&escape_reversible(&bytes)), Some(bytes));
        }

        #[test]
        fn escaped_text_holds_no_control_character(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(!escape(&bytes).chars().any(char::is_control));
        }
    }
}
