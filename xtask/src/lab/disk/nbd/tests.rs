//! Both directions of each message, and what is refused.

use super::*;

const DISK: u64 = 0x1234_5678_9000;

#[test]
fn the_greeting_is_what_the_document_spells_out() {
    assert_eq!(render_greeting(), *b"NBDMAGICIHAVEOPT\x00\x03");
}

#[test]
fn a_client_of_another_handshake_is_refused() {
    assert!(parse_no_zeroes([0, 0, 0, 3]).unwrap());
    assert!(!parse_no_zeroes([0, 0, 0, 1]).unwrap());
    for (flags, named) in [([0, 0, 0, 2], "newstyle"), ([0, 0, 0, 7], "unknown flags 0x4")] {
        let refused = parse_no_zeroes(flags).unwrap_err().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}

#[test]
fn an_option_head_is_read_back_and_a_false_one_named() {
    let head = |bytes: &[u8]| parse_option_head(bytes.first_chunk().unwrap());
    let option = client::render_option(OPT_GO, b"data");
    assert_eq!(head(&option).unwrap(), (OPT_GO, 4));
    let refused = head(b"IHAVENOTsomething").unwrap_err().to_string();
    assert!(refused.contains("0x494841564e4f54") || refused.contains("begins with"), "{refused}");
    let refused = head(&client::render_option(9, &[0; 8193])).unwrap_err().to_string();
    assert_eq!(refused, "option 9 has 8193 bytes, 8192 are the most");
}

#[test]
fn go_tells_the_size_and_the_blocks_and_begins_the_transmission() {
    let answer = answer(OPT_GO, DISK, true);
    let (kind, size, rest) = client::parse_option_reply(OPT_GO, &answer.bytes);
    assert_eq!((kind, size), (REP_INFO, &b"\0\0\0\0\x12\x34\x56\x78\x90\x00\x00\x6d"[..]));
    let (kind, blocks, rest) = client::parse_option_reply(OPT_GO, rest);
    assert_eq!((kind, blocks), (REP_INFO, &b"\0\x03\0\0\x02\0\0\0\x10\0\x02\0\0\0"[..]));
    assert_eq!(client::parse_option_reply(OPT_GO, rest), (REP_ACK, &[][..], &[][..]));
    assert_eq!(answer.then, Then::Transmission);
}

#[test]
fn each_other_option_has_its_answer() {
    assert_eq!(answer(OPT_EXPORT_NAME, DISK, true).bytes.len(), 10);
    assert_eq!(answer(OPT_EXPORT_NAME, DISK, false).bytes.len(), 134);
    assert_eq!(answer(OPT_INFO, DISK, true).then, Then::Options);
    assert_eq!(answer(OPT_ABORT, DISK, true).then, Then::End);
    assert_eq!(answer(OPT_STRUCTURED_REPLY, DISK, true).then, Then::StructuredReplies);
    let list = answer(OPT_LIST, DISK, true);
    let (kind, name, rest) = client::parse_option_reply(OPT_LIST, &list.bytes);
    assert_eq!((kind, name), (REP_SERVER, &[0; 4][..]));
    assert_eq!(client::parse_option_reply(OPT_LIST, rest).0, REP_ACK);
    for option in [5, 9, 10, 99] {
        let unsupported = answer(option, DISK, true);
        assert_eq!(client::parse_option_reply(option, &unsupported.bytes), (REP_ERR_UNSUP, &[][..], &[][..]));
        assert_eq!(unsupported.then, Then::Options);
    }
}

#[test]
fn each_request_is_read_back() {
    use Command::{Disconnect, Flush, Other, Read, Trim, Write, WriteZeroes};
    for command in [Read, Write, Disconnect, Flush, Trim, WriteZeroes, Other(5), Other(99)] {
        for fua in [false, true] {
            let request = Request { command, fua, cookie: 1 << 60, offset: 1 << 50, bytes: PAYLOAD_BYTES_MAX };
            assert_eq!(Request::parse(&client::render_request(&request)).unwrap(), request);
        }
    }
}

#[test]
fn a_false_request_is_named() {
    let bytes = client::render_request(&Request {
        command: Command::Write,
        fua: false,
        cookie: 0,
        offset: 0,
        bytes: PAYLOAD_BYTES_MAX + 1,
    });
    let refused = Request::parse(&bytes).unwrap_err().to_string();
    assert_eq!(refused, "a write of 33554433 bytes, 33554432 are the most");
    let refused = Request::parse(&[1; 28]).unwrap_err().to_string();
    assert_eq!(refused, "a request begins with 0x1010101, not with 0x25609513");
}

const READ: Request = Request { command: Command::Read, fua: false, cookie: 77, offset: 512, bytes: 3 };

#[test]
fn a_simple_reply_is_read_back() {
    for (done, errno) in [(Ok(&b"abc"[..]), 0), (Err(Refusal::Io), 5), (Err(Refusal::Invalid), 22)] {
        let reply = render_reply(Replies::Simple, &READ, done);
        let (head, data) = reply.split_first_chunk().unwrap();
        assert_eq!(client::parse_reply_head(*head), (77, errno));
        assert_eq!(data, done.unwrap_or_default());
    }
}

#[test]
fn a_structured_reply_has_two_chunks_and_the_second_says_done() {
    let done = client::Chunk { is_done: true, kind: REPLY_TYPE_NONE, cookie: 77, payload: vec![] };
    let first = |command, done| {
        let reply = render_reply(Replies::Structured, &Request { command, ..READ }, done);
        client::parse_chunks(&reply)
    };
    let chunk = |kind, payload: &[u8]| client::Chunk { is_done: false, kind, payload: payload.to_vec(), ..done };
    let data = chunk(REPLY_TYPE_OFFSET_DATA, b"\0\0\0\0\0\0\x02\0abc");
    assert_eq!(first(Command::Read, Ok(b"abc")), [data, done.clone()]);
    assert_eq!(first(Command::Write, Ok(&[])), [chunk(REPLY_TYPE_OFFSET_HOLE, &[]), done.clone()]);
    let error = chunk(REPLY_TYPE_ERROR, &[0, 0, 0, 22, 0, 0]);
    assert_eq!(first(Command::Read, Err(Refusal::Invalid)), [error, done.clone()]);
}
