//! Devices: `lsblk` as a tree, a list or pairs, `ls -l /dev/…`, and `/proc/mdstat`.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::pasted::{DeviceFact, Pasted};

pub(crate) const LSBLK: Format = Format { name: "lsblk", open: open_lsblk };
pub(crate) const LS: Format = Format { name: "ls", open: open_ls };
pub(crate) const MDSTAT: Format = Format { name: "mdstat", open: open_mdstat };

fn open_lsblk(line: &Line) -> Option<Box<dyn Open>> {
    if let Some(fact) = pairs(line.text) {
        return Some(Box::new(Lsblk { columns: Vec::new(), above: Vec::new(), done: vec![fact] }));
    }
    let columns: Vec<(usize, String)> = columns(line.text)?;
    Some(Box::new(Lsblk { columns, above: Vec::new(), done: Vec::new() }))
}

/// The columns of a heading with their places, where it is one of lsblk's.
fn columns(text: &str) -> Option<Vec<(usize, String)>> {
    let is_heading = text.starts_with("NAME")
        && text.split_ascii_whitespace().all(|word| word.chars().all(|c| c.is_ascii_uppercase() || "-:%_".contains(c)));
    let known = ["MAJ:MIN", "TYPE", "SIZE", "ROTA", "MOUNTPOINT", "FSTYPE", "SCHED", "MODEL", "KNAME", "PKNAME"];
    let knows = text.split_ascii_whitespace().any(|word| known.iter().any(|known| word.starts_with(known)));
    (is_heading && knows).then(|| {
        text.split_ascii_whitespace().filter_map(|word| Some((offset(text, word)?, word.to_owned()))).collect()
    })
}

/// Where a word of a line starts.
fn offset(text: &str, word: &str) -> Option<usize> {
    let at = word.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    Some(text.get(..at)?.chars().count())
}

struct Lsblk {
    columns: Vec<(usize, String)>,
    /// The devices above the next row, by their indent.
    above: Vec<(usize, String)>,
    done: Vec<DeviceFact>,
}

impl Open for Lsblk {
    fn take(&mut self, line: &Line) -> bool {
        if self.columns.is_empty() {
            return pairs(line.text).map(|fact| self.done.push(fact)).is_some();
        }
        let fact = self.row(line.text);
        let taken = fact.is_some();
        self.done.extend(fact);
        taken
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.done.into_iter().for_each(|fact| pasted.add_device(fact));
    }
}

impl Lsblk {
    fn row(&mut self, text: &str) -> Option<DeviceFact> {
        let is_branch = |c: char| matches!(c, '├' | '└' | '─' | '│' | '|' | '`' | '-' | ' ');
        let name_at = text.chars().position(|c| !is_branch(c))?;
        let name = text.chars().skip(name_at).take_while(|c| !c.is_whitespace()).collect::<String>();
        // The name's own column may be wider than its heading; the cells behind it are found by their order.
        let rest: String = text.chars().skip(name_at + name.chars().count()).collect();
        let cells: Vec<(usize, &str)> = rest
            .split_ascii_whitespace()
            .filter_map(|cell| Some((name_at + name.chars().count() + offset(&rest, cell)?, cell)))
            .collect();
        let cell = |column: &str| self.cell(column, &cells);
        let dev = cell("MAJ:MIN").and_then(|dev| dev.parse().ok());
        let kind = cell("TYPE").filter(|kind| is_kind(kind)).map(ToOwned::to_owned);
        if dev.is_none() && kind.is_none() {
            return None;
        }
        let parent = cell("PKNAME").map(ToOwned::to_owned);
        let mount = cell("MOUNTPOINT").or(cell("MOUNTPOINTS")).filter(|mount| mount.starts_with(['/', '[']));
        let mut fact = DeviceFact {
            dev,
            kind,
            mounts: mount.map(ToOwned::to_owned).into_iter().collect(),
            rotational: cell("ROTA").and_then(|flag| match flag {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            }),
            scheduler: cell("SCHED").map(ToOwned::to_owned),
            ..DeviceFact::default()
        };
        self.above.retain(|(indent, _)| *indent < name_at);
        fact.below = self.above.last().map(|(_, name)| name.clone()).or(parent).into_iter().collect();
        self.above.push((name_at, name.clone()));
        Some(DeviceFact { name, ..fact })
    }

    /// The cell of a column: the one that overlaps its heading, since numbers stand at its right end and words at its left.
    fn cell<'a>(&self, column: &str, cells: &[(usize, &'a str)]) -> Option<&'a str> {
        let at = self.columns.iter().position(|(_, name)| name == column)?;
        let (start, name) = self.columns.get(at)?;
        // The kinds of values that say themselves what they are need no place.
        let by_look = |look: fn(&str) -> bool| cells.iter().map(|(_, cell)| *cell).find(|cell| look(cell));
        match column {
            "MAJ:MIN" => {
                return by_look(|cell| cell.contains(':') && cell.bytes().all(|b| b.is_ascii_digit() || b == b':'));
            }
            "TYPE" => return by_look(is_kind),
            _ => {}
        }
        let end = start + name.chars().count();
        cells.iter().find(|(from, cell)| *from < end && from + cell.chars().count() > *start).map(|(_, cell)| *cell)
    }
}

