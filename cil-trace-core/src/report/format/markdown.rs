//! Tables in GitHub's Markdown, aligned so that they also read well in a plain-text mail.

use crate::report::table::{Align, Cell, Table};
use std::fmt::Write;

/// The table and its notes; ends with a newline.
#[must_use]
pub fn table(table: &Table) -> String {
    let mut text = String::new();
    if let Some(prose) = &table.prose {
        // Indented, not fenced: a fence could be closed by a process name.
        for line in prose.lines() {
            let _ = writeln!(text, "    {line}");
        }
        return text;
    }
    let header = table.columns.iter().map(|column| escape(&column.heading()));
    let rows = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| escape(&Cell::human(cell))).collect());
    let rows: Vec<Vec<String>> = std::iter::once(header.collect()).chain(rows).collect();
    let widths: Vec<_> = (0..table.columns.len())
        .map(|c| {
            let cells = rows.iter().filter_map(|row| row.get(c));
            // A separator is at least three characters.
            cells
                .map(|text| text.chars().count())
                .max()
                .unwrap_or(0)
                .max(3)
        })
        .collect();
    for (index, row) in rows.iter().enumerate() {
        for ((cell, column), width) in row.iter().zip(&table.columns).zip(&widths) {
            let _ = match column.align {
                Align::Left => write!(text, "| {cell:<width$} "),
                Align::Right => write!(text, "| {cell:>width$} "),
            };
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in table.columns.iter().zip(&widths) {
                let dashes = "-".repeat(*width);
                text.push_str(&match column.align {
                    Align::Left => format!("|:{dashes}-"),
                    Align::Right => format!("|-{dashes}:"),
                });
            }
            text.push_str("|\n");
        }
    }
    for note in &table.notes {
        let _ = write!(text, "\n{}\n", escape(note));
    }
    text
}

/// Keeps a cell a cell: bars, backslashes and tags would end or hide it.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
