//! The command line as typed: one table that makes the parser, the help, the man pages and the completions.
//!
//! No I/O and no meaning here. What the words mean for this host is decided where a command starts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use quell_engine::snapshot::Stage;

/// The shortest time that rates are made over: below it the clock steps of a capture (10 ms) would show.
const SPAN_MIN: Duration = Duration::from_millis(100);

/// The longest time that one watch may last: its looks are kept in memory.
const SPAN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Which workload hurts which disk, why, and what to change.
#[derive(Debug, Parser)]
#[command(name = "quell", version, after_help = TOP_EXAMPLES, disable_help_subcommand = true, max_term_width = 80)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show who uses which disk, and how long its I/O waits
    Stat(StatArgs),
    /// Say why storage is slow: who waits, who is to blame, what to change
    Doctor(DoctorArgs),
    /// Show where the time of each workload's I/O goes, stage by stage
    Latency(LatencyArgs),
    /// Show what lies on which disk, how each is set up, and where a limit acts
    Devices(DevicesArgs),
    /// Show the tree of cgroups, or one of them: controllers, limits, what is missing
    Cgroup(CgroupArgs),
    /// Explain a finding: what it means, how it is found, what to change
    Explain(ExplainArgs),
    /// Run the doctor on a recorded host
    Demo(DemoArgs),
    /// Write what quell reads into a directory, to look at it elsewhere
    Capture(CaptureArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all pages into a directory
    Man(ManArgs),
}

/// Where to read.
#[derive(Debug, Default, Args)]
pub struct RootArgs {
    /// Read a captured tree in place of this host
    ///
    /// Given twice, the trees are two moments of one host. A DIR with t0 and t1 in it holds both.
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
}

/// Arguments of `quell stat`.
#[derive(Debug, Args)]
#[command(after_help = STAT_EXAMPLES)]
pub struct StatArgs {
    /// Report every so often, such as 1 or 500ms [default: one report over 1 s]
    #[arg(value_parser = parse_span, conflicts_with = "roots")]
    pub interval: Option<Duration>,
    /// How many reports [default: until interrupted]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Show every column of iostat -x, and no workloads
    #[arg(short = 'x', long)]
    pub extended: bool,
    /// Sort workloads by this [default: share of the disk's time]
    #[arg(long, value_name = "wbytes|rbytes|ios|pressure", hide_possible_values = true)]
    pub by: Option<SortBy>,
    /// Show devices and workloads that did nothing, too
    #[arg(short, long)]
    pub all: bool,
    /// Show one device: a name, a node, a link to one, MAJ:MIN, or any path on it
    #[arg(short, long, value_name = "DEVICE")]
    pub device: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its text would replace the command's own")]
    pub root: RootArgs,
    /// Print JSON; with a COUNT above 1, one document a line
    #[arg(long)]
    pub json: bool,
}

/// What workloads are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Bytes written
    Wbytes,
    /// Bytes read
    Rbytes,
    /// Reads and writes
    Ios,
    /// Share of the time stalled on I/O
    Pressure,
}

