//! Any bytes through every parser of block devices: diskstats, schedulers, in flight, wbt and single values.

#![no_main]

#[path = "../../crates/kfile/tests/formats/mod.rs"]
mod formats;

use formats::{FORMATS, Family};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for format in FORMATS.iter().filter(|format| format.family == Family::Devices) {
        (format.read)(bytes);
    }
});
