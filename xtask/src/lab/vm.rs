//! One virtual machine, from its first line on the console to its results.
//!
//! QEMU gets all it needs as inherited descriptors: the initramfs and what is written to the disks live in memory, and it
//! dies with this process. So nothing is left behind, however the run ends. The guest speaks to the lab over a virtio
//! port: what it says on its console is for people.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

use super::disk::{Content, Counters, Disk, Model};
use super::scenario::Front;
use crate::interrupt::Interrupt;

/// A guest that has not said that it is ready after this time is taken as one that will not.
const BOOT_LIMIT: Duration = Duration::from_secs(45);

/// How often an interrupt is looked for.
const TICK: Duration = Duration::from_millis(200);

/// How long a guest that has failed may still say why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many lines of its console are told.
const CONSOLE_LINES: usize = 12;

/// A machine to start.
pub(crate) struct Spec<'a> {
    pub(crate) kernel: &'a Path,
    /// More words for the kernel's command line.
    pub(crate) kernel_args: &'a str,
    /// The archives that the kernel unpacks, one after the other.
    pub(crate) initramfs: &'a [&'a [u8]],
    pub(crate) disks: Vec<DiskOf<'a>>,
    /// How long the script may take.
    pub(crate) limit: Duration,
}

/// A disk of a machine.
pub(crate) struct DiskOf<'a> {
    pub(crate) name: &'a str,
    pub(crate) content: Content,
    pub(crate) model: &'a Model,
    /// More properties of QEMU's device.
    pub(crate) properties: &'a str,
}

/// How a machine ended.
pub(crate) enum Ended {
    /// The scenario ran to its end.
    Results(Results),
    /// This kernel cannot show the situation.
    Skipped(String),
    /// The guest never became ready.
    NotBooted(String),
    /// The guest, its script or a disk failed later.
    Broken(String),
}

/// What a scenario left.
pub(crate) struct Results {
    /// The guest's `/out`, as tar.
    pub(crate) archive: Vec<u8>,
    /// What each disk had counted when the watch began, and when it ended.
    pub(crate) watched: Option<[BTreeMap<String, Counters>; 2]>,
}

/// Starts a machine and waits for its end.
pub(crate) fn run(spec: Spec, interrupt: &Interrupt) -> Result<Ended> {
    let run_limit = spec.limit;
    let mut machine = Machine::start(spec)?;
    let mut since = Instant::now();
    let mut ready = false;
    let mut watched = [None, None];
    loop {
        interrupt.check()?;
        let limit = if ready { run_limit } else { BOOT_LIMIT };
        if since.elapsed() > limit {
            let what = if ready { "the scenario did not end in" } else { "the guest was not ready in" };
            return Ok(machine.gave_up(ready, &format!("{what} {} s", limit.as_secs())));
        }
        match machine.events.recv_timeout(TICK) {
            Ok(Event::Console(line)) => {
                let panicked = line.contains("Kernel panic");
                machine.hear(line);
                if panicked {
                    return Ok(machine.gave_up(ready, "the guest's kernel panicked"));
                }
            }
            Ok(Event::Word(word)) => match word {
                Word::Ready => (ready, since) = (true, Instant::now()),
                Word::Begin | Word::End | Word::Disk { .. } => match machine.heed(word) {
                    Ok(None) => {}
                    Ok(Some(counted)) if watched[0].is_none() => watched[0] = Some(counted),
                    Ok(Some(counted)) => watched[1] = Some(counted),
                    Err(error) => return Ok(machine.gave_up(true, &format!("{error:#}"))),
                },
                Word::Skip(why) => return Ok(Ended::Skipped(why)),
                Word::Broken(why) => return Ok(machine.gave_up(true, &why)),
                Word::Results(archive) => {
                    let [begin, end] = watched;
                    return Ok(Ended::Results(Results { archive, watched: begin.zip(end).map(<[_; 2]>::from) }));
                }
            },
            Ok(Event::BadWord(what)) => return Ok(machine.gave_up(ready, &what)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let status = machine.qemu.wait().context("wait for QEMU")?;
                return Ok(machine.gave_up(ready, &format!("QEMU ended before the results: {status}")));
            }
        }
    }
}

