//! Limits and weights that somebody asked for: lines of systemd units, and options of `docker run` and its kin.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::number::decimal;
use crate::pasted::{Pasted, Statement};
use quell_units::whole;

pub(crate) const UNIT: Format = Format { name: "systemd unit", open: open_unit };
pub(crate) const RUN: Format = Format { name: "docker run", open: open_run };

/// Settings of systemd, and io.max's key for each (systemd.resource-control(5)).
const UNIT_LIMITS: [(&str, &str); 6] = [
    ("IOReadBandwidthMax", "rbps"),
    ("IOWriteBandwidthMax", "wbps"),
    ("IOReadIOPSMax", "riops"),
    ("IOWriteIOPSMax", "wiops"),
    ("BlockIOReadBandwidth", "rbps"),
    ("BlockIOWriteBandwidth", "wbps"),
];

/// Settings of a weight, with the device in front of it in the second kind.
const UNIT_WEIGHTS: [&str; 6] =
    ["IOWeight", "StartupIOWeight", "BlockIOWeight", "IODeviceWeight", "BlockIODeviceWeight", "StartupBlockIOWeight"];

fn open_unit(line: &Line) -> Option<Box<dyn Open>> {
    let mut unit = Unit { by: unit_name(line).unwrap_or_default(), done: Vec::new() };
    let starts = line.text.starts_with('[') && line.text.trim_end().ends_with(']') && !line.text.contains(' ');
    (starts || unit.take(line)).then(|| -> Box<dyn Open> { Box::new(unit) })
}

#[derive(Default)]
struct Unit {
    by: String,
    done: Vec<Statement>,
}

/// The unit's name by the command above (`systemctl cat app.service`).
fn unit_name(line: &Line) -> Option<String> {
    const SUFFIXES: [&str; 3] = [".service", ".slice", ".scope"];
    let words = line.command?.split_ascii_whitespace();
    let name = words
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .find(|word| SUFFIXES.iter().any(|suffix| word.ends_with(suffix)))?;
    Some(format!("unit/{name}"))
}

impl Open for Unit {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if let Some(path) = text.strip_prefix("# /") {
            // `systemctl cat` prints the path of each file above its content.
            let name = path.rsplit('/').next().unwrap_or(path);
            let drop_in = path.rsplit('/').nth(1).and_then(|folder| folder.strip_suffix(".d"));
            self.by = format!("unit/{}", drop_in.unwrap_or(name));
            return true;
        }
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| is_key(key)) else {
            return text.starts_with('[') && text.ends_with(']') && !text.contains(' ');
        };
        let count = self.done.len();
        self.setting(key, value.trim());
        // Other settings of a unit are passed over, once it is one.
        self.done.len() > count || !self.by.is_empty() && line.command.is_some()
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.statements.extend(self.done);
    }
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_uppercase()) && key.bytes().all(|b| b.is_ascii_alphanumeric())
}

impl Unit {
    fn setting(&mut self, key: &str, value: &str) {
        let by = if self.by.is_empty() { "a unit" } else { &self.by }.to_owned();
        let (device, amount) = value.rsplit_once(' ').map_or(("", value), |(device, amount)| (device.trim(), amount));
        if let Some((_, io_max_key)) = UNIT_LIMITS.iter().find(|(name, _)| *name == key) {
            // systemd counts K, M and G of bandwidth in thousands.
            if let Some(value) = thousands(amount).filter(|_| !device.is_empty()) {
                let key = (*io_max_key).to_owned();
                self.done.push(Statement::LimitAsked { by, device: device.to_owned(), key, value });
            }
        } else if UNIT_WEIGHTS.contains(&key)
            && let Some(weight) = decimal(amount).map(whole)
        {
            self.done.push(Statement::WeightAsked { by, device: device.to_owned(), weight });
        }
    }
}

/// A number with a suffix of 1,000 or its powers.
fn thousands(text: &str) -> Option<u64> {
    let (number, scale) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (text.get(..at)?, 1e3),
        (at, 'M') => (text.get(..at)?, 1e6),
        (at, 'G') => (text.get(..at)?, 1e9),
        (at, 'T') => (text.get(..at)?, 1e12),
        _ => (text, 1.0),
    };
    Some(whole(decimal(number)? * scale))
}

