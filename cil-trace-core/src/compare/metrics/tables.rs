//! What the report's JSON cannot say of itself: which fields are no quantities, which name a row,
//! and of which lists a missing row means zero.
//!
//! A section that is added to the report needs a line here only if it is such a list. How the walk
//! through the JSON uses the tables is its business.

use crate::report::HEAD;
use crate::report::schema::Report;
use crate::report::sections;

/// Keys of the report that hold no quantity, or one that stands elsewhere; with the report's head.
const NOT_MEASURED: &[&str] = &["ticks", "probes"];

/// What is measured of the head.
const MEASURED_IN_HEAD: &str = "duration_ns";

/// Whether a key of the report holds quantities.
pub(super) fn is_measured(key: &str) -> bool {
    key == MEASURED_IN_HEAD || !HEAD.contains(&key) && !NOT_MEASURED.contains(&key)
}

/// Fields that tell rows apart, or say what something is; numbers all the same.
pub(super) const FACTS: &[&str] = &[
    "major",
    "minor",
    "pid",
    "exit_status",
    "signal",
    "log_size_bytes",
    "iclog_size_bytes",
    "sampled_1_in",
    // Of one moment.
    "flushes_in_flight",
    "oldest_in_flight_ns",
];

/// Fields that tell rows apart. What else is text (a method, a reason) describes them.
pub(super) const IDENTITY: &[&str] = &[
    "device", "lock", "mode", "cause", "via", "kind", "role", "function", "probe", "program",
    "comm", "waiter", "holder",
];

/// Histograms of something else than time; the names of others get the unit.
pub(super) const NOT_TIMES: &[&str] = &["bytes", "transactions"];

/// What a histogram is compared by.
pub(super) const QUANTILES: &[(&str, f64)] =
    &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// A list, or a map, whose rows come with the first event: no row means none, where its probe was
/// there.
pub(super) struct List {
    /// Field names from the section on.
    pub(super) path: &'static str,
    /// The count that a row is there for; its metric is the row's name alone. None of a map, whose
    /// rows are numbers.
    pub(super) count: Option<&'static str>,
    /// The field that it is read first by: rows are added up over all others, and stand by
    /// themselves only if there are several.
    pub(super) total: Option<&'static str>,
}

const LISTS: &[List] = &[
    list("flushes", "requested"),
    list("fsyncs", "count"),
    list("forces", "count"),
    list("iclogs.by_cause", "writes"),
    list("ilock", "acquired").added_up_by("lock"),
    list("locks", "waits").added_up_by("lock"),
    list("processes", "forces"),
    map("pushes.by_trigger"),
    list("loss.by_probe", "count"),
];

const fn list(path: &'static str, count: &'static str) -> List {
    List {
        path,
        count: Some(count),
        total: None,
    }
}

const fn map(path: &'static str) -> List {
    List {
        path,
        count: None,
        total: None,
    }
}

impl List {
    const fn added_up_by(self, total: &'static str) -> Self {
        Self {
            total: Some(total),
            ..self
        }
    }

    /// The list at this place.
    pub(super) fn at(path: &str) -> Option<&'static Self> {
        LISTS.iter().find(|list| list.path == path)
    }

    /// The lists whose rows would be in this report, had there been anything to count.
    pub(super) fn measured(report: &Report) -> impl Iterator<Item = &'static Self> {
        LISTS.iter().filter(move |list| {
            let section = list.path.split('.').next().unwrap_or(list.path);
            sections::find(section).is_some_and(|section| section.measured(report))
        })
    }
}
