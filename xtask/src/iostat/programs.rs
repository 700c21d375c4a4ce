//! The two programs: iostat over prepared files, and quell over the same ones.
//!
//! iostat reads `/proc` and `/sys` and knows no other root, so it runs in a mount namespace of its own where the prepared
//! files lie over the kernel's. Its second reading is not waited for: the interval is a year, and the signal of its alarm
//! is sent once the files have been exchanged.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::input::{MAJOR, Moment, Pair};
use crate::command::output;

/// The longest that a report may take.
const REPORT_MAX: Duration = Duration::from_secs(20);

/// Where iostat takes the counters from (sysstat's `rw_io_stat_loop`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `/proc/diskstats`, with `-p ALL`; all devices are shown.
    Diskstats,
    /// `/sys/block/*/stat`, without; devices that were never used are not.
    SysBlock,
}

impl Source {
    pub(super) const BOTH: [Self; 2] = [Self::Diskstats, Self::SysBlock];

    /// The shell that turns into iostat. Its arguments are the prepared `uptime`, `diskstats` and `block`.
    const fn script(self) -> &'static str {
        match self {
            Self::Diskstats => {
                r#"mount --bind "$1" /proc/uptime && mount --bind "$2" /proc/diskstats && exec iostat -x -p ALL 31536000 2"#
            }
            Self::SysBlock => {
                r#"mount --bind "$1" /proc/uptime && mount --bind "$3" /sys/block && exec iostat -x 31536000 2"#
            }
        }
    }
}

/// The files that iostat is shown.
struct Shown {
    uptime: PathBuf,
    diskstats: PathBuf,
    block: PathBuf,
}

impl Shown {
    fn below(dir: &Path) -> Self {
        Self { uptime: dir.join("uptime"), diskstats: dir.join("diskstats"), block: dir.join("block") }
    }

    /// Written in place: a bind mount shows the file that it was made from, not its name.
    fn write(&self, moment: &Moment, counters: usize) -> Result<()> {
        fs::write(&self.uptime, moment.uptime())?;
        fs::write(&self.diskstats, moment.diskstats(counters))?;
        fs::create_dir_all(&self.block)?;
        for gone in fs::read_dir(&self.block)? {
            fs::remove_dir_all(gone?.path())?;
        }
        for disk in &moment.disks {
            let dir = self.block.join(&disk.name);
            fs::create_dir(&dir)?;
            fs::write(dir.join("stat"), disk.stat(counters))?;
        }
        Ok(())
    }
}

/// What iostat printed as its second report.
pub(super) fn iostat(pair: &Pair, source: Source) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let shown = Shown::below(dir.path());
    shown.write(&pair.t0, pair.counters)?;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", source.script(), "sh"]);
    let iostat = Reporter::start(unshare.args([&shown.uptime, &shown.diskstats, &shown.block]))?;
    iostat.report()?;
    shown.write(&pair.t1, pair.counters)?;
    iostat.next_report()
}

/// A program that prints one table after the other. It is ended when it is no longer wanted.
pub(super) struct Reporter {
    child: Child,
    lines: Receiver<String>,
}

impl Reporter {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let pipes = command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = pipes.spawn().with_context(|| format!("start {:?}", command.get_program()))?;
        let stdout = child.stdout.take().context("a program without stdout")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).find(Result::is_err);
        });
        Ok(Self { child, lines })
    }

    /// The table that it is about to print.
    pub(super) fn report(&self) -> Result<String> {
        let titles = self.titles()?;
        self.rows(titles)
    }

    /// The table that iostat prints next, asked for by the signal of its alarm: again and again, since one that comes
    /// before it waits is lost.
    pub(super) fn next_report(&self) -> Result<String> {
        let pid = Pid::from_child(&self.child);
        let titles = self.await_titles(|| kill_process(pid, Signal::ALARM).context("signal iostat"))?;
        self.rows(titles)
    }

    /// The table that it is about to print, and what is done as soon as it begins to.
    pub(super) fn report_begun<T>(&self, then: impl FnOnce() -> Result<T>) -> Result<(String, T)> {
        let titles = self.titles()?;
        let done = then()?;
        Ok((self.rows(titles)?, done))
    }

    fn titles(&self) -> Result<String> {
        self.await_titles(|| Ok(()))
    }

    fn await_titles(&self, ask: impl Fn() -> Result<()>) -> Result<String> {
        const ASK_EVERY: Duration = Duration::from_millis(100);
        let start = Instant::now();
        ask()?;
        loop {
            match self.lines.recv_timeout(ASK_EVERY) {
                Ok(line) if line.starts_with("Device") => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if start.elapsed() < REPORT_MAX => ask()?,
                Err(RecvTimeoutError::Timeout) => bail!("no report in {REPORT_MAX:?}"),
                Err(RecvTimeoutError::Disconnected) => bail!("it ended without a report"),
            }
        }
    }

    /// The whole table: what follows its titles, up to an empty line or the end.
    fn rows(&self, titles: String) -> Result<String> {
        let mut table = titles;
        loop {
            match self.lines.recv_timeout(REPORT_MAX) {
                Ok(line) if line.is_empty() => return Ok(table),
                Ok(line) => table += &format!("\n{line}"),
                Err(RecvTimeoutError::Disconnected) => return Ok(table),
                Err(RecvTimeoutError::Timeout) => bail!("no end of a report in {REPORT_MAX:?}"),
            }
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // It has ended by itself, or nobody wants it any more: either way there is nothing to do about an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program under test.
pub(super) struct Quell(pub(super) PathBuf);

impl Quell {
    /// What it prints over trees with the same files.
    pub(super) fn stat(&self, pair: &Pair, source: Source) -> Result<String> {
        let dir = tempfile::tempdir()?;
        let roots = [("t0", &pair.t0), ("t1", &pair.t1)];
        for (name, moment) in roots {
            write_tree(&dir.path().join(name), moment, pair.counters)?;
        }
        let mut command = self.command();
        if source == Source::Diskstats {
            command.arg("--all");
        }
        for (name, _) in roots {
            command.arg("--root").arg(dir.path().join(name));
        }
        let text = output(&mut command)?;
        ensure!(text.starts_with("Device"), "quell stat -x printed no table: {text}");
        Ok(text)
    }

    /// `quell stat -x`, as wide as it likes.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["stat", "-x"]).env_remove("COLUMNS");
        command
    }
}

fn write_tree(root: &Path, moment: &Moment, counters: usize) -> Result<()> {
    fs::create_dir_all(root.join("proc"))?;
    fs::write(root.join("proc/diskstats"), moment.diskstats(counters))?;
    fs::write(root.join("proc/uptime"), moment.uptime())?;
    for disk in &moment.disks {
        let Some(diskseq) = disk.diskseq else { continue };
        let number = format!("{MAJOR}:{}", disk.minor);
        let links = root.join("sys/dev/block");
        let dir = root.join("sys/devices/virtual/block").join(&disk.name);
        fs::create_dir_all(&links)?;
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("dev"), format!("{number}\n"))?;
        fs::write(dir.join("diskseq"), format!("{diskseq}\n"))?;
        symlink(format!("../../devices/virtual/block/{}", disk.name), links.join(number))?;
    }
    Ok(())
}
