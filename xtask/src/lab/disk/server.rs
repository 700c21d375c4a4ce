//! The two threads of a disk: one takes requests in and does their work at once, one replies when each is due.
//!
//! The work is done on arrival and only the reply waits. So a reader sees a write that is not complete yet, as it may
//! on any disk, and no request ever waits for the data of another.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::thread::set_current_timer_slack;

use super::in_flight::{InFlight, Work};
use super::model::{Model, Op};
use super::nbd::{self, Command, Refusal, Replies, Request, Then};
use super::store::Store;
use super::{Counters, Order};

/// What both threads and the disk's owner share.
#[derive(Debug)]
pub(super) struct Server {
    name: String,
    stream: UnixStream,
    start: Instant,
    state: Mutex<State>,
    /// That a request arrived which is due first, an order came, or the connection is closed.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    in_flight: InFlight,
    is_closed: bool,
}

impl Server {
    pub(super) fn new(name: &str, stream: UnixStream, model: &Model) -> Self {
        let state = State { in_flight: InFlight::new(model), is_closed: false };
        Self { name: name.to_owned(), stream, start: Instant::now(), state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn order(&self, order: Order) {
        let mut state = self.lock();
        state.in_flight.order(order);
        let is_lost = state.in_flight.is_lost();
        drop(state);
        self.changed.notify_all();
        if is_lost {
            self.close();
        }
    }

    pub(super) fn counters(&self) -> Counters {
        self.lock().in_flight.counters(self.start.elapsed())
    }

    /// Closes the connection, which ends both threads.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
        // Fails only where the other end closed it already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Speaks with the client until either end closes the connection. The first thread.
    pub(super) fn receive(&self, store: Store) {
        let received = self.try_receive(store);
        self.finish(received);
    }

    /// Replies to each request when it is due. The second thread.
    pub(super) fn reply(&self) {
        let replied = self.try_reply();
        self.finish(replied);
    }

    // A guest that is switched off, and a disk that is lost, are no failure.
    fn finish(&self, ended: Result<()>) {
        if let Err(error) = ended
            && !self.lock().is_closed
            && !error.downcast_ref::<io::Error>().is_some_and(|error| is_closed(error.kind()))
        {
            eprintln!("xtask: disk {}: {error:#}", self.name);
        }
        self.close();
    }

    fn try_receive(&self, mut store: Store) -> Result<()> {
        let mut reader = BufReader::with_capacity(64 << 10, &self.stream);
        let Some(replies) = shake_hands(&mut reader, &self.stream, store.bytes())? else { return Ok(()) };
        loop {
            let request = Request::parse(&take(&mut reader)?)?;
            let data = match request.command {
                Command::Write => take_vec(&mut reader, request.bytes)?,
                Command::Disconnect => return Ok(()),
                _ => Vec::new(),
            };
            let done = self.perform(&mut store, &request, &data);
            let work = done.is_ok().then(|| work(&request)).flatten();
            let message = nbd::render_reply(replies, &request, done.as_deref().map_err(|refusal| *refusal));
            let mut state = self.lock();
            let is_next = state.in_flight.arrive(self.start.elapsed(), work, message);
            drop(state);
            if is_next {
                self.changed.notify_all();
            }
        }
    }

    /// Does what is asked for. Gives the data of a read.
    fn perform(&self, store: &mut Store, request: &Request, data: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (offset, bytes) = (request.offset, u64::from(request.bytes));
        match request.command {
            Command::Flush => Ok(Vec::new()),
            Command::Disconnect | Command::Other(_) => Err(Refusal::Invalid),
            _ if !store.holds(offset, bytes) => Err(Refusal::Invalid),
            Command::Read if request.bytes > nbd::PAYLOAD_BYTES_MAX => Err(Refusal::Invalid),
            Command::Read => self.tell(read(store, offset, request.bytes)),
            Command::Write => self.tell(store.write(offset, data).map(|()| Vec::new())),
            Command::Trim | Command::WriteZeroes => self.tell(store.zero(offset, bytes).map(|()| Vec::new())),
        }
    }

    // The guest sees EIO; why is for whoever runs it.
    fn tell<T>(&self, done: io::Result<T>) -> Result<T, Refusal> {
        done.map_err(|error| {
            eprintln!("xtask: disk {}: {error}", self.name);
            Refusal::Io
        })
    }

    fn try_reply(&self) -> Result<()> {
        // By default a wait may end 50 us late, a tenth of what a request takes.
        set_current_timer_slack(Some(NonZeroU64::MIN)).context("set the timer slack")?;
        let mut state = self.lock();
        while !state.is_closed {
            let now = self.start.elapsed();
            if let Some(message) = state.in_flight.take_due(now) {
                drop(state);
                (&self.stream).write_all(&message)?;
                state = self.lock();
                continue;
            }
            state = match state.in_flight.wait(now) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(wait) => self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Agrees with the client on the disk and on the replies; `None` where no requests follow.
fn shake_hands(reader: &mut impl Read, mut writer: impl Write, disk_bytes: u64) -> Result<Option<Replies>> {
    writer.write_all(&nbd::render_greeting())?;
    let no_zeroes = nbd::parse_no_zeroes(take(reader)?)?;
    let mut replies = Replies::Simple;
    loop {
        let (option, length) = nbd::parse_option_head(&take(reader)?)?;
        take_vec(reader, length)?;
        let answer = nbd::answer(option, disk_bytes, no_zeroes);
        writer.write_all(&answer.bytes)?;
        match answer.then {
            Then::Options => {}
            Then::StructuredReplies => replies = Replies::Structured,
            Then::Transmission => return Ok(Some(replies)),
            Then::End => return Ok(None),
        }
    }
}

fn read(store: &Store, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
    let mut data = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    store.read(offset, &mut data)?;
    Ok(data)
}

/// What a request costs; `None` for one that costs and counts nothing.
fn work(request: &Request) -> Option<Work> {
    let bytes = u64::from(request.bytes);
    match request.command {
        Command::Read => Some(Work { op: Op::Read, bytes }),
        Command::Write if request.fua => Some(Work { op: Op::WriteThrough, bytes }),
        Command::Write => Some(Work { op: Op::Write, bytes }),
        Command::Flush => Some(Work { op: Op::Flush, bytes: 0 }),
        Command::Disconnect | Command::Trim | Command::WriteZeroes | Command::Other(_) => None,
    }
}

fn take<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn take_vec(reader: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}
