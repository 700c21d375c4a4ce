//! What somebody pasted, as a window that the rules can judge: a file, standard input, or the folder of a sos report.
//!
//! Kernel files in a paste become a small captured tree, so that they meet the same readers as a live host's. Where a
//! file was pasted several times, the first and the last reading are the two moments.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use quell_engine::paste::{Joined, join};
use quell_engine::snapshot::Window;
use quell_paste::{File, Pasted, Reader};

use crate::archive;
use crate::error::{Exit, Failure, path_text};
use crate::render::text::counted;
use crate::source;

/// The longest line that is read; what is behind it is left out. A minified document of fio's is one line.
const LINE_MAX: u64 = 64 << 20;

/// The folder of a sos report that holds the output of commands, and the parts of it that speak of storage.
const SOS: &str = "sos_commands";
const SOS_PARTS: [&str; 12] =
    ["block", "boot", "cgroups", "crio", "docker", "kernel", "logs", "md", "podman", "process", "sar", "systemd"];

/// The largest output of a command in a sos report that is read.
const SOS_FILE_MAX: u64 = 16 << 20;

/// Reads a paste. `-` is standard input; a directory is the folder of a sos report.
///
/// # Errors
/// It cannot be read, or nothing in it was recognised.
pub(crate) fn read(from: &Path) -> Result<Joined, Failure> {
    let cannot = |error: io::Error| Failure::io(Exit::Usage, "read", from, &error);
    let mut reader = Reader::default();
    if from == Path::new("-") {
        feed(&mut reader, io::stdin().lock()).map_err(cannot)?;
        return joined(reader.finish(), "standard input");
    }
    if !from.is_dir() {
        feed(&mut reader, BufReader::new(fs::File::open(from).map_err(cannot)?)).map_err(cannot)?;
        return joined(reader.finish(), &path_text(from));
    }
    if !from.join(SOS).is_dir() {
        let what = format!("no {SOS} in it: {}", path_text(from));
        return Err(
            Failure::usage(what).hint("--from takes a file, - or the folder of a sos report; --root takes a tree")
        );
    }
    for part in SOS_PARTS {
        feed_folder(&mut reader, &from.join(SOS).join(part));
    }
    let moment = source::moment(from)?;
    Ok(join(Window { t0: moment.clone(), looks: Vec::new(), t1: moment, pasted: None }, reader.finish()))
}

/// Gives a reader every line.
fn feed(reader: &mut Reader, mut input: impl BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        reader.line(&line);
    }
}

/// The outputs of commands in one folder of a sos report, in the order of their names. What cannot be read is no loss of
/// the rest.
fn feed_folder(reader: &mut Reader, folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_small_file(path)).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().replace('_', " ");
        // As if somebody had typed the command, so that what a file is of is known.
        reader.line(format!("$ {name}").as_bytes());
        if let Ok(file) = fs::File::open(&file) {
            drop(feed(reader, BufReader::new(file)));
        }
    }
}

fn is_small_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= SOS_FILE_MAX)
}

fn joined(pasted: Pasted, name: &str) -> Result<Joined, Failure> {
    if pasted.pieces.is_empty() {
        return Err(not_recognised(&pasted, name));
    }
    let dir =
        archive::scratch().map_err(|error| Failure::io(Exit::NotJudged, "make a directory", Path::new(""), &error))?;
    let cannot = |error: io::Error| Failure::io(Exit::NotJudged, "write", dir.path(), &error);
    let (first, last) = (dir.path().join("t0"), dir.path().join("t1"));
    write_moment(&first, &pasted.files, Moment::First).map_err(cannot)?;
    write_moment(&last, &pasted.files, Moment::Last).map_err(cannot)?;
    let window = source::between(&first, &last)?;
    Ok(join(window, pasted))
}

fn not_recognised(pasted: &Pasted, name: &str) -> Failure {
    let what = match pasted.unread.first.first() {
        None => format!("nothing is in it: {name}"),
        Some((line_no, text)) => format!(
            "nothing was recognised in {name}: {}, the first of them line {line_no}: {}",
            counted(usize::try_from(pasted.unread.lines).unwrap_or(usize::MAX), "line", "lines"),
            quell_units::escape(text.as_bytes())
        ),
    };
    Failure::not_judged(what).hint(
        "what helps: `iostat -x 1 10`, `cat /proc/diskstats` twice, io.stat and\n\
         io.max of the cgroup, fio's JSON, dmesg, or the full text of an error;\n\
         as they were printed, headings included",
    )
}

/// Which reading of each file is a moment's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    First,
    Last,
}

