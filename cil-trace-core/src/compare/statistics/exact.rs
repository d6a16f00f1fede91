//! Exact tests: every way in which chance could have dealt the runs to the sides is counted.
//!
//! Enumerating all of them is out of reach at ten runs a side and thousands of metrics. The sums
//! over subsets of each half of the values are made instead, and pairs of them counted (Horowitz and
//! Sahni 1974, J. ACM 21:277): 2^(N/2) steps in place of 2^N, with the same result.

use super::subsets::{Sums, choose, pairs_from};
use super::{mean, squares};
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// Most values that are counted exactly: two halves of 65,536 subsets.
const EXACT: usize = 32;

/// Values are counted in these parts of their range: whole numbers add up to the same in any order,
/// and are quicker to sort.
const PARTS: f64 = (1_u64 << 40) as f64;

/// Sums that differ by no more parts are equal, 1e-9 of the range: each value has been rounded.
const TIE: i64 = 1000;

/// A two-sided p value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PValue {
    /// The probability.
    pub p: f64,
    /// Counted; otherwise the approximation that many values allow.
    pub exact: bool,
}

impl PValue {
    /// Twice the smaller tail, at most 1, as scipy defines two-sided.
    fn of_tails(least: u64, most: u64, all: f64) -> Self {
        Self {
            p: (2.0 * least.min(most) as f64 / all).min(1.0),
            exact: true,
        }
    }

    fn approximate(p: f64) -> Self {
        Self { p, exact: false }
    }
}

/// Permutation test of the difference of the means of two independent samples.
///
/// Exact up to 32 values; with more, the t distribution that the permutation distribution
/// approaches. `None` if a sample is empty.
#[must_use]
pub fn permutation(base: &[f64], side: &[f64]) -> Option<PValue> {
    if base.is_empty() || side.is_empty() {
        return None;
    }
    // In units of the largest, so that no sum overflows.
    let all = base.iter().chain(side);
    let unit = all
        .clone()
        .fold(f64::MIN_POSITIVE, |unit, value| unit.max(value.abs()));
    let pooled: Vec<f64> = all.map(|value| value / unit).collect();
    let (low, high) = range(&pooled);
    if low == high {
        return Some(PValue {
            p: 1.0,
            exact: true,
        });
    }
    if pooled.len() > EXACT {
        return Some(PValue::approximate(pooled_t(base, side)));
    }
    let ways = choose(pooled.len(), side.len());
    let (base_range, side_range) = (range(base), range(side));
    if base_range.1 < side_range.0 || side_range.1 < base_range.0 {
        // Nothing is more extreme than full separation, and nothing as extreme.
        return Some(PValue::of_tails(1, u64::MAX, ways));
    }
    // Centred, so that the sums of both sides are each other's negative.
    let centre = mean(&pooled);
    let mut parts = in_parts(pooled.iter().map(|value| value - centre), high - low);
    let observed: i64 = parts[base.len()..].iter().sum();
    // The small ones in one half, the large ones in the other: with many of the one or of the other
    // all sums are below what is sought, or all are above, and need not be looked at.
    parts.sort_unstable();
    let (first, second) = parts.split_at(parts.len() / 2);
    let (first, second) = (Sums::of(first), Sums::of(second));
    if base.len() == side.len() {
        // The distribution is symmetric: to swap the sides is to turn the sign.
        let tail = tail_of_equal(&first, &second, observed.abs() - TIE);
        return Some(PValue::of_tails(tail, tail, ways));
    }
    let (mut at_least, mut more) = (0, 0);
    for size in 0..=first.values().min(side.len()) {
        let rest = side.len() - size;
        if rest <= second.values() {
            let (first, second) = (first.class(size), second.class(rest));
            let pairs = pairs_from(&first, &second, [observed - TIE, observed + TIE]);
            at_least += pairs[0];
            more += pairs[1];
        }
    }
    Some(PValue::of_tails(at_least, ways as u64 - more, ways))
}

/// How many choices of half of all values add up to `threshold` or more.
///
/// Whoever takes `size` of the first half and the rest of the second leaves as many of the second
/// and the rest of the first: that pair of classes is this one seen from the other end.
fn tail_of_equal(first: &Sums, second: &Sums, threshold: i64) -> u64 {
    let half = first.values();
    let total = first.total() + second.total();
    let pairs = |size: usize| {
        let (first, second) = (first.class(size), second.class(half - size));
        if 2 * size == half {
            return pairs_from(&first, &second, [threshold])[0];
        }
        let [from, above] = pairs_from(&first, &second, [threshold, total - threshold + 1]);
        from + (first.sums.len() * second.sums.len()) as u64 - above
    };
    (0..=half / 2).map(pairs).sum()
}

