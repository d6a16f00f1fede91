//! Every metric of every test case, each side against the first.

use super::change::{FEWEST_RUNS, Verdict};
use super::explain::explain;
use super::facts::{self, Difference};
use super::rows::{Of, Row, correct, mean_of, rows_of, sort};
use super::run::Run;
use super::samples::Samples;
use super::statistics::ALPHA;
use crate::histogram::Histogram;
use glob::Pattern;
use std::collections::BTreeMap;

/// One column of the table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Side {
    /// What heads it.
    pub label: String,
    /// Its test cases by name; the only one of a side without cases has none.
    pub cases: BTreeMap<String, Samples>,
}

/// What to compare, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Only metrics that one of these matches; all if empty.
    pub metrics: Vec<Pattern>,
    /// The metric that the comparison was made for; it is not corrected for the others.
    pub primary: Option<String>,
    /// Metrics of which less is better, whatever their names say.
    pub lower_is_better: Vec<Pattern>,
    /// Only rows with a verdict of changed are shown. All are tested.
    pub changed: bool,
    /// The sides are halves of one, so that every change that is found is a false one.
    pub halves: bool,
    /// Say which differences account for a change.
    pub explain: bool,
    /// Threads to count with.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            metrics: Vec::new(),
            primary: None,
            lower_is_better: Vec::new(),
            changed: false,
            halves: false,
            explain: false,
            threads: 1,
        }
    }
}

/// The circumstances of a side.
#[derive(Clone, PartialEq, Debug)]
pub struct Circumstances {
    /// What heads it.
    pub label: String,
    /// What tells it from the others: its kernel, else its command; empty if neither is known or
    /// all are the same.
    pub description: String,
    /// Runs per test case: the fewest and the most.
    pub runs: (usize, usize),
    /// What was lost, in words.
    pub loss: Option<String>,
    /// Least and largest share of the CPUs' time that tracing took, percent.
    pub overhead_pct: Option<(f64, f64)>,
    /// Histograms merged over all runs, by test case and name.
    pub histograms: BTreeMap<(String, String), Histogram>,
}

/// Sides held against each other.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The sides.
    pub sides: Vec<Circumstances>,
    /// The test cases; one without a name if there are none.
    pub cases: Vec<String>,
    /// The metrics in LKP's order; each metric's mean over cases first, then its cases.
    pub rows: Vec<Row>,
    /// Circumstances that are not the same.
    pub differences: Vec<Difference>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// How many tests were corrected for together, per side but the first.
    pub tests: Vec<usize>,
    /// What accounts for the changes, if that was asked for.
    pub explanations: Vec<Explanation>,
    /// What it was made with.
    pub options: Options,
}

/// What accounts for a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The side's label.
    pub side: String,
    /// The test case; empty if there is but one without a name.
    pub case: String,
    /// One difference each, the nearest to the cause first.
    pub lines: Vec<String>,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what each variant is")]
pub enum CompareError {
    #[error(
        "no test case is in all of the sides ({0}): give sides of the same layout, each a directory \
         with one directory per test case, or each without"
    )]
    NoCommonCase(String),
    #[error("no metric is named `{name}`; {hint}")]
    NoPrimary { name: String, hint: String },
    #[error("no metric matches `{0}`; `*` stands for anything, as in --metric '*flushes*'")]
    NoMatch(String),
    #[error("there is no number in any of the sides")]
    Empty,
}

impl Side {
    /// Its runs as two sides: nothing differs between them but chance.
    #[must_use]
    pub fn halves(&self) -> Vec<Self> {
        let half = |index: usize| Self {
            label: format!("{}.{}", self.label, index + 1),
            cases: self
                .cases
                .iter()
                .map(|(name, samples)| {
                    let [first, second] = samples.halves();
                    (name.clone(), if index == 0 { first } else { second })
                })
                .collect(),
        };
        vec![half(0), half(1)]
    }
}

