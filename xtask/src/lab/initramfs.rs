//! The VM's first file system: an archive that the kernel unpacks into memory.
//!
//! The kernel takes archives one after another, so what is the same in every scenario is made once by [`base`] and a
//! scenario's own files are another archive behind it. The programs are the host's own with the libraries that
//! `ldd` names: 90 MB, which the VM unpacks faster than a smaller compressed archive.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cpio::newc::{Builder, ModeFileType, trailer};

use crate::command::output;
use crate::needs;

/// Programs of the host that go to the VM's `/bin`.
const PROGRAMS: &[&str] =
    &["fio", "iostat", "mke2fs", "mkfs.xfs", "mkfs.btrfs", "cryptsetup", "lvm", "dmsetup", "mdadm"];

/// Other names of these, by which they know what to do.
const LINKS: &[(&str, &str)] = &[("mkfs.ext4", "mke2fs")];

const EMPTY_DIRS: &[&str] = &["/proc", "/sys", "/dev", "/tmp", "/run", "/etc", "/out", "/mnt"];

/// What every scenario has: programs with their libraries, this repository's `own` with the host's, and the guest's own
/// two scripts.
pub(crate) fn base(own: &[(&'static str, PathBuf)], init: &[u8], lib: &[u8]) -> Result<Vec<u8>> {
    let mut entries: Vec<_> = EMPTY_DIRS.iter().map(|path| Entry { path: (*path).into(), node: Node::Dir }).collect();
    // The kernel opens it before anybody can mount /dev; without it the first program has no output.
    entries.push(Entry { path: "/dev/console".into(), node: Node::Char(5, 1) });
    entries.push(Entry { path: "/dev/null".into(), node: Node::Char(1, 3) });
    entries.push(Entry::program("/init", init));
    entries.push(Entry::data("/lib.sh", lib));
    entries.extend(programs(own)?);
    archive(&entries)
}

/// A kernel's modules in `/modules`, under names that sort in the order in which they are to be loaded.
pub(crate) fn modules(files: &[PathBuf]) -> Result<Vec<u8>> {
    let entry = |file: &PathBuf| {
        let name = file.file_name().and_then(OsStr::to_str).context("a module without a name")?;
        Ok(Entry::data(format!("/modules/{name}"), read(file)?))
    };
    archive(&files.iter().map(entry).collect::<Result<Vec<_>>>()?)
}

/// A scenario's script; the file `/capture` tells the guest to record what quell reads and not to judge it.
pub(crate) fn scenario(script: &str, capture: bool) -> Result<Vec<u8>> {
    let mut entries = vec![Entry::data("/scenario.sh", script)];
    entries.extend(capture.then(|| Entry::data("/capture", "")));
    archive(&entries)
}

/// One thing of an archive. Folders on the way to it need no entry.
struct Entry {
    /// Its absolute path in the VM.
    path: String,
    node: Node,
}

/// What lies at a path.
enum Node {
    Dir,
    /// Its permissions and its bytes.
    File(u32, Vec<u8>),
    /// A symbolic link and what it says.
    Link(String),
    /// A character device's major and minor number.
    Char(u32, u32),
}

impl Entry {
    /// A file that can be run.
    fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), node: Node::File(0o755, bytes.into()) }
    }

    /// A file that is only read.
    fn data(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), node: Node::File(0o644, bytes.into()) }
    }

    fn link(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self { path: path.into(), node: Node::Link(target.into()) }
    }
}

/// An archive of these entries, to stand alone or behind another.
fn archive(entries: &[Entry]) -> Result<Vec<u8>> {
    // The kernel makes no folders by itself: each comes before what lies in it.
    let parents = entries.iter().flat_map(|entry| Path::new(&entry.path).ancestors().skip(1));
    let dirs: BTreeSet<_> = parents.filter(|dir| dir.parent().is_some()).map(Path::to_path_buf).collect();
    let mut out = Vec::new();
    for dir in &dirs {
        append(&mut out, dir.to_str().context("a path that is not UTF-8")?, &Node::Dir)?;
    }
    for entry in entries {
        append(&mut out, &entry.path, &entry.node)?;
    }
    trailer(&mut out)?;
    out.resize(out.len().next_multiple_of(512), 0);
    Ok(out)
}

fn append(out: &mut Vec<u8>, path: &str, node: &Node) -> Result<()> {
    let name = path.strip_prefix('/').with_context(|| format!("{path} is not absolute"))?;
    let entry = Builder::new(name);
    let (entry, bytes): (_, &[u8]) = match node {
        Node::Dir => (entry.mode(0o755).set_mode_file_type(ModeFileType::Directory), &[]),
        Node::File(mode, bytes) => (entry.mode(*mode).set_mode_file_type(ModeFileType::Regular), bytes),
        Node::Link(target) => (entry.mode(0o777).set_mode_file_type(ModeFileType::Symlink), target.as_bytes()),
        Node::Char(major, minor) => {
            let entry = entry.mode(0o600).set_mode_file_type(ModeFileType::Char);
            (entry.rdev_major(*major).rdev_minor(*minor), &[])
        }
    };
    let size = u32::try_from(bytes.len()).with_context(|| format!("{path} is too large for an archive"))?;
    let mut writer = entry.write(out, size);
    writer.write_all(bytes)?;
    writer.finish()?;
    Ok(())
}

