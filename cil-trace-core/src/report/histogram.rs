//! Bars of a histogram, few enough to be looked at.
//!
//! Draws nothing: formats do.

use super::schema::Hist;
use super::table::Unit;

/// A bar: values in `[lo, hi)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bar {
    /// First value.
    pub lo: u64,
    /// First value past it.
    pub hi: u64,
    /// Values.
    pub count: u64,
}

/// Width of a bar of percentages.
const PERCENT_STEP: u64 = 10;

/// Bars from the first to the last value without a gap: of ten percent each, and of everything
/// else a power of two each.
#[must_use]
pub fn bars(hist: &Hist, unit: Unit) -> Vec<Bar> {
    let percent = unit == Unit::Percent;
    let index = |value: u64| match percent {
        true => value / PERCENT_STEP,
        false => u64::from(u64::BITS - value.leading_zeros()),
    };
    let start = |index: u64| match (percent, index) {
        (true, _) => index.saturating_mul(PERCENT_STEP),
        (false, 0) => 0,
        (false, _) => 1_u64
            .checked_shl(u32::try_from(index - 1).unwrap_or(u32::MAX))
            .unwrap_or(u64::MAX),
    };
    // A share above 100 % is a fault in the numbers: show the fault, not a billion bars.
    const MOST: u64 = 65;
    let indices = || hist.buckets.iter().map(|(lo, _, _)| index(*lo));
    let (Some(first), Some(last)) = (indices().min(), indices().max()) else {
        return Vec::new();
    };
    let last = last.min(first.saturating_add(MOST - 1));
    let mut bars: Vec<_> = (first..=last)
        .map(|index| Bar {
            lo: start(index),
            hi: start(index + 1),
            count: 0,
        })
        .collect();
    for (lo, _, count) in &hist.buckets {
        let bar = (index(*lo).min(last) - first) as usize;
        bars[bar].count = bars[bar].count.saturating_add(*count);
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hist(buckets: &[(u64, u64, u64)]) -> Hist {
        Hist {
            buckets: buckets.to_vec(),
            ..Hist::default()
        }
    }

    #[test]
    fn buckets_join_to_powers_of_two_without_a_gap() {
        let bars = bars(
            &hist(&[(0, 1, 5), (4, 5, 1), (7, 8, 2), (16, 18, 3)]),
            Unit::Ns,
        );
        let edges: Vec<_> = bars.iter().map(|bar| (bar.lo, bar.hi, bar.count)).collect();
        assert_eq!(
            edges,
            [
                (0, 1, 5),
                (1, 2, 0),
                (2, 4, 0),
                (4, 8, 3),
                (8, 16, 0),
                (16, 32, 3)
            ]
        );
    }

    #[test]
    fn percentages_go_in_tens() {
        let bars = bars(
            &hist(&[(9, 10, 1), (12, 13, 2), (100, 104, 4)]),
            Unit::Percent,
        );
        assert_eq!(bars.len(), 11);
        assert_eq!((bars[1].lo, bars[1].hi, bars[1].count), (10, 20, 2));
        assert_eq!(bars[10].count, 4);
    }

    #[test]
    fn the_last_power_of_two_and_absurd_shares_are_drawn() {
        assert_eq!(bars(&hist(&[(u64::MAX, u64::MAX, 1)]), Unit::Ns).len(), 1);
        assert_eq!(
            bars(&hist(&[(0, 1, 1), (u64::MAX, u64::MAX, 1)]), Unit::Percent).len(),
            65
        );
        assert!(bars(&hist(&[]), Unit::Ns).is_empty());
    }
}
