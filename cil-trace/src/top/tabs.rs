//! The tabs: one row each, and the table that each shows.
//!
//! Columns, units and notes are those of the report's sections; here is only decided which come
//! first.

use super::sort::Sort;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::Dev;
use cil_trace_core::history::tables::{View, pushes};
use cil_trace_core::model::Model;
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::sections;
use cil_trace_core::report::table::{Cell, Table};
use std::collections::BTreeSet;

/// A tab.
#[derive(Debug)]
pub struct Tab {
    /// The key that chooses it.
    pub key: char,
    /// What the key is for.
    pub name: &'static str,
    /// What it shows.
    pub content: Content,
    /// Columns that come first, as a terminal may be too narrow for all of them.
    pub first: &'static [&'static str],
    /// How it is sorted unless told otherwise; `None` as the section is.
    pub sort: Option<Sort>,
}

/// What a tab shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// The text of a batch frame, and more of the same.
    Overview,
    /// A section of the report.
    Section(&'static str),
    /// The latest pushes.
    Pushes,
}

/// Every tab, in the order of its keys.
pub const TABS: &[Tab] = &[
    tab('1', "Overview", Content::Overview, &[], None),
    tab(
        '2',
        "Flushes",
        Content::Section("flushes"),
        &[
            "device",
            "cause",
            "via",
            "requested",
            "share",
            "latency_p50",
            "latency_p99",
        ],
        None,
    ),
    tab(
        '3',
        "Pushes",
        Content::Pushes,
        &[
            "ago",
            "device",
            "trigger",
            "bytes",
            "queue_delay",
            "run_time",
            "wrote_iclog",
        ],
        None,
    ),
    tab(
        '4',
        "Locks",
        Content::Section("locks"),
        &[
            "lock",
            "kind",
            "device",
            "waits",
            "wait_total",
            "wait_p50",
            "wait_p99",
            "from",
        ],
        Some(Sort::descending("wait_total")),
    ),
    tab(
        '5',
        "ilock",
        Content::Section("ilock"),
        &[
            "lock",
            "mode",
            "device",
            "acquired",
            "wait_total",
            "wait_p99",
            "hold_p50",
            "hold_p99",
        ],
        None,
    ),
    tab(
        '6',
        "Processes",
        Content::Section("processes"),
        &[
            "pid",
            "comm",
            "forces",
            "flushes_requested",
            "log_wait",
            "lock_wait",
        ],
        None,
    ),
    tab(
        '7',
        "Devices",
        Content::Section("devices"),
        &[
            "device",
            "stacked_on",
            "oldest_in_flight",
            "in_flight",
            "fan_out",
            "flushes_requested",
            "flushes_issued",
            "flushes_empty",
            "flush_latency_p50",
            "flush_latency_p99",
        ],
        None,
    ),
    tab('8', "Probes", Content::Section("probes"), &[], None),
];

const fn tab(
    key: char,
    name: &'static str,
    content: Content,
    first: &'static [&'static str],
    sort: Option<Sort>,
) -> Tab {
    Tab {
        key,
        name,
        content,
        first,
        sort,
    }
}

impl Tab {
    /// The stacks that belong to its rows, and the column whose words are theirs.
    #[must_use]
    pub fn stacks(&self) -> Option<(StackKind, &'static str)> {
        match self.content {
            Content::Section("flushes") => Some((StackKind::Flush, "cause")),
            Content::Section("locks" | "ilock") => Some((StackKind::Lock, "lock")),
            Content::Pushes => Some((StackKind::Push, "trigger")),
            _ => None,
        }
    }

    /// Its table, of one filesystem or all; `None` for text. `report` is of the view's stretch.
    pub fn table(&self, view: View<'_>, report: &Report) -> Option<Table> {
        let mut table = match self.content {
            Content::Overview => return None,
            Content::Pushes => pushes(view),
            Content::Section(name) => section(name, report),
        };
        if let Some(dev) = view.dev {
            of_device(&mut table, view.history.total(), dev);
        }
        table.arrange(self.first);
        Some(table)
    }
}

fn section(name: &str, report: &Report) -> Table {
    match sections::find(name) {
        Some(section) => section.table(report),
        None => Table {
            notes: vec!["not measured: this version of cil-trace has no probes for it".to_owned()],
            ..Table::named(name)
        },
    }
}

/// Leaves the rows of one filesystem's device: its own, and what devices beneath did for it. Of the
/// devices those beneath stay too.
pub fn of_device(table: &mut Table, model: &Model, dev: Dev) {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let Some(device) = place("device") else {
        return;
    };
    let via = place("via");
    let own = model.name(dev);
    let beneath = match table.name.as_str() {
        "devices" => beneath(model, dev),
        _ => BTreeSet::new(),
    };
    table.rows.retain(|row| {
        let is_own = |place: usize| matches!(&row[place], Cell::Text(name) if *name == own);
        let is_beneath = matches!(&row[device], Cell::Text(name) if beneath.contains(name));
        is_own(device) || via.is_some_and(is_own) || is_beneath
    });
}

/// The names of everything that a device stands on.
fn beneath(model: &Model, dev: Dev) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![dev];
    while let Some(dev) = left.pop() {
        if found.insert(dev)
            && let Some(device) = model.device(dev)
        {
            left.extend(device.partition_of);
            left.extend(device.log_device);
            left.extend(device.realtime_device);
            left.extend(&device.stacked_on);
        }
    }
    found.into_iter().map(|dev| model.name(dev)).collect()
}
