//! `/proc/swaps`: where the host swaps to. A heading, then a line an area.

use quell_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::scan;
use crate::{Parsed, names};

/// One swap area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The device's or the file's path; ` (deleted)` at its end where the file was removed.
    #[serde(with = "names")]
    pub path: Box<[u8]>,
    /// What it is.
    pub kind: Kind,
    /// Its size.
    pub size_bytes: Bytes,
    /// How much of it is in use.
    pub used_bytes: Bytes,
    /// Areas of a higher priority are filled first; negative where nobody chose it.
    pub priority: i32,
}

/// What a swap area is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block device, whole disks and zram too.
    Partition,
    /// A file in a file system.
    File,
}

const HEADING: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

/// Parses `/proc/swaps`.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    scan::fold(bytes, |rows: &mut Vec<Row>, line| {
        let is_heading = scan::fields(line).nth(1) == Some(b"Type");
        if !is_heading {
            rows.push(row(line).ok_or("PATH partition|file SIZE USED PRIORITY")?);
        }
        Ok(())
    })
}

fn row(line: &[u8]) -> Option<Row> {
    let mut fields = scan::fields(line);
    Some(Row {
        path: names::decode_octal(fields.next()?),
        kind: match fields.next()? {
            b"partition" => Kind::Partition,
            b"file" => Kind::File,
            _ => return None,
        },
        size_bytes: scan::kib(fields.next()?)?,
        used_bytes: scan::kib(fields.next()?)?,
        priority: scan::value(fields.next()?)?,
    })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::from(HEADING);
    for row in rows {
        let kind = match row.kind {
            Kind::Partition => "partition",
            Kind::File => "file\t",
        };
        out.extend(names::encode_octal(&row.path));
        let (size, used) = (row.size_bytes.0 / 1024, row.used_bytes.0 / 1024);
        out.extend(format!("\t{kind}\t{size}\t\t{used}\t\t{}\n", row.priority).into_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_has_a_size_and_what_is_used() {
        let text = [HEADING, "/dev/vda2                               partition\t225276\t\t112760\t\t-2\n"].concat();
        let parsed = parse(text.as_bytes());
        assert!(parsed.lost.is_none());
        assert_eq!((&*parsed.value[0].path, parsed.value[0].kind), (&b"/dev/vda2"[..], Kind::Partition));
        assert_eq!((parsed.value[0].used_bytes, parsed.value[0].priority), (Bytes(112_760 * 1024), -2));
        assert_eq!(parse(&render(&parsed.value)).value, parsed.value);
    }

    #[test]
    fn only_the_heading_is_the_heading() {
        let parsed = parse(b"Filename file 4 0 5\n");
        assert_eq!(*parsed.value[0].path, *b"Filename");
        assert_eq!(parse(&render(&parsed.value)), parsed);
    }

    #[test]
    fn a_removed_swap_file_keeps_its_mark() {
        let parsed = parse(b"/swap\\040(deleted) file 4 0 5\n/x other 4 0 5\n");
        assert_eq!(*parsed.value[0].path, *b"/swap (deleted)");
        assert_eq!(parsed.lost.lines, 1);
    }
}