impl Comparison {
    /// Holds every side against the first.
    ///
    /// # Errors
    /// [`CompareError`]
    pub fn of(mut sides: Vec<Side>, options: Options) -> Result<Self, CompareError> {
        let cases = common_cases(&sides)?;
        let mut warnings = Vec::new();
        for side in &sides {
            for name in side.cases.keys().filter(|name| !cases.contains(name)) {
                let label = &side.label;
                warnings.push(format!(
                    "test case {name} is in {label} and not in all; left out"
                ));
            }
        }
        let mut rows = Vec::new();
        let mut explanations = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let taken = sides.iter_mut().map(|side| side.cases.remove(case));
            let mut samples: Vec<Samples> = taken.map(Option::unwrap_or_default).collect();
            Samples::fill_zeros(&mut samples);
            rows.extend(rows_of(Of::Case(index), &samples, &options, cases.len()));
            if let (Some(base), true) = (samples.first(), options.explain) {
                let others = sides.iter().zip(&samples).skip(1);
                explanations.extend(others.map(|(side, samples)| Explanation {
                    side: side.label.clone(),
                    case: case.clone(),
                    lines: explain(base, samples, options.primary.as_deref()),
                }));
            }
            for (side, samples) in sides.iter_mut().zip(samples) {
                side.cases.insert(case.clone(), samples);
            }
        }
        check_names(&rows, &options)?;
        if cases.len() > 1 {
            rows.sort_by(|a, b| (&a.metric, a.of).cmp(&(&b.metric, b.of)));
            let means: Vec<Row> = rows
                .chunk_by(|a, b| a.metric == b.metric)
                .filter(|rows| !rows.iter().any(Row::is_failure))
                .map(mean_of)
                .collect();
            rows.extend(means);
        }
        sort(&mut rows, cases.len() > 1);
        let tests = correct(&mut rows, sides.len(), options.primary.as_deref());
        warnings.extend(sides.iter().flat_map(warnings_of));
        let runs: Vec<Vec<&Run>> = sides.iter().map(runs_of).collect();
        let differences = facts::differences(&runs);
        let circumstances = sides.iter().zip(&runs);
        let circumstances: Vec<_> = circumstances
            .enumerate()
            .map(|(index, (side, runs))| {
                circumstances_of(side, runs, &describe(&differences, index))
            })
            .collect();
        let mut comparison = Self {
            sides: circumstances,
            cases,
            rows,
            differences,
            warnings,
            tests,
            explanations,
            options,
        };
        comparison.warnings.extend(comparison.too_few());
        Ok(comparison)
    }

    /// The rows to show.
    pub fn shown(&self) -> impl Iterator<Item = &Row> {
        let is_changed = |row: &&Row| {
            let mut changes = row.changes.iter();
            changes.any(|change| change.verdict() == Some(Verdict::Changed))
        };
        self.rows
            .iter()
            .filter(move |row| !self.options.changed || is_changed(row))
    }

    /// How many changes of a side have each verdict; means over cases do not count.
    #[must_use]
    pub fn count(&self, side: usize, verdict: Verdict) -> usize {
        let rows = self.rows.iter().filter(|row| row.of != Of::Cases);
        let changes = rows.filter_map(|row| row.changes.get(side));
        changes
            .filter(|change| change.verdict() == Some(verdict))
            .count()
    }

    /// Of how many tests how many found a change: between halves of one side all of them are false.
    #[must_use]
    pub fn share_changed(&self) -> (usize, usize) {
        let sides = 0..self.sides.len().saturating_sub(1);
        let changed = sides.map(|side| self.count(side, Verdict::Changed)).sum();
        (changed, self.tests.iter().sum())
    }

    /// Whether no more was found than chance may give: at most 5 % of what was tested. False if there
    /// were too few runs to test anything.
    #[must_use]
    pub fn holds(&self) -> bool {
        let (changed, tests) = self.share_changed();
        tests > 0 && changed as f64 <= ALPHA * tests as f64
    }

    /// How many runs would do where there are too few.
    fn too_few(&self) -> Option<String> {
        let fewest = self.sides.iter().map(|side| side.runs.0).min()?;
        if fewest >= FEWEST_RUNS {
            return None;
        }
        // With two runs or three there is at least a notion of how much they vary.
        let tests = self.rows.iter().flat_map(|row| &row.changes);
        let mut needed: Vec<usize> = tests
            .filter_map(|change| {
                let test = change.test.as_ref()?;
                test.estimate?;
                Some(test.runs_needed().unwrap_or(usize::MAX))
            })
            .collect();
        needed.sort_unstable();
        let median = needed
            .get(needed.len() / 2)
            .filter(|median| (FEWEST_RUNS + 1..usize::MAX).contains(*median));
        let more = median.map_or_else(String::new, |median| {
            format!(", {median} would show a change of 3 % in half of the metrics")
        });
        Some(format!(
            "no verdict with fewer than {FEWEST_RUNS} runs a side: {FEWEST_RUNS} would do for large \
             changes{more}"
        ))
    }
}

