//! Log-linear histograms: 8 buckets per power of two, so that a bucket is at most 12.5 % wide.
//!
//! Values below 16 have a bucket of their own. Edges are `[lo, hi)`.

/// Buckets per power of two, as a power of two.
const SUB_BITS: u32 = 3;
/// The highest power of two told apart; larger values share the last bucket.
const MAX_EXPONENT: u32 = 41;
/// Number of buckets; the last one has no upper edge.
pub const BUCKETS: usize = bucket_of(u64::MAX) + 1;

/// The bucket that `value` falls into.
#[must_use]
#[inline(always)]
pub const fn bucket_of(value: u64) -> usize {
    let exponent = 63 - (value | 1).leading_zeros();
    if exponent < SUB_BITS {
        // The mask changes nothing. It says so to the verifier too, which does not know exponents: of a
        // multiple of 512 some builds of 6.18 derive bounds that contradict each other, and write a
        // warning to the kernel's log.
        (value & ((1 << SUB_BITS) - 1)) as usize
    } else if exponent > MAX_EXPONENT {
        (((MAX_EXPONENT - SUB_BITS + 2) << SUB_BITS) - 1) as usize
    } else {
        let sub = (value >> (exponent - SUB_BITS)) as u32 & ((1 << SUB_BITS) - 1);
        (((exponent - SUB_BITS + 1) << SUB_BITS) + sub) as usize
    }
}

/// The edges `[lo, hi)` of a bucket; the last bucket ends at `u64::MAX`.
///
/// An index past the last bucket is taken for the last one.
#[must_use]
pub const fn bucket_edges(index: usize) -> (u64, u64) {
    if index + 1 >= BUCKETS {
        return (lower_edge(BUCKETS - 1), u64::MAX);
    }
    (lower_edge(index), lower_edge(index + 1))
}

const fn lower_edge(index: usize) -> u64 {
    let group = index >> SUB_BITS;
    let sub = (index & ((1 << SUB_BITS) - 1)) as u64;
    if group == 0 {
        sub
    } else {
        ((1 << SUB_BITS) + sub) << (group - 1)
    }
}

/// A histogram as a per-CPU map holds it. All zero is the empty histogram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Hist {
    /// Values recorded.
    pub count: u64,
    /// Their sum, in the metric's unit, wrapping.
    pub sum: u64,
    /// The largest value.
    pub max: u64,
    /// The bitwise complement of the smallest value, so that zero means "none yet".
    pub not_min: u64,
    /// Values per bucket, wrapping; user space takes differences.
    pub buckets: [u32; BUCKETS],
}

impl Hist {
    /// The empty histogram.
    pub const EMPTY: Self = Self {
        count: 0,
        sum: 0,
        max: 0,
        not_min: 0,
        buckets: [0; BUCKETS],
    };

    /// Adds the histogram of another CPU.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
        self.not_min = self.not_min.max(other.not_min);
        for (into, from) in self.buckets.iter_mut().zip(&other.buckets) {
            *into = into.wrapping_add(*from);
        }
    }

    /// Records one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
        if value > self.max {
            self.max = value;
        }
        if !value > self.not_min {
            self.not_min = !value;
        }
        if let Some(bucket) = self.buckets.get_mut(bucket_of(value)) {
            *bucket = bucket.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges_at_powers_of_two() {
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(1), 1);
        for k in 1..=MAX_EXPONENT {
            let v = 1u64 << k;
            assert_ne!(bucket_of(v - 1), bucket_of(v), "2^{k}-1 and 2^{k}");
            assert_eq!(bucket_edges(bucket_of(v)).0, v, "2^{k} opens a bucket");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket_edges(BUCKETS - 1).1, u64::MAX);
    }

    #[test]
    fn buckets_tile_the_range() {
        for index in 1..BUCKETS {
            assert_eq!(bucket_edges(index - 1).1, bucket_edges(index).0);
        }
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value in any::<u64>()) {
            let (lo, hi) = bucket_edges(bucket_of(value));
            prop_assert!(lo <= value && (value < hi || hi == u64::MAX));
        }

        #[test]
        fn a_bucket_is_at_most_an_eighth_wide(value in 8u64..(1 << (MAX_EXPONENT + 1)) - 1) {
            let index = bucket_of(value);
            prop_assume!(index < BUCKETS - 1);
            let (lo, hi) = bucket_edges(index);
            prop_assert!((hi - lo) * 8 <= lo);
        }

        #[test]
        fn min_max_sum_count(values in proptest::collection::vec(any::<u32>(), 1..50)) {
            let mut hist = Hist::EMPTY;
            for &v in &values { hist.record(u64::from(v)); }
            prop_assert_eq!(hist.count, values.len() as u64);
            prop_assert_eq!(hist.max, u64::from(*values.iter().max().expect("not empty")));
            prop_assert_eq!(!hist.not_min, u64::from(*values.iter().min().expect("not empty")));
            prop_assert_eq!(hist.sum, values.iter().map(|&v| u64::from(v)).sum::<u64>());
            prop_assert_eq!(hist.buckets.iter().map(|&b| u64::from(b)).sum::<u64>(), hist.count);
        }
    }
}
