//! Limits in the configuration of platforms: any object with keys like `writeBandwidthPerSecond` or `readIOPSPerSecond`.

use serde_json::Value;

use super::document::objects;
use crate::json::number;
use crate::number::bytes;
use crate::pasted::{Pasted, Statement};
use quell_units::whole;

/// Takes every limit by its key's words: a direction, what is counted, and that it is by time.
pub(super) fn take(value: &Value, pasted: &mut Pasted) -> bool {
    let mut all = Vec::new();
    objects(value, &mut all);
    let before = pasted.statements.len();
    for (key, value) in all.into_iter().flatten() {
        let Some(io_max_key) = key_of(key) else { continue };
        let limit = number(value).or_else(|| value.as_str().and_then(bytes));
        if let Some(limit) = limit.filter(|limit| *limit >= 0.0) {
            pasted.statements.push(Statement::LimitAsked {
                by: String::new(),
                device: String::new(),
                key: io_max_key.to_owned(),
                value: whole(limit),
            });
        }
    }
    pasted.statements.len() > before
}

/// The key of io.max for a key such as `writeBandwidthPerSecond`, `read_bps`, `writeIopsPerSecond`.
fn key_of(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| key.contains(word));
    let (read, write) = (has(&["read", "rbps", "riops"]), has(&["write", "wbps", "wiops"]));
    let (ios, by_bytes) = (has(&["iops"]), has(&["bandwidth", "bps", "bytespersec"]));
    match (read, write, ios, by_bytes) {
        (true, false, true, _) => Some("riops"),
        (false, true, true, _) => Some("wiops"),
        (true, false, false, true) => Some("rbps"),
        (false, true, false, true) => Some("wbps"),
        _ => None,
    }
}
