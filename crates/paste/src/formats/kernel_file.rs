//! Kernel files, as `cat`, `head` and `grep` print them.
//!
//! Which file a line is of is told by the command or heading above it, by the path that `grep` puts in front, or, for the
//! formats that look like nothing else, by its shape. What is in it is not looked at further: `host` reads it as part of
//! a captured tree.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::pasted::Pasted;

pub(crate) const FORMAT: Format = Format { name: "kernel files", open };

/// A kernel file that quell reads.
struct Shape {
    /// Its name, or for files in `proc` their path.
    name: &'static str,
    /// Whether a line can be of it.
    fits: fn(&str) -> bool,
    /// Whether the shape alone says which file it is.
    alone: bool,
}

const fn shape(name: &'static str, fits: fn(&str) -> bool, alone: bool) -> Shape {
    Shape { name, fits, alone }
}

static SHAPES: &[Shape] = &[
    shape("proc/diskstats", is_diskstats, true),
    shape(
        "proc/vmstat",
        |line| {
            is_keyed(
                line,
                &[
                    "nr_",
                    "pg",
                    "pswp",
                    "workingset_",
                    "numa_",
                    "thp_",
                    "compact_",
                    "swap_",
                    "oom_",
                    "drop_",
                    "kswapd_",
                    "slabs_",
                    "unevictable_",
                    "balloon_",
                    "zone_",
                    "allocstall_",
                    "direct_",
                ],
            )
        },
        false,
    ),
    shape(
        "proc/meminfo",
        |line| line.split_once(':').is_some_and(|(_, value)| starts_with_number(value.trim())),
        false,
    ),
    shape(
        "proc/stat",
        |line| {
            ["cpu", "intr", "ctxt", "btime", "processes", "procs_", "softirq"].iter().any(|key| line.starts_with(key))
        },
        false,
    ),
    shape("proc/swaps", |line| line.starts_with('/') || line.starts_with("Filename"), false),
    shape("proc/uptime", |line| line.split(' ').count() == 2 && starts_with_number(line), false),
    shape("proc/self/mountinfo", is_mountinfo, true),
    shape("proc/pressure/io", is_pressure, false),
    shape("proc/pressure/memory", is_pressure, false),
    shape("proc/pressure/cpu", is_pressure, false),
    shape("io.stat", is_io_stat, true),
    shape("io.max", |line| of_device(line, &["rbps=", "wbps=", "riops=", "wiops="]), true),
    shape("io.latency", |line| of_device(line, &["target="]), true),
    shape("io.cost.qos", |line| of_device(line, &["enable="]), true),
    shape("io.cost.model", |line| of_device(line, &["ctrl=", "model="]), true),
    shape("io.weight", is_weight, false),
    shape("io.bfq.weight", is_weight, false),
    shape("io.pressure", is_pressure, false),
    shape("memory.pressure", is_pressure, false),
    shape("memory.stat", |line| is_keyed(line, &[""]), false),
    shape("memory.max", is_limit, false),
    shape("memory.high", is_limit, false),
    shape("memory.current", starts_with_number, false),
    shape("memory.usage_in_bytes", starts_with_number, false),
    shape("memory.limit_in_bytes", starts_with_number, false),
    shape("cgroup.controllers", is_words, false),
    shape("cgroup.subtree_control", is_words, false),
    shape("cgroup.type", is_words, false),
    shape("cgroup.events", |line| is_keyed(line, &["populated", "frozen"]), false),
    shape("cgroup.stat", |line| is_keyed(line, &["nr_"]), false),
];

/// Files of version 1, all of one shape, or one of two.
const BLKIO: &str = "blkio.";

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut files = Files::default();
    files.take(line).then(|| -> Box<dyn Open> { Box::new(files) })
}

