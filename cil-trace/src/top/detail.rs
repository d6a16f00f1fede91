//! All that is known of one row: every column, the histograms behind its quantiles, its stacks.

mod lock;

use super::tabs::Tab;
use cil_trace_common::stack::StackKind;
use cil_trace_core::model::Model;
use cil_trace_core::model::stacks::StackEntry;
use cil_trace_core::report::format::text;
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::table::{Cell, Chart, Table};
use cil_trace_core::report::units;
use cil_trace_core::report::wrap::wrap;
use std::cmp::Reverse;

/// Stacks that are shown.
const STACKS: usize = 5;

/// A row, with the table that says what its cells are.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The table.
    pub table: &'a Table,
    /// One of its rows.
    pub cells: &'a [Cell],
}

impl<'a> Row<'a> {
    /// The words in a column.
    fn text(self, name: &str) -> Option<&'a str> {
        let mut columns = self.table.columns.iter();
        let place = columns.position(|column| column.name == name)?;
        match self.cells.get(place)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The histograms that the table has of it.
    fn charts(self) -> Vec<Chart> {
        let keys = self.cells.iter().take(self.table.keys);
        let keys = keys.filter(|cell| **cell != Cell::Blank).map(Cell::human);
        let label = keys.collect::<Vec<_>>().join(" ");
        let charts = self.table.charts.iter();
        charts
            .filter(|chart| chart.label == label)
            .cloned()
            .collect()
    }
}

/// The lines; `report` and `model` are of the stretch that the table is of.
#[must_use]
pub fn lines(tab: &Tab, row: Row<'_>, report: &Report, model: &Model, width: usize) -> Vec<String> {
    let columns = row.table.columns.iter().zip(row.cells);
    let columns = columns.filter(|(_, cell)| **cell != Cell::Blank);
    let mut lines = Vec::new();
    for (column, cell) in columns {
        let heading = column.heading();
        let text = format!("{heading:<22} {}", cell.human());
        lines.extend(wrap(&text, width, 23));
    }
    let mut own = Table {
        charts: row.charts(),
        ..Table::named("")
    };
    let kind = tab.stacks();
    let subject = match kind {
        Some((StackKind::Lock, _)) => lock::Subject::of(row),
        _ => None,
    };
    if let Some(subject) = &subject {
        let (callers, charts) = subject.known(report);
        lines.extend(callers);
        own.charts.extend(charts);
    }
    let histograms = text::histograms_within(&own, width);
    lines.extend(histograms.lines().map(str::to_owned));
    let Some((kind, label)) = kind else {
        return lines;
    };
    let (label, device) = (row.text(label), row.text("device"));
    let entries = model.stacks().of(kind).filter(|entry| match &subject {
        Some(subject) => subject.owns(model, entry),
        None => {
            let of = model.stacks().text(entry.label);
            // A cause that nothing explains is shown with the function that it came from.
            label.is_none_or(|label| label.split(':').next() == Some(of) || label == of)
                && device.is_none_or(|device| model.name(entry.dev) == device)
        }
    });
    lines.extend(stacks(model, entries.collect()));
    lines
}

/// The stacks that most time went by in, or that came most often.
fn stacks(model: &Model, mut entries: Vec<StackEntry<'_>>) -> Vec<String> {
    entries.sort_by_key(|entry| (Reverse(entry.sums.time_ns), Reverse(entry.sums.count)));
    let all = entries.len();
    let mut lines = Vec::new();
    for entry in entries.into_iter().take(STACKS) {
        lines.push(String::new());
        let mut head = format!("stack of {}", units::count(entry.sums.count.into()));
        if entry.sums.time_ns > 0 {
            head += &format!(", {} in all", units::duration(entry.sums.time_ns));
        }
        lines.push(head);
        for &frame in entry.kernel.iter().chain(entry.user) {
            let frame = units::printable(model.stacks().text(frame));
            lines.push(format!("  {frame}"));
        }
    }
    if all > STACKS {
        lines.push(String::new());
        lines.push(format!("{} more stacks: f writes them all", all - STACKS));
    }
    lines
}