fn programs(own: &[(&'static str, PathBuf)]) -> Result<Vec<Entry>> {
    let mut found = own.to_vec();
    for program in PROGRAMS {
        found.push((program, needs::program(program)?));
    }
    let mut entries = busybox()?;
    entries.extend(LINKS.iter().map(|(name, program)| Entry::link(format!("/bin/{name}"), *program)));
    let mut needed = BTreeSet::new();
    for (name, file) in &found {
        entries.push(Entry::program(format!("/bin/{name}"), read(file)?));
        needed.extend(libraries(file)?);
    }
    for library in needed {
        let bytes = read(Path::new(&library))?;
        entries.push(Entry::program(library, bytes));
    }
    Ok(entries)
}

/// Busybox with a link for each of its programs that is not there as a real one.
fn busybox() -> Result<Vec<Entry>> {
    let file = needs::program("busybox")?;
    ensure!(needs::is_static(&file)?, "{} is not static; hint: apt-get install busybox-static", file.display());
    let mut entries = vec![Entry::program("/bin/busybox", read(&file)?)];
    let listed = output(Command::new(&file).arg("--list"))?;
    // It lists itself: a link of that name to itself would be all that is left.
    let absent = |name: &&str| *name != "busybox" && !PROGRAMS.contains(name);
    entries.extend(listed.lines().filter(absent).map(|name| Entry::link(format!("/bin/{name}"), "busybox")));
    Ok(entries)
}

/// The libraries of a program and its loader, at the paths where the loader looks for them.
fn libraries(program: &Path) -> Result<Vec<String>> {
    if needs::is_static(program)? {
        return Ok(Vec::new());
    }
    let listed = output(needs::command("ldd")?.arg(program))?;
    parse_ldd(&listed).with_context(|| program.display().to_string())
}

/// Lines are `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)` for the loader, or `NAME (ADDRESS)` for what the kernel maps.
fn parse_ldd(listed: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for line in listed.lines().map(str::trim) {
        let (name, found) = line.split_once(" => ").unwrap_or((line, line));
        ensure!(found != "not found", "its library {name} is missing");
        let path = found.split_once(" (").map_or(found, |(path, _)| path);
        if path.starts_with('/') {
            paths.push(path.into());
        }
    }
    Ok(paths)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use cpio::newc::Reader;

    use super::*;

    const IOSTAT: &str = "\tlinux-vdso.so.1 (0x00007f451c7b3000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f451c5ab000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f451c7b5000)
";

    #[test]
    fn libraries_and_the_loader_are_taken_and_what_the_kernel_maps_is_not() {
        let paths = parse_ldd(IOSTAT).unwrap();
        assert_eq!(paths, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = parse_ldd("\tlibaio.so.1 => not found\n").unwrap_err();
        assert!(error.to_string().contains("libaio.so.1"), "{error}");
    }

    /// Name, mode, device and content of an entry.
    type Unpacked = (String, u32, (u32, u32), Vec<u8>);

    fn unpacked(mut rest: &[u8]) -> Vec<Unpacked> {
        let mut entries = Vec::new();
        loop {
            let mut reader = Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return entries;
            }
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            let entry = reader.entry();
            let device = (entry.rdev_major(), entry.rdev_minor());
            entries.push((entry.name().into(), entry.mode(), device, bytes));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn an_archive_holds_what_went_in_with_its_folders_first() {
        let console = Entry { path: "/dev/console".into(), node: Node::Char(5, 1) };
        let entries = [Entry::program("/bin/x/run", *b"abcde"), Entry::link("/bin/sh", "busybox"), console];
        let bytes = archive(&entries).unwrap();
        assert_eq!(bytes.len() % 512, 0);
        let dir = |name: &str| (name.to_owned(), 0o040_755, (0, 0), Vec::new());
        let expected = [
            dir("bin"),
            dir("bin/x"),
            dir("dev"),
            ("bin/x/run".into(), 0o100_755, (0, 0), b"abcde".to_vec()),
            ("bin/sh".into(), 0o120_777, (0, 0), b"busybox".to_vec()),
            ("dev/console".into(), 0o020_600, (5, 1), Vec::new()),
        ];
        assert_eq!(unpacked(&bytes), expected);
    }

    #[test]
    fn only_a_capture_has_the_file_that_asks_for_it() {
        let names = |bytes: &[u8]| unpacked(bytes).into_iter().map(|entry| entry.0).collect::<Vec<_>>();
        assert_eq!(names(&scenario("watch", false).unwrap()), ["scenario.sh"]);
        assert_eq!(names(&scenario("watch", true).unwrap()), ["scenario.sh", "capture"]);
    }

    #[test]
    fn a_path_must_be_absolute() {
        assert!(archive(&[Entry::data("init", "")]).is_err());
    }
}
