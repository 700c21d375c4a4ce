//! `docker info` and `podman info`: the version of cgroups, the kernel, and what the runtime says is missing.

use crate::formats::{Format, Open};
use crate::line::Line;
use crate::pasted::{Pasted, Statement};

pub(crate) const FORMAT: Format = Format { name: "docker info", open };

/// Keys that no other tool's output has.
const KEYS: [&str; 9] = [
    "cgroup version",
    "cgroupversion",
    "cgroup driver",
    "cgroupmanager",
    "kernel version",
    "storage driver",
    "server version",
    "docker root dir",
    "logging driver",
];

fn open(line: &Line) -> Option<Box<dyn Open>> {
    let mut info = Info::default();
    info.take(line).then(|| -> Box<dyn Open> { Box::new(info) })
}

#[derive(Default)]
struct Info {
    done: Vec<Statement>,
    /// Whether a key of docker's own was seen: then other `Key: value` lines are its, too.
    known: bool,
}

impl Open for Info {
    fn take(&mut self, line: &Line) -> bool {
        let text = line.text.trim();
        if let Some(knob) = text.strip_prefix("WARNING: No ").and_then(|rest| rest.strip_suffix(" support")) {
            self.done.push(Statement::KnobMissing { by: "docker".into(), knob: knob.to_owned() });
            return true;
        }
        let Some((key, value)) = text.split_once(':') else { return false };
        let (key, value) = (key.trim().to_lowercase(), value.trim().trim_matches('"'));
        let is_known = KEYS.contains(&key.as_str());
        match key.as_str() {
            "cgroup version" | "cgroupversion" => {
                let version = value.trim_start_matches('v').parse().ok();
                self.done.extend(version.filter(|version| matches!(version, 1 | 2)).map(Statement::CgroupVersion));
            }
            "kernel version" => self.done.push(Statement::Kernel(value.to_owned())),
            _ => {}
        }
        self.known |= is_known;
        let is_key = key.len() <= 32 && key.chars().all(|c| c.is_ascii_alphanumeric() || " -_/".contains(c));
        is_known || self.known && is_key
    }

    fn close(self: Box<Self>, pasted: &mut Pasted) {
        self.done.into_iter().for_each(|statement| pasted.state(statement));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use crate::pasted::Statement;

    #[test]
    fn versions_and_warnings_are_taken() {
        let text = "Server Version: 20.10\n Cgroup Driver: systemd\n Cgroup Version: 2\n Kernel Version: 6.1.0-13\n Total Memory: 3GiB\n\
            WARNING: No blkio weight support\n";
        let pasted = read(text);
        let knob = Statement::KnobMissing { by: "docker".into(), knob: "blkio weight".into() };
        assert_eq!(pasted.statements, [Statement::CgroupVersion(2), Statement::Kernel("6.1.0-13".into()), knob]);
        assert_eq!(pasted.unread.lines, 0);
    }
}
