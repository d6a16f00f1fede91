//! A moment as plain text: what `--batch` prints, and what the tab Overview shows.

use super::state::S;
use cil_trace_core::history::Quantiles;
use cil_trace_core::history::tables::{View, rates};
use cil_trace_core::model::LossSums;
use cil_trace_core::report::format::text;
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::sections;
use cil_trace_core::report::units;
use cil_trace_core::session::Header;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Sections of a batch frame.
const BRIEF: &[&str] = &["flushes"];

/// Sections of the overview, by what is asked first.
const OVERVIEW: &[&str] = &[
    "flushes",
    "forces",
    "fsyncs",
    "waits",
    "grants",
    "iclogs",
    "pushes",
    "commits",
    "log_space",
    "ail",
];

/// What was made of a stretch.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// Its report.
    pub report: Report,
    /// Its quantiles.
    pub quantiles: Quantiles,
    /// Shares of all CPUs, percent: of the programs, and of cil-trace itself; `None` if not known.
    pub cost: Option<(f64, f64)>,
}

impl Stretch {
    /// Makes it.
    #[must_use]
    pub fn of(view: View<'_>) -> Self {
        let model = view.history.model(view.span, view.index);
        let (start, end) = model.window();
        let cpus = u64::from(model.header().machine.cpus.max(1));
        let available = end.saturating_sub(start).saturating_mul(cpus);
        let share = |ns| units::share(ns, available);
        Self {
            report: Report::of(&model, false),
            quantiles: Quantiles::of(&model, view.dev),
            cost: model
                .cost()
                .and_then(|cost| Some((share(cost.bpf_run_ns)?, share(cost.own_ns)?))),
        }
    }
}

/// A moment, with what was made of its stretch.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What is looked at.
    pub view: View<'a>,
    /// What was made of it.
    pub stretch: &'a Stretch,
}

impl Frame<'_> {
    /// Rates, quantiles, and the tables of what happened, in at most `width` columns.
    #[must_use]
    pub fn overview(&self, width: u16) -> Vec<String> {
        let text = self.tables(OVERVIEW, width);
        text.lines().map(str::to_owned).collect()
    }

    /// What a batch frame consists of.
    #[must_use]
    pub fn batch(&self, zone: &TimeZone) -> String {
        let header = self.view.history.total().header();
        let mut text = format!(
            "{}  tick {}, {}  {}  Linux {}\n",
            wall_clock(header, self.end_ns(), zone, "%Y-%m-%d %H:%M:%S"),
            self.view.index,
            units::duration(self.stretch.report.duration_ns),
            scope(self.view),
            header.machine.kernel,
        );
        let losses = self.view.history.losses(self.view.index);
        text += &format!("{}; {}\n", loss(losses), cost(self.stretch.cost));
        text += &format!("{}\n\n", quantiles(self.stretch.quantiles));
        text += &self.tables(BRIEF, text::WIDTH);
        text
    }

    fn end_ns(&self) -> u64 {
        let View { history, index, .. } = self.view;
        history.tick(index).map_or(0, |tick| tick.end_ns)
    }

    /// The rates, and sections of the report.
    fn tables(&self, names: &[&str], width: u16) -> String {
        let View { history, dev, .. } = self.view;
        let mut tables = vec![rates(self.view)];
        for section in names.iter().filter_map(|name| sections::find(name)) {
            let mut table = section.table(&self.stretch.report);
            if let Some(dev) = dev {
                super::tabs::of_device(&mut table, history.total(), dev);
            }
            if !table.rows.is_empty() || BRIEF.contains(&section.name) {
                tables.push(table);
            }
        }
        let tables = tables.iter().map(|table| text::table_within(table, width));
        tables.collect::<Vec<_>>().join("\n")
    }
}

/// What was lost since the start; said also when nothing was.
#[must_use]
pub fn loss(sums: LossSums) -> String {
    let LossSums {
        lost,
        unpaired,
        stacks_lost,
    } = sums;
    let mut text = match lost {
        0 => "loss: none".to_owned(),
        lost => format!("LOST: {} events", units::short_count(lost)),
    };
    for (count, what) in [(unpaired, "unpaired"), (stacks_lost, "stacks lost")] {
        if count > 0 {
            text += &format!(", {} {what}", units::short_count(count));
        }
    }
    text
}

/// What tracing cost, from [`Stretch::cost`].
#[must_use]
pub fn cost(shares: Option<(f64, f64)>) -> String {
    match shares {
        Some((programs, own)) => format!(
            "tracing took {} of the CPUs, cil-trace itself {}",
            units::percent(programs),
            units::percent(own)
        ),
        None => "what tracing cost is not known".to_owned(),
    }
}

/// Fill of the iclogs and latency of the forces.
#[must_use]
pub fn quantiles(quantiles: Quantiles) -> String {
    let Quantiles {
        fill_p50,
        force_p50,
        force_p99,
    } = quantiles;
    let of = |value: Option<u64>, text: fn(u64) -> String| value.map_or("-".to_owned(), text);
    format!(
        "iclog fill p50 {}; log force p50 {}, p99 {}",
        of(fill_p50, |percent| units::percent(percent as f64)),
        of(force_p50, units::duration),
        of(force_p99, units::duration),
    )
}

/// The filesystems that are shown, and whose work is told apart.
#[must_use]
pub fn scope(view: View<'_>) -> String {
    let View { history, dev, .. } = view;
    let model = history.total();
    let shown = history
        .filesystems()
        .filter(|(found, _)| dev.is_none_or(|dev| dev == *found));
    let mut names: Vec<_> = shown
        .map(|(dev, name)| {
            let device = model.device(dev);
            let mountpoint = device.and_then(|device| device.mountpoint.as_deref());
            mountpoint.map_or(name.to_owned(), |mountpoint| {
                format!("{name} {}", units::printable(mountpoint))
            })
        })
        .collect();
    if names.is_empty() {
        names.push("no XFS".to_owned());
    }
    let scope = &model.header().scope;
    let mut text = names.join(", ");
    if !scope.devices.is_empty() {
        text += " (filtered)";
    }
    if let Some(pid) = scope.pid {
        text += &format!(" (workload: pid {pid})");
    }
    text
}

/// The time of day at a moment of the session; empty if the session does not know when it began.
#[must_use]
pub fn wall_clock(header: &Header, at_ns: u64, zone: &TimeZone, format: &str) -> String {
    time(header, at_ns).map_or_else(String::new, |at| {
        at.to_zoned(zone.clone()).strftime(format).to_string()
    })
}

/// The same as a point in time.
#[must_use]
pub fn time(header: &Header, at_ns: u64) -> Option<Timestamp> {
    let since = at_ns.saturating_sub(header.window_start_ns);
    let since = SignedDuration::from_nanos(i64::try_from(since).ok()?);
    let start: Timestamp = header.started_at.parse().ok()?;
    start.checked_add(since).ok()
}

/// How long a moment lies behind the last tick: `-12.0 s`; empty at the last.
#[must_use]
pub fn behind(last_ns: u64, at_ns: u64) -> String {
    match last_ns.saturating_sub(at_ns) {
        0 => String::new(),
        ns if ns < S => format!("-{} ms", ns / 1_000_000),
        ns => format!("-{:.1} s", ns as f64 / S as f64),
    }
}
