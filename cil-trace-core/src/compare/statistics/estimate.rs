//! How much a side differs, and how surely: an estimate with its standard error.

use super::exact::t_tails;
use super::{ALPHA, POWER, mean, variance};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// What a difference is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Natural logarithms: the exponential of a difference is a ratio. For values that are all
    /// positive; times, rates and counts vary in proportion to their size.
    Log,
    /// The values themselves.
    Linear,
}

impl Scale {
    /// Logarithms if every value has one.
    #[must_use]
    pub fn of(base: &[f64], side: &[f64]) -> Self {
        if base.iter().chain(side).all(|value| *value > 0.0) {
            Self::Log
        } else {
            Self::Linear
        }
    }

    /// The values on this scale.
    #[must_use]
    pub fn apply(self, values: &[f64]) -> Vec<f64> {
        match self {
            Self::Log => values.iter().map(|value| value.ln()).collect(),
            Self::Linear => values.to_vec(),
        }
    }
}

/// The difference of two means, with what is needed to say how sure it is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Side minus base, on the scale that the values were on.
    pub difference: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that error.
    pub freedom: f64,
}

impl Estimate {
    /// Of two independent samples with variances of their own; `None` below two values a side.
    ///
    /// Welch 1947, Biometrika 34:28; degrees of freedom after Satterthwaite 1946.
    #[must_use]
    pub fn welch(base: &[f64], side: &[f64]) -> Option<Self> {
        let part = |values: &[f64]| Part {
            square: variance(values) / values.len() as f64,
            freedom: values.len() as f64 - 1.0,
        };
        (base.len() > 1 && side.len() > 1).then(|| {
            let (error, freedom) = combined(&[part(base), part(side)]);
            Self {
                difference: mean(side) - mean(base),
                error,
                freedom,
            }
        })
    }

    /// Of paired differences; `None` below two.
    #[must_use]
    pub fn paired(differences: &[f64]) -> Option<Self> {
        let n = differences.len() as f64;
        (differences.len() > 1).then(|| Self {
            difference: mean(differences),
            error: (variance(differences) / n).sqrt(),
            freedom: n - 1.0,
        })
    }

    /// The mean of independent estimates: on the scale of logarithms, of the geometric mean.
    #[must_use]
    pub fn mean(estimates: &[Self]) -> Option<Self> {
        let n = estimates.len() as f64;
        let parts: Vec<Part> = estimates
            .iter()
            .map(|estimate| Part {
                square: estimate.error.powi(2),
                freedom: estimate.freedom,
            })
            .collect();
        let (error, freedom) = combined(&parts);
        (!estimates.is_empty()).then(|| Self {
            difference: estimates.iter().map(|e| e.difference).sum::<f64>() / n,
            error: error / n,
            freedom,
        })
    }

    /// The interval that holds the true difference with this confidence, from Student's t.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let reach = self.reach(f64::midpoint(1.0, confidence));
        (self.difference - reach, self.difference + reach)
    }

    /// p of the t test that the difference is none.
    #[must_use]
    pub fn p(&self) -> f64 {
        if self.difference == 0.0 {
            return 1.0;
        }
        t_tails(self.difference / self.error, self.freedom)
    }

    /// Whether the difference is surely between `low` and `high`: two one-sided tests at 5 %
    /// (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657), that is the 90 % interval inside.
    #[must_use]
    pub fn is_within(&self, low: f64, high: f64) -> bool {
        // Never narrower than with the normal quantile: saves most of the quantiles.
        let least = 1.644 * self.error;
        if self.difference - least < low || self.difference + least > high {
            return false;
        }
        let reach = self.reach(1.0 - ALPHA);
        self.difference - reach > low && self.difference + reach < high
    }

    /// The smallest difference that would have been found four times out of five: the sum of the
    /// quantiles for the level and for the power, times the error (Bloom 1995, Eval. Rev. 19:547).
    #[must_use]
    pub fn detectable(&self) -> f64 {
        self.reach(1.0 - ALPHA / 2.0) + self.reach(POWER)
    }

    fn reach(&self, probability: f64) -> f64 {
        if self.error == 0.0 {
            return 0.0;
        }
        t_quantile(probability, self.freedom) * self.error
    }
}

/// A squared standard error and its degrees of freedom.
struct Part {
    square: f64,
    freedom: f64,
}

/// Standard error of a sum of independent parts, and its degrees of freedom.
fn combined(parts: &[Part]) -> (f64, f64) {
    let square: f64 = parts.iter().map(|part| part.square).sum();
    let spread: f64 = parts
        .iter()
        .filter(|part| part.square > 0.0)
        .map(|part| part.square.powi(2) / part.freedom)
        .sum();
    (square.sqrt(), square.powi(2) / spread)
}

/// Quantile of Student's t; not a number without degrees of freedom.
pub(super) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(probability))
}
