//! Those who wait for the log: fsyncs, forces, and waits that are not locks.

use super::cause;
use super::view::{View, filesystems};
use crate::device::Dev;
use crate::histogram::Histogram;
use crate::model::{Model, xfs_stats};
use crate::report::schema::{ForceRow, FsyncRow, Hist, WaitRow};
use crate::series::Series;
use crate::session::Outcome;
use cil_trace_common::cause::FsyncKind;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One row per device and kind.
pub(super) fn fsyncs(model: &Model) -> Vec<FsyncRow> {
    if !model.measured(Probe::Fsyncs) {
        return Vec::new();
    }
    let ends = model.measured(Probe::FsyncEnd);
    let row = |(series, count): (&Series, u64)| {
        let same = |other: &Series| (other.dev, other.label) == (series.dev, series.label);
        let forced_log = model
            .measured(Probe::Forces)
            .then(|| model.sum(Metric::FsyncForced, same));
        let flushed_only = model.measured(Probe::FlushRequests).then(|| {
            let both = model.sum(Metric::FsyncForcedAndFlushed, same);
            model.sum(Metric::FsyncFlushed, same).saturating_sub(both)
        });
        let latency = ends.then(|| Hist::from(&model.histogram(Metric::FsyncLatency, same)));
        FsyncRow {
            device: model.name(series.dev),
            kind: series.fsync().map_or("", FsyncKind::name).to_owned(),
            count,
            latency,
            forced_log,
            flushed_only,
            neither: forced_log
                .zip(flushed_only)
                .map(|(forced, flushed)| count.saturating_sub(forced).saturating_sub(flushed)),
        }
    };
    model.counters(Metric::Fsyncs).map(row).collect()
}

/// How the ends of forces were seen; `None` if not at all.
fn force_method(model: &Model) -> Option<&'static str> {
    match model.outcome(Probe::ForceEnd)? {
        Outcome::Attached => Some("function"),
        Outcome::Approximated => Some("lower_bound"),
        Outcome::Skipped | Outcome::Failed => None,
    }
}

/// One row per device and cause, in the order of devices, the most frequent first.
pub(super) fn forces(model: &Model) -> Vec<ForceRow> {
    if !model.measured(Probe::Forces) {
        return Vec::new();
    }
    let mut rows: BTreeMap<(Dev, String), (u64, Histogram)> = BTreeMap::new();
    for (series, count) in model.counters(Metric::Forces) {
        let row = rows
            .entry((series.dev, cause::text(model, series)))
            .or_default();
        row.0 = row.0.saturating_add(count);
    }
    for (series, histogram) in model.histograms(Metric::ForceLatency) {
        rows.entry((series.dev, cause::text(model, series)))
            .or_default()
            .1
            .merge(histogram);
    }
    let method = force_method(model);
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((dev, _), (count, _))| (*dev, Reverse(*count)));
    rows.into_iter()
        .map(|((dev, cause), (count, latency))| ForceRow {
            device: model.name(dev),
            cause,
            count,
            latency: method.map(|_| Hist::from(&latency)),
            method: method.map(str::to_owned),
        })
        .collect()
}

/// The waits, each with its probe and its metric.
const WAITS: [(&str, Probe, Metric); 4] = [
    ("throttle", Probe::Throttle, Metric::ThrottleWait),
    ("commit-order", Probe::CommitOrder, Metric::CommitOrderWait),
    (ICLOG_SPACE, Probe::IclogSpace, Metric::IclogSpaceWait),
    ("force", Probe::ForceEnd, Metric::ForceLatency),
];

/// The wait that XFS counts by itself.
const ICLOG_SPACE: &str = "iclog-space";

/// One row per measured wait and filesystem.
pub(super) fn waits(model: &Model) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    // An approximation has no times, only the filesystem's own count.
    let iclog_space = model.outcome(Probe::IclogSpace);
    let timed = iclog_space == Some(Outcome::Attached);
    for (kind, probe, metric) in WAITS {
        if probe == Probe::IclogSpace && !timed {
            continue;
        }
        for dev in filesystems(model, &[metric]) {
            if let Some(wait) = View::of(model, dev).hist(probe, metric) {
                let (kind, device) = (kind.to_owned(), model.name(dev));
                rows.push(WaitRow {
                    kind,
                    device,
                    count: wait.count,
                    wait: Some(wait),
                });
            }
        }
    }
    if iclog_space == Some(Outcome::Approximated) {
        rows.extend(iclog_space_waits(model));
    }
    rows
}

/// Waits for an iclog from XFS's own statistics: how many, but not how long.
fn iclog_space_waits(model: &Model) -> impl Iterator<Item = WaitRow> {
    let stats = model
        .footer()
        .into_iter()
        .flat_map(|footer| &footer.xfs_stats);
    stats.filter_map(|stats| {
        Some(WaitRow {
            kind: ICLOG_SPACE.to_owned(),
            device: stats.device.clone(),
            count: xfs_stats::log_noiclogs(&stats.start, &stats.end)?,
            wait: None,
        })
    })
}