/// Writes one moment as a captured tree.
fn write_moment(dir: &Path, files: &[File], moment: Moment) -> io::Result<()> {
    for top in ["proc", "sys"] {
        fs::create_dir_all(dir.join(top))?;
    }
    let files = || files.iter().filter(|file| is_inside(&file.path));
    let several = files().any(|file| file.readings > 1);
    for file in files() {
        let bytes = match (moment, &file.last) {
            // A counter that was pasted once has no earlier reading; the same again would be a rate of nothing.
            (Moment::First, None) if several && is_counter(&file.path) => continue,
            (Moment::First, _) | (Moment::Last, None) => &file.first,
            (Moment::Last, Some(last)) => last,
        };
        write_file(dir, &file.path, bytes)?;
    }
    let since_boot = 1000.0 + if moment == Moment::Last { seconds(files()) } else { 0.0 };
    for (path, text) in [("proc/uptime", format!("{since_boot:.2} 0.00\n")), (MOUNTS, mounts(files()))] {
        if !files().any(|file| file.path == path) {
            write_file(dir, path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// The time between the first readings and the last: by a logger's stamps, else a second each.
fn seconds<'a>(files: impl Iterator<Item = &'a File>) -> f64 {
    const DAY_SECONDS: f64 = 86_400.0;
    let most_read = files.max_by_key(|file| file.readings);
    let stamped = most_read.and_then(|file| file.stamps).map(|(first, last)| (last - first).rem_euclid(DAY_SECONDS));
    stamped
        .filter(|seconds| *seconds >= 0.1)
        .unwrap_or_else(|| most_read.map_or(0.0, |file| f64::from(file.readings) - 1.0))
}

/// The mounts that the paths of cgroup files imply.
fn mounts<'a>(files: impl Iterator<Item = &'a File> + Clone) -> String {
    let paths = || files.clone().filter_map(|file| file.path.strip_prefix("sys/fs/cgroup/"));
    let mut out = String::new();
    for controller in ["blkio", "memory"] {
        let named = |part: &str| part.split(',').any(|one| one == controller);
        if let Some(point) = paths().filter_map(|path| path.split('/').next()).find(|top| named(top)) {
            out += &format!("1 0 0:2 / /sys/fs/cgroup/{point} rw - cgroup cgroup rw,{controller}\n");
        }
    }
    if paths().any(|path| path.starts_with("unified/")) {
        out += "1 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    } else if out.is_empty() && paths().next().is_some() {
        out += "1 0 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    }
    out
}

/// The mount table of a captured tree.
const MOUNTS: &str = "proc/self/mountinfo";

/// Whether a path stays below the directory it is joined to.
fn is_inside(path: &str) -> bool {
    let parts = || Path::new(path).components();
    parts().next().is_some() && parts().all(|part| matches!(part, Component::Normal(_))) && !path.contains('\0')
}

/// Files that count; all others are settings.
fn is_counter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "diskstats" | "stat" | "vmstat" | "io.stat" | "memory.stat" | "info" | "io" | "meminfo")
        || name.starts_with("blkio.")
        || name.ends_with(".pressure")
        || path.starts_with("proc/pressure/")
}

/// Writes a file and the folders above it. A path that is a folder already, or lies in a file, is left out: a paste may
/// say anything.
fn write_file(dir: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let file = dir.join(path);
    let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, bytes));
    match made {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leads_out_of_the_tree() {
        for path in ["../etc/passwd", "/etc/passwd", "a/../../b", "", "."] {
            assert!(!is_inside(path), "{path}");
        }
        assert!(is_inside("sys/fs/cgroup/a/io.stat"));
    }

    #[test]
    fn the_first_and_the_last_reading_are_the_two_moments() {
        let line = |reads: u64| format!("   8 0 sda {reads} 0 8 1 0 0 0 0 0 1 1\n").into_bytes();
        let path = "proc/diskstats".into();
        let files = vec![File { path, first: line(1), last: Some(line(101)), readings: 3, stamps: None }];
        let pieces = vec![quell_paste::Piece { format: "diskstats".into(), line_no: 1, lines: 3 }];
        let joined = joined(Pasted { files, pieces, ..Pasted::default() }, "x").unwrap();
        let disk = joined.rates.devices[0].rates.as_ref().unwrap();
        assert_eq!((disk.read.ios, disk.seconds.round()), (100, 2.0));
    }

    #[test]
    fn the_places_of_cgroup_files_tell_the_version() {
        let of = |path: &str| mounts([File { path: path.into(), ..File::default() }].iter());
        assert!(of("sys/fs/cgroup/a/io.stat").contains("cgroup2"));
        assert!(of("sys/fs/cgroup/blkio/a/blkio.throttle.io_serviced").contains("rw,blkio"));
        assert_eq!(of("proc/diskstats"), "");
    }
}
