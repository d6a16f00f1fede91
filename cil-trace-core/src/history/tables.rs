//! Tables that a whole session does not have: rates as they are now, and the latest pushes.

use super::{History, Rate, Span};
use crate::device::Dev;
use crate::report::table::{Builder, Cell, Table, Unit};
use crate::tick::SampledEvent;
use cil_trace_common::cause::Cause;
use cil_trace_common::event::EventKind;

/// Pushes in the list of the latest.
pub const PUSHES: usize = 200;

/// What is looked at: a stretch that ends with a tick, of one filesystem or all.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The session.
    pub history: &'a History,
    /// The filesystem's device; `None` for all.
    pub dev: Option<Dev>,
    /// The stretch.
    pub span: Span,
    /// The tick that it ends with.
    pub index: u64,
}

/// The rates: of the stretch, the highest of the ticks that are kept, and the count of the session.
#[must_use]
pub fn rates(view: View<'_>) -> Table {
    let View {
        history,
        dev,
        span,
        index,
    } = view;
    let rate = |per_s: Option<f64>| per_s.map_or(Cell::Missing, Cell::Rate);
    Builder::new("rates", "Rates", &Rate::ALL)
        .key("of", |row| row.name)
        .column("rate", Unit::Rate, |row| {
            rate(row.per_s(history, dev, span, index))
        })
        .column("highest", Unit::Rate, |row| {
            rate(row.each(history, dev, index).reduce(f64::max))
        })
        .count("since_start", |row| row.total(history, dev, index))
        .build()
}

/// The latest pushes of the sample, newest first.
#[must_use]
pub fn pushes(view: View<'_>) -> Table {
    let View {
        history,
        dev,
        index,
        ..
    } = view;
    let now = history.tick(index).map_or(0, |tick| tick.end_ns);
    let rows: Vec<&SampledEvent> = history
        .events(EventKind::Push, index)
        .filter(|push| dev.is_none_or(|dev| dev == push.dev))
        .take(PUSHES)
        .collect();
    let names: Vec<_> = rows
        .iter()
        .map(|push| history.total().name(push.dev))
        .collect();
    let rows: Vec<Push<'_>> = rows
        .iter()
        .zip(&names)
        .map(|(push, device)| Push { push, device })
        .collect();
    Builder::new("latest_pushes", "The latest CIL pushes", &rows)
        .number("ago", Unit::Ns, |row| {
            let end = row.push.start_ns.saturating_add(row.push.duration_ns);
            now.saturating_sub(end)
        })
        .text("device", |row| Some(row.device))
        .text("trigger", |row| {
            Some(
                Cause::from_u16(row.push.label)
                    .unwrap_or(Cause::Other)
                    .name(),
            )
        })
        .number("bytes", Unit::Bytes, |row| row.arg("bytes"))
        .count("transactions", |row| row.arg("transactions"))
        .number("queue_delay", Unit::Ns, |row| row.arg("queue_delay_ns"))
        .number("run_time", Unit::Ns, |row| row.push.duration_ns)
        .text("wrote_iclog", |row| {
            Some(match (row.arg("empty")?, row.arg("iclogs")?) {
                (1.., _) => "empty push",
                (0, 0) => "no",
                (0, _) => "yes",
            })
        })
        .count("flushes", |row| row.arg("flushes"))
        .column("stands_for", Unit::Ratio, |row| {
            Cell::Ratio(row.push.weight)
        })
        .note(format!(
            "a sample: of each tick the slowest and some of the others, at most {PUSHES} of the \
             ticks that are kept; stands for: pushes that it was drawn from"
        ))
        .build()
}

struct Push<'a> {
    push: &'a SampledEvent,
    device: &'a str,
}

impl Push<'_> {
    /// An argument by its name; see [`EventKind::args`].
    fn arg(&self, name: &str) -> Option<u64> {
        let place = EventKind::Push.args().iter().position(|arg| *arg == name)?;
        self.push.args.get(place).copied()
    }
}
