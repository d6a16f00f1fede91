//! Each part of a tick as rows of its table: one place per table for writing and reading.

mod lock;

use super::names::Names;
use crate::device::{Dev, Device};
use crate::histogram::Histogram;
use crate::series::Series;
use crate::session::{Outcome, ProbeOutcome};
use crate::tick::{InFlight, Loss, ProcessRow, SampledEvent, Stack, StackRow, StackSums, Who};
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::EventKind;
use cil_trace_common::hist::{BUCKETS, bucket_edges, bucket_of};
use cil_trace_common::lock::Lock;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::{Label, Metric};
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, params_from_iter};
use serde_json::Map;
use std::collections::HashSet;

/// What stands in a row of one of the tables that belong to ticks.
pub(super) trait Row: Sized {
    /// The table.
    const TABLE: &'static str;
    /// Its columns, without `tick`, in the order of [`Row::encode`] and [`Row::decode`].
    const COLUMNS: &'static [&'static str];
    fn encode(&self, names: &Names) -> Vec<Value>;
    /// `None` if the row holds a name that this build does not know, or the wrong type.
    fn decode(cells: &mut Cells<'_>) -> Option<Self>;
}

/// Appends the rows of a tick; of the header without one.
pub(super) fn write<R: Row>(
    connection: &Connection,
    tick: Option<u64>,
    rows: &[R],
    names: &Names,
) -> rusqlite::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(&format!(
        "INSERT INTO {} (tick, {}) VALUES (?{})",
        R::TABLE,
        R::COLUMNS.join(", "),
        ", ?".repeat(R::COLUMNS.len()),
    ))?;
    for row in rows {
        let tick = Value::from(tick.map(|tick| tick as i64));
        statement.execute(params_from_iter(
            [tick].into_iter().chain(row.encode(names)),
        ))?;
    }
    Ok(())
}

/// The columns of a recording's tables: an earlier version made fewer of them.
#[derive(Debug)]
pub(super) struct Columns(HashSet<(String, String)>);

impl Columns {
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let mut select = connection.prepare(
            "SELECT tables.name, columns.name
             FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
             WHERE tables.type = 'table'",
        )?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self(rows.collect::<Result<_, _>>()?))
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.has(table, "tick")
    }

    fn has(&self, table: &str, column: &str) -> bool {
        self.0.contains(&(table.to_owned(), column.to_owned()))
    }

    /// Columns of a table for a SELECT, with NULL for those that it does not have.
    pub(super) fn list(&self, table: &str, columns: &[&str]) -> String {
        let columns: Vec<_> = columns
            .iter()
            .map(|&column| {
                if self.has(table, column) {
                    column
                } else {
                    "NULL"
                }
            })
            .collect();
        columns.join(", ")
    }

    /// What reads a table of ticks; `None` if the recording has none.
    fn select<R: Row>(&self) -> Option<String> {
        self.has_table(R::TABLE).then(|| {
            format!(
                "SELECT {} FROM {} WHERE tick IS ?1 ORDER BY rowid",
                self.list(R::TABLE, R::COLUMNS),
                R::TABLE,
            )
        })
    }
}

/// Reads the rows of a tick in the order in which they were written; adds to `skipped` those that
/// this build does not understand.
pub(super) fn read<R: Row>(
    connection: &Connection,
    columns: &Columns,
    tick: Option<u64>,
    names: &Names,
    skipped: &mut u64,
) -> rusqlite::Result<Vec<R>> {
    let Some(select) = columns.select::<R>() else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query([tick.map(|tick| tick as i64)])?;
    let mut decoded = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = Cells {
            row,
            next: 0,
            names,
        };
        match R::decode(&mut cells) {
            Some(row) => decoded.push(row),
            None => *skipped += 1,
        }
    }
    Ok(decoded)
}

/// The cells of one row, from left to right.
pub(super) struct Cells<'row> {
    row: &'row rusqlite::Row<'row>,
    next: usize,
    names: &'row Names,
}

