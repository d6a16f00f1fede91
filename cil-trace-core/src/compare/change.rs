//! One metric on one side against the base: how it differs and what can be said of that.

use super::names;
pub use super::statistics::Scale;
use super::statistics::{
    ALPHA, Estimate, PValue, least_p, least_signed_p, mann_whitney, mean, permutation,
    runs_to_detect, sign_flip,
};

/// Fewest runs a side of which anything is said: with three and three, chance alone deals the most
/// extreme order once in ten.
pub const FEWEST_RUNS: usize = 4;

/// A change of at most so much, as a share, is none.
pub const MARGIN: f64 = 0.03;

/// How large a change is, as tables print it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// In percent of the base.
    Percent(f64),
    /// In points, of a metric that is a percentage; of failures, by how many more of a hundred runs
    /// had them.
    Points(f64),
    /// The base is zero, the side is not: no ratio says how much that is.
    New,
    /// One of them has no value.
    Unknown,
}

impl Size {
    /// Of two means.
    #[must_use]
    pub fn of(metric: &str, base: f64, side: f64) -> Self {
        match side - base {
            difference if !difference.is_finite() => Self::Unknown,
            difference if names::is_failure(metric) => Self::Points(100.0 * difference),
            difference if names::is_percentage(metric) => Self::Points(difference),
            0.0 => Self::Percent(0.0),
            difference => match 100.0 * difference / base {
                percent if percent.is_finite() => Self::Percent(percent),
                // So large that a hundred times as much is no number.
                _ if (difference / base).is_finite() => Self::Percent(100.0 * (difference / base)),
                _ => Self::New,
            },
        }
    }
}

/// What can be said of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is real, by the exact test and after correction for all metrics, and not negligible.
    Changed,
    /// It is surely inside the margin.
    NoChange,
    /// Neither: these runs do not tell.
    Inconclusive,
    /// Too few runs for any verdict.
    TooFew,
}

impl Verdict {
    /// The words for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::NoChange => "no change",
            Self::Inconclusive => "inconclusive",
            Self::TooFew => "too few runs",
        }
    }
}

/// The samples of both sides, and the test of their difference.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// What the estimate is of.
    pub scale: Scale,
    /// The difference of the means on that scale.
    difference: f64,
    /// The same with its error; `None` below two runs.
    pub estimate: Option<Estimate>,
    /// Of the exact test.
    pub p: PValue,
    /// After correction for all metrics of the side; equal to `p` for the primary metric.
    pub q: f64,
    /// What can be said, given `q`.
    pub verdict: Verdict,
    /// The differences within rounds were tested.
    pub paired: bool,
    /// All runs of both sides are the same, so that there was nothing to test.
    pub constant: bool,
    /// Rounds in which both sides have a value.
    rounds: usize,
    base: Vec<f64>,
    side: Vec<f64>,
}

impl Test {
    /// Of the runs that have a value; `pairs` are the values of each round in which both have one.
    /// `None` if a side has no run.
    ///
    /// Pairs are tested as such where so many of them can single out one of `family` metrics that
    /// are corrected together: of one from six on, of a hundred from twelve on. With fewer the rounds
    /// are ignored, which is valid too, as each side runs once in every round, and deals chance many
    /// more ways. What decides is known before any value is.
    #[must_use]
    pub fn of(base: &[f64], side: &[f64], pairs: &[(f64, f64)], family: usize) -> Option<Self> {
        let scale = Scale::of(base, side);
        let (a, b) = (scale.apply(base), scale.apply(side));
        let differences: Vec<f64> = pairs
            .iter()
            .map(|(base, side)| match scale {
                Scale::Log => (side / base).ln(),
                Scale::Linear => side - base,
            })
            .collect();
        let paired = least_signed_p(differences.len()) * family as f64 <= ALPHA;
        let (estimate, p) = if paired {
            (Estimate::paired(&differences), sign_flip(&differences)?)
        } else {
            (Estimate::welch(&a, &b), permutation(&a, &b)?)
        };
        let first = base.first()?;
        let mut test = Self {
            scale,
            difference: estimate.map_or_else(|| mean(&b) - mean(&a), |known| known.difference),
            estimate,
            p,
            q: p.p,
            paired,
            constant: base.iter().chain(side).all(|value| value == first),
            verdict: Verdict::TooFew,
            rounds: differences.len(),
            base: base.to_vec(),
            side: side.to_vec(),
        };
        test.judge(p.p);
        Some(test)
    }

