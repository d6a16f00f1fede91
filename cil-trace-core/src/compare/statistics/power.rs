//! How many runs would do.

use super::estimate::t_quantile;
use super::exact::least_p;
use super::{ALPHA, POWER};

/// More runs than anybody makes; a metric that needs them is beyond measuring.
pub const MOST_RUNS: usize = 1000;

/// Runs a side with which a difference of `effect` would be found four times out of five, if single
/// runs have the standard deviation `deviation`; both on the same scale. `None` beyond 1000.
///
/// At least so many that the exact test can reach the level at all: four.
#[must_use]
pub fn runs_to_detect(effect: f64, deviation: f64) -> Option<usize> {
    (2..=MOST_RUNS)
        .filter(|n| least_p(*n, *n) <= ALPHA)
        .find(|&n| {
            let freedom = 2.0 * n as f64 - 2.0;
            let quantiles = t_quantile(1.0 - ALPHA / 2.0, freedom) + t_quantile(POWER, freedom);
            quantiles * deviation * (2.0 / n as f64).sqrt() <= effect
        })
}
