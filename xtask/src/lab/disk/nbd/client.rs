//! The client's side of the protocol, for the tests.

use super::*;

pub(in super::super) const STRUCTURED_REPLY: u32 = OPT_STRUCTURED_REPLY;
pub(in super::super) const META_CONTEXT: u32 = 10;
pub(in super::super) const ACK: u32 = REP_ACK;
pub(in super::super) const REPLY_HEAD_BYTES: usize = 16;
pub(in super::super) const CHUNK_HEAD_BYTES: usize = 20;
pub(in super::super) const GO: u32 = OPT_GO;
pub(in super::super) const UNSUPPORTED: u32 = REP_ERR_UNSUP;
pub(in super::super) const FLAGS: [u8; 4] = [0, 0, 0, 3];

pub(in super::super) fn render_option(option: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// The kind of the first reply to an option, its data, and the bytes after it.
pub(in super::super) fn parse_option_reply(option: u32, bytes: &[u8]) -> (u32, &[u8], &[u8]) {
    let mut fields = Fields(bytes);
    assert_eq!(u64::from_be_bytes(fields.take("magic").unwrap()), OPTION_REPLY_MAGIC);
    assert_eq!(u32::from_be_bytes(fields.take("option").unwrap()), option);
    let kind = u32::from_be_bytes(fields.take("kind").unwrap());
    let length = usize::try_from(u32::from_be_bytes(fields.take("length").unwrap())).unwrap();
    let (data, rest) = fields.0.split_at(length);
    (kind, data, rest)
}

pub(in super::super) fn render_request(request: &Request) -> [u8; REQUEST_BYTES] {
    let command = match request.command {
        Command::Read => CMD_READ,
        Command::Write => CMD_WRITE,
        Command::Disconnect => CMD_DISC,
        Command::Flush => CMD_FLUSH,
        Command::Trim => CMD_TRIM,
        Command::WriteZeroes => CMD_WRITE_ZEROES,
        Command::Other(command) => command,
    };
    let head = [&REQUEST_MAGIC.to_be_bytes()[..], &u16::from(request.fua).to_be_bytes(), &command.to_be_bytes()];
    let rest = [&request.cookie.to_be_bytes()[..], &request.offset.to_be_bytes(), &request.bytes.to_be_bytes()];
    [head, rest].concat().concat().try_into().unwrap()
}

/// The cookie of a reply and its error.
pub(in super::super) fn parse_reply_head(bytes: [u8; REPLY_HEAD_BYTES]) -> (u64, u32) {
    let mut fields = Fields(&bytes);
    assert_eq!(u32::from_be_bytes(fields.take("magic").unwrap()), SIMPLE_REPLY_MAGIC);
    let errno = u32::from_be_bytes(fields.take("error").unwrap());
    (u64::from_be_bytes(fields.take("cookie").unwrap()), errno)
}

/// A part of a structured reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Chunk {
    pub(in super::super) is_done: bool,
    pub(in super::super) kind: u16,
    pub(in super::super) cookie: u64,
    pub(in super::super) payload: Vec<u8>,
}

/// The head of a chunk, and how long its payload is.
pub(in super::super) fn parse_chunk_head(bytes: &[u8]) -> (Chunk, usize) {
    let mut fields = Fields(bytes);
    assert_eq!(u32::from_be_bytes(fields.take("magic").unwrap()), STRUCTURED_REPLY_MAGIC);
    let is_done = u16::from_be_bytes(fields.take("flags").unwrap()) == REPLY_FLAG_DONE;
    let kind = u16::from_be_bytes(fields.take("type").unwrap());
    let cookie = u64::from_be_bytes(fields.take("cookie").unwrap());
    let length = u32::from_be_bytes(fields.take("length").unwrap());
    (Chunk { is_done, kind, cookie, payload: vec![] }, usize::try_from(length).unwrap())
}

pub(in super::super) fn parse_chunks(mut bytes: &[u8]) -> Vec<Chunk> {
    let mut chunks = vec![];
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(CHUNK_HEAD_BYTES);
        let (mut chunk, length) = parse_chunk_head(head);
        let (payload, rest) = rest.split_at(length);
        chunk.payload = payload.to_vec();
        chunks.push(chunk);
        bytes = rest;
    }
    chunks
}
