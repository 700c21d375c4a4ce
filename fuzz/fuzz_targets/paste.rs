//! Any bytes as a paste: every format of every tool.

#![no_main]

use quell_paste::Reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::default();
    bytes.split_inclusive(|&b| b == b'\n').for_each(|line| reader.line(line));
    std::hint::black_box(reader.finish());
});
