//! What holds of every format, tried on real files, on real files damaged at random, and on any bytes.

mod formats;

use formats::{FORMATS, Format, Seen, Shape};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[test]
fn every_sample_is_read_without_loss() {
    for Format { name, family, sample, read, .. } in FORMATS {
        assert_eq!(read(sample).map(|seen| seen.lost), Some(0), "{family:?} {name}");
    }
}

#[test]
fn every_prefix_yields_its_whole_lines_and_no_more() {
    for Format { name, sample, read, .. } in FORMATS.iter().filter(|format| format.shape != Shape::Text) {
        for end in 0..sample.len() {
            let prefix = &sample[..end];
            let whole = &prefix[..prefix.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)];
            // Refused is right as well, where a file makes sense only as a whole.
            let Some(seen) = read(prefix) else { continue };
            // `/proc/stat` alone passes over a torn line without a word: all that is wanted is in its first lines.
            let lost = u32::from(prefix != whole && *name != "cpu_times");
            assert_eq!(Some(seen), read(whole).map(|of_whole| Seen { lost, ..of_whole }), "{name}, cut at {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_parser_panic(format in select(FORMATS), bytes in vec(any::<u8>(), 0..200)) {
        (format.read)(&bytes);
    }

    #[test]
    fn what_was_read_of_a_damaged_file_is_printed_and_read_back(format in select(FORMATS), edits in edits()) {
        (format.read)(&edited(format.sample.to_vec(), &edits));
    }

    #[test]
    fn a_bad_line_costs_that_line_alone(format in select(FORMATS), at in any::<Index>()) {
        prop_assume!(format.shape != Shape::Text);
        let mut lines = lines(format.sample);
        lines.insert(at.index(lines.len() + 1), b"[\n".to_vec());
        // Refused is right as well, as above.
        if let Some(seen) = (format.read)(&lines.concat()) {
            let clean = (format.read)(format.sample).unwrap();
            prop_assert_eq!(&seen.value, &clean.value);
            prop_assert!(seen.lost <= 1);
        }
    }

    #[test]
    fn unknown_lines_and_the_order_of_lines_are_harmless((format, shuffled) in shuffled_lines()) {
        prop_assert_eq!((format.read)(&shuffled.concat()), (format.read)(format.sample));
    }

    #[test]
    fn unknown_keys_and_the_order_of_keys_are_harmless((format, shuffled) in shuffled_keys()) {
        prop_assert_eq!((format.read)(&shuffled), (format.read)(format.sample));
    }
}

/// The lines with their newlines.
fn lines(file: &[u8]) -> Vec<Vec<u8>> {
    file.split_inclusive(|&byte| byte == b'\n').map(Vec::from).collect()
}

/// A sample with a fact a line, another fact in it, in any order.
fn shuffled_lines() -> impl Strategy<Value = (Format, Vec<Vec<u8>>)> {
    let unknown = |format: &Format| if let Shape::Keyed(line) = format.shape { Some(line) } else { None };
    let keyed: Vec<_> = FORMATS.iter().filter_map(|format| Some((*format, unknown(format)?))).collect();
    select(keyed).prop_flat_map(|(format, unknown)| {
        let mut lines = lines(format.sample);
        lines.push(unknown.into());
        (Just(format), Just(lines).prop_shuffle())
    })
}

/// A sample of devices and their keys, another key in each line, the keys in any order.
fn shuffled_keys() -> impl Strategy<Value = (Format, Vec<u8>)> {
    let formats: Vec<_> = FORMATS.iter().filter(|format| format.shape == Shape::DeviceKeys).copied().collect();
    select(formats).prop_flat_map(|format| {
        let text = std::str::from_utf8(format.sample).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(' ')).map(shuffled_line).collect();
        (Just(format), lines.prop_map(|lines| lines.concat().into_bytes()))
    })
}

fn shuffled_line((dev, keys): (&str, &str)) -> impl Strategy<Value = String> + use<> {
    let dev = dev.to_owned();
    let keys: Vec<String> = keys.split_whitespace().chain(["new.key=thing"]).map(String::from).collect();
    Just(keys).prop_shuffle().prop_map(move |keys| format!("{dev} {}\n", keys.join(" ")))
}

/// One random change of a file.
#[derive(Clone, Debug)]
enum Edit {
    /// A byte in the place of another, or between two.
    Put { at: Index, byte: u8, over: bool },
    /// The end is missing.
    Cut { at: Index },
    /// Another number in the place of one.
    Number { at: Index, number: u64 },
    /// A line moved, or there twice.
    Line { from: Index, to: Index, twice: bool },
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    // Mostly of the bytes and the numbers at which a parser decides.
    let byte = prop_oneof![3 => select(&b" \n\t:=.,/()[]\\-09max"[..]), 1 => any::<u8>()];
    let number = prop_oneof![any::<u64>(), 0..200_u64, Just(u64::MAX), Just(u64::from(u32::MAX))];
    let edit = prop_oneof![
        (any::<Index>(), byte, any::<bool>()).prop_map(|(at, byte, over)| Edit::Put { at, byte, over }),
        any::<Index>().prop_map(|at| Edit::Cut { at }),
        (any::<Index>(), number).prop_map(|(at, number)| Edit::Number { at, number }),
        (any::<Index>(), any::<Index>(), any::<bool>()).prop_map(|(from, to, twice)| Edit::Line { from, to, twice }),
    ];
    vec(edit, 0..6)
}

fn edited(mut file: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for edit in edits {
        match edit {
            Edit::Put { at, byte, over } => {
                let at = at.index(file.len() + 1);
                let end = (at + usize::from(*over)).min(file.len());
                file.splice(at..end, [*byte]);
            }
            Edit::Cut { at } => file.truncate(at.index(file.len() + 1)),
            Edit::Number { at, number } => {
                let from = at.index(file.len() + 1);
                let first = from + file.iter().skip(from).take_while(|byte| !byte.is_ascii_digit()).count();
                let len = file.iter().skip(first).take_while(|byte| byte.is_ascii_digit()).count();
                file.splice(first..first + len, number.to_string().into_bytes());
            }
            Edit::Line { from, to, twice } if !file.is_empty() => {
                let mut lines = lines(&file);
                let from = from.index(lines.len());
                let line = lines.remove(from);
                if *twice {
                    lines.insert(from, line.clone());
                }
                lines.insert(to.index(lines.len() + 1), line);
                file = lines.concat();
            }
            Edit::Line { .. } => {}
        }
    }
    file
}
