//! What runtimes, shells and programs say when a file of cgroups or pressure refuses them.
//!
//! The words differ by program, the kernel's errors do not: a file of the I/O controller in a line, and the text of an
//! errno in any of its spellings, is a refusal.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::decimal;
use crate::pasted::{Pasted, Refusal, Statement};
use quell_units::{DevNum, whole};

pub(crate) const FORMAT: Format = Format { name: "errors", open };

/// The texts of the errors, in lower case; glibc's, Go's, dash's, and the names.
const REFUSALS: [(&str, Refusal); 17] = [
    ("no such device", Refusal::NoDevice),
    ("enodev", Refusal::NoDevice),
    ("numerical result out of range", Refusal::OutOfRange),
    ("erange", Refusal::OutOfRange),
    ("invalid argument", Refusal::Invalid),
    ("einval", Refusal::Invalid),
    ("no such file or directory", Refusal::NoFile),
    ("directory nonexistent", Refusal::NoFile),
    ("nonexistent directory", Refusal::NoFile),
    ("enoent", Refusal::NoFile),
    ("operation not supported", Refusal::NotSupported),
    ("not supported", Refusal::NotSupported),
    ("eopnotsupp", Refusal::NotSupported),
    ("permission denied", Refusal::Denied),
    ("operation not permitted", Refusal::Denied),
    ("read-only file system", Refusal::Denied),
    ("device or resource busy", Refusal::Busy),
];

/// The files of the I/O controller, and those that enable it.
const FILES: [&str; 9] = [
    "io.max",
    "io.weight",
    "io.bfq.weight",
    "io.latency",
    "io.cost.qos",
    "io.cost.model",
    "io.prio.class",
    "io.stat",
    "cgroup.subtree_control",
];

/// Programs that a line may be of; the innermost of a chain of them comes first.
const PROGRAMS: [&str; 13] = [
    "runc",
    "crun",
    "youki",
    "conmon",
    "podman",
    "nerdctl",
    "containerd",
    "kubelet",
    "dockerd",
    "docker",
    "systemd",
    "lxc",
    "libvirt",
];

fn open(line: &Line) -> Option<Box<dyn Open>> {
    if let Some(written) = Written::of(line.text) {
        return Some(Box::new(written));
    }
    let statement = statement(line.text)?;
    Some(Box::new(Said(statement)))
}

/// One line that says all of it.
struct Said(Statement);

impl Open for Said {
    fn take(&mut self, _: &Line) -> bool {
        false
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.state(self.0);
    }
}

/// `echo "8:4 10485760" > /sys/fs/cgroup/…/io.max`, and the shell's answer below it.
struct Written {
    path: String,
    value: String,
    refusal: Option<Refusal>,
}

impl Written {
    fn of(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("echo ")?;
        let (value, target) = rest.split_once('>')?;
        let quotes = ['\'', '"', ' '];
        let target = target.trim_start_matches('>').trim();
        let path =
            target.strip_prefix("tee ").unwrap_or(target).split(char::is_whitespace).next()?.trim_matches(quotes);
        io_file(path)?;
        Some(Self { path: path.to_owned(), value: value.trim_matches(quotes).to_owned(), refusal: None })
    }
}

impl Open for Written {
    fn take(&mut self, line: &Line) -> bool {
        if self.refusal.is_some() {
            return false;
        }
        self.refusal = refusal(line.text);
        self.refusal.is_some()
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        let file = io_file(&self.path).unwrap_or_default().to_owned();
        let dev = device(&self.value);
        match self.refusal {
            Some(refusal) => pasted.state(Statement::Refused {
                by: String::new(),
                file,
                path: Some(self.path),
                dev,
                value: Some(self.value),
                refusal,
            }),
            // No answer is the kernel's yes.
            None => asked(&file, &self.value).into_iter().for_each(|statement| pasted.state(statement)),
        }
    }
}

