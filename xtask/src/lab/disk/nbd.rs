//! The words of the NBD protocol, between bytes and what they mean: the fixed newstyle handshake, requests and replies.
//! Nothing here reads or writes a socket.
//!
//! Constants and layouts are those of the protocol's document, doc/proto.md of github.com/NetworkBlockDevice/nbd, and
//! go by its names. All numbers are big-endian. What QEMU asks for beyond that (meta contexts) is declined, which the
//! document demands of a server that does not know an option.
//!
//! A reply is sent in two chunks, though one would do. QEMU's client (7.2 was traced, and newer code reads the same)
//! holds a request that is complete back while another one waits for the next message: behind a slow disk that is as
//! long as a request takes, and of 4 requests in flight the disk sees 2. The second chunk is the next message.

use anyhow::{Context, Result, bail, ensure};

const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

// Handshake flags; those of the client have the same values.
const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
const FLAG_NO_ZEROES: u16 = 1 << 1;

const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_LIST: u32 = 3;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
const OPT_STRUCTURED_REPLY: u32 = 8;

const REP_ACK: u32 = 1;
const REP_SERVER: u32 = 2;
const REP_INFO: u32 = 3;
const REP_ERR_UNSUP: u32 = (1 << 31) + 1;

const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES.
const TRANSMISSION_FLAGS: u16 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6;

const CMD_READ: u16 = 0;
const CMD_WRITE: u16 = 1;
const CMD_DISC: u16 = 2;
const CMD_FLUSH: u16 = 3;
const CMD_TRIM: u16 = 4;
const CMD_WRITE_ZEROES: u16 = 6;

const CMD_FLAG_FUA: u16 = 1 << 0;

const REPLY_FLAG_DONE: u16 = 1 << 0;

const REPLY_TYPE_NONE: u16 = 0;
const REPLY_TYPE_OFFSET_DATA: u16 = 1;
const REPLY_TYPE_OFFSET_HOLE: u16 = 2;
const REPLY_TYPE_ERROR: u16 = (1 << 15) + 1;

/// The smallest block, the preferred one, and the most that one request may carry.
const BLOCK_SIZES: [u32; 3] = [512, 4096, PAYLOAD_BYTES_MAX];

/// The most data that a request may ask for or carry.
pub(super) const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// An option holds a name and a few numbers; the document allows a name of 4096 bytes.
const OPTION_BYTES_MAX: u32 = 8192;

pub(super) const CLIENT_FLAGS_BYTES: usize = 4;
pub(super) const OPTION_HEAD_BYTES: usize = 16;
pub(super) const REQUEST_BYTES: usize = 28;

/// What the server says first.
pub(super) fn render_greeting() -> Vec<u8> {
    let flags = FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES;
    [&NBDMAGIC.to_be_bytes()[..], &IHAVEOPT.to_be_bytes(), &flags.to_be_bytes()].concat()
}

/// What the client says to it: whether it goes without 124 zeros after an export's flags.
pub(super) fn parse_no_zeroes(bytes: [u8; CLIENT_FLAGS_BYTES]) -> Result<bool> {
    let flags = u32::from_be_bytes(bytes);
    ensure!(flags & u32::from(FLAG_FIXED_NEWSTYLE) != 0, "the client's flags {flags:#x} are not fixed newstyle");
    let unknown = flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    ensure!(unknown == 0, "the client has unknown flags {unknown:#x}");
    Ok(flags & u32::from(FLAG_NO_ZEROES) != 0)
}

/// Which option the client sends, and how many bytes of data come with it.
pub(super) fn parse_option_head(bytes: &[u8; OPTION_HEAD_BYTES]) -> Result<(u32, u32)> {
    let mut fields = Fields(bytes);
    let magic = u64::from_be_bytes(fields.take("an option's magic")?);
    ensure!(magic == IHAVEOPT, "an option begins with {magic:#x}, not with {IHAVEOPT:#x}");
    let option = u32::from_be_bytes(fields.take("an option")?);
    let length = u32::from_be_bytes(fields.take("an option's length")?);
    ensure!(length <= OPTION_BYTES_MAX, "option {option} has {length} bytes, {OPTION_BYTES_MAX} are the most");
    Ok((option, length))
}

/// What the server answers to an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
}

/// What follows after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Options,
    /// The same, and replies will be structured.
    StructuredReplies,
    Transmission,
    End,
}

