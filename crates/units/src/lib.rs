//! Numbers that carry their unit, and names that were checked once.
//!
//! The leftmost crate of the pipeline: everything else speaks in these types, and nothing here reads,
//! writes or asks the time. Two decisions shape the rest. A missing value is never zero: it is a
//! [`Gap`], the reason it is missing ([`Known<T>`]). And this is the only crate that converts between
//! number types, so a lossy cast can be looked for in one place.

mod cgroup;
mod clock;
mod device;
mod gap;
mod limit;
mod quantity;
mod text;

pub use cgroup::{CgroupId, CgroupPath, CgroupPathError};
pub use clock::{MonoMicros, UnixMicros};
pub use device::{DevName, DevNum, DevNumError};
pub use gap::{Gap, Known};
pub use limit::Limit;
pub use quantity::{Bytes, Micros, Millis, Nanos, Sectors, count, ratio, whole};
pub use text::{escape, escape_reversible, unescape};
