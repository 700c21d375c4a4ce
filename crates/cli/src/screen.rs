//! What the answer is shown on: its width, and whether colours reach it.

use std::env;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// What the answer is shown on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns to fit text into.
    pub width: usize,
    /// Columns that a table may take: as `width` on a terminal, without a bound in a file or pipe.
    pub table_width: usize,
    /// Whether colours are shown.
    pub colour: bool,
}

/// A way to stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Headlines.
    Bold,
    /// Labels and asides.
    Dim,
    /// Critical.
    Red,
    /// Warning.
    Yellow,
    /// Worth knowing.
    Cyan,
    /// Fine.
    Green,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "1;31",
            Self::Yellow => "1;33",
            Self::Cyan => "1;36",
            Self::Green => "1;32",
        }
    }
}

impl Screen {
    /// The width of a page where nothing tells another.
    pub(crate) const WIDTH: usize = 80;

    /// Narrower than this, columns would not stand side by side.
    const WIDTH_MIN: usize = 40;

    /// What stdout is. `COLUMNS` goes before the terminal's own width; `NO_COLOR` and a dumb terminal turn colours off.
    #[must_use]
    pub fn of_stdout() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let asked = env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&columns| columns > 0);
        let width = asked.or_else(|| terminal.then(|| columns_of(&stdout)).flatten());
        Self {
            width: width.unwrap_or(Self::WIDTH).max(Self::WIDTH_MIN),
            table_width: width.unwrap_or(if terminal { Self::WIDTH } else { usize::MAX }),
            colour: terminal && !is_set("NO_COLOR") && env::var("TERM").is_ok_and(|term| term != "dumb"),
        }
    }

    /// The text in a style, where colours are shown.
    #[must_use]
    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{}m{text}\x1b[0m", style.code()) } else { text.into() }
    }
}

/// The columns of a terminal; `None` where it is none, or does not know.
pub(crate) fn columns_of(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}
