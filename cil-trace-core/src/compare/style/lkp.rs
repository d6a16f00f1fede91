//! The table of the kernel test robot, to the byte: lkp-tests `lib/compare.rb`.
//!
//! Where LKP prints something that is not so, this does not: a base of zero has no change in
//! percent (LKP: 1e+102 %), and what was not measured is not zero.

use super::super::change::Size;
use super::super::{Cell, Comparison, Of, Row};
use super::cut;
use super::number::general;
use crate::report::units::printable;
use std::fmt::Write;

/// Widths of a value, of its deviation, of a change.
const VALUE: usize = 10;
const DEVIATION: usize = 6;
const CHANGE: usize = 10;
const FIRST: usize = VALUE + DEVIATION;
const LATER: usize = CHANGE + 1 + FIRST;

/// What heads the names of test cases, where the rows of a metric are test cases.
const CASES: &str = "testcase/testparams/testbox";

/// Rows of one kind, below a head of their own.
struct Part {
    /// The head's two lines, for the first side.
    first: [&'static str; 2],
    /// For each later one.
    later: [&'static str; 2],
    change: fn(Size) -> String,
    value: fn(&Cell) -> String,
}

/// In how many runs something happened.
const FAILURES: Part = Part {
    first: ["       fail:runs", "           |    "],
    later: [
        "  %reproduction    fail:runs",
        "         |             |    ",
    ],
    change: reproduction,
    value: failures,
};

/// What was measured.
const MEASURED: Part = Part {
    first: ["         %stddev", "             \\  "],
    later: [
        "     %change         %stddev",
        "        |                \\  ",
    ],
    change: size,
    value,
};

pub(super) fn table(comparison: &Comparison) -> String {
    let mut text = header(comparison);
    let (failed, measured): (Vec<&Row>, Vec<&Row>) =
        comparison.shown().partition(|row| row.is_failure());
    let others = comparison.sides.len().saturating_sub(1);
    for (part, rows) in [(FAILURES, failed), (MEASURED, measured)] {
        if rows.is_empty() {
            continue;
        }
        for (first, later) in part.first.into_iter().zip(part.later) {
            let _ = writeln!(text, "{first}{}", later.repeat(others));
        }
        for row in rows {
            text.push_str(&self::row(row, &part));
            let _ = writeln!(text, "  {}", printable(&name(row, comparison)));
        }
    }
    text.push('\n');
    text
}

/// The metric; below the mean of a metric over cases, the case.
fn name(row: &Row, comparison: &Comparison) -> String {
    match row.of {
        Of::Cases => format!("GEO-MEAN {}", row.metric),
        // Of failures there is no mean, whose row would name them.
        Of::Case(case) if row.is_failure() && comparison.cases.len() > 1 => {
            format!("{} {}", row.metric, comparison.cases[case])
        }
        Of::Case(case) if comparison.cases.len() > 1 => comparison.cases[case].clone(),
        Of::Case(_) => row.metric.clone(),
    }
}

fn header(comparison: &Comparison) -> String {
    let mut text = format!("{}\n", "=".repeat(89));
    if let [case] = comparison.cases.as_slice()
        && !case.is_empty()
    {
        let _ = write!(text, "testcase:\n  {}\n\n", printable(case));
    }
    text.push_str("commit: \n");
    for side in &comparison.sides {
        let label = printable(&side.label);
        let _ = match printable(&side.description).as_str() {
            "" => writeln!(text, "  {label}"),
            description => writeln!(text, "  {label} (\"{description}\")"),
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
    let _ = writeln!(text, "{names}\n{lines}");
    text
}

fn row(row: &Row, part: &Part) -> String {
    let mut text = String::new();
    for (index, cell) in row.cells.iter().enumerate() {
        if let Some(change) = index.checked_sub(1).and_then(|side| row.changes.get(side)) {
            text.push_str(&(part.change)(change.size));
        }
        text.push_str(&(part.value)(cell));
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

/// By how many more of a hundred runs had it.
fn reproduction(size: Size) -> String {
    match size {
        Size::Points(points) => format!("{points:>CHANGE$.0}% "),
        _ => format!("{:>CHANGE$}  ", ""),
    }
}

/// How many runs had it, of how many; without a number if none had.
fn failures(cell: &Cell) -> String {
    const FAILED: usize = VALUE + 1;
    const RUNS: usize = DEVIATION - 2;
    let runs = cell.values.len();
    if runs == 0 {
        return format!("{:>FAILED$} {:RUNS$}", "-", "");
    }
    let failed: f64 = cell.values.iter().sum();
    let failed = if failed == 0.0 {
        String::new()
    } else {
        format!("{}", failed.trunc())
    };
    format!("{failed:>FAILED$}:{runs:<RUNS$}")
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
