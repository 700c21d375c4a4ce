//! Names and paths from the host: bytes, and how the kernel and JSON write them as text.
//!
//! They are kept as bytes because Linux asks for no more; the field type is `Box<[u8]>`. The kernel writes a space in
//! one as `\040` (`mountinfo`, `swaps`). JSON gets text in which `\` and what is no printable UTF-8 is `\xNN`, so that a
//! snapshot can be read by people and gives the same bytes back; this module is that format's `serde(with)`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// As this module itself, for a name that may be absent.
pub(crate) mod option {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Owned(#[serde(with = "super")] Box<[u8]>);

    #[derive(Serialize)]
    #[serde(transparent)]
    struct Borrowed<'a>(#[serde(serialize_with = "super::serialize")] &'a [u8]);

    pub(crate) fn serialize<S: Serializer>(name: &Option<Box<[u8]>>, serializer: S) -> Result<S::Ok, S::Error> {
        name.as_deref().map(Borrowed).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<[u8]>>, D::Error> {
        Ok(Option::<Owned>::deserialize(deserializer)?.map(|Owned(name)| name))
    }
}

/// The bytes behind the kernel's `\NNN` escapes. A backslash before anything else stands for itself.
pub(crate) fn decode_octal(text: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        match octal(rest) {
            Some((byte, after)) => {
                out.push(byte);
                rest = after;
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out.into()
}

fn octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = text.strip_prefix(b"\\")?.split_at_checked(3)?;
    let byte = digits.iter().try_fold(0_u8, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|&d| d < 8)?;
        value.checked_mul(8)?.checked_add(digit)
    })?;
    Some((byte, after))
}

/// The bytes with the four that the kernel escapes in `mountinfo` as `\NNN`.
pub(crate) fn encode_octal(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|&byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            _ => vec![byte],
        })
        .collect()
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&quell_units::escape_reversible(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[u8]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    quell_units::unescape(&text).map(Vec::into).ok_or_else(|| de::Error::custom("a \\ not followed by xNN"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(transparent)]
    struct Name(#[serde(with = "super")] Box<[u8]>);

    #[test]
    fn the_kernels_escapes_are_undone() {
        assert_eq!(*decode_octal(b"/my\\040disk\\134\\011\\012\\043"), *b"/my disk\\\t\n#");
        assert_eq!(*decode_octal(b"\\04 \\999 \\477 \\"), *b"\\04 \\999 \\477 \\", "not an escape, so it stays");
    }

    #[test]
    fn json_is_readable_text() {
        let name = Name(Box::from(&b"/caf\xc3\xa9 \\ \xff\n"[..]));
        assert_eq!(serde_json::to_string(&name).unwrap(), r#""/café \\x5c \\xff\\x0a""#);
        assert!(serde_json::from_str::<Name>(r#""\\x+1""#).is_err());
    }

    /// Mostly such as escapes, and what only looks like one, are made of.
    fn bytes() -> impl Strategy<Value = u8> {
        prop_oneof![1 => any::<u8>(), 4 => proptest::sample::select(&b"\\\\0014x \n"[..])]
    }

    proptest! {
        #[test]
        fn json_and_octal_give_any_bytes_back(bytes in proptest::collection::vec(bytes(), 0..48)) {
            prop_assert_eq!(&*decode_octal(&encode_octal(&bytes)), &bytes[..]);
            let name = Name(bytes.into());
            let json = serde_json::to_string(&name).unwrap();
            prop_assert_eq!(serde_json::from_str::<Name>(&json).unwrap(), name);
        }
    }
}