/// The cases that all sides have.
fn common_cases(sides: &[Side]) -> Result<Vec<String>, CompareError> {
    let Some((first, others)) = sides.split_first() else {
        return Err(CompareError::Empty);
    };
    let in_all = |case: &&String| others.iter().all(|side| side.cases.contains_key(*case));
    let common: Vec<String> = first.cases.keys().filter(in_all).cloned().collect();
    if common.is_empty() {
        let names = |side: &Side| {
            let mut names: Vec<_> = side.cases.keys().take(3).map(String::as_str).collect();
            names.retain(|name| !name.is_empty());
            let what = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            format!("{}: {what}", side.label)
        };
        let all: Vec<_> = sides.iter().map(names).collect();
        return Err(CompareError::NoCommonCase(all.join("; ")));
    }
    Ok(common)
}

fn check_names(rows: &[Row], options: &Options) -> Result<(), CompareError> {
    if rows.is_empty() && options.metrics.is_empty() {
        return Err(CompareError::Empty);
    }
    for pattern in &options.metrics {
        if !rows.iter().any(|row| pattern.matches(&row.metric)) {
            return Err(CompareError::NoMatch(pattern.to_string()));
        }
    }
    let Some(name) = &options.primary else {
        return Ok(());
    };
    if rows.iter().any(|row| row.metric == *name) {
        return Ok(());
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let alike = rows.iter().find(|row| row.metric.contains(last));
    let hint = alike.map_or_else(
        || "without --primary all metrics are listed".to_owned(),
        |row| format!("is it `{}`?", row.metric),
    );
    Err(CompareError::NoPrimary {
        name: name.clone(),
        hint,
    })
}

fn runs_of(side: &Side) -> Vec<&Run> {
    side.cases
        .values()
        .flat_map(|samples| &samples.runs)
        .collect()
}

fn warnings_of(side: &Side) -> impl Iterator<Item = String> + '_ {
    side.cases
        .values()
        .flat_map(|samples| &samples.warnings)
        .cloned()
}

/// The kernel of a side if kernels differ, else its command if commands do.
fn describe(differences: &[Difference], side: usize) -> String {
    let of = |name: &str| {
        differences
            .iter()
            .find(|difference| difference.name == name)
    };
    let difference = of("kernel").or_else(|| of("command"));
    let values = difference.and_then(|difference| difference.values.get(side));
    values.map(|values| values.join(", ")).unwrap_or_default()
}

fn circumstances_of(side: &Side, runs: &[&Run], description: &str) -> Circumstances {
    let counts = || side.cases.values().map(Samples::measured_runs);
    let histograms = side.cases.iter().flat_map(|(case, samples)| {
        let named = samples.histograms.iter();
        named.map(move |(name, histogram)| ((case.clone(), name.clone()), histogram.clone()))
    });
    Circumstances {
        label: side.label.clone(),
        description: description.to_owned(),
        runs: (counts().min().unwrap_or(0), counts().max().unwrap_or(0)),
        loss: facts::loss(runs),
        overhead_pct: facts::overhead(runs),
        histograms: histograms.collect(),
    }
}
