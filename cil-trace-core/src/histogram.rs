//! Histograms in user space: sparse, mergeable, with quantiles.

use cil_trace_common::hist::{BUCKETS, Hist, bucket_edges};
use std::collections::BTreeMap;

/// A log-linear histogram (see [`cil_trace_common::hist`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// Values recorded.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The smallest value; 0 when empty.
    pub min: u64,
    /// The largest value; 0 when empty.
    pub max: u64,
    /// Values per bucket; buckets without a value are not in the map.
    pub buckets: BTreeMap<u16, u64>,
}

impl Histogram {
    /// What was added between two readings of the same per-CPU histogram.
    ///
    /// A difference has no `min` and `max` of its own: they are those since the beginning, as far as
    /// they lie in the buckets that have a value, which are at most 12.5 % wide. Merged over all
    /// differences they are exact.
    #[must_use]
    pub fn between(before: &Hist, now: &Hist) -> Self {
        let buckets: BTreeMap<u16, u64> = (0u16..)
            .zip(now.buckets.iter().zip(&before.buckets))
            .map(|(index, (now, before))| (index, u64::from(now.wrapping_sub(*before))))
            .filter(|(_, count)| *count > 0)
            .collect();
        let count = now.count.wrapping_sub(before.count);
        if count == 0 {
            return Self::default();
        }
        let edges = |entry: Option<(&u16, &u64)>| {
            entry.map_or((0, u64::MAX), |(&index, _)| {
                bucket_edges(usize::from(index))
            })
        };
        let (lowest, _) = edges(buckets.first_key_value());
        let (_, end) = edges(buckets.last_key_value());
        let min = lowest.max(!now.not_min);
        Self {
            count,
            sum: now.sum.wrapping_sub(before.sum),
            min,
            // Whoever reads in the middle of an update may find a bucket ahead of the maximum.
            max: now.max.min(end.saturating_sub(1)).max(min),
            buckets,
        }
    }

    /// A histogram of `n` times as many values, for a sample of 1 in `n`.
    #[must_use]
    pub fn times(&self, n: u64) -> Self {
        let buckets = self.buckets.iter();
        Self {
            count: self.count.saturating_mul(n),
            sum: self.sum.wrapping_mul(n),
            min: self.min,
            max: self.max,
            buckets: buckets
                .map(|(&index, &count)| (index, count.saturating_mul(n)))
                .collect(),
        }
    }

    /// Adds another histogram to this one; associative and commutative.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
        for (&index, &count) in &other.buckets {
            let bucket = self.buckets.entry(index).or_default();
            *bucket = bucket.saturating_add(count);
        }
    }

    /// The value below which a share `q` (0 to 1) of the values lies; `None` when empty.
    ///
    /// Linear interpolation inside the bucket, clamped to the true minimum and maximum. The bucket
    /// is at most 12.5 % wide, which bounds the error.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * self.count as f64;
        let mut below = 0.0;
        for (&index, &count) in &self.buckets {
            let count = count as f64;
            if below + count >= rank {
                let (lo, hi) = bucket_edges(usize::from(index));
                let hi = hi.min(self.max.saturating_add(1));
                let width = hi.saturating_sub(lo) as f64;
                // A bucket one value wide needs no interpolation; the edge `hi` is outside.
                let inside = if width <= 1.0 {
                    0.0
                } else {
                    width * ((rank - below) / count)
                };
                return Some(((lo as f64 + inside) as u64).clamp(self.min, self.max));
            }
            below += count;
        }
        Some(self.max)
    }

    /// Mean of the values; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// `(lo, hi, count)` of every bucket with a value, in order; edges are `[lo, hi)`, and the last
    /// edge is clamped to just above the true maximum.
    pub fn edges(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.iter().map(|(&index, &count)| {
            let (lo, hi) = bucket_edges(usize::from(index).min(BUCKETS - 1));
            let hi = if hi == u64::MAX {
                self.max.saturating_add(1)
            } else {
                hi
            };
            (lo, hi, count)
        })
    }
}

/// A histogram of these values.
impl FromIterator<u64> for Histogram {
    fn from_iter<T: IntoIterator<Item = u64>>(values: T) -> Self {
        let mut hist = Hist::EMPTY;
        for value in values {
            hist.record(value);
        }
        Self::between(&Hist::EMPTY, &hist)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram() -> impl Strategy<Value = Histogram> {
        proptest::collection::vec(0u64..1 << 40, 0..30).prop_map(|v| v.into_iter().collect())
    }

    proptest! {
        #[test]
        fn merge_is_associative(a in histogram(), b in histogram(), c in histogram()) {
            let mut left = a.clone();
            left.merge(&b);
            left.merge(&c);
            let mut right = b;
            right.merge(&c);
            let mut all = a;
            all.merge(&right);
            prop_assert_eq!(left, all);
        }

        #[test]
        fn quantiles_are_within_an_eighth(mut values in proptest::collection::vec(1u64..1 << 40, 1..200)) {
            let histogram: Histogram = values.iter().copied().collect();
            values.sort_unstable();
            for q in [0.5, 0.9, 0.99, 0.999] {
                let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1] as f64;
                let got = histogram.quantile(q).expect("not empty") as f64;
                prop_assert!((got - exact).abs() <= exact * 0.125 + 1.0, "q {} got {} exact {}", q, got, exact);
            }
        }
    }

    #[test]
    fn extremes_are_those_of_the_difference_as_far_as_buckets_tell() {
        let mut before = Hist::EMPTY;
        for value in [3, 1_000_000] {
            before.record(value);
        }
        let mut now = before;
        for value in [100, 900] {
            now.record(value);
        }
        let difference = Histogram::between(&before, &now);
        assert!((96..=100).contains(&difference.min), "{difference:?}");
        assert!((900..1024).contains(&difference.max), "{difference:?}");
        let mut all = Histogram::between(&Hist::EMPTY, &before);
        all.merge(&difference);
        assert_eq!((all.min, all.max), (3, 1_000_000));
    }

    #[test]
    fn wrapped_buckets_still_give_the_difference() {
        let mut before = Hist::EMPTY;
        before.count = 1;
        before.not_min = !5;
        before.max = 5;
        before.buckets[5] = u32::MAX;
        let mut now = before;
        now.record(5);
        now.record(5);
        assert_eq!(
            Histogram::between(&before, &now).buckets,
            BTreeMap::from([(5, 2)])
        );
    }
}