#[derive(Default)]
struct Files {
    /// The file that lines are added to.
    path: String,
    bytes: Vec<u8>,
    stamp: Option<f64>,
    first_line: u32,
    /// The devices of the present reading: one that comes again begins the next.
    devices: Vec<String>,
    /// Whether each line has its path in front.
    grepped: bool,
    done: Vec<(String, Vec<u8>, Option<f64>, u32)>,
}

impl Open for Files {
    fn take(&mut self, line: &Line) -> bool {
        if line.is_blank() {
            // Within a grep nothing is blank; between two outputs it is the end of a file.
            self.end_file();
            return self.grepped || !self.done.is_empty();
        }
        if let Some((path, content)) = grepped(line.text) {
            self.grepped = true;
            self.add(path, content, line);
            return true;
        }
        let Some(path) = path_of(line) else { return false };
        self.grepped = false;
        self.add(path, line.text, line);
        true
    }

    fn close(mut self: Box<Self>, pasted: &mut Pasted) {
        self.end_file();
        for (path, bytes, stamp, line_no) in self.done {
            if !pasted.add_reading(&path, bytes, stamp) {
                pasted.unread.add(line_no, 1, &path);
            }
        }
    }
}

impl Files {
    fn add(&mut self, path: String, content: &str, line: &Line) {
        let device = device_of(&path, content);
        let again = device.as_ref().is_some_and(|device| self.devices.contains(device));
        if path != self.path || again {
            self.end_file();
            self.path = path;
            self.first_line = line.no;
        }
        self.stamp = self.stamp.or(line.time);
        self.devices.extend(device);
        self.bytes.extend_from_slice(content.as_bytes());
        self.bytes.push(b'\n');
    }

    fn end_file(&mut self) {
        self.devices.clear();
        let (bytes, stamp) = (std::mem::take(&mut self.bytes), self.stamp.take());
        let path = std::mem::take(&mut self.path);
        if !bytes.is_empty() {
            self.done.push((path, bytes, stamp, self.first_line));
        }
    }
}

/// The file and the content of a line of `grep . FILES`: `/sys/block/sda/queue/scheduler:[none] mq-deadline`.
fn grepped(text: &str) -> Option<(String, &str)> {
    let rooted = text.starts_with("/sys/") || text.starts_with("/proc/");
    // A path may have colons in it (`pci0000:00`): the file's name is what is known.
    for (at, _) in text.match_indices(':') {
        let (path, content) = (text.get(..at)?, text.get(at + 1..)?);
        if path.contains(' ') {
            return None;
        }
        let name = path.rsplit('/').next()?;
        let known = SHAPES.iter().any(|shape| shape.name == name) || name.starts_with(BLKIO);
        let in_queue =
            rooted && (path.contains("/queue/") || path.starts_with("/proc/") || path.starts_with("/sys/block/"));
        if known || in_queue {
            return Some((place(path)?, content)).filter(|(path, content)| fits(path, content));
        }
    }
    None
}

/// The file that a line is of, by what stands above it or by its shape.
fn path_of(line: &Line) -> Option<String> {
    match line.file {
        Some(file) => place(file).filter(|path| fits(path, line.text)),
        None => {
            let shape = SHAPES.iter().find(|shape| shape.alone && (shape.fits)(line.text))?;
            place(shape.name)
        }
    }
}

/// Where a file lies in a captured tree, by its path as it was told; `None` where it is no kernel file.
fn place(path: &str) -> Option<String> {
    let path = path.trim_matches(['\'', '"']).trim_start_matches("./");
    let relative = path.trim_start_matches('/');
    let name = relative.rsplit('/').next()?;
    let of_cgroup = name.starts_with(BLKIO) || SHAPES.iter().any(|shape| shape.name == name);
    if relative.starts_with("sys/fs/cgroup/") || !of_cgroup {
        let known = relative.starts_with("proc/") || relative.starts_with("sys/");
        let known_name = SHAPES.iter().find(|shape| shape.name.strip_prefix("proc/") == Some(relative));
        return if known { Some(relative.to_owned()) } else { known_name.map(|shape| shape.name.to_owned()) };
    }
    // Mounted elsewhere, or a name alone: what is behind the controller's own directory is the cgroup.
    let base = if name.starts_with(BLKIO) { "sys/fs/cgroup/blkio" } else { "sys/fs/cgroup" };
    Some(match relative.split_once("blkio/") {
        Some((_, rest)) if name.starts_with(BLKIO) && rest.contains('/') => format!("{base}/{rest}"),
        _ => format!("{base}/pasted/{name}"),
    })
}

