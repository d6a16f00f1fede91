//! The rows of a comparison: a metric of a test case, a cell per side, and what each side's differs
//! by.

use super::change::{Size, Test, Verdict};
use super::comparison::Options;
use super::names::{self, Order};
use super::samples::Samples;
use super::statistics::{benjamini_hochberg, mean, population_deviation};
use std::collections::BTreeSet;
use std::thread;

/// What a row is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Of {
    /// The geometric mean over the test cases.
    Cases,
    /// One test case, by its place in [`Comparison::cases`].
    Case(usize),
}

/// One metric of one test case.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Of all cases or one.
    pub of: Of,
    /// The metric.
    pub metric: String,
    /// A cell per side.
    pub cells: Vec<Cell>,
    /// A change per side but the first.
    pub changes: Vec<Change>,
}

impl Row {
    /// Whether it counts runs in which something happened, rather than measuring them.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        names::is_failure(&self.metric)
    }
}

/// The runs of a side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    /// The values there are.
    pub values: Vec<f64>,
    /// Their arithmetic mean; of a row over cases the geometric mean. `None` without a value.
    pub mean: Option<f64>,
}

impl Cell {
    fn of(values: Vec<f64>) -> Self {
        let mean = (!values.is_empty()).then(|| mean(&values));
        Self { values, mean }
    }

    /// Population standard deviation in percent of the mean; `None` for a single value or a mean of
    /// zero.
    #[must_use]
    pub fn deviation_pct(&self) -> Option<f64> {
        let mean = self.mean.filter(|mean| *mean != 0.0)?;
        let percent = 100.0 * population_deviation(&self.values) / mean;
        (self.values.len() > 1 && percent.is_finite()).then_some(percent)
    }
}

/// A side against the base.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// How large, from the means.
    pub size: Size,
    /// How sure; `None` if a side has no value.
    pub test: Option<Test>,
}

impl Change {
    /// What can be said of it; `None` if a side has no value.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.test.as_ref().map(|test| test.verdict)
    }
}

/// All metrics of a test case, which is one of `cases`.
pub(super) fn rows_of(of: Of, samples: &[Samples], options: &Options, cases: usize) -> Vec<Row> {
    let names: BTreeSet<&str> = samples.iter().flat_map(Samples::metrics).collect();
    let chosen = |name: &&str| {
        let named = options.metrics.iter().any(|pattern| pattern.matches(name));
        options.metrics.is_empty() || named || options.primary.as_deref() == Some(*name)
    };
    let names: Vec<&str> = names.into_iter().filter(chosen).collect();
    let rounds: Vec<Vec<(usize, usize)>> =
        samples.iter().map(|side| samples[0].rounds(side)).collect();
    let share = names.len().div_ceil(options.threads.max(1)).max(1);
    let all = names.len() * cases;
    let row = |metric: &&str| {
        let is_primary = options.primary.as_deref() == Some(*metric);
        row(
            of,
            metric,
            samples,
            &rounds,
            if is_primary { 1 } else { all },
        )
    };
    thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(row).collect::<Vec<_>>()))
            .collect();
        // A row cannot panic; if one did, its part of the table would be missing.
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_default())
            .collect()
    })
}

fn row(
    of: Of,
    metric: &str,
    samples: &[Samples],
    rounds: &[Vec<(usize, usize)>],
    family: usize,
) -> Row {
    let columns: Vec<&[f64]> = samples
        .iter()
        .map(|side| side.column(metric).unwrap_or_default())
        .collect();
    let finite = |column: &&[f64]| -> Vec<f64> {
        column
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect()
    };
    let cells: Vec<Cell> = columns
        .iter()
        .map(|column| Cell::of(finite(column)))
        .collect();
    let change = |index: usize| {
        let (base, side) = (&cells[0], &cells[index]);
        let value = |column: usize, run: usize| columns[column].get(run).copied();
        let pairs: Vec<(f64, f64)> = rounds[index]
            .iter()
            .filter_map(|(a, b)| value(0, *a).zip(value(index, *b)))
            .filter(|(a, b)| a.is_finite() && b.is_finite())
            .collect();
        Change {
            size: match (base.mean, side.mean) {
                (Some(base), Some(side)) => Size::of(metric, base, side),
                _ => Size::Unknown,
            },
            test: Test::of(&base.values, &side.values, &pairs, family),
        }
    };
    Row {
        of,
        metric: metric.to_owned(),
        changes: (1..cells.len()).map(change).collect(),
        cells,
    }
}

