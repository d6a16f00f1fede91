//! What is known of locks beside their counters and histograms: callers, and the longest waits.

use crate::device::Dev;
use crate::series::Series;
use crate::tick::{Blocked, Tick};
use cil_trace_common::lock::Lock;
use cil_trace_common::metric::Metric;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Longest waits that are kept of each lock.
pub const KEPT: usize = 5;

/// Callers and longest waits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LockTable {
    callers: BTreeMap<(Lock, Dev, String), u64>,
    blocked: BTreeMap<(Lock, Dev), Vec<Blocked>>,
    /// The fewest inodes that were sampled in any tick.
    sampled_1_in: u32,
}

/// How many things each of a tick's sampled ones stands for.
#[derive(Clone, Copy)]
pub(super) struct Sampling(u64);

impl Sampling {
    pub(super) fn of(tick: &Tick) -> Self {
        Self(u64::from(tick.sampled_1_in.max(1)))
    }

    /// What one in a series stands for.
    pub(super) fn weight(self, series: &Series) -> u64 {
        let of_inode = u32::from(series.label) < Lock::OF_ILOCK;
        match series.metric {
            Metric::IlockAfterTry => self.0,
            Metric::LockHold if of_inode => self.0,
            _ => 1,
        }
    }
}

impl LockTable {
    /// Adds a tick. Saturating, because a damaged recording may hold anything.
    pub(super) fn add(&mut self, tick: &Tick) {
        let Sampling(weight) = Sampling::of(tick);
        self.sampled_1_in = self.sampled_1_in.max(tick.sampled_1_in);
        for row in &tick.lock_callers {
            let key = (row.lock, row.dev, row.function.clone());
            let count = self.callers.entry(key).or_default();
            *count = count.saturating_add(row.count.saturating_mul(weight));
        }
        for row in &tick.blocked {
            let kept = self.blocked.entry((row.lock, row.dev)).or_default();
            let place = kept.partition_point(|other| other.wait_ns >= row.wait_ns);
            kept.insert(place, row.clone());
            kept.truncate(KEPT);
        }
    }

    /// Calls of `xfs_ilock` for a lock by function; of the inodes sampled, times what each stands
    /// for.
    pub fn callers(&self, lock: Lock, dev: Dev) -> impl Iterator<Item = (&str, u64)> {
        let first = (lock, dev, String::new());
        let rows = self.callers.range(first..);
        rows.take_while(move |((of, on, _), _)| (*of, *on) == (lock, dev))
            .map(|((_, _, function), &count)| (function.as_str(), count))
    }

    /// The longest waits, those of each lock and device together, longest first.
    #[must_use]
    pub fn blocked(&self) -> Vec<&Blocked> {
        let mut all: Vec<_> = self.blocked.values().flatten().collect();
        all.sort_by_key(|row| Reverse(row.wait_ns));
        all
    }

    /// Of inodes, 1 in so many was sampled, at the least; 1 if all were.
    #[must_use]
    pub fn sampled_1_in(&self) -> u32 {
        self.sampled_1_in.max(1)
    }
}