/// What was written to a file that limits.
fn asked(file: &str, value: &str) -> Vec<Statement> {
    let mut words = value.split_ascii_whitespace();
    let Some(device) = words.next().map(ToOwned::to_owned) else { return Vec::new() };
    let limit = |key: &str, value: &str| {
        let value = decimal(value).map(whole)?;
        Some(Statement::LimitAsked { by: "echo".into(), device: device.clone(), key: key.to_owned(), value })
    };
    let v1 = [("read_bps", "rbps"), ("write_bps", "wbps"), ("read_iops", "riops"), ("write_iops", "wiops")];
    match v1.iter().find(|(part, _)| file.contains(part)) {
        Some((_, key)) => words.next().and_then(|value| limit(key, value)).into_iter().collect(),
        None if file == "io.max" => {
            words.filter_map(|word| word.split_once('=')).filter_map(|(k, v)| limit(k, v)).collect()
        }
        None => Vec::new(),
    }
}

fn statement(text: &str) -> Option<Statement> {
    let lower = text.to_lowercase();
    let program =
        || PROGRAMS.iter().find(|name| lower.contains(*name)).map_or_else(String::new, |name| (*name).to_owned());
    if lower.contains("/proc/pressure") || lower.contains("psi") && lower.contains("pressure") {
        let refused = lower.contains("errno 95") || refusal(text) == Some(Refusal::NotSupported);
        return refused.then_some(Statement::PressureRefused);
    }
    if let Some(controller) = missing_controller(&lower) {
        return Some(Statement::ControllerMissing { by: program(), controller });
    }
    if let Some(version) = wanted_version(&lower) {
        return Some(Statement::WantsCgroup { by: program(), version });
    }
    // The last of several files in a line is the one that the error at its end is about.
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ','));
    let path = words.clone().rfind(|word| io_file(word.trim_end_matches(':')).is_some())?.trim_end_matches(':');
    let refusal = refusal(text)?;
    let dev = words.clone().filter(|word| !word.contains('/')).find_map(|word| device(word.trim_end_matches(':')));
    Some(Statement::Refused {
        by: program(),
        file: io_file(path)?.to_owned(),
        path: path.contains('/').then(|| path.to_owned()),
        dev,
        value: value_beside(text, dev),
        refusal,
    })
}

/// The name of a file of the I/O controller, of either version, at the end of a path.
fn io_file(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    (FILES.contains(&name) || name.starts_with("blkio.") && name.len() > "blkio.".len()).then_some(name)
}

/// The last error's text in a line: what is in front of it may quote another.
fn refusal(text: &str) -> Option<Refusal> {
    let lower = text.to_lowercase();
    let found = REFUSALS.iter().filter_map(|(words, refusal)| Some((lower.rfind(words)?, *refusal)));
    found.max_by_key(|(at, _)| *at).map(|(_, refusal)| refusal)
}

fn device(text: &str) -> Option<DevNum> {
    text.split_ascii_whitespace().next()?.trim_matches(['"', '\'']).parse().ok()
}

/// What was written, where the line tells it: a device's number and the words behind it, up to the next word of the
/// message (`failed to write 1:8 1024 to blkio…`, `failed to write "259:2 rbps=0": write …`).
fn value_beside(text: &str, dev: Option<DevNum>) -> Option<String> {
    let start = text.find(&format!("{} ", dev?))?;
    let rest = text.get(start..)?;
    let is_value = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) || word.contains('=') || *word == "max";
    let words: Vec<&str> = rest
        .split_ascii_whitespace()
        .map(|word| word.trim_end_matches(['"', ':', ',', '\'']))
        .take_while(is_value)
        .collect();
    (words.len() > 1).then(|| words.join(" "))
}

/// The controller in `the requested cgroup controller `io` is not available` and its kin.
fn missing_controller(lower: &str) -> Option<String> {
    const MISSING: [&str; 7] =
        ["not available", "not delegated", "not enabled", "is missing", "not found", "not mounted", "unavailable"];
    let (before, behind) =
        lower.split_once("controller").filter(|_| MISSING.iter().any(|words| lower.contains(words)))?;
    let clean = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    let known =
        |word: &String| matches!(word.as_str(), "io" | "blkio" | "memory" | "cpu" | "cpuset" | "pids" | "hugetlb");
    let behind = behind.split_ascii_whitespace().map(clean).find(known);
    behind.or_else(|| before.split_ascii_whitespace().rev().map(clean).find(known))
}

