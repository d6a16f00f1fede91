//! Cache flushes: of each device, and by cause.
//!
//! A bio belongs to the device that it was sent to, perhaps a partition; a device-level flush
//! request belongs to the whole disk.

use super::cause;
use super::view::{View, devs};
use crate::device::{Dev, Device};
use crate::histogram::Histogram;
use crate::model::Model;
use crate::report::schema::{DeviceRow, FlushRow, Hist};
use crate::series::Series;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// What makes a row for a device that is otherwise unknown.
const OF_FLUSHES: [Metric; 5] = [
    Metric::FlushRequested,
    Metric::FlushEmpty,
    Metric::FlushPointless,
    Metric::FlushLatency,
    Metric::FlushIssued,
];

/// One row per device that is known or was sent a flush, so that no flush is without its device.
pub(super) fn devices(model: &Model) -> Vec<DeviceRow> {
    // One that is known by nothing but its name stands above what is in scope, and was not looked at.
    let in_scope = |device: &&Device| {
        let Device {
            filesystem,
            write_cache,
            request_based,
            ..
        } = device;
        filesystem.is_some() || write_cache.is_some() || request_based.is_some()
    };
    let known = model.devices().filter(in_scope);
    let mut all: BTreeSet<Dev> = known.map(|device| device.dev).collect();
    all.extend(devs(model, &OF_FLUSHES));
    all.into_iter().map(|dev| device(model, dev)).collect()
}

fn device(model: &Model, dev: Dev) -> DeviceRow {
    let unknown = Device {
        dev,
        ..Device::default()
    };
    let known = model.device(dev).unwrap_or(&unknown);
    let of = View::of(model, dev);
    let requests = sees_requests(model, dev);
    let issued = of
        .count(Probe::FlushIssues, Metric::FlushIssued)
        .filter(|_| requests);
    let in_flight = model
        .in_flight(dev)
        .filter(|_| model.measured(Probe::FlushEnd));
    let of_disk = |metric| of.hist(Probe::FlushIssues, metric).filter(|_| requests);
    DeviceRow {
        device: model.name(dev),
        major: dev.major(),
        minor: dev.minor(),
        partition_of: known.partition_of.map(|disk| model.name(disk)),
        filesystem: known.filesystem.clone(),
        mountpoint: known.mountpoint.clone(),
        write_cache: known.write_cache.clone(),
        fua: known.fua,
        stacked_on: known
            .stacked_on
            .iter()
            .map(|&beneath| model.name(beneath))
            .collect(),
        flushes_requested: of.count(Probe::FlushRequests, Metric::FlushRequested),
        flushes_needed: if requests {
            needed(model, dev)
        } else {
            of.count(Probe::FlushRequests, Metric::FlushNeeded)
        },
        flushes_issued: issued,
        flushes_merged: issued.and_then(|issued| merged(model, dev, issued)),
        flushes_empty: of
            .count(Probe::FlushIssues, Metric::FlushIssuedEmpty)
            .filter(|_| requests),
        flushes_in_flight: in_flight.map(|(flushes, _)| flushes),
        oldest_in_flight_ns: in_flight.and_then(|(_, age)| age),
        fan_out: fan_out(model, known),
        flush_latency: of.hist(Probe::FlushEnd, Metric::FlushLatency),
        queue_time: of_disk(Metric::QueueTime),
        device_time: of_disk(Metric::DeviceTime),
        log_size_bytes: known.log_size_bytes,
        iclog_size_bytes: known.iclog_size_bytes,
    }
}

/// Whether requests are seen there: not on a partition, nor where bios go straight through.
fn sees_requests(model: &Model, dev: Dev) -> bool {
    model.whole_disk(dev) == dev && !bio_based(model, dev)
}

fn bio_based(model: &Model, dev: Dev) -> bool {
    let disk = model.device(model.whole_disk(dev));
    disk.is_some_and(|disk| disk.request_based == Some(false))
}

/// Flushes that the bios to a disk and its partitions required.
fn needed(model: &Model, disk: Dev) -> Option<u64> {
    let own = |series: &Series| model.whole_disk(series.dev) == disk;
    let measured = model.measured(Probe::FlushRequests);
    measured.then(|| model.sum(Metric::FlushNeeded, own))
}

/// Those less the ones issued.
fn merged(model: &Model, disk: Dev, issued: u64) -> Option<i64> {
    needed(model, disk)?.checked_signed_diff(issued)
}

/// Flushes requested beneath a device on its behalf, for each that was requested of it. Those of
/// partitions are their disk's, because the device above another is always a whole disk. A write
/// with PREFLUSH and FUA that comes down as a flush and a write with FUA is one all the same.
fn fan_out(model: &Model, device: &Device) -> Option<f64> {
    if !model.measured(Probe::FlushRequests) {
        return None;
    }
    let own = |dev| dev != Dev::NONE && (dev == device.dev || model.whole_disk(dev) == device.dev);
    // What lies beneath serves the partitions out of scope too.
    let requested = model
        .sum(Metric::FlushRequested, |series| own(series.dev))
        .saturating_add(model.counter(Metric::FlushForeign, device.dev));
    let beneath = model.sum(Metric::FlushRequested, |series| own(series.via));
    let rests = model.sum(Metric::FlushRest, |series| own(series.via));
    let beneath = beneath.saturating_sub(rests);
    let stacked = beneath > 0 || !device.stacked_on.is_empty();
    (stacked && requested > 0).then(|| beneath as f64 / requested as f64)
}

/// The sums of one row of flushes.
#[derive(Default)]
struct Flushes {
    requested: u64,
    empty: u64,
    pointless: u64,
    latency: Histogram,
}

/// One row per device, device above and cause, in the order of devices, the most frequent first.
pub(super) fn flushes(model: &Model) -> Vec<FlushRow> {
    if !model.measured(Probe::FlushRequests) {
        return Vec::new();
    }
    let mut rows: BTreeMap<(Dev, Dev, String), Flushes> = BTreeMap::new();
    let key = |series: &Series| (series.dev, series.via, cause::text(model, series));
    for (series, count) in model.counters(Metric::FlushRequested) {
        let row = rows.entry(key(series)).or_default();
        row.requested = row.requested.saturating_add(count);
    }
    for (series, count) in model.counters(Metric::FlushEmpty) {
        let row = rows.entry(key(series)).or_default();
        row.empty = row.empty.saturating_add(count);
    }
    for (series, count) in model.counters(Metric::FlushPointless) {
        let row = rows.entry(key(series)).or_default();
        row.pointless = row.pointless.saturating_add(count);
    }
    for (series, histogram) in model.histograms(Metric::FlushLatency) {
        rows.entry(key(series))
            .or_default()
            .latency
            .merge(histogram);
    }
    let [issues, ends, pushes, iclogs] = [
        Probe::FlushIssues,
        Probe::FlushEnd,
        Probe::Pushes,
        Probe::Iclogs,
    ]
    .map(|probe| model.measured(probe));
    // A disk that others share has empty flushes of theirs, and no row for what they asked.
    rows.retain(|_, row| row.requested > 0);
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((dev, via, _), row)| (*dev, *via, Reverse(row.requested)));
    rows.into_iter()
        .map(|((dev, via, cause), row)| FlushRow {
            device: model.name(dev),
            cause,
            via: (via != Dev::NONE).then(|| model.name(via)),
            requested: row.requested,
            empty: (issues && !bio_based(model, dev)).then_some(row.empty),
            pointless: (pushes && iclogs).then_some(row.pointless),
            latency: ends.then(|| Hist::from(&row.latency)),
        })
        .collect()
}