/// A size as docker and its kin read it: every suffix counts in 1,024, `10mb` and `10MB` as well (go-units, RAMInBytes).
fn of_runtime(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let number = lower.trim_end_matches('b').trim_end_matches('i');
    let (number, power) = match number.char_indices().last()? {
        (at, 'k') => (number.get(..at)?, 1),
        (at, 'm') => (number.get(..at)?, 2),
        (at, 'g') => (number.get(..at)?, 3),
        (at, 't') => (number.get(..at)?, 4),
        _ => (number, 0),
    };
    Some(whole(decimal(number.trim_end())? * 1024.0_f64.powi(power)))
}

/// Options of a runtime's command line, and io.max's key for each.
const RUN_LIMITS: [(&str, &str); 4] = [
    ("--device-read-bps", "rbps"),
    ("--device-write-bps", "wbps"),
    ("--device-read-iops", "riops"),
    ("--device-write-iops", "wiops"),
];

fn open_run(line: &Line) -> Option<Box<dyn Open>> {
    let statements = run(line.text);
    (!statements.is_empty()).then(|| -> Box<dyn Open> { Box::new(Run(statements)) })
}

struct Run(Vec<Statement>);

impl Open for Run {
    fn take(&mut self, line: &Line) -> bool {
        // A command that goes on behind a backslash.
        let more = run(line.text);
        let taken = !more.is_empty();
        self.0.extend(more);
        taken
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        pasted.statements.extend(self.0);
    }
}

fn run(text: &str) -> Vec<Statement> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c == '=').collect();
    let by = words
        .iter()
        .find(|word| matches!(**word, "docker" | "podman" | "nerdctl"))
        .copied()
        .unwrap_or("docker")
        .to_owned();
    let mut out = Vec::new();
    for (word, value) in words.iter().zip(words.iter().skip(1)) {
        let value = value.trim_matches(['\'', '"', '\\']);
        if let Some((_, key)) = RUN_LIMITS.iter().find(|(option, _)| option == word) {
            if let Some((device, amount)) = value.rsplit_once(':')
                && let Some(value) = of_runtime(amount)
            {
                let (device, key) = (device.to_owned(), (*key).to_owned());
                out.push(Statement::LimitAsked { by: by.clone(), device, key, value });
            }
        } else if matches!(*word, "--blkio-weight" | "--blkio-weight-device") {
            let (device, weight) = value.rsplit_once(':').unwrap_or(("", value));
            if let Some(weight) = decimal(weight).map(whole) {
                out.push(Statement::WeightAsked { by: by.clone(), device: device.to_owned(), weight });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;

    fn asked(by: &str, device: &str, key: &str, value: u64) -> Statement {
        Statement::LimitAsked { by: by.into(), device: device.into(), key: key.into(), value }
    }

    #[test]
    fn a_unit_says_what_it_wants_of_which_device() {
        let text = "$ systemctl cat app.service\n# /etc/systemd/system/app.service\n[Service]\nExecStart=/bin/app\n\
            IOReadBandwidthMax=/dev/sda1 18879\nIOWriteBandwidthMax=/var 10M\nIODeviceWeight=/ 123\n";
        let pasted = read(text);
        let weight = Statement::WeightAsked { by: "unit/app.service".into(), device: "/".into(), weight: 123 };
        assert_eq!(
            pasted.statements,
            [
                asked("unit/app.service", "/dev/sda1", "rbps", 18_879),
                asked("unit/app.service", "/var", "wbps", 10_000_000),
                weight
            ]
        );
        assert_eq!(pasted.unread.lines, 0);
    }

    #[test]
    fn options_of_a_run_are_read_in_both_spellings() {
        let text = "$ docker run --device-read-bps /dev/sda2:10M --device-write-iops=/dev/sdb:100 --blkio-weight 300 busybox\n";
        let pasted = read(text);
        assert_eq!(pasted.statements.first(), Some(&asked("docker", "/dev/sda2", "rbps", 10 << 20)));
        assert_eq!(pasted.statements.get(1), Some(&asked("docker", "/dev/sdb", "wiops", 100)));
        assert_eq!(pasted.statements.len(), 3);
        let of_the_manual = read("docker run -it --device-write-bps /dev/sda4:1mb alpine\n");
        assert_eq!(of_the_manual.statements, [asked("docker", "/dev/sda4", "wbps", 1 << 20)]);
    }

    #[test]
    fn sizes_of_a_runtime_count_in_1024_whatever_their_suffix() {
        for (text, bytes) in [("1mb", 1 << 20), ("10MB", 10 << 20), ("2k", 2048), ("1.5GiB", 3 << 29), ("300", 300)] {
            assert_eq!(super::of_runtime(text), Some(bytes), "{text}");
        }
        assert_eq!((super::of_runtime("fast"), super::of_runtime("")), (None, None));
    }
}
