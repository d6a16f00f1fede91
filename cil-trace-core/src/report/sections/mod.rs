//! The sections of a report: one row each in [`SECTIONS`], one function from the report to a table.
//!
//! Sections know the report's fields and nothing about the format they end up in.

mod flush;
mod lock;
mod log;
mod run;

use super::schema::Report;
use super::table::{Cell, Table, Unit};
use crate::session::Outcome;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use std::fmt::Write;

/// A section.
#[derive(Debug)]
pub struct Section {
    /// Its name: `summary`, or the key of the report's JSON.
    pub name: &'static str,
    /// Whether a report without section names has it.
    pub overview: bool,
    /// The probes behind its numbers; their losses and approximations are noted under it.
    probes: &'static [Probe],
    build: fn(&Report) -> Table,
}

use Probe as P;

/// Every section, in the order in which text prints them.
pub const SECTIONS: &[Section] = &[
    section("summary", true, &[], super::summary::table),
    section("workload", true, &[], run::workload),
    section(
        "flushes",
        true,
        &[P::FlushRequests, P::FlushEnd, P::FlushIssues],
        flush::flushes,
    ),
    section(
        "devices",
        true,
        &[
            P::FlushRequests,
            P::FlushEnd,
            P::FlushIssues,
            P::LoopWorkers,
        ],
        flush::devices,
    ),
    section("fsyncs", true, &[P::Fsyncs, P::FsyncEnd], flush::fsyncs),
    section("forces", true, &[P::Forces, P::ForceEnd], log::forces),
    section("pushes", true, &[P::Pushes], log::pushes),
    section("iclogs", true, &[P::Iclogs], log::iclogs),
    section(
        "commits",
        true,
        &[P::Commits, P::CommitInsert, P::CommitCtxLock, P::Throttle],
        log::commits,
    ),
    section("grants", true, &[P::GrantWaits], log::grants),
    section(
        "waits",
        true,
        &[P::Throttle, P::CommitOrder, P::IclogSpace, P::ForceEnd],
        log::waits,
    ),
    section("log_space", true, &[P::Iclogs], log::log_space),
    section("ail", true, &[P::Ail], log::ail),
    section(
        "ilock",
        true,
        &[P::Ilock, P::IlockReturn, P::RwsemWaits],
        lock::ilock,
    ),
    section(
        "locks",
        true,
        &[
            P::SpinWaits,
            P::RwlockWaits,
            P::RwsemWaits,
            P::MutexWaits,
            P::SemaphoreWaits,
            P::CtxLockHold,
        ],
        lock::locks,
    ),
    section("blockers", true, &[P::Holders], lock::blockers),
    section(
        "processes",
        true,
        &[
            P::Descendants,
            P::Forces,
            P::FlushRequests,
            P::GrantWaits,
            P::RwsemWaits,
        ],
        run::processes,
    ),
    section("ticks", true, &[], run::ticks),
    section("overhead", true, &[], run::overhead),
    section("events", false, &[], run::events),
    section("window", false, &[], run::window),
    section("probes", false, &[], run::probes),
    section("loss", true, &[], run::loss),
];

const fn section(
    name: &'static str,
    overview: bool,
    probes: &'static [Probe],
    build: fn(&Report) -> Table,
) -> Section {
    Section {
        name,
        overview,
        probes,
        build,
    }
}

/// The names of all sections.
pub fn section_names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|section| section.name)
}

/// The section of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

impl Section {
    /// Whether its rows were counted, so that none means nothing happened. What no probe counts,
    /// always is.
    #[must_use]
    pub fn measured(&self, report: &Report) -> bool {
        self.probes.first().is_none_or(|first| {
            let mut outcomes = report.probes.iter();
            outcomes.any(|row| row.probe == first.name() && row.outcome.measured())
        })
    }

    /// The section's table, with notes on what is lost from it, approximated or not measured.
    #[must_use]
    pub fn table(&self, report: &Report) -> Table {
        let mut table = (self.build)(report);
        table.notes.extend(self.lost(report));
        table.notes.extend(self.unmeasured(report));
        let missing = table.rows.iter().flatten().any(|c| *c == Cell::Missing);
        if missing {
            table.notes.insert(
                0,
                "\"-\": not measured; `cil-trace report probes` says why".to_owned(),
            );
        }
        table
    }

    /// One line on the losses of this section's probes. A full ring buffer costs single objects
    /// only, the counters are complete.
    fn lost(&self, report: &Report) -> Option<String> {
        let ring_buffer = LossCause::RingBufferFull.name();
        let rows = report.loss.by_probe.iter().filter(|row| {
            row.count > 0
                && if row.cause == ring_buffer {
                    self.name == "events"
                } else {
                    self.probes.iter().any(|probe| probe.name() == row.probe)
                }
        });
        let mut total = 0_u64;
        let mut parts = String::new();
        for row in rows {
            total = total.saturating_add(row.count);
            let separator = if parts.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(
                parts,
                "{separator}{} {} ({})",
                row.probe, row.count, row.cause
            );
        }
        let s = if total == 1 { "" } else { "s" };
        (total > 0).then(|| format!("{total} event{s} lost here: {parts}"))
    }

    fn unmeasured<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = String> + 'a {
        report.probes.iter().filter_map(|probe| {
            let (word, text) = match probe.outcome {
                Outcome::Attached => return None,
                // Why there is nothing better stands in the section `probes`.
                Outcome::Approximated => ("approximated", &probe.how),
                Outcome::Skipped => ("not measured", &probe.reason),
                Outcome::Failed => ("failed", &probe.reason),
            };
            self.probes
                .iter()
                .any(|own| own.name() == probe.probe)
                .then(|| format!("{} {word}: {text}", probe.probe))
        })
    }
}

/// A table of `name, value` rows in which each value has its own unit.
fn facts(name: &str, title: &str, rows: &[(&str, Cell)]) -> Table {
    super::table::Builder::new(name, title, rows)
        .key("name", |row| row.0)
        .column("value", Unit::Mixed, |row| row.1.clone())
        .build()
}

/// A total, and the same per device.
struct OfDevice<'a, T> {
    device: &'a str,
    of: &'a T,
}

/// One row per device, after one for all if there is more than one device.
fn per_device<'a, T, D>(
    all: &'a T,
    devices: &'a [D],
    get: impl Fn(&'a D) -> (&'a String, &'a T),
) -> Vec<OfDevice<'a, T>> {
    let total = (devices.len() != 1).then_some(OfDevice {
        device: "all",
        of: all,
    });
    total
        .into_iter()
        .chain(devices.iter().map(|row| {
            let (device, of) = get(row);
            OfDevice { device, of }
        }))
        .collect()
}

/// Sum of a column over the rows of one device.
fn of_device<T>(rows: &[T], device: &str, get: impl Fn(&T) -> (&String, u64)) -> u64 {
    rows.iter()
        .map(get)
        .filter(|(name, _)| *name == device)
        .fold(0, |sum, (_, number)| sum.saturating_add(number))
}
