//! A disk as its client sees it, over the socket.

use std::io::{ErrorKind, Read, Write};

use super::nbd::client;
use super::nbd::{Command, Request};
use super::*;

const DISK_BYTES: u64 = 1 << 20;

/// The other end: what QEMU does.
struct Client(UnixStream);

impl Client {
    /// With replies of the simple kind.
    fn connect(end: OwnedFd) -> Self {
        Self::connect_asking(end, &[])
    }

    /// Asks for options without data, then for the disk.
    fn connect_asking(end: OwnedFd, options: &[(u32, u32)]) -> Self {
        let mut client = Self(end.into());
        assert_eq!(client.take(18), b"NBDMAGICIHAVEOPT\x00\x03");
        client.send(&client::FLAGS);
        for &(option, answer) in options {
            client.send(&client::render_option(option, &[]));
            assert_eq!(client::parse_option_reply(option, &client.take(20)).0, answer);
        }
        client.send(&client::render_option(client::GO, b"\0\0\0\0\0\x01\0\x03"));
        let reply = client.take(32 + 34 + 20);
        let (_, size, _) = client::parse_option_reply(client::GO, &reply);
        assert_eq!(size[2..10], DISK_BYTES.to_be_bytes());
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn ask(&mut self, command: Command, cookie: u64, offset: u64, bytes: u32) {
        let request = Request { command, fua: false, cookie, offset, bytes };
        self.send(&client::render_request(&request));
    }

    /// The cookie and the error of the next reply.
    fn reply(&mut self) -> (u64, u32) {
        client::parse_reply_head(self.take(client::REPLY_HEAD_BYTES).try_into().unwrap())
    }
}

/// A disk where nothing takes time.
fn disk() -> (Disk, Client) {
    let (disk, end) = serve();
    (disk, Client::connect(end))
}

fn serve() -> (Disk, OwnedFd) {
    let model = Model { read_usec: 0, write_usec: 0, flush_usec: 0, iops: 0, bytes_per_sec: 0, ..Model::default() };
    Disk::serve("test", Content { base: None, bytes: DISK_BYTES }, &model).unwrap()
}

#[test]
fn what_is_written_is_read_back_and_counted() {
    let (disk, mut client) = disk();
    client.ask(Command::Write, 1, 4000, 600);
    client.send(&[9; 600]);
    assert_eq!(client.reply(), (1, 0));
    client.ask(Command::Flush, 2, 0, 0);
    assert_eq!(client.reply(), (2, 0));
    client.ask(Command::Read, 3, 4096, 1000);
    assert_eq!(client.reply(), (3, 0));
    assert_eq!(client.take(1000), [vec![9; 504], vec![0; 496]].concat());
    let counters = disk.counters();
    assert_eq!((counters.reads, counters.writes, counters.flushes), (1, 1, 1));
    assert_eq!((counters.read_bytes, counters.write_bytes), (1000, 600));
}

#[test]
fn a_client_that_asks_as_qemu_does_gets_chunks() {
    let (_disk, end) = serve();
    let options = [(client::STRUCTURED_REPLY, client::ACK), (client::META_CONTEXT, client::UNSUPPORTED)];
    let mut client = Client::connect_asking(end, &options);
    client.ask(Command::Write, 1, 0, 3);
    client.send(b"abc");
    let written = client::parse_chunks(&client.take(2 * client::CHUNK_HEAD_BYTES));
    assert!(written.iter().all(|chunk| chunk.cookie == 1 && chunk.payload.is_empty()) && written[1].is_done);
    client.ask(Command::Read, 2, 1, 2);
    let read = client::parse_chunks(&client.take(2 * client::CHUNK_HEAD_BYTES + 10));
    assert_eq!((&read[0].payload[..], read[1].is_done), (&b"\0\0\0\0\0\0\0\x01bc"[..], true));
}

#[test]
fn zeros_are_written_and_counted_as_nothing() {
    let (disk, mut client) = disk();
    client.ask(Command::Write, 1, 0, 1024);
    client.send(&[9; 1024]);
    client.ask(Command::Trim, 2, 0, 512);
    client.ask(Command::WriteZeroes, 3, 600, 24);
    let mut cookies = [client.reply(), client.reply(), client.reply()];
    cookies.sort_unstable();
    assert_eq!(cookies, [(1, 0), (2, 0), (3, 0)]);
    client.ask(Command::Read, 4, 0, 1024);
    assert_eq!(client.reply(), (4, 0));
    assert_eq!(client.take(1024), [vec![0; 512], vec![9; 88], vec![0; 24], vec![9; 400]].concat());
    assert_eq!(disk.counters().writes, 1);
}

#[test]
fn a_request_outside_the_disk_fails_and_the_next_one_does_not() {
    let (disk, mut client) = disk();
    client.ask(Command::Write, 1, DISK_BYTES - 512, 1024);
    client.send(&[9; 1024]);
    assert_eq!(client.reply(), (1, 22));
    client.ask(Command::Read, 2, DISK_BYTES, 512);
    assert_eq!(client.reply(), (2, 22));
    client.ask(Command::Other(7), 3, 0, 512);
    assert_eq!(client.reply(), (3, 22));
    client.ask(Command::Flush, 4, 0, 0);
    assert_eq!(client.reply(), (4, 0));
    assert_eq!(disk.counters().writes, 0);
}

#[test]
fn a_disk_that_hangs_replies_once_it_serves_again() {
    let (disk, mut client) = disk();
    disk.order(Order::Hang);
    client.ask(Command::Flush, 1, 0, 0);
    client.0.set_nonblocking(true).unwrap();
    assert_eq!(client.0.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.0.set_nonblocking(false).unwrap();
    assert_eq!(disk.counters().flushes, 0);
    disk.order(Order::Serve);
    assert_eq!(client.reply(), (1, 0));
    assert_eq!(disk.counters().flushes, 1);
}

#[test]
fn a_lost_disk_closes_the_connection_for_good() {
    let (disk, mut client) = disk();
    disk.order(Order::Hang);
    client.ask(Command::Flush, 1, 0, 0);
    disk.order(Order::Lose);
    disk.order(Order::Serve);
    assert!(matches!(client.0.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn a_disk_ends_whoever_closes_first() {
    let (disk, client) = disk();
    drop(client);
    drop(disk);
    let (disk, mut client) = self::disk();
    drop(disk);
    assert!(matches!(client.0.read(&mut [0]), Ok(0) | Err(_)));
}

#[test]
fn orders_are_spelled_as_shown() {
    for (text, order) in [("serve", Order::Serve), ("fast", Order::Fast), ("hang", Order::Hang), ("lose", Order::Lose)]
    {
        assert_eq!(text.parse::<Order>().unwrap(), order);
    }
    assert_eq!("slow 12".parse::<Order>().unwrap(), Order::Slow(NonZeroU32::new(12).unwrap()));
    for text in ["", "slow", "slow 0", "slow -1", "hang 3", "Serve"] {
        assert!(text.parse::<Order>().unwrap_err().to_string().contains(text), "{text:?}");
    }
}