/// The least p that the signs of so many differences can give: all of one sign.
#[must_use]
pub fn least_signed_p(pairs: usize) -> f64 {
    2.0 / (pairs as f64).exp2()
}

/// Permutation test of the mean of paired differences: under chance each sign is a coin's.
///
/// Exact up to 32 pairs; with more, the paired t test. `None` without a pair.
#[must_use]
pub fn sign_flip(differences: &[f64]) -> Option<PValue> {
    if differences.is_empty() {
        return None;
    }
    let scale: f64 = differences
        .iter()
        .fold(0.0, |scale, value| value.abs().max(scale));
    if scale == 0.0 {
        return Some(PValue {
            p: 1.0,
            exact: true,
        });
    }
    let n = differences.len();
    if n > EXACT {
        let error = (squares(differences) / (n as f64 - 1.0) / n as f64).sqrt();
        return Some(PValue::approximate(t_tails(
            mean(differences) / error,
            n as f64 - 1.0,
        )));
    }
    // A sum of signed values is twice the sum of those that keep their sign, less all magnitudes.
    let magnitudes = in_parts(differences.iter().map(|value| value.abs()), scale);
    let kept = magnitudes.iter().zip(differences);
    let observed: i64 = kept.filter(|(_, d)| **d > 0.0).map(|(part, _)| part).sum();
    let (first, second) = magnitudes.split_at(n / 2);
    let (first, second) = (Sums::of(first), Sums::of(second));
    let ways = (n as f64).exp2();
    let [at_least, more] = pairs_from(
        &first.all(),
        &second.all(),
        [observed - TIE, observed + TIE],
    );
    Some(PValue::of_tails(at_least, ways as u64 - more, ways))
}

/// Mann and Whitney's test: the permutation test of the ranks, ties sharing their mean rank.
///
/// Exact up to 32 values, with ties too; with more, the normal approximation with corrections for
/// ties and continuity. `None` if a sample is empty.
#[must_use]
pub fn mann_whitney(base: &[f64], side: &[f64]) -> Option<PValue> {
    if base.is_empty() || side.is_empty() {
        return None;
    }
    let ranks = midranks(&base.iter().chain(side).copied().collect::<Vec<_>>());
    let (base, side) = ranks.split_at(base.len());
    if ranks.len() <= EXACT {
        return permutation(base, side);
    }
    let n = ranks.len() as f64;
    let (m, k) = (base.len() as f64, side.len() as f64);
    // The ranks' own variance holds the correction for ties.
    let deviation = (m * k / (n * (n - 1.0)) * squares(&ranks)).sqrt();
    if deviation == 0.0 {
        return Some(PValue::approximate(1.0));
    }
    let distance = (side.iter().sum::<f64>() - k * (n + 1.0) / 2.0).abs();
    let z = (distance - 0.5).max(0.0) / deviation;
    Some(PValue::approximate(
        (2.0 * Normal::standard().sf(z)).min(1.0),
    ))
}

/// The least p that [`permutation`] can give with so many runs a side.
#[must_use]
pub fn least_p(base: usize, side: usize) -> f64 {
    (2.0 / choose(base + side, side)).min(1.0)
}

/// Ranks from 1; equal values share the mean of theirs.
fn midranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for ties in order.chunk_by(|a, b| values[*a] == values[*b]) {
        for index in ties {
            ranks[*index] = below as f64 + (ties.len() as f64 + 1.0) / 2.0;
        }
        below += ties.len();
    }
    ranks
}

fn range(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        })
}

/// Whole [`PARTS`] of `range`.
fn in_parts(values: impl Iterator<Item = f64>, range: f64) -> Vec<i64> {
    values.map(|value| (value / range * PARTS) as i64).collect()
}

/// p of Student's t test with the variance of both samples pooled.
fn pooled_t(base: &[f64], side: &[f64]) -> f64 {
    let (m, k) = (base.len() as f64, side.len() as f64);
    let freedom = m + k - 2.0;
    let variance = (squares(base) + squares(side)) / freedom;
    let error = (variance * (1.0 / m + 1.0 / k)).sqrt();
    t_tails((mean(side) - mean(base)) / error, freedom)
}

/// Probability of a t as large in magnitude.
pub(super) fn t_tails(t: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(distribution) if t.is_finite() => (2.0 * distribution.sf(t.abs())).min(1.0),
        // No variance at all: any difference is infinitely many deviations.
        _ if t.is_infinite() => 0.0,
        _ => 1.0,
    }
}
