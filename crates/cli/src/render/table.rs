//! A table: names to the left, numbers to the right, and only the columns that fit.

use super::text::{columns, pad};
use crate::screen::{Screen, Style};

/// A column of numbers.
pub(super) struct Column<T> {
    /// Its title.
    pub title: &'static str,
    /// Its width, a space in front included.
    pub width: usize,
    /// What it shows of a row.
    pub cell: fn(&T) -> String,
    /// Where the page is too narrow, columns of a higher number are left out first.
    pub order: u8,
}

/// The columns that fit into `width` beside a first column of `first`, in their order on the page.
pub(super) fn fitting<T>(all: &'static [Column<T>], first: usize, width: usize) -> Vec<&'static Column<T>> {
    let needed = |order: u8| first + all.iter().filter(|c| c.order <= order).map(|c| c.width).sum::<usize>();
    let last = (0..=u8::MAX).take_while(|&order| order == 0 || needed(order) <= width).last().unwrap_or(0);
    all.iter().filter(|column| column.order <= last).collect()
}

/// The line of titles.
pub(super) fn head<T>(first: &str, first_width: usize, columns: &[&Column<T>], screen: &Screen) -> String {
    let titles: String = columns.iter().map(|column| format!("{:>1$}", column.title, column.width)).collect();
    format!("{}{}\n", screen.paint(Style::Bold, &pad(first, first_width)), screen.paint(Style::Dim, &titles))
}

/// A row; a name too long for its column gets a line of its own.
pub(super) fn row<T>(name: &str, first_width: usize, columns_shown: &[&Column<T>], row: &T) -> String {
    let cells: String =
        columns_shown.iter().map(|column| format!("{:>1$}", (column.cell)(row), column.width)).collect();
    if columns(name) > first_width {
        format!("{name}\n{}{cells}\n", " ".repeat(first_width))
    } else {
        format!("{}{cells}\n", pad(name, first_width))
    }
}
