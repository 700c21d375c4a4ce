//! A disk of the guest that behaves as its model says: a server of the NBD protocol within this process, at the other
//! end of a socket that QEMU inherits.
//!
//! QEMU's own throttling is no disk: it queues reads and writes apart, so that a hog of writes disturbs no reader. Here
//! `model` says when each request is complete, `in_flight` holds its reply until then, `store` has the data, `nbd` the
//! words, and `server` the threads. Nothing is on a file system and nothing listens: the disk ends with its owner.

mod in_flight;
mod model;
mod nbd;
mod server;
mod store;

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};

pub(crate) use self::model::Model;
pub(crate) use self::store::Content;

use self::model::Op;
use self::server::Server;
use self::store::Store;

/// A disk that is served; dropped, its connection is closed and its threads have ended.
#[derive(Debug)]
pub(crate) struct Disk {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

impl Disk {
    /// Serves a disk. The name is for messages.
    ///
    /// The descriptor is QEMU's end, for `-blockdev driver=nbd,server.type=fd,server.str=N`. It closes on exec until
    /// the caller changes that, and the caller must drop its own copy once QEMU runs: as long as one is open, the disk
    /// does not notice that QEMU ended.
    pub(crate) fn serve(name: &str, content: Content, model: &Model) -> Result<(Self, OwnedFd)> {
        let store = Store::new(name, content).with_context(|| format!("disk {name}"))?;
        let (ours, theirs) = UnixStream::pair().context("make a pair of sockets")?;
        let server = Arc::new(Server::new(name, ours, model));
        let mut disk = Self { server, threads: Vec::new() };
        disk.start(format!("{name}-receive"), |server| server.receive(store))?;
        disk.start(format!("{name}-reply"), Server::reply)?;
        Ok((disk, theirs.into()))
    }

    /// Follows an order from now on; what it does to the requests in flight is the order's own.
    pub(crate) fn order(&self, order: Order) {
        self.server.order(order);
    }

    /// What the disk did since its start. For rates, two of them are subtracted.
    pub(crate) fn counters(&self) -> Counters {
        self.server.counters()
    }

    fn start(&mut self, name: String, run: impl FnOnce(&Server) + Send + 'static) -> Result<()> {
        let server = Arc::clone(&self.server);
        let thread = Builder::new().name(name).spawn(move || run(&server)).context("start a thread of the disk")?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.server.close();
        for thread in self.threads.drain(..) {
            // A panic has printed itself.
            let _ = thread.join();
        }
    }
}

/// What a disk is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As the model says; a disk does so from its start on. What piled up while it hung is complete at once, save what
    /// is not due yet.
    Serve,
    /// Everything at once, and uncounted: for preparing the guest. Whatever follows finds the disk as new: nothing
    /// waits, the cache is empty, and the burst credit full.
    Fast,
    /// Requests are taken and nothing is complete, until another order.
    Hang,
    /// The connection is closed: the guest sees I/O errors, and no later order changes that.
    Lose,
    /// As the model says, times this factor: latency, service, transfer and flush of the requests that arrive from now
    /// on.
    Slow(NonZeroU32),
}

/// `serve`, `fast`, `hang`, `lose`, or `slow N`.
impl FromStr for Order {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["serve"] => Self::Serve,
            ["fast"] => Self::Fast,
            ["hang"] => Self::Hang,
            ["lose"] => Self::Lose,
            ["slow", factor] => Self::Slow(factor.parse().with_context(|| format!("{text:?}: how many times"))?),
            _ => bail!("{text:?} is not an order: serve, fast, hang, lose, slow N"),
        })
    }
}

/// What a disk did since its start. A request is counted when its reply goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// When they were read, since the disk's start.
    pub(crate) at: Duration,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// How long all reads together were in the disk, from arrival to reply.
    pub(crate) read_time: Duration,
    /// The same of the writes.
    pub(crate) write_time: Duration,
    /// The same of the flushes.
    pub(crate) flush_time: Duration,
    /// Requests that have arrived and are not complete, at this moment.
    pub(crate) in_flight: usize,
}

impl Counters {
    fn count(&mut self, op: Op, bytes: u64, time: Duration) {
        match op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
                self.read_time += time;
            }
            Op::Write | Op::WriteThrough => {
                self.writes += 1;
                self.write_bytes += bytes;
                self.write_time += time;
            }
            Op::Flush => {
                self.flushes += 1;
                self.flush_time += time;
            }
        }
    }
}

#[cfg(test)]
mod tests;