/// The types that lsblk knows.
fn is_kind(word: &str) -> bool {
    matches!(
        word,
        "disk" | "part" | "lvm" | "crypt" | "loop" | "rom" | "mpath" | "dm" | "linear" | "md" | "zram" | "thin" | "vdo"
    ) || word.strip_prefix("raid").is_some_and(|level| level.bytes().all(|b| b.is_ascii_digit()))
}

/// `NAME="sda1" MAJ:MIN="8:1" TYPE="part" …` of `lsblk -P`.
fn pairs(text: &str) -> Option<DeviceFact> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("{key}=\""))?;
        rest.split('"').next().filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    };
    if !text.starts_with("NAME=\"") && !text.starts_with("KNAME=\"") {
        return None;
    }
    Some(DeviceFact {
        name: value("NAME")?,
        dev: value("MAJ:MIN").and_then(|dev| dev.parse().ok()),
        kind: value(" TYPE"),
        below: value("PKNAME").into_iter().collect(),
        mounts: value("MOUNTPOINT").into_iter().collect(),
        rotational: value("ROTA").map(|flag| flag == "1"),
        scheduler: value("SCHED"),
        model: value("MODEL"),
        ..DeviceFact::default()
    })
}

/// `brw-rw---- 1 root disk 8, 4 Jan  1 00:00 /dev/sda4`.
fn open_ls(line: &Line) -> Option<Box<dyn Open>> {
    node(line.text).map(|fact| -> Box<dyn Open> { Box::new(Ls(vec![fact])) })
}

struct Ls(Vec<DeviceFact>);

impl Open for Ls {
    fn take(&mut self, line: &Line) -> bool {
        node(line.text).map(|fact| self.0.push(fact)).is_some()
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.0.into_iter().for_each(|fact| pasted.add_device(fact));
    }
}

fn node(text: &str) -> Option<DeviceFact> {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let mode = fields.first().filter(|mode| mode.len() >= 10)?;
    let is_block = mode.starts_with('b');
    if !(is_block || mode.starts_with('c')) {
        return None;
    }
    let comma = fields.iter().position(|field| field.ends_with(','))?;
    let major = fields.get(comma)?.trim_end_matches(',');
    let dev = format!("{major}:{}", fields.get(comma + 1)?).parse().ok()?;
    let path = fields.iter().skip(comma + 2).find(|field| field.starts_with("/dev/")).or(fields.last())?;
    let name = path.rsplit('/').next()?.to_owned();
    let disk = disk_of(&name).filter(|_| is_block).map(ToOwned::to_owned);
    let kind = if is_block { disk.as_ref().map(|_| "part".to_owned()) } else { Some("char".to_owned()) };
    Some(DeviceFact { name, dev: Some(dev), kind, below: disk.into_iter().collect(), ..DeviceFact::default() })
}

/// The disk of a partition, by the names that drivers give: `sda` of `sda4`, `nvme0n1` of `nvme0n1p2`.
fn disk_of(name: &str) -> Option<&str> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let lettered = ["sd", "hd", "vd", "xvd"].iter().any(|prefix| disk.starts_with(prefix));
    let numbered = disk.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    if disk.len() == name.len() { None } else { numbered.or_else(|| lettered.then_some(disk)) }
}

/// `md127 : active raid6 sdm1[8] sdj1[7]` and the lines below it.
fn open_mdstat(line: &Line) -> Option<Box<dyn Open>> {
    let starts = line.text.starts_with("Personalities :") || array(line.text).is_some();
    let mut mdstat = Mdstat(Vec::new());
    (starts && mdstat.take(line)).then(|| -> Box<dyn Open> { Box::new(mdstat) })
}

struct Mdstat(Vec<DeviceFact>);

impl Open for Mdstat {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if let Some(fact) = array(text) {
            self.0.push(fact);
            return true;
        }
        if text.is_empty() || text.starts_with("Personalities") || text.starts_with("unused devices") {
            return true;
        }
        let Some(last) = self.0.last_mut() else { return false };
        if let Some(sync) = sync(text) {
            last.sync = Some(sync);
            return true;
        }
        if text.contains(" blocks") {
            last.members = members(text);
            return true;
        }
        text.starts_with("bitmap:") || text.contains("resync=") || text.contains("super ")
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.0.into_iter().for_each(|fact| pasted.add_device(fact));
    }
}

