//! Sections on cache flushes and on the fsyncs behind them.

use super::of_device;
use crate::report::schema::Report;
use crate::report::table::{Builder, Cell, MAX, P50, P90, P99, Table, Unit};
use crate::report::units::share;
use std::cmp::Reverse;

pub(super) fn flushes(report: &Report) -> Table {
    let mut rows = report.flushes.clone();
    rows.sort_by(|a, b| (&a.device, Reverse(a.requested)).cmp(&(&b.device, Reverse(b.requested))));
    Builder::new("flushes", "Cache flushes by cause", &rows)
        .key("device", |row| &row.device)
        .key("cause", |row| &row.cause)
        .key("via", |row| row.via.as_deref().unwrap_or_default())
        .count("requested", |row| row.requested)
        .percent("share", |row| {
            share(
                row.requested,
                of_device(&rows, &row.device, |row| (&row.device, row.requested)),
            )
        })
        .count("empty", |row| row.empty)
        .count("pointless", |row| row.pointless)
        .hist("latency", Unit::Ns, &[P50, P90, P99, MAX], |row| {
            row.latency.as_ref()
        })
        .note("requested: bios with PREFLUSH or FUA; via: the device above")
        .build()
}

/// A flush that has been under way for longer is worth a look: devices take milliseconds.
const STUCK_NS: u64 = 1_000_000_000;

pub(super) fn devices(report: &Report) -> Table {
    let mut table = Builder::new("devices", "Devices", &report.devices)
        .key("device", |row| &row.device)
        .column("dev", Unit::Text, |row| {
            Cell::Text(format!("{}:{}", row.major, row.minor))
        })
        .text("partition_of", |row| row.partition_of.as_deref())
        .text("filesystem", |row| row.filesystem.as_deref())
        .text("mountpoint", |row| row.mountpoint.as_deref())
        .column("write_cache", Unit::Text, |row| {
            row.write_cache.clone().map_or(Cell::Missing, Cell::Text)
        })
        .column("fua", Unit::Text, |row| {
            row.fua.map_or(Cell::Missing, |fua| {
                Cell::Text(if fua { "yes" } else { "no" }.to_owned())
            })
        })
        .column("stacked_on", Unit::Text, |row| {
            Cell::text(Some(row.stacked_on.join(" ").as_str()).filter(|text| !text.is_empty()))
        })
        .only(|row| row.filesystem.as_deref() == Some("xfs"))
        .number("log_size", Unit::Bytes, |row| row.log_size_bytes)
        .number("iclog_size", Unit::Bytes, |row| row.iclog_size_bytes)
        .only(|_| true)
        .count("flushes_requested", |row| row.flushes_requested)
        .count("flushes_needed", |row| row.flushes_needed)
        // A partition's flushes are issued by its disk.
        .only(|row| row.partition_of.is_none())
        .count("flushes_issued", |row| row.flushes_issued)
        .column("flushes_merged", Unit::Count, |row| {
            // Known to be issued and still null: bios are not merged without a request queue.
            let unknown = if row.flushes_issued.is_some() {
                Cell::Blank
            } else {
                Cell::Missing
            };
            row.flushes_merged
                .map_or(unknown, |merged| Cell::Count(merged.into()))
        })
        .count("flushes_empty", |row| row.flushes_empty)
        .only(|row| !row.stacked_on.is_empty())
        .column("fan_out", Unit::Ratio, |row| {
            row.fan_out.map_or(Cell::Missing, Cell::Ratio)
        })
        // Recordings of before there was such a number are silent on it.
        .only(|row| row.flushes_in_flight.is_some())
        .count("in_flight", |row| row.flushes_in_flight)
        .column("oldest_in_flight", Unit::Ns, |row| {
            row.oldest_in_flight_ns.map_or(Cell::Blank, Cell::Ns)
        })
        .alarm(STUCK_NS)
        .only(|_| true)
        .hist("flush_latency", Unit::Ns, &[P50, P99, MAX], |row| {
            row.flush_latency.as_ref()
        })
        .only(|row| row.partition_of.is_none())
        .hist("queue_time", Unit::Ns, &[P50, P99, MAX], |row| {
            row.queue_time.as_ref()
        })
        .hist("device_time", Unit::Ns, &[P50, P99, MAX], |row| {
            row.device_time.as_ref()
        })
        .note("needed - issued = merged; queue and device time are those of all requests")
        .build();
    if report
        .devices
        .iter()
        .any(|row| row.flushes_in_flight.is_some())
    {
        let note = "in flight: flushes that the device had not completed at the end";
        table.notes.push(note.to_owned());
    }
    table
}

pub(super) fn fsyncs(report: &Report) -> Table {
    Builder::new("fsyncs", "fsyncs by kind", &report.fsyncs)
        .key("device", |row| &row.device)
        .key("kind", |row| &row.kind)
        .count("count", |row| row.count)
        .hist("latency", Unit::Ns, &[P50, P90, P99, MAX], |row| {
            row.latency.as_ref()
        })
        .count("forced_log", |row| row.forced_log)
        .count("flushed_only", |row| row.flushed_only)
        .count("neither", |row| row.neither)
        .build()
}