impl Cells<'_> {
    /// The next cell; `None` if it does not hold a `T`.
    fn get<T: FromSql>(&mut self) -> Option<T> {
        let index = self.next;
        self.next += 1;
        self.row.get(index).ok()
    }

    /// 64 bits as [`number`] stores them.
    fn u64(&mut self) -> Option<u64> {
        self.get::<i64>().map(|bits| bits as u64)
    }

    /// The same where there may be none.
    fn optional_u64(&mut self) -> Option<Option<u64>> {
        let bits: Option<i64> = self.get()?;
        Some(bits.map(|bits| bits as u64))
    }

    /// The device that is named; [`Dev::NONE`] for NULL.
    fn dev(&mut self) -> Option<Dev> {
        match self.get::<Option<String>>()? {
            Some(name) => self.names.dev(&name),
            None => Some(Dev::NONE),
        }
    }

    /// The variant that is named.
    fn variant<T>(&mut self, from_name: fn(&str) -> Option<T>) -> Option<T> {
        from_name(&self.get::<String>()?)
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_str(&self.get::<String>()?).ok()
    }

    /// The number of a label.
    fn label(&mut self, kind: Label) -> Option<u16> {
        match (kind, self.get::<Option<String>>()?) {
            (Label::None, _) => Some(0),
            (Label::Cause, text) => Cause::from_name(&text?).map(|cause| cause as u16),
            (Label::Fsync, text) => FsyncKind::from_name(&text?).map(|kind| kind as u16),
            (Label::Lock, text) => Lock::from_name(&text?).map(|lock| lock as u16),
        }
    }
}

/// SQLite has signed integers only: above `i64::MAX` the same bits, which read negative.
fn number(value: u64) -> Value {
    Value::Integer(value as i64)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn dev(value: Dev, names: &Names) -> Value {
    names.text(value).into()
}

fn label(kind: Label, value: u16) -> Value {
    let name = match kind {
        Label::None => None,
        Label::Cause => Cause::from_u16(value).map(Cause::name),
        Label::Fsync => FsyncKind::from_u16(value).map(FsyncKind::name),
        Label::Lock => Lock::from_u16(value).map(Lock::name),
    };
    name.map(str::to_owned).into()
}

const fn label_of(kind: EventKind) -> Label {
    match kind {
        EventKind::Fsync => Label::Fsync,
        EventKind::Push | EventKind::Iclog | EventKind::Force | EventKind::Flush => Label::Cause,
    }
}

fn encode_series(series: &Series, names: &Names) -> Vec<Value> {
    vec![
        text(series.metric.name()),
        dev(series.dev, names),
        label(series.metric.label(), series.label),
        dev(series.via, names),
        series.stack.into(),
    ]
}

fn decode_series(cells: &mut Cells<'_>) -> Option<Series> {
    let metric = cells.variant(Metric::from_name)?;
    Some(Series {
        metric,
        dev: cells.dev()?,
        label: cells.label(metric.label())?,
        via: cells.dev()?,
        stack: cells.get()?,
    })
}

impl Row for (Series, u64) {
    const TABLE: &'static str = "counters";
    const COLUMNS: &'static [&'static str] =
        &["metric", "device", "label", "via", "stack", "value"];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let mut cells = encode_series(&self.0, names);
        cells.push(number(self.1));
        cells
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some((decode_series(cells)?, cells.u64()?))
    }
}

impl Row for (Series, Histogram) {
    const TABLE: &'static str = "histograms";
    const COLUMNS: &'static [&'static str] = &[
        "metric", "device", "label", "via", "stack", "count", "sum", "min", "max", "buckets",
    ];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let histogram = &self.1;
        let buckets: Vec<(u64, Option<u64>, u64)> = histogram
            .buckets
            .iter()
            .map(|(&index, &count)| {
                let (lo, hi) = bucket_edges(usize::from(index));
                let hi = (usize::from(index) + 1 < BUCKETS).then_some(hi);
                (lo, hi, count)
            })
            .collect();
        let mut cells = encode_series(&self.0, names);
        cells.extend([histogram.count, histogram.sum, histogram.min, histogram.max].map(number));
        cells.push(Value::Text(serde_json::json!(buckets).to_string()));
        cells
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        let series = decode_series(cells)?;
        let (count, sum, min, max) = (cells.u64()?, cells.u64()?, cells.u64()?, cells.u64()?);
        let buckets = cells
            .json::<Vec<(u64, Option<u64>, u64)>>()?
            .into_iter()
            .map(|(lo, _, count)| (bucket_of(lo) as u16, count))
            .collect();
        // A histogram that contradicts itself has no quantiles.
        (min <= max).then_some(())?;
        let histogram = Histogram {
            count,
            sum,
            min,
            max,
            buckets,
        };
        Some((series, histogram))
    }
}

