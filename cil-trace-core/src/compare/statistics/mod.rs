//! The statistics of a comparison: intervals, exact tests, correction for many metrics, power.
//!
//! One run is one observation. Takes numbers and gives numbers: no metric, no side and no text.
//! `docs/compare.md` has the formulas with their sources; a test holds every result against scipy
//! and against enumeration.

mod adjust;
mod estimate;
mod exact;
mod power;
mod subsets;

pub use adjust::benjamini_hochberg;
pub use estimate::{Estimate, Scale};
pub use exact::{PValue, least_p, least_signed_p, mann_whitney, permutation, sign_flip};
pub use power::{MOST_RUNS, runs_to_detect};

/// Two-sided significance level of every test.
pub const ALPHA: f64 = 0.05;

/// Probability with which the minimum detectable effect would have been found.
pub const POWER: f64 = 0.8;

/// The arithmetic mean; not a number of no values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let sum: f64 = values.iter().sum();
    if sum.is_infinite() {
        return values.iter().map(|value| value / n).sum();
    }
    sum / n
}

/// Sum of squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The standard deviation of these very values (divisor n), as LKP prints it.
#[must_use]
pub fn population_deviation(values: &[f64]) -> f64 {
    (squares(values) / values.len() as f64).sqrt()
}

/// The standard deviation estimated for what they are a sample of (divisor n - 1), as mmtests
/// prints it; not a number of one value.
#[must_use]
pub fn sample_deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

fn variance(values: &[f64]) -> f64 {
    squares(values) / (values.len() as f64 - 1.0)
}
