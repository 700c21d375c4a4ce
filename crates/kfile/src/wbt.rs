//! `/sys/kernel/debug/block/*/rqos/wbt/inflight`: the writes that write-back throttling lets through at this moment.
//!
//! A count for each of its three queues. The other files of that folder are [`single`](crate::single) values.

use serde::{Deserialize, Serialize};

use crate::Parsed;
use crate::scan;

/// Writes in flight that wbt counts. `None` where the kernel has no such queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inflight {
    /// Queue 0: write-back, and all that is in none of the other two.
    pub writes: Option<u64>,
    /// Queue 1: writes to swap; in older kernels all that kswapd wrote.
    pub swap: Option<u64>,
    /// Queue 2: discards. Old kernels have no such line.
    pub discards: Option<u64>,
}

/// Parses `inflight`: `0: inflight 3` a queue. Other queues are skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed<Inflight> {
    scan::keyed(bytes, b':', |inflight: &mut Inflight, queue, value| {
        let slot = match queue {
            b"0" => &mut inflight.writes,
            b"1" => &mut inflight.swap,
            b"2" => &mut inflight.discards,
            _ => return Some(()),
        };
        *slot = Some(scan::number(value.strip_prefix(b" inflight ")?)?);
        Some(())
    })
}

/// The file as the kernel prints it.
#[must_use]
pub fn render(inflight: &Inflight) -> String {
    scan::render_keyed([
        ("0: inflight", inflight.writes),
        ("1: inflight", inflight.swap),
        ("2: inflight", inflight.discards),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_its_count() {
        let text = b"0: inflight 20\n1: inflight 0\n2: inflight 1\n";
        let parsed = parse(text);
        assert_eq!(parsed.value, Inflight { writes: Some(20), swap: Some(0), discards: Some(1) });
        assert_eq!(render(&parsed.value).as_bytes(), text);
    }
}
