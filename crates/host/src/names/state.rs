//! Reading a runtime's state so that nothing but what quell uses is ever kept.
//!
//! These files hold environment variables, and so passwords. The bytes are therefore reduced before anything else sees
//! them: parsed into a type that has only the wanted fields, and rendered from it. The value is made from the reduced
//! bytes, and the recording reader gets the same, so a capture holds no more than the snapshot came from.

use quell_units::{Gap, Known, escape};
use rustix::io::Errno;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::gap;
use crate::gaps::{Gaps, Of};
use crate::reader::Reader;

/// The longest text that is kept, in bytes. A name of Kubernetes has at most 253, a path seldom more than this.
const TEXT_BYTES_MAX: usize = 512;

/// Reads a file of JSON, reduced to the fields of `T`.
///
/// # Errors
/// The file cannot be read, or is not of the format; then a recording keeps it as an empty file, which is not either.
pub(super) fn read_json<T: DeserializeOwned + Serialize>(reader: &mut Reader, path: &[u8]) -> Known<T> {
    let bytes = reader.read_reduced(path, reduce_json::<T>).map_err(gap)?;
    serde_json::from_slice(&bytes).map_err(|_| Gap::Malformed)
}

fn reduce_json<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Vec<u8> {
    serde_json::from_slice::<T>(bytes).and_then(|value| serde_json::to_vec(&value)).unwrap_or_default()
}

/// The value of a state file. That it is not there is an answer, since each runtime has files of its own; any other
/// reason is noted under the file's name.
pub(super) fn noted<T>(value: Known<T>, file: &'static str, path: &[u8], gaps: &mut Gaps) -> Option<T> {
    match value {
        Ok(value) => Some(value),
        Err(Gap::NotInKernel | Gap::Gone) => None,
        Err(reason) => {
            gaps.missing(file, Of::Container, reason, || dir_of(path));
            None
        }
    }
}

/// The directory of a file, from the root of the machine.
fn dir_of(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
    [b"/", path.get(..end).unwrap_or_default()].concat()
}

/// A directory's entries, at most `count_max` of them, by name; what is left out is noted.
pub(super) fn list(reader: &mut Reader, dir: &[u8], count_max: usize, gaps: &mut Gaps) -> Vec<Vec<u8>> {
    match reader.list(dir) {
        Ok(mut entries) => {
            let left_out = entries.len().saturating_sub(count_max);
            gaps.left_out(Of::Container, Gap::OverBound, u64::try_from(left_out).unwrap_or(u64::MAX));
            entries.truncate(count_max);
            let mut names: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.name).collect();
            names.sort_unstable();
            names
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Vec::new(),
        Err(errno) => {
            gaps.missing("state", Of::Container, gap(errno), || [b"/", dir].concat());
            Vec::new()
        }
    }
}

/// A text from a state file: safe to print and bounded; `None` where it is empty.
pub(super) fn text(text: &str) -> Option<String> {
    let text = escape(text.as_bytes());
    let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= TEXT_BYTES_MAX).last()?;
    text.get(..end).map(str::to_owned)
}

/// As [`text`], of a field that may be absent.
pub(super) fn text_of(field: Option<&String>) -> Option<String> {
    field.and_then(|field| text(field))
}

/// One entry of a list: what is not of the format costs itself alone.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Entry<T> {
    Good(T),
    Bad(IgnoredAny),
}

/// A bad entry becomes `null`, which is one again.
impl<T: Serialize> Serialize for Entry<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Good(value) => value.serialize(serializer),
            Self::Bad(_) => serializer.serialize_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct Named {
        name: String,
    }

    #[test]
    fn only_the_wanted_fields_are_left_of_a_file() {
        let reduced = reduce_json::<Named>(br#"{"name":"db","env":["PASSWORD=hunter2"]}"#);
        assert_eq!(reduced, br#"{"name":"db"}"#);
        assert_eq!(reduce_json::<Named>(b"PASSWORD=hunter2"), b"");
    }

    #[test]
    fn a_bad_entry_costs_itself_and_keeps_its_place() {
        let reduced = reduce_json::<Vec<Entry<Named>>>(br#"[{"name":7},{"name":"db"},"PASSWORD"]"#);
        assert_eq!(reduced, br#"[null,{"name":"db"},null]"#);
    }

    #[test]
    fn a_text_is_safe_to_print_and_bounded() {
        assert_eq!(text("a\x1b[2J").as_deref(), Some("a\\x1b[2J"));
        assert_eq!(text(""), None);
        let long = text(&"é".repeat(TEXT_BYTES_MAX)).unwrap();
        assert_eq!((long.len(), long.chars().all(|c| c == 'é')), (TEXT_BYTES_MAX, true));
    }
}
