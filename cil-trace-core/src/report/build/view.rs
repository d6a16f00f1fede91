//! The model seen through its probes, of all devices or of one.

use crate::device::Dev;
use crate::histogram::Histogram;
use crate::model::Model;
use crate::report::schema::Hist;
use crate::series::Series;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use std::collections::BTreeSet;

/// What a section reads: the same code makes a section and its rows by device.
#[derive(Clone, Copy)]
pub(super) struct View<'m> {
    pub(super) model: &'m Model,
    dev: Option<Dev>,
}

impl<'m> View<'m> {
    /// All devices.
    pub(super) fn all(model: &'m Model) -> Self {
        Self { model, dev: None }
    }

    /// One device.
    pub(super) fn of(model: &'m Model, dev: Dev) -> Self {
        Self {
            model,
            dev: Some(dev),
        }
    }

    /// Whether a series is in view.
    pub(super) fn shows(&self, series: &Series) -> bool {
        self.dev.is_none_or(|dev| dev == series.dev)
    }

    /// Sum of a metric, if `probe` measured it.
    pub(super) fn count(&self, probe: Probe, metric: Metric) -> Option<u64> {
        let measured = self.model.measured(probe);
        measured.then(|| self.model.sum(metric, |series| self.shows(series)))
    }

    /// All of a metric's histograms in view, merged.
    pub(super) fn histogram(&self, metric: Metric) -> Histogram {
        self.model.histogram(metric, |series| self.shows(series))
    }

    /// The same for a report, if `probe` measured it.
    pub(super) fn hist(&self, probe: Probe, metric: Metric) -> Option<Hist> {
        let measured = self.model.measured(probe);
        measured.then(|| Hist::from(&self.histogram(metric)))
    }

    /// The rows of `by_device`: one for each device with any of these metrics; none within one.
    pub(super) fn by_device<R>(
        &self,
        metrics: &[Metric],
        row: impl Fn(String, View<'m>) -> R,
    ) -> Vec<R> {
        if self.dev.is_some() {
            return Vec::new();
        }
        let devs = devs(self.model, metrics).into_iter();
        devs.map(|dev| row(self.model.name(dev), View::of(self.model, dev)))
            .collect()
    }
}

/// The devices with any of these metrics.
pub(super) fn devs(model: &Model, metrics: &[Metric]) -> BTreeSet<Dev> {
    let with = |&metric| {
        let counters = model.counters(metric).map(|(series, _)| series.dev);
        counters.chain(model.histograms(metric).map(|(series, _)| series.dev))
    };
    metrics.iter().flat_map(with).collect()
}

/// The devices that an XFS is mounted from, and those with any of these metrics.
pub(super) fn filesystems(model: &Model, metrics: &[Metric]) -> BTreeSet<Dev> {
    let xfs = model
        .devices()
        .filter(|device| device.filesystem.as_deref() == Some("xfs"));
    let mut devs = devs(model, metrics);
    devs.extend(xfs.map(|device| device.dev));
    devs
}