impl Row for SampledEvent {
    const TABLE: &'static str = "events";
    const COLUMNS: &'static [&'static str] = &[
        "kind",
        "device",
        "label",
        "via",
        "pid",
        "tid",
        "comm",
        "workload",
        "start_ns",
        "duration_ns",
        "args",
        "weight",
    ];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let args: Map<_, _> = self
            .kind
            .args()
            .iter()
            .zip(&self.args)
            .map(|(&name, &value)| (name.to_owned(), value.into()))
            .collect();
        vec![
            text(self.kind.name()),
            dev(self.dev, names),
            label(label_of(self.kind), self.label),
            dev(self.via, names),
            self.pid.into(),
            self.tid.into(),
            text(&self.comm),
            self.workload.into(),
            number(self.start_ns),
            number(self.duration_ns),
            Value::Text(serde_json::Value::from(args).to_string()),
            self.weight.into(),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        let kind = cells.variant(EventKind::from_name)?;
        Some(Self {
            kind,
            dev: cells.dev()?,
            label: cells.label(label_of(kind))?,
            via: cells.dev()?,
            pid: cells.get()?,
            tid: cells.get()?,
            comm: cells.get()?,
            workload: cells.get()?,
            start_ns: cells.u64()?,
            duration_ns: cells.u64()?,
            args: {
                let args: Map<_, _> = cells.json()?;
                let value = |name| args.get(name).and_then(serde_json::Value::as_u64);
                kind.args()
                    .iter()
                    .map(|&name| value(name).unwrap_or(0))
                    .collect()
            },
            weight: cells.get()?,
        })
    }
}

impl Row for (EventKind, u64) {
    const TABLE: &'static str = "events_seen";
    const COLUMNS: &'static [&'static str] = &["kind", "seen"];

    fn encode(&self, _: &Names) -> Vec<Value> {
        vec![text(self.0.name()), number(self.1)]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some((cells.variant(EventKind::from_name)?, cells.u64()?))
    }
}

impl Row for ProcessRow {
    const TABLE: &'static str = "processes";
    const COLUMNS: &'static [&'static str] = &[
        "pid",
        "comm",
        "workload",
        "forces",
        "flushes_requested",
        "log_wait_ns",
        "lock_wait_ns",
    ];

    fn encode(&self, _: &Names) -> Vec<Value> {
        vec![
            self.pid.into(),
            text(&self.comm),
            self.workload.into(),
            number(self.forces),
            number(self.flushes_requested),
            number(self.log_wait_ns),
            number(self.lock_wait_ns),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            pid: cells.get()?,
            comm: cells.get()?,
            workload: cells.get()?,
            forces: cells.u64()?,
            flushes_requested: cells.u64()?,
            log_wait_ns: cells.u64()?,
            lock_wait_ns: cells.optional_u64()?.unwrap_or(0),
        })
    }
}

impl Row for Loss {
    const TABLE: &'static str = "losses";
    const COLUMNS: &'static [&'static str] = &["probe", "cause", "count"];

    fn encode(&self, _: &Names) -> Vec<Value> {
        vec![
            text(self.probe.name()),
            text(self.cause.name()),
            number(self.count),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            probe: cells.variant(Probe::from_name)?,
            cause: cells.variant(LossCause::from_name)?,
            count: cells.u64()?,
        })
    }
}

impl Row for Stack {
    const TABLE: &'static str = "stacks";
    const COLUMNS: &'static [&'static str] = &["stack", "frames"];

    fn encode(&self, _: &Names) -> Vec<Value> {
        vec![
            self.id.into(),
            Value::Text(serde_json::json!(self.frames).to_string()),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            id: cells.get()?,
            frames: cells.json()?,
        })
    }
}

impl Row for StackRow {
    const TABLE: &'static str = "stack_sums";
    const COLUMNS: &'static [&'static str] = &[
        "kind",
        "device",
        "label",
        "pid",
        "comm",
        "workload",
        "kernel_stack",
        "user_stack",
        "count",
        "time_ns",
        "bytes",
    ];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let label = (!self.label.is_empty()).then(|| self.label.clone());
        let who = self.who.as_ref();
        vec![
            text(self.kind.name()),
            dev(self.dev, names),
            label.into(),
            who.map(|who| who.pid).into(),
            who.map(|who| who.comm.clone()).into(),
            who.map(|who| who.workload).into(),
            self.kernel.into(),
            self.user.into(),
            number(self.sums.count),
            number(self.sums.time_ns),
            number(self.sums.bytes),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            kind: cells.variant(StackKind::from_name)?,
            dev: cells.dev()?,
            label: cells.get::<Option<String>>()?.unwrap_or_default(),
            who: {
                let (pid, comm, workload) = (cells.get()?, cells.get()?, cells.get()?);
                match (pid, comm, workload) {
                    (Some(pid), Some(comm), Some(workload)) => Some(Who {
                        pid,
                        comm,
                        workload,
                    }),
                    _ => None,
                }
            },
            kernel: cells.get()?,
            user: cells.get()?,
            sums: StackSums {
                count: cells.u64()?,
                time_ns: cells.u64()?,
                bytes: cells.u64()?,
            },
        })
    }
}

