//! What people paste: the output of tools, their errors and logs, and kernel files as `cat` prints them.
//!
//! The first step of the pipeline for `quell doctor --from`: lines of text become [`Pasted`] facts. A [`Reader`] takes
//! one line after another and offers it to the formats of one table; a format is a module here and a line there. Two
//! decisions hold everywhere. A format takes only lines that it is sure of, and what none takes is counted and shown:
//! a number that is read wrongly is worse than one that is not read. And everything is bounded: a paste may be a log of
//! a hundred megabytes.
//!
//! A kernel file is not parsed here. It is handed on with its path, and `host` reads it as part of a captured tree, so
//! that a paste of `io.stat` meets the code that a live host does.

mod formats;
mod line;
mod pasted;
mod reader;

pub use pasted::{
    Benchmark, Copied, DeviceFact, Direction, File, Pasted, Piece, Refusal, Statement, Table, TableRow, TaskFact,
    Unread,
};
pub use reader::Reader;
