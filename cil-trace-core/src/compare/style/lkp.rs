//! The table of the kernel test robot, to the byte: lkp-tests `lib/compare.rb`.
//!
//! Where LKP prints something that is not so, this does not: a base of zero has no change in
//! percent (LKP: 1e+102 %), and what was not measured is not zero.

use super::super::change::Size;
use super::super::{Cell, Comparison, Of, Row};
use super::cut;
use super::number::general;
use std::fmt::Write;

/// Widths of a value, of its deviation, of a change.
const VALUE: usize = 10;
const DEVIATION: usize = 6;
const CHANGE: usize = 10;
const FIRST: usize = VALUE + DEVIATION;
const LATER: usize = CHANGE + 1 + FIRST;

/// What heads the names of test cases, where the rows of a metric are test cases.
const CASES: &str = "testcase/testparams/testbox";

pub(super) fn table(comparison: &Comparison) -> String {
    let mut text = header(comparison);
    for row in comparison.shown() {
        text.push_str(&self::row(row));
        let _ = writeln!(text, "  {}", name(row, comparison));
    }
    text.push('\n');
    text
}

/// The metric; below the mean of a metric over cases, the case.
fn name(row: &Row, comparison: &Comparison) -> String {
    match row.of {
        Of::Cases => format!("GEO-MEAN {}", row.metric),
        Of::Case(case) if comparison.cases.len() > 1 => comparison.cases[case].clone(),
        Of::Case(_) => row.metric.clone(),
    }
}

fn header(comparison: &Comparison) -> String {
    let mut text = format!("{}\n", "=".repeat(89));
    if let [case] = comparison.cases.as_slice()
        && !case.is_empty()
    {
        let _ = write!(text, "testcase:\n  {case}\n\n");
    }
    text.push_str("commit: \n");
    for side in &comparison.sides {
        let _ = match side.description.as_str() {
            "" => writeln!(text, "  {}", side.label),
            description => writeln!(text, "  {} (\"{description}\")", side.label),
        };
    }
    text.push('\n');
    let several = comparison.cases.len() > 1;
    let (mut names, mut lines) = (String::new(), String::new());
    for (index, side) in comparison.sides.iter().enumerate() {
        let width = if index == 0 { FIRST } else { LATER };
        let _ = write!(names, "{:>width$} ", cut(&side.label, width));
        let _ = write!(lines, "{} ", "-".repeat(width));
    }
    if several {
        names.push_str(CASES);
        lines.push_str(&"-".repeat(CASES.len()));
    }
    let others = comparison.sides.len().saturating_sub(1);
    let _ = writeln!(text, "{names}\n{lines}");
    let _ = writeln!(
        text,
        "         %stddev{}",
        "     %change         %stddev".repeat(others)
    );
    let _ = writeln!(
        text,
        "             \\  {}",
        "        |                \\  ".repeat(others)
    );
    text
}

fn row(row: &Row) -> String {
    let mut text = String::new();
    for (index, cell) in row.cells.iter().enumerate() {
        if let Some(change) = index.checked_sub(1).and_then(|side| row.changes.get(side)) {
            text.push_str(&size(change.size));
        }
        text.push_str(&value(cell));
    }
    text
}

fn size(size: Size) -> String {
    let number = |change: f64| {
        let text = if change.abs() < 100_000.0 {
            format!("{change:+.1}")
        } else if change < 0.0 {
            general(change, 2)
        } else {
            format!("+{}", general(change, 2))
        };
        format!("{text:>CHANGE$}")
    };
    match size {
        Size::Percent(change) => format!("{}% ", number(change)),
        Size::Points(change) => format!("{}  ", number(change)),
        Size::New => format!("{:>CHANGE$}  ", "new"),
        Size::Unknown => format!("{:>CHANGE$}  ", ""),
    }
}

fn value(cell: &Cell) -> String {
    let Some(mean) = cell.mean else {
        return format!("{:>VALUE$}{:DEVIATION$}", "-", "");
    };
    let magnitude = mean.abs();
    let number = if magnitude < 1000.0 {
        format!("{mean:.2}")
    } else if magnitude > 1e8 {
        general(mean, 4)
    } else {
        format!("{}", mean.trunc())
    };
    // Printed truncated, compared as it is. Of a negative mean LKP prints none.
    let deviation = match cell.deviation_pct() {
        Some(percent) if percent > 2.0 => format!(" ±{:>3}%", percent.trunc()),
        _ => String::new(),
    };
    format!("{number:>VALUE$}{deviation:<DEVIATION$}")
}