/// The answer to an option. The disk is the only export, and has any name that the client calls it by.
pub(super) fn answer(option: u32, disk_bytes: u64, no_zeroes: bool) -> Answer {
    let reply = |kind, data: &[u8]| render_option_reply(option, kind, data);
    let ack = || reply(REP_ACK, &[]);
    let export = [&disk_bytes.to_be_bytes()[..], &TRANSMISSION_FLAGS.to_be_bytes()].concat();
    let (bytes, then) = match option {
        OPT_EXPORT_NAME if no_zeroes => (export, Then::Transmission),
        OPT_EXPORT_NAME => ([&export[..], &[0; 124]].concat(), Then::Transmission),
        OPT_ABORT => (ack(), Then::End),
        OPT_STRUCTURED_REPLY => (ack(), Then::StructuredReplies),
        OPT_LIST => ([reply(REP_SERVER, &0_u32.to_be_bytes()), ack()].concat(), Then::Options),
        OPT_INFO | OPT_GO => {
            let size = [&INFO_EXPORT.to_be_bytes()[..], &export].concat();
            let blocks = [&INFO_BLOCK_SIZE.to_be_bytes()[..], &BLOCK_SIZES.map(u32::to_be_bytes).concat()].concat();
            let then = if option == OPT_GO { Then::Transmission } else { Then::Options };
            ([reply(REP_INFO, &size), reply(REP_INFO, &blocks), ack()].concat(), then)
        }
        _ => (reply(REP_ERR_UNSUP, &[]), Then::Options),
    };
    Answer { bytes, then }
}

fn render_option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let head = [option, kind, length].map(u32::to_be_bytes).concat();
    [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &head, data].concat()
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    /// One that the server has not offered.
    Other(u16),
}

/// A request. The data of a write follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) command: Command,
    /// Whether the data must be durable when the request is complete.
    pub(super) fua: bool,
    /// What the reply is known by. Older texts call it handle.
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

impl Request {
    pub(super) fn parse(bytes: &[u8; REQUEST_BYTES]) -> Result<Self> {
        let mut fields = Fields(bytes);
        let magic = u32::from_be_bytes(fields.take("a request's magic")?);
        ensure!(magic == REQUEST_MAGIC, "a request begins with {magic:#x}, not with {REQUEST_MAGIC:#x}");
        let flags = u16::from_be_bytes(fields.take("a request's flags")?);
        let command = match u16::from_be_bytes(fields.take("a request's command")?) {
            CMD_READ => Command::Read,
            CMD_WRITE => Command::Write,
            CMD_DISC => Command::Disconnect,
            CMD_FLUSH => Command::Flush,
            CMD_TRIM => Command::Trim,
            CMD_WRITE_ZEROES => Command::WriteZeroes,
            other => Command::Other(other),
        };
        let cookie = u64::from_be_bytes(fields.take("a request's cookie")?);
        let offset = u64::from_be_bytes(fields.take("a request's offset")?);
        let bytes = u32::from_be_bytes(fields.take("a request's length")?);
        // Nobody could tell where the data of such a write ends and the next request begins but by reading it all.
        if command == Command::Write && bytes > PAYLOAD_BYTES_MAX {
            bail!("a write of {bytes} bytes, {PAYLOAD_BYTES_MAX} are the most");
        }
        Ok(Self { command, fua: flags & CMD_FLAG_FUA != 0, cookie, offset, bytes })
    }
}

/// Why a request fails, by the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The store failed.
    Io,
    /// Outside the disk, too much at once, or an unknown command.
    Invalid,
}

/// How the client wants to be replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replies {
    Simple,
    Structured,
}

/// The reply to a request, with the data of a read.
pub(super) fn render_reply(replies: Replies, request: &Request, done: Result<&[u8], Refusal>) -> Vec<u8> {
    let errno: u32 = match done {
        Ok(_) => 0,
        Err(Refusal::Io) => 5,
        Err(Refusal::Invalid) => 22,
    };
    let chunk = |flags, kind, payload: &[&[u8]]| render_chunk(flags, kind, request.cookie, &payload.concat());
    let first = match (replies, done) {
        (Replies::Simple, _) => {
            let head = [SIMPLE_REPLY_MAGIC, errno].map(u32::to_be_bytes).concat();
            return [&head[..], &request.cookie.to_be_bytes(), done.unwrap_or_default()].concat();
        }
        (_, Err(_)) => chunk(0, REPLY_TYPE_ERROR, &[&errno.to_be_bytes(), &0_u16.to_be_bytes()]),
        (_, Ok(data)) if request.command == Command::Read => {
            chunk(0, REPLY_TYPE_OFFSET_DATA, &[&request.offset.to_be_bytes(), data])
        }
        // The document has no first chunk for a request without data. QEMU skips an empty one of any kind but NONE.
        _ => chunk(0, REPLY_TYPE_OFFSET_HOLE, &[]),
    };
    [first, chunk(REPLY_FLAG_DONE, REPLY_TYPE_NONE, &[])].concat()
}

fn render_chunk(flags: u16, kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let head = [flags, kind].map(u16::to_be_bytes).concat();
    let magic = STRUCTURED_REPLY_MAGIC.to_be_bytes();
    [&magic[..], &head, &cookie.to_be_bytes(), &length.to_be_bytes(), payload].concat()
}

/// Takes a message apart from its start on.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().with_context(|| format!("the message ends before {what}"))?;
        self.0 = rest;
        Ok(*field)
    }
}

#[cfg(test)]
pub(super) mod client;

#[cfg(test)]
mod tests;
