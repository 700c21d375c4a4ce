//! A line of a paste, and what was said of it before.

/// A line, without its newline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) no: u32,
    /// Its text, without what a logger or a prompt put in front.
    pub(crate) text: &'a str,
    /// The time that a logger put in front of it, in seconds since some midnight.
    pub(crate) time: Option<f64>,
    /// The file whose content this is, by the command or heading above it (`$ cat FILE`, `==> FILE <==`), if any.
    pub(crate) file: Option<&'a str>,
    /// The command above it, without its prompt, if any.
    pub(crate) command: Option<&'a str>,
}

impl Line<'_> {
    /// Whether there is nothing in it.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}