/// Whether a line can be of the file at this path.
fn fits(path: &str, line: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with(BLKIO) {
        return is_blkio(line);
    }
    match SHAPES.iter().find(|shape| shape.name == path || shape.name == name) {
        Some(shape) => (shape.fits)(line),
        // Others are of one value, or few: a setting of a queue, a table of the journal.
        None => path.starts_with("sys/") || path.starts_with("proc/fs/") || path.starts_with("proc/self/"),
    }
}

/// The device or the key that a line of a file with a row a device is of.
fn device_of(path: &str, line: &str) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    if path == "proc/diskstats" {
        return fields.nth(2).map(ToOwned::to_owned);
    }
    let name = path.rsplit('/').next()?;
    let first = fields.next()?;
    if name.starts_with(BLKIO) {
        return Some(format!("{first} {}", fields.next().unwrap_or_default()));
    }
    let row_a_key = matches!(name, "io.stat" | "io.max" | "memory.stat" | "vmstat") || path.contains("pressure");
    row_a_key.then(|| first.to_owned())
}

fn starts_with_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_device(text: &str) -> bool {
    text.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// `8 0 sda` and 11 numbers or more.
fn is_diskstats(line: &str) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    matches!(fields.as_slice(), [major, minor, name, counters @ ..]
        if is_number(major) && is_number(minor) && !is_number(name)
            && counters.len() >= 4 && counters.iter().all(|field| is_number(field)))
        && fields.len() != 10
}

/// `8:0 rbytes=…`, several numbers in front, or none behind.
fn is_io_stat(line: &str) -> bool {
    let mut fields = line.split_ascii_whitespace().skip_while(|field| is_device(field)).peekable();
    let starts = line.split_ascii_whitespace().next().is_some_and(is_device);
    let is_counter = |field: &str| {
        [
            "rbytes=",
            "wbytes=",
            "rios=",
            "wios=",
            "dbytes=",
            "dios=",
            "cost.",
            "use_delay=",
            "delay_nsec=",
            "missed=",
            "total=",
            "avg_lat=",
            "depth=",
            "win=",
        ]
        .iter()
        .any(|key| field.starts_with(key))
    };
    starts && fields.all(is_counter)
}

fn of_device(line: &str, keys: &[&str]) -> bool {
    let mut fields = line.split_ascii_whitespace();
    fields.next().is_some_and(is_device)
        && fields.next().is_some_and(|field| keys.iter().any(|key| field.starts_with(key)))
}

fn is_pressure(line: &str) -> bool {
    (line.starts_with("some ") || line.starts_with("full ")) && line.contains("avg10=")
}

/// `default 100`, `8:0 200`, or the number alone.
fn is_weight(line: &str) -> bool {
    let mut fields = line.split_ascii_whitespace();
    match (fields.next(), fields.next()) {
        (Some(first), Some(weight)) => (first == "default" || is_device(first)) && is_number(weight),
        (Some(weight), None) => is_number(weight),
        _ => false,
    }
}

fn is_limit(line: &str) -> bool {
    line.trim() == "max" || is_number(line.trim())
}

/// Words of a kernel file: controllers, a type.
fn is_words(line: &str) -> bool {
    line.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b' ' | b'_' | b'-'))
}

/// A key that starts in one of these ways, and its number.
fn is_keyed(line: &str, starts: &[&str]) -> bool {
    let Some((key, value)) = line.split_once(' ') else { return false };
    is_number(value.trim()) && !starts_with_number(key) && starts.iter().any(|start| key.starts_with(start))
}

