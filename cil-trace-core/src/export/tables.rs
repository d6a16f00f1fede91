//! A recording as plain tables: JSON for programs, CSV for data frames.

use super::ExportError;
use crate::device::Dev;
use crate::histogram::Histogram;
use crate::model::Model;
use crate::model::stacks::{Name, StackEntry};
use crate::profile::{Profile, Weight};
use crate::report::schema::Report;
use crate::series::Series;
use crate::tick::{SampledEvent, Tick};
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::EventKind;
use cil_trace_common::stack::StackKind;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What was added to a counter or histogram in a tick.
#[derive(Serialize)]
struct Sum<'a> {
    tick: u64,
    /// The tick's beginning and end, nanoseconds since the window's start.
    start_ns: u64,
    end_ns: u64,
    metric: &'a str,
    /// Of a counter's value, of a histogram's sum.
    unit: &'a str,
    device: Option<String>,
    label: Option<&'a str>,
    via: Option<String>,
    /// Of a counter.
    value: Option<u64>,
    /// Of a histogram.
    count: Option<u64>,
    sum: Option<u64>,
}

/// Every counter and histogram by tick, one row each.
///
/// # Errors
/// [`ExportError::Csv`].
pub fn ticks_csv(model: &Model, ticks: &[Tick]) -> Result<String, ExportError> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for tick in ticks {
        for sum in sums(model, tick) {
            csv.serialize(sum)?;
        }
    }
    text(csv)
}

/// The report with all ticks, and with what a report sums up: `sums` by tick, `sampled_events`, and
/// the `stacks` of every kind.
///
/// # Errors
/// [`ExportError::Json`].
pub fn everything_json(model: &Model, ticks: &[Tick]) -> Result<String, ExportError> {
    let mut all = match serde_json::to_value(Report::of(model, true))? {
        Value::Object(report) => report,
        _ => Map::new(),
    };
    let sums: Vec<_> = ticks.iter().flat_map(|tick| sums(model, tick)).collect();
    all.insert("sums".to_owned(), serde_json::to_value(sums)?);
    let start = model.window().0;
    let events = ticks.iter().flat_map(|tick| &tick.events);
    let events: Vec<_> = events.map(|event| sampled(model, start, event)).collect();
    all.insert("sampled_events".to_owned(), events.into());
    let mut stacks = Vec::new();
    for &kind in StackKind::ALL {
        let profile = Profile::of(model, kind, Weight::Count)?;
        for entry in &profile.entries {
            stacks.push(serde_json::to_value(Row::of(&profile, entry))?);
        }
    }
    all.insert("stacks".to_owned(), stacks.into());
    Ok(serde_json::to_string(&all)? + "\n")
}

/// The stacks of a profile, with its total and what of it has no stack.
///
/// # Errors
/// [`ExportError::Json`].
pub fn stacks_json(profile: &Profile<'_>) -> Result<String, ExportError> {
    let rows = profile.entries.iter().map(|entry| Row::of(profile, entry));
    let all = json!({
        "kind": profile.words.kind.name(),
        "weight": profile.weight.name(),
        "unit": profile.words.unit,
        "total": profile.total().saturating_add(profile.missing),
        "lost": profile.lost(),
        "window_ns": profile.window_ns,
        "sampling_hz": profile.hz,
        "stacks": serde_json::to_value(rows.collect::<Vec<_>>())?,
    });
    Ok(serde_json::to_string(&all)? + "\n")
}

/// The stacks of a profile, one row each; what has no stack is the last.
///
/// # Errors
/// [`ExportError::Csv`].
pub fn stacks_csv(profile: &Profile<'_>) -> Result<String, ExportError> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for entry in &profile.entries {
        csv.serialize(Line::of(Row::of(profile, entry)))?;
    }
    if profile.missing > 0 {
        let missing = |weight| (profile.weight == weight).then_some(profile.missing);
        csv.serialize(Line {
            kind: profile.words.kind.name(),
            device: None,
            label: None,
            pid: None,
            comm: None,
            workload: None,
            stack: profile.names().text(Name::STACK_LOST).to_owned(),
            count: missing(Weight::Count),
            time_ns: missing(Weight::Time),
            bytes: missing(Weight::Bytes),
        })?;
    }
    text(csv)
}

