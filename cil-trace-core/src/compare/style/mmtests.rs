//! The table of mmtests: `bin/lib/MMTests/Compare.pm` and `PrintGeneric.pm`.
//!
//! A change is in percent and positive if it is an improvement, which the metric's name decides. A
//! star marks what is significant by our test; mmtests' own compares intervals of single runs.

use super::super::names::{Better, better};
use super::super::statistics::{ALPHA, sample_deviation};
use super::super::{Cell, Change, Circumstances, Comparison, Of, Row};
use super::cut;
use super::number::general;
use crate::report::units::printable;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Widths of a statistic's name (theirs include `BAmean-99`), of a value and of a change in percent.
const NAME: usize = 9;
const VALUE: usize = 12;
const CHANGE: usize = 7;
/// A change with what stands around it: ` (   0.00%)`.
const AROUND: usize = CHANGE + 4;

/// From here on digits say nothing any more.
const HUGE: f64 = 1e15;

/// A line of a metric: what it is called, how it is computed, whether less of it is better whatever
/// the metric.
struct Statistic {
    name: &'static str,
    of: fn(&[f64]) -> Option<f64>,
    spread: bool,
}

const STATISTICS: &[Statistic] = &[
    Statistic {
        name: "Min",
        of: |v| v.iter().copied().reduce(f64::min),
        spread: false,
    },
    Statistic {
        name: AMEAN,
        of: mean,
        spread: false,
    },
    Statistic {
        name: "Stddev",
        of: deviation,
        spread: true,
    },
    Statistic {
        name: "CoeffVar",
        of: |v| Some(100.0 * deviation(v)? / mean(v)?).filter(|percent| percent.is_finite()),
        spread: true,
    },
    Statistic {
        name: "Max",
        of: |v| v.iter().copied().reduce(f64::max),
        spread: false,
    },
];

/// The line that the test is of.
const AMEAN: &str = "Amean";

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| super::super::statistics::mean(values))
}

fn deviation(values: &[f64]) -> Option<f64> {
    let deviation = sample_deviation(values);
    (!values.is_empty() && deviation.is_finite()).then_some(deviation)
}

pub(super) fn table(comparison: &Comparison) -> String {
    let rows: Vec<&Row> = comparison.shown().collect();
    let mut text = String::new();
    for of in rows.iter().map(|row| row.of).collect::<BTreeSet<_>>() {
        let of_case = || rows.iter().copied().filter(|row| row.of == of);
        let mut groups: Vec<&str> = Vec::new();
        for group in of_case().map(|row| group(&row.metric)) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for name in groups {
            let rows: Vec<&Row> = of_case().filter(|row| group(&row.metric) == name).collect();
            text.push_str(&block(&rows, of, comparison));
            text.push('\n');
        }
    }
    text
}

/// All but the last part of a metric's name; metrics that share it are lines of one table.
fn group(metric: &str) -> &str {
    metric.rsplit_once('.').map_or("", |(group, _)| group)
}

fn last(metric: &str) -> &str {
    metric.rsplit('.').next().unwrap_or(metric)
}

fn block(rows: &[&Row], of: Of, comparison: &Comparison) -> String {
    let case = match of {
        Of::Cases => "",
        Of::Case(case) => comparison.cases[case].as_str(),
    };
    let group = rows.first().map_or("", |row| group(&row.metric));
    let title: Vec<_> = [case, group]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    let statistics: Vec<&str> = match of {
        Of::Cases => vec!["Gmean"],
        Of::Case(_) => STATISTICS.iter().map(|statistic| statistic.name).collect(),
    };
    // Counts of clients have two digits as a rule.
    let names = rows.iter().map(|row| last(&row.metric).chars().count());
    let second = names.max().unwrap_or(0).max(2);
    let mut text = format!("{}\n", printable(&title.join(" ")));
    let width = width(&statistics, rows);
    text.push_str(&header(NAME + 1 + second, width, comparison));
    for name in statistics {
        for row in rows {
            let last = printable(last(&row.metric));
            let _ = write!(text, "{name:NAME$} {last:second$}");
            text.push_str(&line(name, row, width, comparison));
            text.push('\n');
        }
    }
    text
}