/// A running machine; dropping it ends it.
struct Machine {
    qemu: Child,
    port: UnixStream,
    disks: BTreeMap<String, Disk>,
    events: Receiver<Event>,
    /// The last that the guest printed.
    console: VecDeque<String>,
}

/// Something that a machine said.
enum Event {
    Console(String),
    Word(Word),
    BadWord(String),
}

/// A word of the guest to the lab.
enum Word {
    Ready,
    Begin,
    End,
    Disk { name: String, order: String },
    Skip(String),
    Broken(String),
    Results(Vec<u8>),
}

impl Machine {
    fn start(spec: Spec) -> Result<Self> {
        let (port, theirs) = UnixStream::pair().context("a socket for the port")?;
        let mut inherited = Inherited::default();
        let initramfs = inherited.add(memory("initramfs", spec.initramfs)?.into())?;
        let port_fd = inherited.add(theirs.into())?;
        let mut qemu = qemu(spec.kernel, spec.kernel_args, initramfs, port_fd);
        let mut disks = BTreeMap::new();
        for disk in spec.disks {
            let (served, socket) = Disk::serve(disk.name, disk.content, disk.model)?;
            attach(&mut qemu, disk.name, inherited.add(socket)?, disk.properties)?;
            disks.insert(disk.name.to_owned(), served);
        }
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let qemu = qemu.spawn().context("qemu-system-x86_64")?;
        drop(inherited);
        let (say, events) = channel();
        let mut machine = Self { qemu, port, disks, events, console: VecDeque::new() };
        let outputs = [machine.qemu.stdout.take().map(OwnedFd::from), machine.qemu.stderr.take().map(OwnedFd::from)];
        for output in outputs {
            let output = File::from(output.context("QEMU without an output")?);
            let say = say.clone();
            std::thread::spawn(move || console(output, &say));
        }
        let listener = machine.port.try_clone().context("the port")?;
        std::thread::spawn(move || listen(listener, &say));
        Ok(machine)
    }

    /// Does what the guest asks and answers it. Gives what the disks have counted, where it asks for that.
    fn heed(&mut self, word: Word) -> Result<Option<BTreeMap<String, Counters>>> {
        let counted = match word {
            Word::Disk { name, order } => {
                let disk =
                    self.disks.get(&name).with_context(|| format!("an order to disk {name}, which is not there"))?;
                disk.order(order.parse()?);
                None
            }
            _ => Some(self.disks.iter().map(|(name, disk)| (name.clone(), disk.counters())).collect()),
        };
        self.port.write_all(b"ok\n").context("answer the guest")?;
        Ok(counted)
    }

    /// Keeps the last lines of the console.
    fn hear(&mut self, line: String) {
        self.console.push_back(line);
        if self.console.len() > CONSOLE_LINES {
            self.console.pop_front();
        }
    }

    /// An end without results, with the last that the console said.
    fn gave_up(&mut self, ready: bool, why: &str) -> Ended {
        // What the guest said just before is still under way.
        let until = Instant::now() + LAST_WORDS;
        while let Ok(event) = self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Event::Console(line) = event {
                self.hear(line);
            }
        }
        let last = self.console.iter().map(|line| format!("\n    | {line}"));
        let why = format!("{why}{}", last.collect::<String>());
        if ready { Ended::Broken(why) } else { Ended::NotBooted(why) }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Its end is all that is wanted, and an error would mean that it has ended.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Descriptors that QEMU inherits under their numbers; ours are closed when it has been started.
#[derive(Default)]
struct Inherited(Vec<OwnedFd>);

impl Inherited {
    fn add(&mut self, fd: OwnedFd) -> Result<i32> {
        fcntl_setfd(&fd, FdFlags::empty()).context("let QEMU inherit a descriptor")?;
        let number = fd.as_raw_fd();
        self.0.push(fd);
        Ok(number)
    }
}

/// A file in memory that holds these parts.
fn memory(name: &str, parts: &[&[u8]]) -> Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).context("a file in memory")?);
    for part in parts {
        file.write_all(part).context("a file in memory")?;
    }
    Ok(file)
}