/// One stack.
#[derive(Serialize)]
struct Row<'a> {
    kind: &'static str,
    device: Option<String>,
    label: Option<&'a str>,
    pid: Option<u32>,
    comm: Option<&'a str>,
    workload: Option<bool>,
    /// Outermost first, the program's before the kernel's.
    user: Vec<&'a str>,
    kernel: Vec<&'a str>,
    count: u64,
    time_ns: u64,
    bytes: u64,
}

impl<'a> Row<'a> {
    fn of(profile: &Profile<'a>, entry: &StackEntry<'a>) -> Self {
        let names = profile.names();
        let part = |frames: &[Name]| frames.iter().rev().map(|&name| names.text(name)).collect();
        Self {
            kind: profile.words.kind.name(),
            device: (entry.dev != Dev::NONE).then(|| profile.device(entry)),
            label: (entry.label != Name::EMPTY).then(|| names.text(entry.label)),
            pid: entry.who.map(|who| who.pid),
            comm: entry.who.map(|who| names.text(who.comm)),
            workload: entry.who.map(|who| who.workload),
            user: part(entry.user),
            kernel: part(entry.kernel),
            count: entry.sums.count,
            time_ns: entry.sums.time_ns,
            bytes: entry.sums.bytes,
        }
    }
}

/// The same as one line of a table.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    device: Option<String>,
    label: Option<&'a str>,
    pid: Option<u32>,
    comm: Option<&'a str>,
    workload: Option<bool>,
    /// Joined by `;`, which no kernel function has in its name.
    stack: String,
    count: Option<u64>,
    time_ns: Option<u64>,
    bytes: Option<u64>,
}

impl<'a> Line<'a> {
    fn of(row: Row<'a>) -> Self {
        let frames = row.user.iter().chain(&row.kernel);
        let frames: Vec<_> = frames
            .map(|frame| crate::flame::folded_name(frame))
            .collect();
        Self {
            kind: row.kind,
            device: row.device,
            label: row.label,
            pid: row.pid,
            comm: row.comm,
            workload: row.workload,
            stack: frames.join(";"),
            count: Some(row.count),
            time_ns: Some(row.time_ns),
            bytes: Some(row.bytes),
        }
    }
}

fn sums<'a>(model: &'a Model, tick: &'a Tick) -> impl Iterator<Item = Sum<'a>> {
    let start = model.window().0;
    let row = move |series: &Series| Sum {
        tick: tick.index,
        start_ns: tick.start_ns.saturating_sub(start),
        end_ns: tick.end_ns.saturating_sub(start),
        metric: series.metric.name(),
        unit: series.metric.unit(),
        device: device(model, series.dev),
        label: series
            .cause()
            .map(Cause::name)
            .or_else(|| series.fsync().map(FsyncKind::name)),
        via: device(model, series.via),
        value: None,
        count: None,
        sum: None,
    };
    let counters = tick.counters.iter().map(move |(series, value)| Sum {
        value: Some(*value),
        ..row(series)
    });
    let histogram = move |(series, histogram): &(Series, Histogram)| Sum {
        count: Some(histogram.count),
        sum: Some(histogram.sum),
        ..row(series)
    };
    counters.chain(tick.histograms.iter().map(histogram))
}

fn sampled(model: &Model, start: u64, event: &SampledEvent) -> Value {
    let args: Map<_, _> = event
        .kind
        .args()
        .iter()
        .zip(&event.args)
        .map(|(&name, &value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "kind": event.kind.name(),
        "device": device(model, event.dev),
        "label": label(event),
        "via": device(model, event.via),
        "pid": event.pid,
        "tid": event.tid,
        "comm": event.comm,
        "workload": event.workload,
        "start_ns": event.start_ns.saturating_sub(start),
        "duration_ns": event.duration_ns,
        "weight": event.weight,
        "args": args,
    })
}

/// The cause of an event, of an fsync its kind.
pub(super) fn label(event: &SampledEvent) -> &'static str {
    let name = match event.kind {
        EventKind::Fsync => FsyncKind::from_u16(event.label).map(FsyncKind::name),
        EventKind::Push | EventKind::Iclog | EventKind::Force | EventKind::Flush => {
            Cause::from_u16(event.label).map(Cause::name)
        }
    };
    name.unwrap_or("unknown")
}

fn device(model: &Model, dev: Dev) -> Option<String> {
    (dev != Dev::NONE).then(|| model.name(dev))
}

fn text(csv: csv::Writer<Vec<u8>>) -> Result<String, ExportError> {
    let bytes = csv.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
