//! The runs of one test case on one side, their numbers by metric.

use super::matrix::Matrix;
use super::names::is_failure;
use super::run::{Run, State};
use crate::histogram::Histogram;
use crate::report::units;
use std::collections::{BTreeMap, BTreeSet};

/// Runs, and per metric one value a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples {
    /// The runs.
    pub runs: Vec<Run>,
    /// By metric a value per run; what a run does not have is not a number.
    columns: BTreeMap<String, Vec<f64>>,
    /// The histograms of all runs merged, by name.
    pub histograms: BTreeMap<String, Histogram>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

impl Samples {
    /// Of recordings and matrices. Runs that did not go as far as the best of them are left out,
    /// with a warning: their counts are of less work.
    #[must_use]
    pub fn new(recorded: Vec<Run>, matrices: Vec<(String, Matrix)>) -> Self {
        let mut samples = Self::default();
        let best = recorded
            .iter()
            .map(|run| rank(&run.state))
            .min()
            .unwrap_or(0);
        for run in recorded {
            samples
                .warnings
                .extend(warning(&run, rank(&run.state) > best));
            if rank(&run.state) == best {
                samples.push(run);
            }
        }
        for (name, matrix) in matrices {
            samples.extend(&name, matrix);
        }
        samples
    }

    fn push(&mut self, run: Run) {
        for (name, value) in &run.metrics.values {
            let column = self.columns.entry(name.clone()).or_default();
            column.resize(self.runs.len(), f64::NAN);
            column.push(*value);
        }
        for (name, histogram) in &run.metrics.histograms {
            self.histograms
                .entry(name.clone())
                .or_default()
                .merge(histogram);
        }
        self.runs.push(run);
        self.pad();
    }

    fn extend(&mut self, name: &str, matrix: Matrix) {
        let Matrix {
            values,
            runs,
            incomplete,
            short,
            not_numbers,
            without_numbers,
        } = matrix;
        let cut = incomplete.iter().filter(|incomplete| **incomplete).count();
        if cut > 0 {
            self.warnings.push(format!(
                "{name}: {} left out but for failures",
                units::counted(cut, "incomplete run")
            ));
        }
        if short > 0 {
            self.warnings.push(format!(
                "{name}: of {} there are fewer values than the {runs} runs; whose are missing is \
                 unknown, the last are taken for it",
                units::counted(short, "metric")
            ));
        }
        if not_numbers > 0 {
            self.warnings.push(format!(
                "{name}: {} left out that are no finite numbers",
                units::counted(not_numbers, "value")
            ));
        }
        if !without_numbers.is_empty() && !values.is_empty() {
            self.warnings.push(format!(
                "{name}: {} without a finite number left out: {}",
                units::counted(without_numbers.len(), "metric"),
                units::listed(&without_numbers)
            ));
        }
        if values.is_empty() {
            self.warnings.push(format!(
                "{name}: there is no number in it; it must be of the form {{\"metric\": [run 1, ..]}}"
            ));
        }
        let before = self.runs.len();
        for (metric, values) in values {
            let column = self.columns.entry(metric).or_default();
            column.resize(before, f64::NAN);
            column.extend(values);
        }
        let marked = (1..=runs).zip(incomplete);
        self.runs.extend(marked.map(|(run, incomplete)| Run {
            name: format!("{name} run {run}"),
            state: if incomplete {
                State::Interrupted
            } else {
                State::Complete
            },
            watched: true,
            ..Run::default()
        }));
        self.pad();
    }

    fn pad(&mut self) {
        let runs = self.runs.len();
        for column in self.columns.values_mut() {
            column.resize(runs, f64::NAN);
        }
    }

    /// The names of all metrics that some run has.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }

    /// How many runs there are values of.
    #[must_use]
    pub fn measured_runs(&self) -> usize {
        let cut = |run: &&Run| run.watched && run.state == State::Interrupted;
        self.runs.len() - self.runs.iter().filter(cut).count()
    }

    /// A value per run, not a number where there is none; `None` if no run has the metric.
    #[must_use]
    pub fn column(&self, metric: &str) -> Option<&[f64]> {
        self.columns.get(metric).map(Vec::as_slice)
    }

