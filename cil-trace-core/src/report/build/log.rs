//! The log's stages: commits, pushes, iclog writes, log space and the AIL.

use super::cause;
use super::view::{View, devs, filesystems};
use crate::histogram::Histogram;
use crate::model::Model;
use crate::report::schema::{
    AilRow, CommitSplit, Commits, CommitsOfDevice, Grants, GrantsOfDevice, Hist, IclogCause,
    Iclogs, IclogsOfDevice, LogSpaceRow, Pushes, PushesOfDevice,
};
use crate::session::Outcome;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) fn pushes(view: View<'_>) -> Pushes {
    let model = view.model;
    let count = |metric| view.count(Probe::Pushes, metric);
    let hist = |metric| view.hist(Probe::Pushes, metric);
    let inside = |probe, metric| count(metric).filter(|_| model.measured(probe));
    let mut by_trigger = BTreeMap::new();
    if model.measured(Probe::Pushes) {
        for (series, count) in model
            .counters(Metric::Pushes)
            .filter(|(series, _)| view.shows(series))
        {
            let sum: &mut u64 = by_trigger.entry(cause::text(model, series)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Pushes {
        count: count(Metric::Pushes),
        empty: count(Metric::PushesEmpty),
        by_trigger,
        bytes: hist(Metric::PushBytes),
        transactions: hist(Metric::PushTransactions),
        queue_delay: hist(Metric::PushQueueDelay),
        run_time: hist(Metric::PushRunTime),
        wrote_no_iclog: inside(Probe::Iclogs, Metric::PushesWroteNoIclog),
        with_flush: inside(Probe::FlushRequests, Metric::PushesWithFlush),
        iclogs: inside(Probe::Iclogs, Metric::PushIclogs),
        flushes: inside(Probe::FlushRequests, Metric::PushFlushes),
        // Empty without pushes: then at most none were under way.
        max_concurrent: hist(Metric::PushConcurrency).map(|hist| hist.max.unwrap_or(0)),
        by_device: view.by_device(&[Metric::Pushes], |device, view| PushesOfDevice {
            device,
            pushes: pushes(view),
        }),
    }
}

pub(super) fn iclogs(view: View<'_>) -> Iclogs {
    Iclogs {
        writes: view.count(Probe::Iclogs, Metric::IclogWrites),
        bytes: view.count(Probe::Iclogs, Metric::IclogBytes),
        fill_pct: view.hist(Probe::Iclogs, Metric::IclogFill),
        latency: view.hist(Probe::Iclogs, Metric::IclogLatency),
        by_cause: iclogs_by_cause(view),
        by_device: view.by_device(&[Metric::IclogWrites], |device, view| IclogsOfDevice {
            device,
            iclogs: iclogs(view),
        }),
    }
}

/// The most frequent cause first.
fn iclogs_by_cause(view: View<'_>) -> Vec<IclogCause> {
    let model = view.model;
    if !model.measured(Probe::Iclogs) {
        return Vec::new();
    }
    let mut sums: BTreeMap<String, (u64, u64, Histogram)> = BTreeMap::new();
    for (series, count) in model
        .counters(Metric::IclogWrites)
        .filter(|(series, _)| view.shows(series))
    {
        let sum = &mut sums.entry(cause::text(model, series)).or_default().0;
        *sum = sum.saturating_add(count);
    }
    for (series, bytes) in model
        .counters(Metric::IclogBytes)
        .filter(|(series, _)| view.shows(series))
    {
        let sum = &mut sums.entry(cause::text(model, series)).or_default().1;
        *sum = sum.saturating_add(bytes);
    }
    for (series, fill) in model
        .histograms(Metric::IclogFill)
        .filter(|(series, _)| view.shows(series))
    {
        sums.entry(cause::text(model, series))
            .or_default()
            .2
            .merge(fill);
    }
    let row = |(cause, (writes, bytes, fill))| IclogCause {
        cause,
        writes,
        bytes,
        fill_pct: Some(Hist::from(&fill)),
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.writes));
    rows
}

pub(super) fn commits(view: View<'_>) -> Commits {
    let count = view.count(Probe::Commits, Metric::Commits);
    let (start, end) = view.model.window();
    let seconds = end.saturating_sub(start) as f64 / 1e9;
    Commits {
        count,
        per_s: count
            .filter(|_| seconds > 0.0)
            .map(|count| count as f64 / seconds),
        latency: view.hist(Probe::Commits, Metric::CommitLatency),
        split: split(view),
        by_device: view.by_device(&[Metric::Commits], |device, view| CommitsOfDevice {
            device,
            commits: commits(view),
        }),
    }
}

/// The parts sum to the latency. Where `xlog_cil_insert_items` is a function of its own its time is
/// known; elsewhere insertion is measured from the commit's beginning on, so that the wait for the
/// lock is taken out where that is known.
fn split(view: View<'_>) -> Option<CommitSplit> {
    let model = view.model;
    let total = view
        .count(Probe::Commits, Metric::Commits)
        .map(|_| view.histogram(Metric::CommitLatency).sum)?;
    let ctx_lock_ns = view.count(Probe::CommitCtxLock, Metric::CommitCtxLock);
    let throttle_ns = view.count(Probe::Throttle, Metric::CommitThrottle);
    let lock = ctx_lock_ns.unwrap_or(0);
    let insert_ns = match model.outcome(Probe::CommitInsert)? {
        Outcome::Attached => view.histogram(Metric::InsertItems).sum,
        Outcome::Approximated => view
            .count(Probe::CommitInsert, Metric::CommitInsert)?
            .saturating_sub(lock),
        Outcome::Skipped | Outcome::Failed => return None,
    };
    Some(CommitSplit {
        ctx_lock_ns,
        insert_ns,
        throttle_ns,
        other_ns: total
            .saturating_sub(insert_ns)
            .saturating_sub(lock)
            .saturating_sub(throttle_ns.unwrap_or(0)),
    })
}

pub(super) fn grants(view: View<'_>) -> Grants {
    let wait = view.hist(Probe::GrantWaits, Metric::GrantWait);
    Grants {
        waits: wait.as_ref().map(|wait| wait.count),
        wait,
        by_device: view.by_device(&[Metric::GrantWait], |device, view| GrantsOfDevice {
            device,
            grants: grants(view),
        }),
    }
}

/// One row per filesystem of which an iclog write was seen.
pub(super) fn log_space(model: &Model) -> Vec<LogSpaceRow> {
    let row = |dev| {
        let view = View::of(model, dev);
        let free = view.histogram(Metric::LogFree);
        Some(LogSpaceRow {
            device: model.name(dev),
            used_pct: view.hist(Probe::Iclogs, Metric::LogUsed)?,
            min_free_bytes: (free.count > 0).then_some(free.min),
        })
    };
    devs(model, &[Metric::LogUsed])
        .into_iter()
        .filter_map(row)
        .collect()
}

/// One row per filesystem.
pub(super) fn ail(model: &Model) -> Vec<AilRow> {
    let row = |dev| {
        let count = |metric| View::of(model, dev).count(Probe::Ail, metric);
        Some(AilRow {
            device: model.name(dev),
            push: count(Metric::AilPush)?,
            pinned: count(Metric::AilPinned)?,
            locked: count(Metric::AilLocked)?,
            flushing: count(Metric::AilFlushing)?,
        })
    };
    filesystems(model, &[Metric::AilPush])
        .into_iter()
        .filter_map(row)
        .collect()
}
