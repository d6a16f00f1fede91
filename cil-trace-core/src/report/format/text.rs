//! Tables for a terminal: no colour, no vertical borders, at most [`WIDTH`] columns.
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

/// Space on either side of a cell.
const PADDING: u16 = 2;

/// Width of a histogram's longest bar.
const BAR_WIDTH: u128 = 40;

/// The section with its title and notes; ends with a newline.
#[must_use]
pub fn table(table: &Table) -> String {
    let mut text = String::new();
    if let Some(prose) = &table.prose {
        text.push_str(prose);
    } else {
        text.push_str(&table.title);
        text.push('\n');
        text.push_str(&rows(table));
    }
    for note in &table.notes {
        let note = format!("  {}", units::printable(note));
        for line in wrap(&note, usize::from(WIDTH), 4) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn rows(table: &Table) -> String {
    if table.rows.is_empty() {
        return "  nothing was seen\n".to_owned();
    }
    let blocks: Vec<_> = blocks(table).iter().map(|b| block(table, b)).collect();
    blocks.join("\n")
}

/// The histograms behind a table, as bpftrace draws them; empty without any.
#[must_use]
pub fn histograms(table: &Table) -> String {
    table.charts.iter().map(histogram).collect()
}

fn histogram(chart: &Chart) -> String {
    let mut text = format!("\n{}: {}\n", units::printable(&chart.label), chart.quantity);
    let bars = bars(&chart.hist, chart.unit);
    let longest = bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    for bar in bars {
        let length = u128::from(bar.count) * BAR_WIDTH / u128::from(longest);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:>9} .. {:<9} {:>14} |{:<40}|",
            chart.unit.cell(bar.lo).human(),
            chart.unit.cell(bar.hi).human(),
            units::count(bar.count.into()),
            "@".repeat(length as usize),
        );
    }
    text
}

/// Indices of the columns of each block: the keys, and as many others as fit.
fn blocks(table: &Table) -> Vec<Vec<usize>> {
    let keys: Vec<_> = (0..table.keys).collect();
    let all: Vec<_> = (0..table.columns.len()).collect();
    let widths: Vec<_> = draw(table, &all)
        .column_max_content_widths()
        .iter()
        .map(|width| width.saturating_add(PADDING))
        .collect();
    let width = |columns: &[usize]| {
        columns
            .iter()
            .fold(0_u16, |sum, c| sum.saturating_add(widths[*c]))
    };
    let mut blocks = Vec::new();
    let mut block = keys.clone();
    for column in all.into_iter().skip(table.keys) {
        let fits = width(&block).saturating_add(widths[column]) <= WIDTH;
        if !fits && block.len() > keys.len() {
            blocks.push(std::mem::replace(&mut block, keys.clone()));
        }
        block.push(column);
    }
    blocks.push(block);
    blocks
}

fn block(table: &Table, columns: &[usize]) -> String {
    let mut text = draw(table, columns).trim_fmt();
    text.push('\n');
    text
}

fn draw(table: &Table, columns: &[usize]) -> comfy_table::Table {
    let align = |column: &Column| match column.align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    };
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(columns.iter().map(|c| {
            let column = &table.columns[*c];
            comfy_table::Cell::new(column.heading()).set_alignment(align(column))
        }));
    for row in &table.rows {
        drawn.add_row(columns.iter().map(|c| {
            let text = row.get(*c).map(Cell::human).unwrap_or_default();
            comfy_table::Cell::new(text).set_alignment(align(&table.columns[*c]))
        }));
    }
    drawn
}
