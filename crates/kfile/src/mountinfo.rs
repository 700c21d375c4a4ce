//! `/proc/PID/mountinfo`: what is mounted where, and from which device.
//!
//! Fields are split at each single space and not at runs of them, because a mount may have an empty source. Options are
//! kept as the kernel printed them: in a value, a comma is written `\054`, so they must be split before they are decoded.

use std::borrow::Cow;

use quell_units::DevNum;
use serde::{Deserialize, Serialize};

use crate::scan;
use crate::{Parsed, names};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The mount's id, unique at one moment.
    pub mount_id: u32,
    /// The id of the mount it lies on; its own at the top of the tree.
    pub parent_id: u32,
    /// The device of its files (`st_dev`). `0:NN` is no disk: btrfs, overlay, tmpfs, network.
    pub dev: DevNum,
    /// The directory of the file system that is seen at the mount point: `/` unless it is a bind mount or a subvolume.
    #[serde(with = "names")]
    pub root: Box<[u8]>,
    /// Where it is mounted, as seen from the process's root.
    #[serde(with = "names")]
    pub mount_point: Box<[u8]>,
    /// Options of this mount, such as `rw,noatime`, as printed.
    #[serde(with = "names")]
    pub options: Box<[u8]>,
    /// The file system's type, such as `ext4` or `fuse.sshfs`.
    #[serde(with = "names")]
    pub fs_type: Box<[u8]>,
    /// What was mounted: a device's path, or any text; empty where that was.
    #[serde(with = "names")]
    pub source: Box<[u8]>,
    /// Options of the file system, such as `rw,lowerdir=/a:/b,upperdir=/c`, as printed.
    #[serde(with = "names")]
    pub super_options: Box<[u8]>,
}

impl Row {
    /// The value of an option of the file system, such as `upperdir`; empty for an option without one, such as `rw`.
    #[must_use]
    pub fn super_option(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut options = self.super_options.split(|&b| b == b',');
        let value = options.find_map(|option| {
            let (key, value) = scan::key_value(option).unwrap_or((option, b""));
            (key == name.as_bytes()).then_some(value)
        })?;
        Some(if value.contains(&b'\\') { names::decode_octal(value).into_vec().into() } else { value.into() })
    }
}

/// Parses `mountinfo`. The optional fields, which tell of mount propagation, are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Vec<Row>> {
    scan::rows(bytes, |line| {
        row(line).ok_or("ID PARENT MAJ:MIN ROOT MOUNTPOINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPEROPTIONS")
    })
}

fn row(line: &[u8]) -> Option<Row> {
    let mut fields = line.split(|&b| b == b' ');
    let mount_id = scan::number_u32(fields.next()?)?;
    let parent_id = scan::number_u32(fields.next()?)?;
    let dev = scan::value(fields.next()?)?;
    let root = names::decode_octal(fields.next()?);
    let mount_point = names::decode_octal(fields.next()?);
    let options = fields.next()?.into();
    fields.find(|&field| field == b"-")?;
    let fs_type = names::decode_octal(fields.next()?);
    let source = names::decode_octal(fields.next()?);
    // All that is left: some file systems print their options without escaping spaces.
    let super_options = fields.collect::<Vec<_>>().join(&b' ').into();
    Some(Row { mount_id, parent_id, dev, root, mount_point, options, fs_type, source, super_options })
}

/// The rows as the kernel prints them, without optional fields.
#[must_use]
pub fn render(rows: &[Row]) -> Vec<u8> {
    rows.iter().flat_map(render_row).collect()
}

fn render_row(row: &Row) -> Vec<u8> {
    let head = format!("{} {} {}", row.mount_id, row.parent_id, row.dev);
    let (root, mount_point) = (names::encode_octal(&row.root), names::encode_octal(&row.mount_point));
    let (fs_type, source) = (names::encode_octal(&row.fs_type), names::encode_octal(&row.source));
    let fields: [&[u8]; 8] =
        [head.as_bytes(), &root, &mount_point, &row.options, b"-", &fs_type, &source, &row.super_options];
    let mut line = fields.join(&b' ');
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_mount_reads_back() {
        let text = b"22 1 253:1 / /mnt/data rw,noatime - ext4 /dev/vda1 rw\n";
        let rows = parse(text).value;
        assert_eq!((rows[0].mount_id, rows[0].dev), (22, DevNum { major: 253, minor: 1 }));
        assert_eq!((&*rows[0].mount_point, &*rows[0].fs_type), (&b"/mnt/data"[..], &b"ext4"[..]));
        assert_eq!(render(&rows), text);
    }

    #[test]
    fn spaces_in_a_path_are_decoded_and_optional_fields_skipped() {
        let text =
            b"36 35 0:50 / /my\\040disk rw shared:1 master:2 - overlay overlay rw,upperdir=/a\\054b,lowerdir=/c\n";
        let rows = parse(text).value;
        assert_eq!(*rows[0].mount_point, *b"/my disk");
        assert_eq!(rows[0].super_option("upperdir").unwrap(), &b"/a,b"[..]);
        assert_eq!(rows[0].super_option("rw").unwrap(), &b""[..]);
        assert_eq!(rows[0].super_option("workdir"), None);
        assert_eq!(parse(&render(&rows)).value, rows);
    }

    #[test]
    fn an_empty_source_is_empty_and_not_the_next_field() {
        let rows = parse(b"9 1 0:40 / /t rw - tmpfs  rw,size=4k\n").value;
        assert_eq!((&*rows[0].source, &*rows[0].super_options), (&b""[..], &b"rw,size=4k"[..]));
    }

    #[test]
    fn a_line_without_its_dash_is_lost_alone() {
        let parsed = parse(b"22 1 253:1 / /mnt rw ext4 /dev/vda1 rw\n9 1 0:40 / /t rw - tmpfs none rw\n");
        assert_eq!((parsed.value.len(), parsed.lost.lines), (1, 1));
    }
}