/// LKP's order. In it a profile's functions stand in the order of their changes; not over several
/// cases, in which they change differently.
pub(super) fn sort(rows: &mut [Row], several: bool) {
    let order = Order::of(rows.iter().map(|row| row.metric.as_str()));
    let points = |row: &Row| match row.changes.first().map(|change| change.size) {
        Some(Size::Points(points)) => points,
        _ => f64::INFINITY,
    };
    rows.sort_by(|a, b| {
        let profiles = names::profile(&a.metric).zip(names::profile(&b.metric));
        if let Some((one, other)) = profiles
            && !several
        {
            return one.cmp(other).then(points(a).total_cmp(&points(b)));
        }
        order.compare(&a.metric, &b.metric).then(a.of.cmp(&b.of))
    });
}

/// Geometric means over the cases in which every side has a mean above zero, so that all are of the
/// same cases; without such a case there is none.
pub(super) fn mean_of(rows: &[Row]) -> Row {
    let positive = |cell: &Cell| cell.mean.is_some_and(|mean| mean > 0.0);
    let cases: Vec<&Row> = rows
        .iter()
        .filter(|row| row.cells.iter().all(positive))
        .collect();
    let sides = rows.first().map_or(0, |row| row.cells.len());
    let metric = rows
        .first()
        .map(|row| row.metric.clone())
        .unwrap_or_default();
    let cells: Vec<Cell> = (0..sides)
        .map(|side| {
            let logs = cases
                .iter()
                .filter_map(|row| row.cells[side].mean)
                .map(f64::ln);
            let logs: Vec<f64> = logs.collect();
            Cell {
                values: Vec::new(),
                mean: (!logs.is_empty()).then(|| mean(&logs).exp()),
            }
        })
        .collect();
    let change = |side: usize| {
        let tests: Vec<&Test> = cases
            .iter()
            .filter_map(|row| row.changes[side - 1].test.as_ref())
            .collect();
        Change {
            size: match (cells[0].mean, cells[side].mean) {
                (Some(base), Some(side)) => Size::of(&metric, base, side),
                _ => Size::Unknown,
            },
            test: Test::of_cases(&tests),
        }
    };
    Row {
        of: Of::Cases,
        changes: (1..sides).map(change).collect(),
        metric,
        cells,
    }
}

/// Sets every q: of the cases of a side together, and of its means over cases together. What cannot
/// differ, or has too few runs to be called, is no test (Gilbert 2005, J. R. Stat. Soc. C 54:143).
pub(super) fn correct(rows: &mut [Row], sides: usize, primary: Option<&str>) -> Vec<usize> {
    let mut counts = Vec::new();
    for side in 0..sides.saturating_sub(1) {
        for means in [false, true] {
            let family = rows.iter_mut().filter(|row| {
                (row.of == Of::Cases) == means && primary != Some(row.metric.as_str())
            });
            let mut tests: Vec<&mut Test> = family
                .filter_map(|row| row.changes.get_mut(side)?.test.as_mut())
                .filter(|test| test.has_runs() && !test.constant)
                .collect();
            let p: Vec<f64> = tests.iter().map(|test| test.p.p).collect();
            for (test, q) in tests.iter_mut().zip(benjamini_hochberg(&p)) {
                test.judge(q);
            }
            if !means {
                counts.push(p.len());
            }
        }
    }
    counts
}