    /// Of the geometric mean over test cases, from the tests of the cases.
    #[must_use]
    pub fn of_cases(cases: &[&Self]) -> Option<Self> {
        let logs = cases.iter().filter(|test| test.scale == Scale::Log);
        let estimates: Option<Vec<Estimate>> = logs.map(|test| test.estimate).collect();
        let estimate = Estimate::mean(&estimates?)?;
        let p = PValue {
            p: estimate.p(),
            exact: false,
        };
        let runs = |of: fn(&Self) -> &Vec<f64>| {
            let fewest = cases.iter().map(|test| of(test).len()).min().unwrap_or(0);
            vec![f64::NAN; fewest]
        };
        let mut test = Self {
            scale: Scale::Log,
            difference: estimate.difference,
            estimate: Some(estimate),
            p,
            q: p.p,
            paired: false,
            constant: cases.iter().all(|test| test.constant),
            verdict: Verdict::TooFew,
            rounds: 0,
            base: runs(|test| &test.base),
            side: runs(|test| &test.side),
        };
        test.judge(p.p);
        Some(test)
    }

    /// Runs with a value on the base and on the side; of a mean over cases the fewest.
    #[must_use]
    pub fn runs(&self) -> (usize, usize) {
        (self.base.len(), self.side.len())
    }

    /// Whether there are enough runs for a verdict.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        self.base.len().min(self.side.len()) >= FEWEST_RUNS
    }

    /// Sets q, and with it the verdict.
    pub fn judge(&mut self, q: f64) {
        self.q = q;
        self.verdict = if !self.has_runs() {
            Verdict::TooFew
        } else if self.is_equivalent() {
            Verdict::NoChange
        } else if self.q <= ALPHA {
            Verdict::Changed
        } else {
            Verdict::Inconclusive
        };
    }

    fn is_equivalent(&self) -> bool {
        let margin = self.scaled(MARGIN);
        let low = match self.scale {
            Scale::Log => (1.0 - MARGIN).ln(),
            Scale::Linear => -margin,
        };
        self.constant
            || self
                .estimate
                .is_some_and(|estimate| estimate.is_within(low, margin))
    }

    /// A share of the base on the scale of the estimate.
    fn scaled(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Log => share.ln_1p(),
            Scale::Linear => share * mean(&self.base).abs(),
        }
    }

    /// The 95 % interval: of the ratio of the side to the base where all values are positive, else
    /// of the difference.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (low, high) = self.estimate?.interval(1.0 - ALPHA);
        Some(self.unscaled(low, high))
    }

    /// The ratio of the geometric means, or the difference.
    #[must_use]
    pub fn effect(&self) -> f64 {
        self.unscaled(self.difference, 0.0).0
    }

    fn unscaled(&self, first: f64, second: f64) -> (f64, f64) {
        match self.scale {
            Scale::Log => (first.exp(), second.exp()),
            Scale::Linear => (first, second),
        }
    }

    /// The smallest change that these runs would have shown four times out of five, in percent of
    /// the base.
    #[must_use]
    pub fn detectable_pct(&self) -> Option<f64> {
        let detectable = self.estimate?.detectable();
        let share = match self.scale {
            Scale::Log => detectable.exp_m1(),
            Scale::Linear => detectable / mean(&self.base).abs(),
        };
        share.is_finite().then_some(100.0 * share)
    }

    /// Runs a side with which a change as large as the margin would be found four times out of
    /// five; `None` if too few runs tell how much they vary, or no number would do.
    #[must_use]
    pub fn runs_needed(&self) -> Option<usize> {
        let (m, n) = (self.base.len() as f64, self.side.len() as f64);
        let deviation = self.estimate?.error / (1.0 / m + 1.0 / n).sqrt();
        runs_to_detect(self.scaled(MARGIN), deviation)
    }

    /// p of Mann and Whitney's test.
    #[must_use]
    pub fn mann_whitney(&self) -> Option<PValue> {
        // Of a mean over cases there are no ranks.
        let known = self
            .base
            .iter()
            .chain(&self.side)
            .all(|value| value.is_finite());
        known
            .then(|| mann_whitney(&self.base, &self.side))
            .flatten()
    }

    /// p of Mann and Whitney's test if it decides otherwise than the permutation test.
    #[must_use]
    pub fn disagreement(&self) -> Option<f64> {
        let ranks = self.mann_whitney()?.p;
        ((ranks <= ALPHA) != (self.p.p <= ALPHA)).then_some(ranks)
    }

    /// The least p that so many runs can give.
    #[must_use]
    pub fn least_p(&self) -> f64 {
        if self.paired {
            least_signed_p(self.rounds)
        } else {
            least_p(self.base.len(), self.side.len())
        }
    }
}
