//! Sections on the log itself: forces, pushes, iclogs, commits, waits, space and the AIL.

use super::{OfDevice, of_device, per_device};
use crate::report::schema::{IclogCause, Iclogs, Pushes, Report};
use crate::report::table::{Builder, MAX, P50, P90, P99, TOTAL, Table, Unit};
use crate::report::units::share;
use std::cmp::Reverse;

/// Stands in a key for the sum over what the other rows tell apart.
const ALL: &str = "all";

pub(super) fn forces(report: &Report) -> Table {
    let mut rows = report.forces.clone();
    rows.sort_by(|a, b| (&a.device, Reverse(a.count)).cmp(&(&b.device, Reverse(b.count))));
    Builder::new("forces", "Log forces by cause", &rows)
        .key("device", |row| &row.device)
        .key("cause", |row| &row.cause)
        .count("count", |row| row.count)
        .percent("share", |row| {
            share(
                row.count,
                of_device(&rows, &row.device, |row| (&row.device, row.count)),
            )
        })
        .hist("latency", Unit::Ns, &[P50, P90, P99, MAX], |row| {
            row.latency.as_ref()
        })
        .text("method", |row| row.method.as_deref())
        .build()
}

/// A device's pushes, or those of one trigger.
struct Push<'a> {
    device: &'a str,
    trigger: &'a str,
    count: Option<u64>,
    all: &'a Pushes,
}

pub(super) fn pushes(report: &Report) -> Table {
    let mut rows = Vec::new();
    for OfDevice { device, of: all } in
        per_device(&report.pushes, &report.pushes.by_device, |row| {
            (&row.device, &row.pushes)
        })
    {
        let row = |trigger, count| Push {
            device,
            trigger,
            count,
            all,
        };
        rows.push(row(ALL, all.count));
        rows.extend(
            all.by_trigger
                .iter()
                .map(|(t, n)| row(t.as_str(), Some(*n))),
        );
    }
    rows.retain(|row| row.count != Some(0));
    let ns = &[P50, P99, MAX];
    Builder::new("pushes", "CIL pushes", &rows)
        .key("device", |row| row.device)
        .key("trigger", |row| row.trigger)
        .count("count", |row| row.count)
        .percent("share", |row| share(row.count?, row.all.count?))
        .only(|row| row.trigger == ALL)
        .count("empty", |row| row.all.empty)
        .count("wrote_no_iclog", |row| row.all.wrote_no_iclog)
        .count("with_flush", |row| row.all.with_flush)
        .count("iclogs", |row| row.all.iclogs)
        .count("flushes", |row| row.all.flushes)
        .count("max_concurrent", |row| row.all.max_concurrent)
        .hist("bytes", Unit::Bytes, &[P50, P99, MAX], |row| {
            row.all.bytes.as_ref()
        })
        .hist("transactions", Unit::Count, &[P50, P99, MAX], |row| {
            row.all.transactions.as_ref()
        })
        .hist("queue_delay", Unit::Ns, ns, |row| {
            row.all.queue_delay.as_ref()
        })
        .hist("run_time", Unit::Ns, ns, |row| row.all.run_time.as_ref())
        .note("a push that writes no iclog is normal: a later write of that iclog carries it")
        .build()
}

/// A device's iclog writes, or those of one cause.
struct Write<'a> {
    device: &'a str,
    cause: Option<&'a IclogCause>,
    all: &'a Iclogs,
}

impl Write<'_> {
    fn writes(&self) -> Option<u64> {
        self.cause
            .map_or(self.all.writes, |cause| Some(cause.writes))
    }

    fn bytes(&self) -> Option<u64> {
        self.cause.map_or(self.all.bytes, |cause| Some(cause.bytes))
    }
}

