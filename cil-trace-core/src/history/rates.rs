//! The few numbers that are always looked at: rates, and how they have developed.

use super::{History, Span};
use crate::device::Dev;
use crate::model::{Model, TickSums};
use crate::series::Series;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;

/// A count that is watched as a rate.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// What is counted.
    pub name: &'static str,
    /// Whose count it is.
    probe: Probe,
    of: fn(&TickSums) -> u64,
}

impl Rate {
    /// Every rate.
    pub const ALL: [Self; 5] = [
        Self::new("commits", Probe::Commits, |sums| sums.commits),
        Self::new("pushes", Probe::Pushes, |sums| sums.pushes),
        Self::new("forces", Probe::Forces, |sums| sums.forces),
        Self::new("flushes requested", Probe::FlushRequests, |sums| {
            sums.flushes_requested
        }),
        Self::new("flushes issued", Probe::FlushIssues, |sums| {
            sums.flushes_issued
        }),
    ];

    const fn new(name: &'static str, probe: Probe, of: fn(&TickSums) -> u64) -> Self {
        Self { name, probe, of }
    }

    /// Per second, over the stretch that ends with the tick `index`; `None` if not measured, or if
    /// that tick is not kept.
    #[must_use]
    pub fn per_s(
        &self,
        history: &History,
        dev: Option<Dev>,
        span: Span,
        index: u64,
    ) -> Option<f64> {
        let end = history.place(index)?;
        if span == Span::All {
            let (start, _) = history.total.window();
            let end = history.kept.get(end)?.tick.end_ns;
            return per_s(self.total(history, dev, index)?, end.saturating_sub(start));
        }
        let first = history.first(span, end);
        let start = history.kept.get(first)?.tick.start_ns;
        let end_ns = history.kept.get(end)?.tick.end_ns;
        let count = (first..=end)
            .filter_map(|place| self.count(history, dev, place))
            .fold(0, u64::saturating_add);
        let measured = history.total.measured(self.probe);
        per_s(count, end_ns.saturating_sub(start)).filter(|_| measured)
    }

    /// The rates of the ticks that are kept, up to and with the tick `index`; empty if not measured.
    pub fn each(
        &self,
        history: &History,
        dev: Option<Dev>,
        index: u64,
    ) -> impl Iterator<Item = f64> {
        let end = history.place(index).map_or(0, |place| place + 1);
        let measured = history.total.measured(self.probe);
        let places = if measured { 0..end } else { 0..0 };
        places.map(move |place| {
            let count = self.count(history, dev, place).unwrap_or(0);
            let length = |tick: &crate::tick::Tick| tick.end_ns.saturating_sub(tick.start_ns);
            let ns = history.kept.get(place).map_or(0, |kept| length(&kept.tick));
            per_s(count, ns).unwrap_or(0.0)
        })
    }

    /// The count since the session's start, up to and with the tick `index`; `None` if not measured.
    #[must_use]
    pub fn total(&self, history: &History, dev: Option<Dev>, index: u64) -> Option<u64> {
        let kept = history.kept.get(history.place(index)?)?;
        let sums = kept.sums.get(&dev).copied().unwrap_or_default();
        let measured = history.total.measured(self.probe);
        measured.then(|| (self.of)(&sums.total))
    }

    fn count(&self, history: &History, dev: Option<Dev>, place: usize) -> Option<u64> {
        let sums = history.kept.get(place)?.sums.get(&dev)?;
        Some((self.of)(&sums.tick))
    }
}

fn per_s(count: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| count as f64 * 1e9 / ns as f64)
}

impl TickSums {
    /// Adds a later tick.
    pub(super) fn add(&mut self, later: &Self) {
        self.end_ns = later.end_ns;
        for (sum, count) in [
            (&mut self.commits, later.commits),
            (&mut self.pushes, later.pushes),
            (&mut self.forces, later.forces),
            (&mut self.flushes_requested, later.flushes_requested),
            (&mut self.flushes_issued, later.flushes_issued),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
}

/// How full iclogs were written, and how long log forces took; `None` if not measured, or if there
/// were none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quantiles {
    /// Median of the share of an iclog that was used, percent.
    pub fill_p50: Option<u64>,
    /// Median of the forces' latency, nanoseconds.
    pub force_p50: Option<u64>,
    /// 99 % of the forces were faster, nanoseconds.
    pub force_p99: Option<u64>,
}

impl Quantiles {
    /// Of one filesystem's device, or of all.
    #[must_use]
    pub fn of(model: &Model, dev: Option<Dev>) -> Self {
        let own = |series: &Series| dev.is_none_or(|dev| dev == series.dev);
        let fill = model.histogram(Metric::IclogFill, own);
        let force = model.histogram(Metric::ForceLatency, own);
        Self {
            fill_p50: fill.quantile(0.5),
            force_p50: force.quantile(0.5),
            force_p99: force.quantile(0.99),
        }
    }
}