/// Of the values of a block: mmtests', or wider so that none touches what stands before it.
fn width(statistics: &[&str], rows: &[&Row]) -> usize {
    let numbers = statistics.iter().flat_map(|name| {
        rows.iter().flat_map(move |row| {
            let values = values(name, row).into_iter().flatten();
            values.map(move |value| number(value, digits(row)).len())
        })
    });
    match numbers.max() {
        Some(longest @ VALUE..) if longest > VALUE => longest + 1,
        _ => VALUE,
    }
}

/// What a line says of each side.
fn values(name: &str, row: &Row) -> Vec<Option<f64>> {
    let statistic = STATISTICS.iter().find(|statistic| statistic.name == name);
    let of = |cell: &Cell| statistic.map_or(cell.mean, |statistic| (statistic.of)(&cell.values));
    row.cells.iter().map(of).collect()
}

/// Decimals: times of less than ten seconds would be all zeroes with two.
fn digits(row: &Row) -> usize {
    let mut means = row.cells.iter().filter_map(|cell| cell.mean);
    if means.all(|mean| mean.abs() < 10.0) {
        4
    } else {
        2
    }
}

fn number(value: f64, digits: usize) -> String {
    if value.abs() < HUGE {
        format!("{value:.digits$}")
    } else {
        general(value, 6)
    }
}

/// The kernels, if they are known and differ, above the labels.
fn header(names: usize, value: usize, comparison: &Comparison) -> String {
    let column = value + AROUND;
    let line = |text: &dyn Fn(usize) -> String| {
        let columns = (0..comparison.sides.len()).map(|side| {
            // A column's last space stays free.
            let name = cut(&text(side), column - 1);
            format!("{name:>column$}")
        });
        format!("{:names$}{}\n", "", columns.collect::<String>())
    };
    let side = |index: usize| &comparison.sides[index];
    // Kernels have room; of a command the beginning, which is the same on all sides, says nothing.
    let fits = |side: &Circumstances| (1..column).contains(&side.description.chars().count());
    let described = comparison.sides.iter().all(fits);
    let above = if described {
        line(&|index| side(index).description.clone())
    } else {
        String::new()
    };
    above + &line(&|index| side(index).label.clone())
}

fn line(name: &str, row: &Row, width: usize, comparison: &Comparison) -> String {
    let statistic = STATISTICS.iter().find(|statistic| statistic.name == name);
    let values = values(name, row);
    let lower = statistic.is_some_and(|statistic| statistic.spread)
        || better(&row.metric, &comparison.options.lower_is_better) == Better::Lower;
    let base = values.first().copied().flatten();
    let cells = values.iter().enumerate().map(|(side, value)| {
        let Some(value) = value else {
            return format!("{:>width$} ({:>CHANGE$}%)", "-", "-");
        };
        let gain = base.and_then(|base| gain(base, *value, lower));
        let change = gain.map_or_else(|| "new".to_owned(), |gain| format!("{gain:.2}"));
        let tested = statistic.is_none_or(|statistic| statistic.name == AMEAN);
        let (open, close) = match side.checked_sub(1).and_then(|side| row.changes.get(side)) {
            Some(change) if tested && is_significant(change) => ('*', '*'),
            _ => ('(', ')'),
        };
        let value = number(*value, digits(row));
        format!("{value:>width$} {open}{change:>CHANGE$}%{close}")
    });
    cells.collect()
}

/// In percent of the base, positive if better; `None` if the base is zero and the value is not.
fn gain(base: f64, value: f64, lower: bool) -> Option<f64> {
    let difference = if lower { base - value } else { value - base };
    match (difference, base) {
        (0.0, _) => Some(0.0),
        (_, 0.0) => None,
        _ => Some(100.0 * difference / base.abs()).filter(|percent| percent.is_finite()),
    }
}

fn is_significant(change: &Change) -> bool {
    let test = change.test.as_ref();
    test.is_some_and(|test| test.has_runs() && test.q <= ALPHA)
}