/// `36 35 98:0 / /mnt rw - ext4 /dev/vda1 rw`.
fn is_mountinfo(line: &str) -> bool {
    let mut fields = line.split_ascii_whitespace();
    fields.next().is_some_and(is_number)
        && fields.next().is_some_and(is_number)
        && fields.next().is_some_and(is_device)
        && line.contains(" - ")
}

/// `8:0 Read 123`, `Total 123`, `8:0 1048576`, or the number alone.
fn is_blkio(line: &str) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    match fields.as_slice() {
        [first, _, last] => is_device(first) && is_number(last),
        [first, last] => (is_device(first) || *first == "Total" || *first == "default") && is_number(last),
        [one] => is_number(one),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    fn files(text: &str) -> Vec<(String, u32, String)> {
        let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        read(text)
            .files
            .into_iter()
            .map(|file| (file.path, file.readings, text_of(file.last.unwrap_or(file.first))))
            .collect()
    }

    #[test]
    fn the_command_the_heading_and_grep_tell_the_file() {
        let text = "$ cd /sys/fs/cgroup/a.slice\n$ head io.weight io.max\n==> io.weight <==\ndefault 100\n\n==> io.max <==\n\
            8:0 rbps=max wbps=1048576 riops=max wiops=max\n\n$ grep . /sys/block/sda/queue/*\n\
            /sys/block/sda/queue/scheduler:[none] mq-deadline\n/sys/block/sda/queue/nr_requests:64\n";
        let found = files(text);
        let of = |path: &str| found.iter().find(|file| file.0 == path).map(|file| file.2.as_str());
        assert_eq!(of("sys/fs/cgroup/a.slice/io.weight"), Some("default 100\n"));
        assert_eq!(of("sys/fs/cgroup/a.slice/io.max"), Some("8:0 rbps=max wbps=1048576 riops=max wiops=max\n"));
        assert_eq!(of("sys/block/sda/queue/scheduler"), Some("[none] mq-deadline\n"));
        assert_eq!((of("sys/block/sda/queue/nr_requests"), found.len()), (Some("64\n"), 4));
    }

    #[test]
    fn a_device_that_comes_again_begins_the_next_reading() {
        let line = |reads: u32| {
            format!("   8       0 sda {reads} 0 8 1 0 0 0 0 0 1 1\n   8       1 sda1 {reads} 0 8 1 0 0 0 0 0 1 1\n")
        };
        let found = files(&(line(1) + &line(2) + &line(3)));
        assert_eq!(found, [("proc/diskstats".to_owned(), 3, line(3))]);
        let stat = "$ cat io.stat\n8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n";
        let (path, readings, _) = &files(&stat.repeat(2))[0];
        assert_eq!((path.as_str(), *readings), ("sys/fs/cgroup/pasted/io.stat", 2));
    }

    #[test]
    fn what_does_not_look_like_the_file_is_not_taken_for_it() {
        let text = "$ cat /sys/fs/cgroup/blkio/c1/blkio.throttle.io_serviced\n7:4 Read 163\nTotal 225\n\
            419430400 bytes (419 MB, 400 MiB) copied, 0.189385 s, 2.2 GB/s\n";
        let pasted = read(text);
        assert_eq!(pasted.files[0].first, b"7:4 Read 163\nTotal 225\n");
        assert_eq!(pasted.statements.len(), 1);
    }

    #[test]
    fn files_of_other_mounts_and_pressure_find_their_places() {
        let text = "/cgroup/blkio/docker/ab/blkio.throttle.io_serviced:8:0 Read 5\n/proc/pressure/io:some avg10=0.00 avg60=1.11 avg300=0.68 total=2828208\n";
        let paths: Vec<String> = files(text).into_iter().map(|file| file.0).collect();
        assert_eq!(paths, ["sys/fs/cgroup/blkio/docker/ab/blkio.throttle.io_serviced", "proc/pressure/io"]);
    }
}