/// A row of the table in which the first version kept the stacks of flushes, and no others.
pub(super) struct FlushStack(pub(super) StackRow);

impl Row for FlushStack {
    const TABLE: &'static str = "flush_stacks";
    const COLUMNS: &'static [&'static str] = &["device", "cause", "stack", "count"];

    fn encode(&self, names: &Names) -> Vec<Value> {
        vec![
            dev(self.0.dev, names),
            text(&self.0.label),
            self.0.kernel.into(),
            number(self.0.sums.count),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self(StackRow {
            kind: StackKind::Flush,
            dev: cells.dev()?,
            label: cells.get()?,
            who: None,
            kernel: Some(cells.get()?),
            user: None,
            sums: StackSums {
                count: cells.u64()?,
                ..StackSums::default()
            },
        }))
    }
}

impl Row for ProbeOutcome {
    const TABLE: &'static str = "probe_changes";
    const COLUMNS: &'static [&'static str] = &["probe", "outcome", "how", "reason"];

    fn encode(&self, _: &Names) -> Vec<Value> {
        vec![
            text(&self.probe),
            text(self.outcome.name()),
            text(&self.how),
            text(&self.reason),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            probe: cells.get()?,
            outcome: cells.variant(Outcome::from_name)?,
            how: cells.get()?,
            reason: cells.get()?,
        })
    }
}

impl Row for InFlight {
    const TABLE: &'static str = "in_flight";
    const COLUMNS: &'static [&'static str] = &["device", "flushes", "oldest_ns", "cause"];

    fn encode(&self, names: &Names) -> Vec<Value> {
        vec![
            dev(self.dev, names),
            number(self.flushes),
            number(self.oldest_ns),
            label(Label::Cause, self.cause),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        Some(Self {
            dev: cells.dev()?,
            flushes: cells.u64()?,
            oldest_ns: cells.u64()?,
            cause: cells.label(Label::Cause)?,
        })
    }
}

impl Row for Device {
    const TABLE: &'static str = "devices";
    const COLUMNS: &'static [&'static str] = &[
        "device",
        "major",
        "minor",
        "partition_of",
        "filesystem",
        "mountpoint",
        "write_cache",
        "fua",
        "request_based",
        "stacked_on",
        "log_size_bytes",
        "iclog_size_bytes",
        "log_device",
        "realtime_device",
        "mount_options",
        "geometry",
    ];

    fn encode(&self, names: &Names) -> Vec<Value> {
        let device = |other: Option<Dev>| Value::from(other.and_then(|dev| names.text(dev)));
        let bytes = |size: Option<u64>| Value::from(size.map(|size| size as i64));
        let beneath: Vec<_> = self.stacked_on.iter().map(|&dev| names.text(dev)).collect();
        vec![
            text(&self.name),
            self.dev.major().into(),
            self.dev.minor().into(),
            device(self.partition_of),
            self.filesystem.clone().into(),
            self.mountpoint.clone().into(),
            self.write_cache.clone().into(),
            self.fua.into(),
            self.request_based.into(),
            Value::Text(serde_json::json!(beneath).to_string()),
            bytes(self.log_size_bytes),
            bytes(self.iclog_size_bytes),
            device(self.log_device),
            device(self.realtime_device),
            self.mount_options.clone().into(),
            self.geometry.clone().into(),
        ]
    }

    fn decode(cells: &mut Cells<'_>) -> Option<Self> {
        let device = |cells: &mut Cells<'_>| {
            let dev = cells.dev()?;
            Some((dev != Dev::NONE).then_some(dev))
        };
        let bytes = |cells: &mut Cells<'_>| {
            let size: Option<i64> = cells.get()?;
            Some(size.map(|size| size as u64))
        };
        Some(Self {
            name: cells.get()?,
            dev: Dev::new(cells.get()?, cells.get()?),
            partition_of: device(cells)?,
            filesystem: cells.get()?,
            mountpoint: cells.get()?,
            write_cache: cells.get()?,
            fua: cells.get()?,
            request_based: cells.get()?,
            stacked_on: {
                let beneath: Vec<String> = cells.json()?;
                beneath
                    .iter()
                    .map(|name| cells.names.dev(name))
                    .collect::<Option<_>>()?
            },
            log_size_bytes: bytes(cells)?,
            iclog_size_bytes: bytes(cells)?,
            log_device: device(cells)?,
            realtime_device: device(cells)?,
            mount_options: cells.get()?,
            geometry: cells.get()?,
        })
    }
}
