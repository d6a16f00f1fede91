//! Tables for a terminal: no colour, no vertical borders, [`WIDTH`] columns unless told otherwise.
//!
//! A table that is wider is broken into blocks, and the columns that identify a row are repeated.

use crate::report::histogram::bars;
use crate::report::table::{Align, Cell, Chart, Column, Table};
use crate::report::units;
use crate::report::wrap::wrap;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};
use std::fmt::Write;

/// Most columns of the terminal that a line takes.
pub const WIDTH: u16 = 100;

/// Space before a cell, and the place of the vertical line that is not drawn.
const GAP: u16 = 2;

/// Width of a histogram's longest bar.
const BAR_WIDTH: usize = 40;

/// Width of what stands beside it.
const BESIDE_BAR: usize = 42;

/// The section with its title and notes; ends with a newline.
#[must_use]
pub fn table(table: &Table) -> String {
    table_within(table, WIDTH)
}

/// The same in at most `width` columns.
#[must_use]
pub fn table_within(table: &Table, width: u16) -> String {
    let mut text = String::new();
    if let Some(prose) = &table.prose {
        text.push_str(prose);
    } else {
        text.push_str(&table.title);
        text.push('\n');
        text.push_str(&rows(table, width));
    }
    for note in &table.notes {
        let note = format!("  {}", units::printable(note));
        for line in wrap(&note, usize::from(width), 4) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn rows(table: &Table, width: u16) -> String {
    if table.rows.is_empty() {
        return "  nothing was seen\n".to_owned();
    }
    let blocks = blocks(table, width);
    let blocks: Vec<_> = blocks.iter().map(|b| block(table, b, width)).collect();
    blocks.join("\n")
}

/// The histograms behind a table, as bpftrace draws them; empty without any.
#[must_use]
pub fn histograms(table: &Table) -> String {
    let charts = table.charts.iter();
    charts.map(|chart| histogram(chart, BAR_WIDTH)).collect()
}

/// The same in at most `width` columns, but with bars that still tell one from another.
#[must_use]
pub fn histograms_within(table: &Table, width: usize) -> String {
    let room = width.saturating_sub(BESIDE_BAR).clamp(10, BAR_WIDTH);
    let charts = table.charts.iter();
    charts.map(|chart| histogram(chart, room)).collect()
}

fn histogram(chart: &Chart, longest_bar: usize) -> String {
    let mut text = format!("\n{}: {}\n", units::printable(&chart.label), chart.quantity);
    let bars = bars(&chart.hist, chart.unit);
    let longest = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    for bar in bars {
        let length = u128::from(bar.count) * longest_bar as u128 / u128::from(longest);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:>9} .. {:<9} {:>14} |{:<longest_bar$}|",
            chart.unit.cell(bar.lo).human(),
            chart.unit.cell(bar.hi).human(),
            units::count(bar.count.into()),
            "@".repeat(length as usize),
        );
    }
    text
}

/// Indices of the columns of each block: the keys, and as many others as fit. Columns in which
/// nothing stands are left out.
fn blocks(table: &Table, most: u16) -> Vec<Vec<usize>> {
    let empty = |c: &usize| {
        table
            .rows
            .iter()
            .all(|row| row.get(*c) == Some(&Cell::Blank))
    };
    let all: Vec<_> = (0..table.columns.len()).collect();
    let (keys, others): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|c| !empty(c))
        .partition(|c| **c < table.keys);
    let widths: Vec<_> = draw(table, &all, most)
        .column_max_content_widths()
        .iter()
        .map(|width| width.saturating_add(GAP))
        .collect();
    let width = |columns: &[usize]| {
        columns
            .iter()
            .fold(0_u16, |sum, c| sum.saturating_add(widths[*c]))
    };
    let mut blocks = Vec::new();
    let mut block = keys.clone();
    let group = |c: &usize| &table.columns[*c].group;
    for columns in others.chunk_by(|a, b| group(a) == group(b)) {
        let fits = width(&block).saturating_add(width(columns)) <= most;
        if !fits && block.len() > keys.len() {
            blocks.push(std::mem::replace(&mut block, keys.clone()));
        }
        block.extend(columns);
    }
    blocks.push(block);
    blocks
}

fn block(table: &Table, columns: &[usize], width: u16) -> String {
    let mut text = draw(table, columns, width).trim_fmt();
    text.push('\n');
    text
}

fn draw(table: &Table, columns: &[usize], width: u16) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(header(table, columns));
    for row in &table.rows {
        let cells = || columns.iter().filter_map(|c| row.get(*c));
        // In a block that says nothing of a row, the row's keys alone are noise.
        if cells().skip(table.keys).all(|cell| *cell == Cell::Blank) {
            continue;
        }
        drawn.add_row(cells().zip(columns).map(|(cell, c)| {
            let align = alignment(&table.columns[*c]);
            comfy_table::Cell::new(cell.human()).set_alignment(align)
        }));
    }
    for column in drawn.column_iter_mut() {
        column.set_padding((GAP - 1, 0));
    }
    drawn
}

/// Headings; those of numbers, which are wider than the numbers, one word per line.
fn header(table: &Table, columns: &[usize]) -> Vec<comfy_table::Cell> {
    let headings: Vec<_> = columns
        .iter()
        .map(|c| {
            let column = &table.columns[*c];
            let heading = column.heading();
            match column.align {
                Align::Left => (column, heading),
                Align::Right => (column, heading.replace(' ', "\n")),
            }
        })
        .collect();
    let height = |heading: &str| heading.matches('\n').count();
    let highest = headings.iter().map(|(_, h)| height(h)).max().unwrap_or(0);
    headings
        .iter()
        .map(|(column, heading)| {
            // They stand on the line.
            let above = "\n".repeat(highest - height(heading));
            comfy_table::Cell::new(above + heading).set_alignment(alignment(column))
        })
        .collect()
}

fn alignment(column: &Column) -> CellAlignment {
    match column.align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    }
}
