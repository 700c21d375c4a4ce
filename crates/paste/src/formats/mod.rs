//! The table of formats.
//!
//! A new format is a module beside this one and a line here. The order matters only where two could take one line: the
//! surer one comes first.

use crate::line::Line;
use crate::pasted::Pasted;

/// A format: what it is called, and how its first line is known.
pub(crate) struct Format {
    /// For people.
    pub(crate) name: &'static str,
    /// The reading of a piece that starts with this line, which is taken by that; `None` where the line is not its.
    pub(crate) open: fn(&Line) -> Option<Box<dyn Open>>,
}

/// A piece under way.
pub(crate) trait Open {
    /// Takes the next line, or leaves it: then the piece is over.
    fn take(&mut self, line: &Line) -> bool;

    /// Puts what was read into the paste's facts. Called once, at the piece's end.
    fn close(self: Box<Self>, pasted: &mut Pasted);
}

/// Every format.
pub(crate) static FORMATS: &[Format] = &[];