    /// The runs of both, by their places, that were made in the same round of a series.
    #[must_use]
    pub fn rounds(&self, side: &Self) -> Vec<(usize, usize)> {
        let round = |run: &Run| {
            run.series
                .as_ref()
                .map(|series| (series.id.clone(), series.round))
        };
        let of_side: Vec<_> = side.runs.iter().map(round).collect();
        let pair = |(index, run): (usize, &Run)| {
            let round = round(run)?;
            let other = of_side
                .iter()
                .position(|other| other.as_ref() == Some(&round))?;
            Some((index, other))
        };
        self.runs.iter().enumerate().filter_map(pair).collect()
    }

    /// The odd runs and the even ones, so that drift falls on both alike.
    #[must_use]
    pub fn halves(&self) -> [Self; 2] {
        [0, 1].map(|parity| {
            let places = (0..self.runs.len()).filter(|place| place % 2 == parity);
            let mut half = Self {
                warnings: if parity == 0 {
                    self.warnings.clone()
                } else {
                    Vec::new()
                },
                ..Self::default()
            };
            for place in places {
                let mut run = self.runs[place].clone();
                // Rounds are of two commands; these are halves of one.
                run.series = None;
                half.push(run);
                for (metric, values) in &self.columns {
                    let column = half.columns.entry(metric.clone()).or_default();
                    column.resize(half.runs.len(), f64::NAN);
                    if let Some(last) = column.last_mut() {
                        *last = values[place];
                    }
                }
            }
            half.columns
                .retain(|_, values| values.iter().any(|value| value.is_finite()));
            half
        })
    }

    /// Puts zero where a run of any side lacks a count that it would have made, or a failure that
    /// it was watched for.
    pub fn fill_zeros(sides: &mut [Self]) {
        let filled: Vec<_> = {
            let mut models: BTreeMap<&str, &Run> = BTreeMap::new();
            for run in sides.iter().flat_map(|side| &side.runs) {
                let counts = run
                    .metrics
                    .values
                    .keys()
                    .filter(|name| run.metrics.is_count(name));
                for name in counts {
                    models.entry(name).or_insert(run);
                }
            }
            let failures = sides.iter().flat_map(Self::metrics);
            let failures: BTreeSet<&str> = failures.filter(|name| is_failure(name)).collect();
            let filled = sides.iter().map(|side| {
                let mut columns = side.with_zeros(&models);
                columns.extend(side.without_failures(&failures));
                columns
            });
            filled.collect()
        };
        for (side, columns) in sides.iter_mut().zip(filled) {
            side.columns.extend(columns);
        }
    }

    /// The columns of these failures, on a side all of whose runs were watched.
    fn without_failures(&self, failures: &BTreeSet<&str>) -> BTreeMap<String, Vec<f64>> {
        let watched = self.runs.iter().all(|run| run.watched);
        let missing = failures
            .iter()
            .filter(|name| watched && self.column(name).is_none());
        missing
            .map(|name| ((*name).to_owned(), vec![0.0; self.runs.len()]))
            .collect()
    }

    /// The columns of these metrics; `models` has for each a run that counted it.
    fn with_zeros(&self, models: &BTreeMap<&str, &Run>) -> BTreeMap<String, Vec<f64>> {
        let column = |(name, model): (&&str, &&Run)| {
            let own = self.column(name);
            let runs = self.runs.iter().enumerate().map(|(index, run)| {
                let own = own.map_or(f64::NAN, |values| values[index]);
                let zero = || run.metrics.value(name, &model.metrics).unwrap_or(own);
                if own.is_finite() { own } else { zero() }
            });
            let values: Vec<f64> = runs.collect();
            let known = values.iter().any(|value| value.is_finite());
            known.then(|| ((*name).to_owned(), values))
        };
        models.iter().filter_map(column).collect()
    }
}

fn rank(state: &State) -> u8 {
    match state {
        State::Complete => 0,
        State::Failed(_) => 1,
        State::Interrupted => 2,
    }
}

fn warning(run: &Run, left_out: bool) -> Option<String> {
    let what = match &run.state {
        State::Complete => return None,
        State::Failed(how) => format!("{}: the workload {how}", run.name),
        State::Interrupted => format!(
            "{}: the recording has no end, it counts what was seen until then",
            run.name
        ),
    };
    Some(what + if left_out { "; left out" } else { "" })
}
