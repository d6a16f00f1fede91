//! Exact tests: every way in which chance could have dealt the runs to the sides is counted.
//!
//! Enumerating all of them is out of reach at ten runs a side and thousands of metrics. The sums
//! over subsets of each half of the values are made instead, and pairs of them counted (Horowitz and
//! Sahni 1974, J. ACM 21:277): 2^(N/2) steps in place of 2^N, with the same result.

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
    let parts = in_parts(pooled.iter().map(|value| value - centre), high - low);
    let observed: i64 = parts[base.len()..].iter().sum();
    let (first, second) = parts.split_at(parts.len() / 2);
    let (first, second) = (Sums::of(first), Sums::of(second));
    let count_from = |threshold: i64| -> u64 {
        let classes = first.classes.iter().enumerate();
        classes
            .filter_map(|(size, first)| {
                let rest = side.len().checked_sub(size)?;
                Some(pairs_from(first, second.classes.get(rest)?, threshold))
            })
            .sum()
    };
    if base.len() == side.len() {
        // The distribution is symmetric: to swap the sides is to turn the sign.
        let tail = count_from(observed.abs() - TIE);
        return Some(PValue::of_tails(tail, tail, ways));
    }
    let at_least = count_from(observed - TIE);
    let at_most = ways as u64 - count_from(observed + TIE);
    Some(PValue::of_tails(at_least, at_most, ways))
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
    let (first, second) = (Sums::of(first).all(), Sums::of(second).all());
    let ways = (n as f64).exp2();
    let at_least = pairs_from(&first, &second, observed - TIE);
    let at_most = ways as u64 - pairs_from(&first, &second, observed + TIE);
    Some(PValue::of_tails(at_least, at_most, ways))
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
    values
        .map(|value| (value / range * PARTS).round() as i64)
        .collect()
}

/// The sums over all subsets of some values.
struct Sums {
    /// Those of subsets of each size.
    classes: Vec<Vec<i64>>,
}

impl Sums {
    fn of(values: &[i64]) -> Self {
        let n = values.len();
        let room = (0..=n).map(|size| Vec::with_capacity(choose(n, size) as usize));
        let mut classes: Vec<Vec<i64>> = room.collect();
        classes[0].push(0);
        for (index, value) in values.iter().enumerate() {
            for size in (0..=index).rev() {
                let (without, with) = classes.split_at_mut(size + 1);
                with[0].extend(without[size].iter().map(|sum| sum + value));
            }
        }
        Self { classes }
    }

    /// Of subsets of any size.
    fn all(self) -> Vec<i64> {
        self.classes.concat()
    }
}

/// How many pairs of one of each add up to `threshold` or more.
fn pairs_from(first: &[i64], second: &[i64], threshold: i64) -> u64 {
    if second.len() <= BUCKETS {
        pairs_by_bucket(first, second, threshold)
    } else {
        pairs_in_order(first.to_vec(), second.to_vec(), threshold)
    }
}

/// Buckets for the sums of up to ten runs a side, of which the largest class has 252.
const BUCKETS: usize = 256;

/// Without sorting: sums in other buckets than the one that is sought need not be looked at. Quicker
/// by half, and for so few never slow, whatever their distribution.
fn pairs_by_bucket(first: &[i64], second: &[i64], threshold: i64) -> u64 {
    let (Some(&low), Some(&high)) = (second.iter().min(), second.iter().max()) else {
        return 0;
    };
    let bits = i64::BITS - (high - low).leading_zeros();
    let shift = bits.saturating_sub(BUCKETS.ilog2());
    let bucket = |sum: i64| ((sum - low) >> shift) as usize;
    // Where each bucket begins, counted first.
    let mut starts = [0_u16; BUCKETS + 1];
    for &sum in second {
        starts[bucket(sum) + 1] += 1;
    }
    for index in 0..BUCKETS {
        starts[index + 1] += starts[index];
    }
    let (mut free, mut sorted) = (starts, [0; BUCKETS]);
    for &sum in second {
        let place = &mut free[bucket(sum)];
        sorted[usize::from(*place)] = sum;
        *place += 1;
    }
    let enough = |value: &i64| {
        let needed = threshold - value;
        if needed <= low {
            return second.len();
        }
        if needed > high {
            return 0;
        }
        let bucket = bucket(needed);
        let (from, to) = (usize::from(starts[bucket]), usize::from(starts[bucket + 1]));
        let beside = sorted[from..to]
            .iter()
            .filter(|sum| **sum >= needed)
            .count();
        second.len() - to + beside
    };
    first.iter().map(|value| enough(value) as u64).sum()
}

fn pairs_in_order(mut first: Vec<i64>, mut second: Vec<i64>, threshold: i64) -> u64 {
    first.sort_unstable();
    second.sort_unstable();
    // All of the second from `from` on are large enough with this one of the first.
    let (mut from, mut pairs) = (second.len(), 0);
    for value in &first {
        while from > 0 && value + second[from - 1] >= threshold {
            from -= 1;
        }
        pairs += (second.len() - from) as u64;
    }
    pairs
}

/// Binomial coefficient; exact below 2^53, which the exact tests stay far below.
fn choose(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |ways, i| {
        (ways * (n - i) as f64 / (i + 1) as f64).round()
    })
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
