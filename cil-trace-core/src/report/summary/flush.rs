//! Facts about cache flushes: who asked for them, what for, and where their time went.

use super::Fact;
use crate::report::schema::{DeviceRow, FlushRow, Hist, Iclogs, Pushes, Report};
use crate::report::units::{bytes, duration, float, percent, share, short_count};

/// Devices that get rows of their own; a machine can have a hundred.
const DEVICES: usize = 2;

/// From this share of the busiest device's flushes on, percent, another gets rows too.
const BUSY: f64 = 10.0;

/// Causes that get a row, per device.
const CAUSES: usize = 5;

/// From this share on, percent, empty flushes are worth a word.
const NOTABLE_EMPTY: f64 = 1.0;

/// The devices that what lives on them asked for most flushes, most first.
fn busiest(report: &Report) -> Vec<(&str, u64)> {
    let mut devices: Vec<(&str, u64)> = Vec::new();
    for row in report.flushes.iter().filter(|row| row.via.is_none()) {
        match devices.iter_mut().find(|(name, _)| *name == row.device) {
            Some((_, sum)) => *sum = sum.saturating_add(row.requested),
            None => devices.push((&row.device, row.requested)),
        }
    }
    devices.retain(|(_, sum)| *sum > 0);
    devices.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let most = devices.first().map_or(0, |(_, sum)| *sum);
    devices.retain(|(_, sum)| share(*sum, most) >= Some(BUSY));
    devices.truncate(DEVICES);
    devices
}

fn device<'a>(report: &'a Report, name: &str) -> Option<&'a DeviceRow> {
    report.devices.iter().find(|row| row.device == name)
}

/// The device's iclog writes; those of all devices only if they are not told apart.
fn iclogs<'a>(report: &'a Report, device: &str) -> Option<&'a Iclogs> {
    let all = &report.iclogs;
    let own = all.by_device.iter().find(|row| row.device == device);
    own.map(|row| &row.iclogs)
        .or_else(|| all.by_device.is_empty().then_some(all))
}

/// The device's pushes; those of all devices only if they are not told apart.
fn pushes<'a>(report: &'a Report, device: &str) -> Option<&'a Pushes> {
    let all = &report.pushes;
    let own = all.by_device.iter().find(|row| row.device == device);
    own.map(|row| &row.pushes)
        .or_else(|| all.by_device.is_empty().then_some(all))
}

/// Per device: flushes per fsync and per KiB of log, then a row per cause with what it was for.
pub(super) fn causes(report: &Report) -> Option<Fact> {
    busiest(report)
        .into_iter()
        .map(|(name, requested)| of_device(report, name, requested))
        .collect::<Fact>()
        .found()
}

fn of_device(report: &Report, name: &str, requested: u64) -> Fact {
    let mut head = format!(
        "cache flushes on {name}: {} requested",
        short_count(requested)
    );
    let fsyncs = report.fsyncs.iter().filter(|row| row.device == name);
    let fsyncs = fsyncs.fold(0_u64, |sum, row| sum.saturating_add(row.count));
    let bytes = iclogs(report, name).and_then(|iclogs| iclogs.bytes);
    let kib = bytes.map_or(0.0, |bytes| bytes as f64 / 1024.0);
    for (per, what) in [(fsyncs as f64, "fsync"), (kib, "KiB of log")] {
        if per > 0.0 {
            head += &format!(", {} per {what}", float(requested as f64 / per));
        }
    }
    let mut fact = Fact::line(head);
    let cache = device(report, name).and_then(|row| row.write_cache.as_deref());
    if cache == Some("write through") {
        fact = fact.and("  flushes are free here: it has no volatile write cache", 2);
    }
    let mut rows: Vec<_> = report
        .flushes
        .iter()
        .filter(|row| row.via.is_none() && row.device == name && row.requested > 0)
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.requested));
    let more = rows.split_off(rows.len().min(CAUSES));
    let width = rows
        .iter()
        .map(|row| row.cause.len())
        .max()
        .unwrap_or(0)
        .min(26);
    for row in rows {
        let share = share(row.requested, requested).map_or(String::new(), percent);
        let left = format!(
            "{:>6} {share:>6}  {:<width$}  ",
            short_count(row.requested),
            row.cause
        );
        let hang = left.chars().count();
        fact = fact.and(left + &remark(report, row).join("; "), hang);
    }
    if !more.is_empty() {
        let rest = more
            .iter()
            .fold(0_u64, |sum, row| sum.saturating_add(row.requested));
        let text = format!(
            "{:>6}         {} other causes",
            short_count(rest),
            more.len()
        );
        fact = fact.and(text, 2);
    }
    fact
}

/// What is known about the flushes of one cause.
fn remark(report: &Report, row: &FlushRow) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(pointless) = row.pointless.filter(|count| *count > 0)
        && let Some(share) = share(pointless, row.requested)
    {
        remarks.push(format!(
            "pointless: {} of these pushes wrote no iclog",
            percent(share)
        ));
        if let Some(median) = pushes(report, &row.device).and_then(|p| p.bytes.as_ref()?.p50) {
            let size = device(report, &row.device).and_then(|row| row.iclog_size_bytes);
            let of_iclog = size.and_then(|size| crate::report::units::share(median, size));
            let of_iclog =
                of_iclog.map(|share| format!(" ({} of an iclog)", percent(share.round())));
            let of_iclog = of_iclog.unwrap_or_default();
            remarks.push(format!("median {} added{of_iclog}", bytes(median)));
        }
    }
    let mut writes = iclogs(report, &row.device)
        .into_iter()
        .flat_map(|i| &i.by_cause);
    let fill = writes.find(|write| write.cause == row.cause);
    if let Some(median) = fill.and_then(|write| write.fill_pct.as_ref()?.p50) {
        remarks.push(format!(
            "iclog fill at write: median {}",
            percent(median as f64)
        ));
    }
    if let Some(empty) = row.empty.and_then(|empty| share(empty, row.requested))
        && empty >= NOTABLE_EMPTY
    {
        remarks.push(format!("{} empty", percent(empty)));
    }
    remarks
}

