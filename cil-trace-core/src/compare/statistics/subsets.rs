//! Sums over subsets, and how many pairs of two of them reach a threshold.
//!
//! Whole numbers, so that no order of adding matters. What they are sums of is the test's business.

/// The sums over all subsets of some values.
pub(super) struct Sums {
    /// By size of the subset.
    sums: Vec<i64>,
    /// Where the subsets of each size begin, and where the last end.
    starts: Vec<usize>,
    /// The smallest and the largest sum of each size.
    spans: Vec<(i64, i64)>,
}

/// Sums of subsets of one size, or of any.
pub(super) struct Class<'a> {
    /// In no order.
    pub(super) sums: &'a [i64],
    low: i64,
    high: i64,
}

impl Sums {
    pub(super) fn of(values: &[i64]) -> Self {
        let n = values.len();
        let mut starts = vec![0; n + 2];
        for size in 0..=n {
            starts[size + 1] = starts[size] + choose(n, size) as usize;
        }
        let mut sums = vec![0; starts[n + 1]];
        // Of each size how many are there; one of no values.
        let mut known = vec![0; n + 1];
        known[0] = 1;
        for (index, value) in values.iter().enumerate() {
            for size in (0..=index).rev() {
                let (without, with) = sums.split_at_mut(starts[size + 1]);
                let without = &without[starts[size]..][..known[size]];
                let with = &mut with[known[size + 1]..][..without.len()];
                for (with, without) in with.iter_mut().zip(without) {
                    *with = without + value;
                }
                known[size + 1] += without.len();
            }
        }
        Self {
            sums,
            starts,
            spans: spans(values),
        }
    }

    /// How many values they are sums of.
    pub(super) fn values(&self) -> usize {
        self.spans.len() - 1
    }

    /// Those of so many values.
    pub(super) fn class(&self, size: usize) -> Class<'_> {
        let (low, high) = self.spans[size];
        Class {
            sums: &self.sums[self.starts[size]..self.starts[size + 1]],
            low,
            high,
        }
    }

    /// Of subsets of any size.
    pub(super) fn all(&self) -> Class<'_> {
        let span = |(low, high): (i64, i64), of: &(i64, i64)| (low.min(of.0), high.max(of.1));
        let (low, high) = self.spans.iter().fold((0, 0), span);
        Class {
            sums: &self.sums,
            low,
            high,
        }
    }

    /// That of all values.
    pub(super) fn total(&self) -> i64 {
        self.spans[self.values()].0
    }
}

/// The sums of the smallest and of the largest values, of each number of them.
fn spans(values: &[i64]) -> Vec<(i64, i64)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut span = (0, 0);
    let both = sorted.iter().zip(sorted.iter().rev());
    let longer = both.map(|(small, large)| {
        span = (span.0 + small, span.1 + large);
        span
    });
    let mut spans = vec![(0, 0)];
    spans.extend(longer);
    spans
}

/// How many pairs of one of each add up to each threshold or more.
pub(super) fn pairs_from<const N: usize>(
    first: &Class<'_>,
    second: &Class<'_>,
    thresholds: [i64; N],
) -> [u64; N] {
    let all = (first.sums.len() * second.sums.len()) as u64;
    let known = |threshold: i64| match threshold {
        _ if first.high + second.high < threshold => Some(0),
        _ if first.low + second.low >= threshold => Some(all),
        _ => None,
    };
    if thresholds
        .iter()
        .all(|threshold| known(*threshold).is_some())
    {
        return thresholds.map(|threshold| known(threshold).unwrap_or_default());
    }
    if second.sums.len() <= BUCKETED {
        let buckets = Buckets::of(second);
        let count = |threshold| all - buckets.pairs_below(first.sums, threshold);
        return thresholds.map(|threshold| known(threshold).unwrap_or_else(|| count(threshold)));
    }
    let (mut first, mut second) = (first.sums.to_vec(), second.sums.to_vec());
    first.sort_unstable();
    second.sort_unstable();
    thresholds.map(|threshold| pairs_in_order(&first, &second, threshold))
}

/// Most sums that are put into buckets: the largest class of ten runs a side has 252.
const BUCKETED: usize = 256;

/// Twice as many buckets as sums, so that in the middle, where most are, a bucket has few.
const BUCKETS: usize = 2 * BUCKETED;

/// How many sums of a bucket are compared without asking how many it has.
const AHEAD: usize = 4;

/// Sums in as much order as it takes to count those below a number, by looking at those of one
/// bucket only. Almost nothing is decided by a branch, which would be mispredicted as a rule.
///
/// Quicker than sorting by half, and for so few sums never slow, whatever their distribution.
struct Buckets {
    low: i64,
    high: i64,
    /// Width of a bucket, as a power of two.
    shift: u32,
    /// Where each bucket begins.
    starts: [u16; BUCKETS + 1],
    /// The sums by bucket; behind them what is never below.
    sums: [i64; BUCKETED + AHEAD],
}

impl Buckets {
    fn of(class: &Class<'_>) -> Self {
        let &Class { sums, low, high } = class;
        let buckets = (2 * sums.len()).next_power_of_two().min(BUCKETS);
        let bits = i64::BITS - (high - low).leading_zeros();
        let mut ordered = Self {
            low,
            high,
            shift: bits.saturating_sub(buckets.ilog2()),
            starts: [0; BUCKETS + 1],
            sums: [i64::MAX; BUCKETED + AHEAD],
        };
        // Counted first.
        for &sum in sums {
            ordered.starts[ordered.bucket(sum) + 1] += 1;
        }
        for index in 0..buckets {
            ordered.starts[index + 1] += ordered.starts[index];
        }
        let mut free = ordered.starts;
        for &sum in sums {
            let place = &mut free[ordered.bucket(sum)];
            ordered.sums[usize::from(*place)] = sum;
            *place += 1;
        }
        ordered
    }

    /// Which bucket a sum is in that is neither below the lowest nor above the highest.
    fn bucket(&self, sum: i64) -> usize {
        ((sum - self.low) >> self.shift) as usize & (BUCKETS - 1)
    }

    /// How many pairs of one of `first` and one of these add up to less than `threshold`.
    fn pairs_below(&self, first: &[i64], threshold: i64) -> u64 {
        let below = |value: &i64| {
            let needed = threshold - value;
            let less =
                |sums: &[i64]| -> usize { sums.iter().map(|sum| usize::from(*sum < needed)).sum() };
            let bucket = self.bucket(needed.clamp(self.low, self.high));
            let from = usize::from(self.starts[bucket]);
            let to = usize::from(self.starts[bucket + 1]);
            // What stands behind the bucket is larger than all in it.
            let ahead = from + AHEAD;
            let rest = if to > ahead {
                less(&self.sums[ahead..to])
            } else {
                0
            };
            from + less(&self.sums[from..ahead]) + rest
        };
        first.iter().map(below).sum::<usize>() as u64
    }
}

/// The same for sums in order.
fn pairs_in_order(first: &[i64], second: &[i64], threshold: i64) -> u64 {
    // All of the second from `from` on are large enough with this one of the first.
    let (mut from, mut pairs) = (second.len(), 0);
    for value in first {
        while from > 0 && value + second[from - 1] >= threshold {
            from -= 1;
        }
        pairs += (second.len() - from) as u64;
    }
    pairs
}

/// Binomial coefficient; exact below 2^53, which the exact tests stay far below.
pub(super) fn choose(n: usize, k: usize) -> f64 {
    // Every step is a binomial coefficient too, so what is divided is a multiple.
    (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}