pub(super) fn iclogs(report: &Report) -> Table {
    let mut rows = Vec::new();
    for OfDevice { device, of: all } in
        per_device(&report.iclogs, &report.iclogs.by_device, |row| {
            (&row.device, &row.iclogs)
        })
    {
        let row = |cause| Write { device, cause, all };
        rows.push(row(None));
        rows.extend(all.by_cause.iter().map(|cause| row(Some(cause))));
    }
    rows.retain(|row| row.writes() != Some(0));
    Builder::new("iclogs", "iclog writes", &rows)
        .key("device", |row| row.device)
        .key("cause", |row| row.cause.map_or(ALL, |cause| &cause.cause))
        .count("writes", Write::writes)
        .percent("share", |row| share(row.writes()?, row.all.writes?))
        .number("bytes", Unit::Bytes, Write::bytes)
        .hist("fill", Unit::Percent, &[P50, P90, MAX], |row| {
            row.cause
                .map_or(&row.all.fill_pct, |cause| &cause.fill_pct)
                .as_ref()
        })
        .only(|row| row.cause.is_none())
        .hist("latency", Unit::Ns, &[P50, P99, MAX], |row| {
            row.all.latency.as_ref()
        })
        .note("fill: used share of the iclog when it was written")
        .build()
}

pub(super) fn commits(report: &Report) -> Table {
    let mut rows = per_device(&report.commits, &report.commits.by_device, |row| {
        (&row.device, &row.commits)
    });
    rows.retain(|row| row.of.count != Some(0));
    Builder::new("commits", "Commits", &rows)
        .key("device", |row| row.device)
        .count("count", |row| row.of.count)
        .column("commits", Unit::Rate, |row| {
            use crate::report::table::Cell;
            row.of.per_s.map_or(Cell::Missing, Cell::Rate)
        })
        .hist("latency", Unit::Ns, &[P50, P90, P99, MAX], |row| {
            row.of.latency.as_ref()
        })
        .number("ctx_lock", Unit::Ns, |row| row.of.split?.ctx_lock_ns)
        .number("insert", Unit::Ns, |row| Some(row.of.split?.insert_ns))
        .number("throttle", Unit::Ns, |row| row.of.split?.throttle_ns)
        .number("other", Unit::Ns, |row| Some(row.of.split?.other_ns))
        .note("ctx lock, insert, throttle and other are sums; together they are the latency")
        .build()
}

pub(super) fn grants(report: &Report) -> Table {
    let mut rows = per_device(&report.grants, &report.grants.by_device, |row| {
        (&row.device, &row.grants)
    });
    rows.retain(|row| row.of.waits != Some(0));
    Builder::new("grants", "Waits for log reservation space", &rows)
        .key("device", |row| row.device)
        .count("waits", |row| row.of.waits)
        .hist("wait", Unit::Ns, &[TOTAL, P50, P90, P99, MAX], |row| {
            row.of.wait.as_ref()
        })
        .build()
}

pub(super) fn waits(report: &Report) -> Table {
    Builder::new("waits", "Waits that are not locks", &report.waits)
        .key("kind", |row| &row.kind)
        .key("device", |row| &row.device)
        .count("count", |row| row.count)
        .hist("wait", Unit::Ns, &[TOTAL, P50, P90, P99, MAX], |row| {
            row.wait.as_ref()
        })
        .build()
}

pub(super) fn log_space(report: &Report) -> Table {
    Builder::new("log_space", "Log space in use", &report.log_space)
        .key("device", |row| &row.device)
        .hist("used", Unit::Percent, &[P50, P90, P99, MAX], |row| {
            Some(&row.used_pct)
        })
        .number("min_free", Unit::Bytes, |row| row.min_free_bytes)
        .note("share of the log between tail and head, seen at each iclog write")
        .build()
}

pub(super) fn ail(report: &Report) -> Table {
    Builder::new("ail", "What the AIL's pushes met", &report.ail)
        .key("device", |row| &row.device)
        .count("push", |row| row.push)
        .count("pinned", |row| row.pinned)
        .count("locked", |row| row.locked)
        .count("flushing", |row| row.flushing)
        .build()
}
