//! Both programs beside each other on a real device: a loop device of its own, made here and removed again, under a load
//! of reads, writes and flushes.
//!
//! They must look at the same time span: of few requests, one that is slow is seen in a mean. quell sets the pace, and
//! each of its reports is the signal for iostat to read as well, so the two spans end within some milliseconds.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{pread, pwrite};
use tempfile::NamedTempFile;

use super::compare::{Table, close};
use super::programs::{Quell, Reporter};
use crate::command::{output, run};
use crate::interrupt::Interrupt;

/// How far apart the two may be. `/proc/uptime` alone is off by up to 0.5 % of two seconds.
const APART_PCT: f64 = 2.0;

const DEVICE_BYTES: u64 = 64 << 20;

/// Watches a device under load with both.
pub(super) fn compare(quell: &Quell) -> Result<()> {
    let interrupt = Interrupt::take_over()?;
    let device = LoopDevice::attach()?;
    let name = device.name()?;
    let load = Load::start(&device.path)?;
    let mut command = quell.command();
    let ours = Reporter::start(command.args(["2", "2", "--device", name]))?;
    let theirs = Reporter::start(Command::new("iostat").args(["-x", name, "31536000", "3"]))?;
    theirs.report()?;
    ours.report_begun(|| theirs.next_report())?;
    let (ours, theirs) = ours.report_begun(|| theirs.next_report())?;
    load.stop()?;
    interrupt.check()?;
    println!("quell\n{ours}\niostat\n{theirs}");
    let (cells, problems) = close(&Table::parse(&theirs)?, &Table::parse(&ours)?, name, APART_PCT)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    ensure!(problems.is_empty(), "{} of {cells} columns are more than {APART_PCT} % apart", problems.len());
    println!("{cells} columns of {name} are within {APART_PCT} %");
    Ok(())
}

/// A loop device over a file in memory. Nobody else uses it, and it is gone in the end.
struct LoopDevice {
    path: PathBuf,
    _file: NamedTempFile,
}

impl LoopDevice {
    fn attach() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let file = if memory.is_dir() { NamedTempFile::new_in(memory) } else { NamedTempFile::new() }?;
        file.as_file().set_len(DEVICE_BYTES)?;
        let shown = output(Command::new("losetup").args(["--find", "--show"]).arg(file.path()))?;
        Ok(Self { path: shown.trim_end().into(), _file: file })
    }

    fn name(&self) -> Result<&str> {
        self.path.file_name().and_then(|name| name.to_str()).context("a loop device without a name")
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("losetup").arg("--detach").arg(&self.path)) {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// Requests at an even pace, so that every span of time holds as many.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Load {
    /// Returns once the device is at work.
    fn start(device: &Path) -> Result<Self> {
        let fd =
            open(device, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty()).context("open the device")?;
        let stop = Arc::new(AtomicBool::new(false));
        let (begun, at_work) = mpsc::sync_channel(1);
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || issue(&File::from(fd), &stop, &begun)
        });
        at_work.recv().context("the load ended before it began")?;
        Ok(Self { stop, thread: Some(thread) })
    }

    fn stop(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| anyhow::bail!("the load panicked"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Only where something else failed, which is told already. The device must be closed before it is detached.
        let _ = self.join();
    }
}

/// A read, a write, and now and then a flush, until it is to stop.
fn issue(device: &File, stop: &AtomicBool, begun: &SyncSender<()>) -> Result<()> {
    const EVERY: Duration = Duration::from_millis(4);
    const BLOCK: usize = 4096;
    const READ: usize = 256 * BLOCK;
    // Direct I/O wants memory at a multiple of the block size.
    let mut room = vec![0xa5_u8; READ + BLOCK];
    let start = room.as_ptr().align_offset(BLOCK);
    let aligned = room.get_mut(start..start + READ).context("no aligned memory")?;
    let begin = Instant::now();
    for at in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let offset = u64::from(at) * 1_048_576 % DEVICE_BYTES;
        pread(device, &mut *aligned, offset)?;
        pwrite(device, aligned.get(..BLOCK).unwrap_or_default(), offset)?;
        if at.is_multiple_of(8) {
            fdatasync(device)?;
        }
        // Nobody waits for the second message.
        let _ = begun.try_send(());
        thread::sleep((EVERY * (at + 1)).saturating_sub(begin.elapsed()));
    }
    Ok(())
}