fn array(text: &str) -> Option<DeviceFact> {
    let (name, rest) = text.split_once(" : ")?;
    let name = name.trim();
    if !name.starts_with("md") || !(rest.starts_with("active") || rest.starts_with("inactive")) {
        return None;
    }
    let mut words = rest.split_ascii_whitespace().skip(1).filter(|word| !word.starts_with('('));
    let first = words.next()?;
    let is_level = !first.contains('[');
    let member = |word: &str| word.split_once('[').map(|(name, _)| name.to_owned());
    let below = (!is_level).then_some(first).into_iter().chain(words).filter_map(member).collect();
    let kind = is_level.then(|| first.to_owned());
    Some(DeviceFact { name: name.to_owned(), kind, below, ..DeviceFact::default() })
}

/// `[==>…]  check = 40.4% (…) finish=… speed=14976K/sec`, or `resync=PENDING`.
fn sync(text: &str) -> Option<(String, Option<String>)> {
    const ACTIONS: [&str; 6] = ["check", "resync", "recovery", "reshape", "repair", "recover"];
    for action in ACTIONS {
        for separator in [" = ", " =", "="] {
            if let Some((before, rest)) = text.split_once(&format!("{action}{separator}"))
                && (before.is_empty() || before.ends_with(' '))
            {
                let done = rest.split_ascii_whitespace().next().map(ToOwned::to_owned);
                return Some((action.to_owned(), done));
            }
        }
    }
    None
}

/// `[10/9]`: how many members an array wants, and how many are there.
fn members(text: &str) -> Option<(u32, u32)> {
    text.split('[')
        .filter_map(|part| part.split(']').next()?.split_once('/'))
        .find_map(|(wanted, there)| Some((there.parse().ok()?, wanted.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    const TREE: &str = "NAME          MAJ:MIN RM  SIZE RO TYPE MOUNTPOINTS
sda             8:0    0  100G  0 disk
├─sda1          8:1    0  600M  0 part /boot/efi
└─sda3          8:3    0 98.4G  0 part
  ├─vg-root   253:0    0   61G  0 lvm  /
  └─vg-home   253:2    0 29.8G  0 lvm  /home
";

    #[test]
    fn a_tree_tells_what_lies_on_what() {
        let pasted = read(TREE);
        let of = |name: &str| pasted.devices.iter().find(|fact| fact.name == name).unwrap();
        assert_eq!(
            (of("sda3").below.as_slice(), of("vg-home").below.as_slice()),
            (&["sda".to_owned()][..], &["sda3".to_owned()][..])
        );
        assert_eq!(
            (of("sda1").kind.as_deref(), of("vg-root").dev.unwrap().to_string()),
            (Some("part"), "253:0".into())
        );
        assert_eq!((of("vg-root").mounts.as_slice(), pasted.unread.lines), (&["/".to_owned()][..], 0));
    }

    #[test]
    fn columns_of_every_choice_are_found() {
        let text = "NAME    TYPE ROTA SCHED       MODEL\nsda     disk    1 mq-deadline DELL\nnvme0n1 disk    0 none        Samsung\n";
        let pasted = read(text);
        assert_eq!((pasted.devices[0].rotational, pasted.devices[1].rotational), (Some(true), Some(false)));
        assert_eq!(pasted.devices[0].scheduler.as_deref(), Some("mq-deadline"));
        let pairs = read("NAME=\"sda1\" MAJ:MIN=\"8:1\" TYPE=\"part\" PKNAME=\"sda\" MOUNTPOINT=\"\"\n");
        assert_eq!((pairs.devices[0].kind.as_deref(), pairs.devices[0].below.len()), (Some("part"), 1));
    }

    #[test]
    fn nodes_and_arrays_are_read() {
        let pasted = read(
            "brw-rw---- 1 root disk 8, 4 Jan  1 00:00 /dev/sda4\ncrw-rw-rw- 1 root root 1, 8 Jan  1 00:00 /dev/random\n",
        );
        let kinds: Vec<Option<&str>> = pasted.devices.iter().map(|fact| fact.kind.as_deref()).collect();
        assert_eq!(
            (kinds, pasted.devices[0].dev.unwrap().to_string()),
            (vec![Some("part"), Some("char")], "8:4".into())
        );
        use super::disk_of;
        assert_eq!((disk_of("nvme0n1p2"), disk_of("nvme0n1"), disk_of("dm-0")), (Some("nvme0n1"), None, None));
        let mdstat = "md0 : active raid1 sdb1[1] sda1[0](F)\n      104320 blocks super 1.2 [2/1] [U_]\n      \
            [=>...]  recovery =  5.2% (1/2) finish=1.0min speed=1K/sec\n\nunused devices: <none>\n";
        let array = &read(mdstat).devices[0];
        assert_eq!((array.kind.as_deref(), array.below.len(), array.members), (Some("raid1"), 2, Some((1, 2))));
        assert_eq!(array.sync, Some(("recovery".into(), Some("5.2%".into()))));
    }
}
