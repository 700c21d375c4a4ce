//! Every decision of quell, as functions from a value to a value.
//!
//! `snapshot` is what was read, `rates` what two readings say, `paste` what somebody pasted in their place, `findings`
//! what that means; `shares` is what the weights of a tree make of a disk. Nothing here opens a file or asks the time, so
//! a live host, a capture and a recording are judged by the same code, and every judgement can be tested from a value.

pub mod findings;
pub mod paste;
pub mod rates;
pub mod shares;
pub mod snapshot;