fn qemu(kernel: &Path, kernel_args: &str, initramfs: i32, port: i32) -> Command {
    // setpriv: QEMU is killed when this process ends, in whatever way.
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    // cx16=off: with it 6.12 panics at boot under QEMU 7.2's emulation.
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max,cx16=off", "-smp", "2", "-m", "2G"]);
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot"]);
    qemu.args(["-serial", "stdio", "-device", "virtio-serial-pci"]);
    qemu.arg("-chardev").arg(format!("socket,id=lab,fd={port}"));
    qemu.args(["-device", "virtserialport,chardev=lab,name=lab"]);
    qemu.arg("-kernel").arg(kernel).arg("-initrd").arg(format!("/proc/self/fd/{initramfs}"));
    // Drivers that are built in make devices of their own, which a scenario did not ask for.
    let own = "loop.max_loop=1 brd.rd_nr=0 null_blk.nr_devices=0 scsi_debug.add_host=0 zram.num_devices=0";
    qemu.arg("-append").arg(format!("console=ttyS0 quiet panic=-1 psi=1 {own} {kernel_args}"));
    qemu
}

/// Adds a disk whose server is at the other end of this socket.
fn attach(qemu: &mut Command, name: &str, socket: i32, properties: &str) -> Result<()> {
    qemu.arg("-blockdev").arg(format!("driver=nbd,node-name={name},server.type=fd,server.str={socket},export={name}"));
    let device = match Front::of(name)? {
        // Merged in QEMU, requests would not reach the disk as the guest counts them.
        Front::Virtio => "virtio-blk-pci,num-queues=1,request-merging=off",
        Front::Nvme => "nvme",
        Front::Scsi => {
            qemu.args(["-device", &format!("virtio-scsi-pci,id=bus-{name}")]);
            &format!("scsi-hd,bus=bus-{name}.0")
        }
    };
    let more = if properties.is_empty() { String::new() } else { format!(",{properties}") };
    qemu.arg("-device").arg(format!("{device},drive={name},serial=lab-{name}{more}"));
    Ok(())
}

/// Passes on what the guest prints, line by line.
fn console(output: File, say: &Sender<Event>) {
    for line in BufReader::new(output).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !line.is_empty() && say.send(Event::Console(line)).is_err() {
            return;
        }
    }
}

/// Passes on the guest's words.
fn listen(port: UnixStream, say: &Sender<Event>) {
    let mut port = BufReader::new(port);
    loop {
        let mut line = Vec::new();
        if !matches!(port.read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        let event = match word(String::from_utf8_lossy(&line).trim_end(), &mut port) {
            Ok(word) => Event::Word(word),
            Err(error) => Event::BadWord(format!("{error:#}")),
        };
        if say.send(event).is_err() {
            return;
        }
    }
}

/// Reads a line of the guest, and the bytes that follow it.
fn word(line: &str, port: &mut impl Read) -> Result<Word> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Ok(match word {
        "@ready" => Word::Ready,
        "@begin" => Word::Begin,
        "@end" => Word::End,
        "@skip" => Word::Skip(rest.into()),
        "@broken" => Word::Broken(rest.into()),
        "@disk" => {
            let (name, order) = rest.split_once(' ').with_context(|| format!("`{line}`: no order"))?;
            Word::Disk { name: name.into(), order: order.into() }
        }
        "@results" => {
            let bytes: u64 = rest.parse().with_context(|| format!("`{line}`: no size"))?;
            let mut archive = Vec::new();
            port.take(bytes).read_to_end(&mut archive).context("read the results")?;
            ensure!(
                u64::try_from(archive.len())? == bytes,
                "the results ended after {} of {bytes} bytes",
                archive.len()
            );
            Word::Results(archive)
        }
        _ => bail!("the guest said `{line}`, which is no word of the lab"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_words_are_read_and_torn_results_are_an_error() {
        assert!(matches!(word("@results 3", &mut &b"abcdef"[..]), Ok(Word::Results(bytes)) if bytes == b"abc"));
        assert!(word("@results 9", &mut &b"abc"[..]).is_err());
        assert!(matches!(word("@disk vda slow 4", &mut &b""[..]), Ok(Word::Disk { order, .. }) if order == "slow 4"));
        assert!(word("@disk vda", &mut &b""[..]).is_err() && word("hello", &mut &b""[..]).is_err());
    }
}