/// Arguments of `quell doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// Only what concerns this: a container, unit, cgroup, process or device
    ///
    /// docker/NAME, podman/NAME, pod/NAMESPACE/NAME or one of its containers, lxc/NAME, slurm/job_N, unit/NAME.service,
    /// cgroup/PATH, pid/N, a device such as vda or /dev/vda, or a bare name when it is unambiguous. A container's id does
    /// as well as its name.
    pub target: Option<String>,
    /// How long to watch [default: 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span, conflicts_with = "roots")]
    pub watch: Option<Duration>,
    /// Exit 1 when there is a finding of at least this severity
    #[arg(long, value_name = "info|warning|critical", hide_possible_values = true)]
    pub fail_on: Option<FailOn>,
    /// Show the file that each number came from, and every gap
    #[arg(short, long)]
    pub verbose: bool,
    /// Judge what somebody pasted: a file, - for standard input, or the folder of a sos report
    ///
    /// The output of iostat, fio, lsblk and other tools, kernel files as cat and grep print them, errors and logs; several
    /// of them in one text, as they were printed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["roots", "watch"])]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its text would replace the command's own")]
    pub root: RootArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell latency`.
#[derive(Debug, Args)]
#[command(after_help = LATENCY_EXAMPLES)]
pub struct LatencyArgs {
    /// A workload [default: all], how long to watch [default: 10s], and how many reports [default: 1]
    ///
    /// A container, unit, cgroup, process or device as quell doctor takes it. The first word that is a time is INTERVAL.
    #[arg(value_name = "TARGET|INTERVAL|COUNT", num_args = 0..=3)]
    pub words: Vec<String>,
    /// Show one device: a name, a node, a link to one, MAJ:MIN, or any path on it
    #[arg(short, long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Show one stage, with its histogram; device costs the least
    #[arg(short, long, value_name = "STAGE", value_parser = parse_stage)]
    pub stage: Option<Stage>,
    /// Print JSON; with a COUNT above 1, one document a line
    #[arg(long)]
    pub json: bool,
}

/// The words of `quell latency`, told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyWords {
    /// Whose I/O.
    pub target: Option<String>,
    /// How long each report watches.
    pub interval: Option<Duration>,
    /// How many reports.
    pub count: Option<u64>,
}

impl LatencyArgs {
    /// The words told apart: a target that looks like a time is given as `cgroup/10`.
    ///
    /// # Errors
    /// What is wrong with a word, for people.
    pub fn told_apart(&self) -> Result<LatencyWords, String> {
        let mut words = self.words.iter().peekable();
        let is_time = |word: &&String| word.starts_with(|c: char| c.is_ascii_digit());
        let target = words.next_if(|word| !is_time(word)).cloned();
        let said = |word: &String, why: String| format!("{word:?} as INTERVAL: {why}");
        let interval = words.next().map(|word| parse_span(word).map_err(|why| said(word, why))).transpose()?;
        let count = words.next().map(|word| {
            let count = word.parse().ok().filter(|count| *count > 0);
            count.ok_or_else(|| format!("{word:?} as COUNT: expected a whole number above 0"))
        });
        let count = count.transpose()?;
        match words.next() {
            Some(word) => Err(format!("{word:?} is one word too many: [TARGET] [INTERVAL [COUNT]]")),
            None => Ok(LatencyWords { target, interval, count }),
        }
    }
}

fn parse_stage(text: &str) -> Result<Stage, String> {
    let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.as_str()).collect();
    let found = Stage::ALL.into_iter().find(|stage| stage.as_str() == text);
    found.ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

/// Arguments of `quell devices`.
#[derive(Debug, Args)]
#[command(after_help = DEVICES_EXAMPLES)]
pub struct DevicesArgs {
    /// One device, or what a path or container lies on [default: all]
    ///
    /// A name, a node, a link such as /dev/disk/by-id/..., MAJ:MIN, a partition, a mount point, any path, or a target as
    /// quell doctor takes it. How it was resolved is told.
    #[arg(value_name = "DEVICE|PATH")]
    pub device: Option<String>,
    /// Show empty loop devices and memory, too
    #[arg(short, long)]
    pub all: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its text would replace the command's own")]
    pub root: RootArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell cgroup`.
#[derive(Debug, Args)]
pub struct CgroupArgs {
    /// What to show.
    #[command(subcommand)]
    pub command: CgroupCommand,
}

/// The views of cgroups.
#[derive(Debug, Subcommand)]
pub enum CgroupCommand {
    /// Show the tree: controllers, processes, limits, pressure and what is not written yet
    Tree(CgroupTreeArgs),
    /// Show one cgroup: its type, what reaches it, every limit that holds it
    Show(CgroupShowArgs),
}

/// Arguments of `quell cgroup tree`.
#[derive(Debug, Args)]
#[command(after_help = CGROUP_TREE_EXAMPLES)]
pub struct CgroupTreeArgs {
    /// Only this cgroup and all below it, by its path [default: /]
    pub path: Option<String>,
    /// Show empty cgroups without limits, too
    #[arg(short, long)]
    pub all: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its text would replace the command's own")]
    pub root: RootArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell cgroup show`.
#[derive(Debug, Args)]
#[command(after_help = CGROUP_SHOW_EXAMPLES)]
pub struct CgroupShowArgs {
    /// A container, unit, cgroup or process, as quell doctor takes it
    pub target: String,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its text would replace the command's own")]
    pub root: RootArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// From which severity on the exit code is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any finding
    Info,
    /// Warnings and critical findings
    Warning,
    /// Critical findings
    Critical,
}

/// Arguments of `quell explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct ExplainArgs {
    /// The finding's id [default: list all ids]
    pub id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell demo`.
#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// The recording [default: list them]
    pub name: Option<String>,
    /// Show the file that each number came from
    #[arg(short, long)]
    pub verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell capture`.
#[derive(Debug, Args)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub struct CaptureArgs {
    /// Where to write: a new or an empty directory
    pub dir: PathBuf,
    /// Time between the two moments
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span, default_value = "10s")]
    pub watch: Duration,
    /// Replace the names of this host, its cgroups and its processes
    #[arg(long)]
    pub scrub: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `quell completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `quell man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Write all pages into this directory
    pub dir: Option<PathBuf>,
}

/// A time as people write it: `10s`, `500ms`, `2m`, `1h`; a bare number is seconds.
fn parse_span(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, seconds) =
        UNITS.iter().find_map(|&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds))).unwrap_or((text, 1.0));
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = number.parse().ok().filter(|_| plain).ok_or("expected a time such as 10s, 500ms or 2m")?;
    match Duration::try_from_secs_f64(value * seconds) {
        Ok(span) if span < SPAN_MIN => Err("0.1 s is the least: rates over less say nothing".into()),
        Ok(span) if span <= SPAN_MAX => Ok(span),
        _ => Err("24 h is the most".into()),
    }
}