/// The version of cgroups that a program says it cannot do without.
fn wanted_version(lower: &str) -> Option<u8> {
    const WANTS: [&str; 8] = [
        "only can be used",
        "can only be used",
        "only supported",
        "only available",
        "requires",
        "require ",
        "is required",
        "needs",
    ];
    if !lower.contains("cgroup") || !WANTS.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let version = |digit: char| {
        ["cgroup v", "cgroups v", "cgroup version ", "cgroups version ", "cgroupv", "cgroupsv"]
            .iter()
            .any(|words| lower.contains(&format!("{words}{digit}")))
    };
    if version('2') { Some(2) } else { version('1').then_some(1) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;

    fn refused(text: &str) -> (String, Option<String>, Option<String>, Refusal) {
        match read(text).statements.as_slice() {
            [Statement::Refused { by, file, dev, value, refusal, .. }] => {
                let _ = file;
                (by.clone(), dev.map(|dev| dev.to_string()), value.clone(), *refusal)
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn errors_of_every_runtime_are_one_refusal() {
        let id = "0123456789abcdef";
        let cases = [
            (format!("failed to write 1:8 1024 to blkio.throttle.read_bps_device: write /sys/fs/cgroup/blkio/docker/{id}/blkio.throttle.read_bps_device: no such device\n"),
                ("docker", Some("1:8"), Some("1:8 1024"), Refusal::NoDevice)),
            (format!("runc: failed to write \"259:2 rbps=0\": write /cgroups/v2/{id}/io.max: numerical result out of range\n"),
                ("runc", Some("259:2"), Some("259:2 rbps=0"), Refusal::OutOfRange)),
            (format!("docker: Error response from daemon: openat2 /sys/fs/cgroup/docker/{id}/io.max: no such file or directory: unknown.\n"),
                ("docker", None, None, Refusal::NoFile)),
            ("$ echo \"8:4 10485760\" > /sys/fs/cgroup/a/io.max\n-bash: echo: write error: Invalid argument\n".to_owned(),
                ("", Some("8:4"), Some("8:4 10485760"), Refusal::Invalid)),
            ("$ sh -c \"echo 253:0 0 >> /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device\"\nsh: 1: cannot create /sys/fs/cgroup/blkio/blkio.throttle.read_bps_device: Directory nonexistent\n".to_owned(),
                ("", Some("253:0"), Some("253:0 0"), Refusal::NoFile)),
        ];
        for (text, (by, dev, value, refusal)) in cases {
            let known = |text: Option<&str>| text.map(ToOwned::to_owned);
            assert_eq!(refused(&text), (by.into(), known(dev), known(value), refusal), "{text}");
        }
    }

    #[test]
    fn a_write_that_nothing_answers_is_a_limit() {
        let pasted = read("# echo \"8:0 wbps=1048576 riops=max\" > /sys/fs/cgroup/a/io.max\n");
        let asked =
            Statement::LimitAsked { by: "echo".into(), device: "8:0".into(), key: "wbps".into(), value: 1 << 20 };
        assert_eq!(pasted.statements, [asked]);
    }

    #[test]
    fn controllers_versions_and_pressure_are_told() {
        let one = |text: &str| read(text).statements.into_iter().next();
        assert_eq!(
            one("Error: OCI runtime error: crun: the requested cgroup controller `io` is not available\n"),
            Some(Statement::ControllerMissing { by: "crun".into(), controller: "io".into() })
        );
        assert_eq!(
            one("WARNING:  resource group io limit only can be used in cgroup v2.\n"),
            Some(Statement::WantsCgroup { by: String::new(), version: 2 })
        );
        assert_eq!(
            one("Cannot read from file '/proc/pressure/cpu' on fd 91 (errno 95, Operation not supported)\n"),
            Some(Statement::PressureRefused)
        );
        assert_eq!(one("we need more cgroups in this city\n"), None);
    }
}