/// What the disks made of the requests.
pub(super) fn issued(report: &Report) -> Option<Fact> {
    report
        .devices
        .iter()
        .filter_map(|row| Some((row, row.flushes_issued.filter(|issued| *issued > 0)?)))
        .take(DEVICES)
        .map(|(row, issued)| {
            let mut text = format!(
                "{} issued {} device flushes",
                row.device,
                short_count(issued)
            );
            if let Some(merged) = row.flushes_merged.filter(|merged| *merged > 0) {
                text += &format!(", {} merged", short_count(merged.unsigned_abs()));
            }
            if let Some(empty) = row.flushes_empty
                && let Some(share) = share(empty, issued)
            {
                text += &format!(", {} empty ({})", short_count(empty), percent(share));
            }
            Fact::line(text)
        })
        .collect::<Fact>()
        .found()
}

/// What a flush becomes on the way down.
pub(super) fn fan_out(report: &Report) -> Option<Fact> {
    report
        .devices
        .iter()
        .filter(|row| row.flushes_requested > Some(0) && !row.stacked_on.is_empty())
        .filter_map(|row| Some((row, row.fan_out?)))
        .take(DEVICES)
        .map(|(row, fan_out)| {
            Fact::line(format!(
                "fan-out {}: flushes requested of {} for each requested of {}",
                float(fan_out),
                row.stacked_on.join(" "),
                row.device
            ))
        })
        .collect::<Fact>()
        .found()
}

/// Latency of the flushes, and whether requests wait in the queue or in the device.
pub(super) fn latency(report: &Report) -> Option<Fact> {
    busiest(report)
        .into_iter()
        .filter_map(|(name, _)| device(report, name))
        .filter_map(|row| {
            let (p50, p99) = middle_and_tail(row.flush_latency.as_ref()?)?;
            let mut text = format!("flush latency on {}: p50 {p50}, p99 {p99}", row.device);
            if let Some(split) = queue_or_device(report, row) {
                text += &split;
            }
            Some(Fact::line(text))
        })
        .collect::<Fact>()
        .found()
}

/// Where the requests of the disk under `row` spent their time.
fn queue_or_device(report: &Report, row: &DeviceRow) -> Option<String> {
    let disk = disk_under(report, row)?;
    let (queue, inside) = (disk.queue_time.as_ref()?, disk.device_time.as_ref()?);
    let (_, queue_p99) = middle_and_tail(queue)?;
    let (_, inside_p99) = middle_and_tail(inside)?;
    let queued = share(queue.sum, queue.sum.saturating_add(inside.sum))?;
    let advice = if queued >= 50.0 {
        "; the wait is before the device: look at the I/O scheduler"
    } else {
        ""
    };
    Some(format!(
        "; requests on {}: {} of their time queued (p99 {queue_p99}), the rest in the device \
         (p99 {inside_p99}){advice}",
        disk.device,
        percent(queued)
    ))
}

/// The first device with a request queue, going down from `row`.
fn disk_under<'a>(report: &'a Report, mut row: &'a DeviceRow) -> Option<&'a DeviceRow> {
    // Bounded, because nothing promises that a hand-made report is not a circle.
    for _ in 0..8 {
        if row.queue_time.as_ref().is_some_and(|hist| hist.count > 0) {
            return Some(row);
        }
        let below = row.partition_of.as_ref().or(row.stacked_on.first())?;
        row = device(report, below)?;
    }
    None
}

/// An fdatasync that forces the log although it needs no metadata.
pub(super) fn fdatasync(report: &Report) -> Option<Fact> {
    report
        .fsyncs
        .iter()
        .filter(|row| row.kind == "fdatasync")
        .filter_map(|row| Some((row, row.forced_log?)))
        .filter(|(row, forced)| *forced > row.count / 2)
        .take(DEVICES)
        .map(|(row, forced)| {
            let share = share(forced, row.count).map_or(String::new(), percent);
            let mut text = format!(
                "fdatasync on {} forced the log in {} of {} calls ({share})",
                row.device,
                short_count(forced),
                short_count(row.count)
            );
            if let Some(pushes) = pushes(report, &row.device)
                && let Some(transactions) = pushes.transactions.as_ref().and_then(|t| t.p50)
                && let Some(size) = pushes.bytes.as_ref().and_then(|b| b.p50)
            {
                let s = if transactions == 1 { "" } else { "s" };
                text += &format!(
                    "; median checkpoint: {transactions} transaction{s}, {}",
                    bytes(size)
                );
            }
            Fact::line(text)
        })
        .collect::<Fact>()
        .found()
}

/// Median and 99th percentile of a duration.
pub(super) fn middle_and_tail(hist: &Hist) -> Option<(String, String)> {
    Some((duration(hist.p50?), duration(hist.p99?)))
}
