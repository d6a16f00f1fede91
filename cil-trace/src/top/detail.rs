//! All that is known of one row: every column, the histograms behind its quantiles, its stacks.

use super::tabs::Tab;
use cil_trace_common::stack::StackKind;
use cil_trace_core::model::Model;
use cil_trace_core::model::stacks::StackEntry;
use cil_trace_core::report::format::text;
use cil_trace_core::report::table::{Cell, Table};
use cil_trace_core::report::units;
use cil_trace_core::report::wrap::wrap;
use std::cmp::Reverse;

/// Stacks that are shown.
const STACKS: usize = 5;

/// The lines; `model` is of the stretch that the table is of.
#[must_use]
pub fn lines(tab: &Tab, table: &Table, row: &[Cell], model: &Model, width: usize) -> Vec<String> {
    let columns = table.columns.iter().zip(row);
    let columns = columns.filter(|(_, cell)| **cell != Cell::Blank);
    let mut lines = Vec::new();
    for (column, cell) in columns {
        let heading = column.heading();
        let text = format!("{heading:<22} {}", cell.human());
        lines.extend(wrap(&text, width, 23));
    }
    let keys: Vec<_> = row
        .iter()
        .take(table.keys)
        .filter(|cell| **cell != Cell::Blank)
        .map(Cell::human)
        .collect();
    let label = keys.join(" ");
    let own = Table {
        charts: table
            .charts
            .iter()
            .filter(|chart| chart.label == label)
            .cloned()
            .collect(),
        ..Table::named("")
    };
    let histograms = text::histograms_within(&own, width);
    lines.extend(histograms.lines().map(str::to_owned));
    if let Some((kind, label)) = tab.stacks() {
        let cell = |name: &str| {
            let place = table.columns.iter().position(|column| column.name == name);
            place.and_then(|place| match row.get(place)? {
                Cell::Text(text) => Some(text.as_str()),
                _ => None,
            })
        };
        lines.extend(stacks(model, kind, cell(label), cell("device")));
    }
    lines
}

fn stacks(
    model: &Model,
    kind: StackKind,
    label: Option<&str>,
    device: Option<&str>,
) -> Vec<String> {
    let own = |entry: &StackEntry<'_>| {
        let of = model.stacks().text(entry.label);
        // A cause that nothing explains is shown with the function that it came from.
        label.is_none_or(|label| label.split(':').next() == Some(of) || label == of)
            && device.is_none_or(|device| model.name(entry.dev) == device)
    };
    let mut entries: Vec<_> = model.stacks().of(kind).filter(own).collect();
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