const TOP_EXAMPLES: &str = "\
Examples:
  quell doctor                 watch for 10 s, then say what is wrong and why
  quell doctor docker/mysql    only what concerns this container
  quell stat 1                 disks and the workloads on them, every second
  quell devices /var/lib/db    which disk that is, and where a limit acts
  quell demo                   see the doctor at work on recorded hosts

Exit codes: 0 done, 1 findings at or above --fail-on, 2 usage or configuration
wrong, 3 nothing could be judged";

const STAT_EXAMPLES: &str = "\
Without INTERVAL the numbers are of the next second, never since boot.
Partitions count with their disk. A dm or md device and the disk below it show
the same bytes: never add them.

Examples:
  quell stat                   one second, now
  quell stat 1 10              ten reports, a second each, like iostat
  quell stat --by wbytes       biggest writers first
  quell stat -x 1              the columns of iostat -x
  quell stat --root DIR        a captured tree with t0 and t1 in it";

const DOCTOR_EXAMPLES: &str = "\
Observing changes nothing. Ctrl-C ends the watch early and gives the verdict so far.

Examples:
  quell doctor                 watch for 10 s
  quell doctor --for 1m vda    one disk, for a minute
  quell doctor --fail-on warning --json
  quell doctor --root DIR      a tree that quell capture wrote
  iostat -x 1 10 | quell doctor --from -";

const LATENCY_EXAMPLES: &str = "\
Stages: throttle (io.max), qos (iocost, io.latency, wbt), tag (waiting for a
request), queue (scheduler), device, flush (of the device's cache). They add up
to the total, which no other tool measures from above the limits.
Needs root, or CAP_BPF and CAP_PERFMON.

Examples:
  quell latency                      every workload, over 10 s
  quell latency docker/mysql 1 5     one of them, five reports of a second
  quell latency -s device -d vda     how long the disk itself took";

const DEVICES_EXAMPLES: &str = "\
Nothing is measured: a judgement says what a value means on a disk of its class,
not that it hurts; that is the doctor's to say.

Examples:
  quell devices                    every stack, and what to look at
  quell devices /var/lib/docker    which disk that is, and where a limit acts
  quell devices nvme0n1            every setting of one disk, judged
  quell devices --json | jq '.filesystems[].settings'";

const CGROUP_TREE_EXAMPLES: &str = "\
Examples:
  quell cgroup tree
  quell cgroup tree kubepods.slice
  quell cgroup tree --json";

const CGROUP_SHOW_EXAMPLES: &str = "\
Examples:
  quell cgroup show docker/1f2e3d
  quell cgroup show unit/mysql.service
  quell cgroup show cgroup/tenants/etl";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  quell explain
  quell explain noisy-neighbour";

const DEMO_EXAMPLES: &str = "\
The recordings are of real kernels with a known load; nothing on this host is read.

Examples:
  quell demo
  quell demo 08-noisy-neighbour";

const CAPTURE_EXAMPLES: &str = "\
Only files that quell reads are copied, twice. Nothing of a file system's content is.

Examples:
  quell capture /tmp/slow-db
  quell capture --scrub --for 30s /tmp/report
  quell doctor --root /tmp/report";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  quell completions bash > /etc/bash_completion.d/quell";

const MAN_EXAMPLES: &str = "\
Examples:
  quell man | man -l -
  quell man /usr/share/man/man1";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_table_of_arguments_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, ms) in
            [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1", 1_000), ("0.5", 500), ("1h", 3_600_000)]
        {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "s", "-1", "1d", "ten", "1e3", "nan", "0", "0.05", "99ms", "25h", "1 s"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_words_of_latency_are_told_apart_by_their_first_letter() {
        let told = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            LatencyArgs { words, device: None, stage: None, json: false }.told_apart()
        };
        let words = |target: Option<&str>, seconds: Option<u64>, count| LatencyWords {
            target: target.map(str::to_owned),
            interval: seconds.map(Duration::from_secs),
            count,
        };
        assert_eq!(told(&[]), Ok(words(None, None, None)));
        assert_eq!(told(&["docker/db", "1", "5"]), Ok(words(Some("docker/db"), Some(1), Some(5))));
        assert_eq!(told(&["2s", "3"]), Ok(words(None, Some(2), Some(3))));
        assert_eq!(told(&["cgroup/10"]), Ok(words(Some("cgroup/10"), None, None)));
        assert!(told(&["1", "docker/db"]).is_err(), "the target comes first");
        assert!(told(&["1", "2", "3"]).is_err() && told(&["1", "0"]).is_err() && told(&["1x"]).is_err());
    }
}
