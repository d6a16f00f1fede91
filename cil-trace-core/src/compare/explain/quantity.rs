//! What an explanation looks at, from the cause to the effect.

use crate::report::table::Unit;

/// The quantity whose parts may take each other's place.
pub(super) const LOCKS: &str = "lock waits";

/// Something that is counted or measured, and what it is made of.
pub(super) struct Quantity {
    /// What it is called.
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// Its metrics: `*` is a part's name or a device's, without a dot.
    pub(super) total: &'static str,
    /// The metrics of its parts, if they are others.
    pub(super) parts: Option<&'static str>,
    /// Which `*` of the parts names the part, from 0.
    pub(super) part: Option<usize>,
    /// The parts add up to the total; quantiles of devices do not.
    pub(super) adds_up: bool,
    /// What it is done for, by the name of another quantity.
    pub(super) per: Option<&'static str>,
}

const fn quantity(name: &'static str, unit: Unit, total: &'static str) -> Quantity {
    Quantity {
        name,
        unit,
        total,
        parts: None,
        part: None,
        adds_up: true,
        per: None,
    }
}

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        part: Some(1),
        ..quantity("fsyncs", Unit::Count, "cil-trace.fsyncs.*.*")
    },
    quantity("commits", Unit::Count, "cil-trace.commits.count"),
    Quantity {
        part: Some(1),
        per: Some("fsyncs"),
        ..quantity("log forces", Unit::Count, "cil-trace.forces.*.*")
    },
    Quantity {
        part: Some(1),
        per: Some("fsyncs"),
        ..quantity("flushes", Unit::Count, "cil-trace.flushes.*.*")
    },
    Quantity {
        parts: Some("cil-trace.pushes.by_trigger.*"),
        part: Some(0),
        per: Some("fsyncs"),
        ..quantity("CIL pushes", Unit::Count, "cil-trace.pushes.count")
    },
    Quantity {
        parts: Some("cil-trace.iclogs.by_cause.*"),
        part: Some(0),
        per: Some("fsyncs"),
        ..quantity("iclog writes", Unit::Count, "cil-trace.iclogs.writes")
    },
    Quantity {
        per: Some("commits"),
        ..quantity("log bytes", Unit::Bytes, "cil-trace.iclogs.bytes")
    },
    quantity(
        "median iclog fill",
        Unit::Percent,
        "cil-trace.iclogs.fill_pct.p50",
    ),
    quantity("commit rate", Unit::Rate, "cil-trace.commits.per_s"),
    Quantity {
        part: Some(0),
        per: Some("commits"),
        ..quantity(LOCKS, Unit::Ns, "cil-trace.locks.*.wait_ns.sum")
    },
    Quantity {
        part: Some(0),
        per: Some("commits"),
        ..quantity(
            "inode lock waits",
            Unit::Ns,
            "cil-trace.ilock.*.wait_ns.sum",
        )
    },
    Quantity {
        part: Some(0),
        per: Some("commits"),
        ..quantity(
            "waits for the log",
            Unit::Ns,
            "cil-trace.waits.*.*.wait_ns.sum",
        )
    },
    quantity(
        "waits for log space",
        Unit::Ns,
        "cil-trace.grants.wait_ns.sum",
    ),
    Quantity {
        part: Some(0),
        adds_up: false,
        ..quantity(
            "flush latency p50",
            Unit::Ns,
            "cil-trace.devices.*.flush_latency_ns.p50",
        )
    },
    Quantity {
        part: Some(0),
        adds_up: false,
        ..quantity(
            "device time p50",
            Unit::Ns,
            "cil-trace.devices.*.device_time_ns.p50",
        )
    },
    Quantity {
        part: Some(0),
        adds_up: false,
        ..quantity(
            "queue time p99",
            Unit::Ns,
            "cil-trace.devices.*.queue_time_ns.p99",
        )
    },
];

/// What stands for each `*` of a pattern, none with a dot, nor a field of a row.
pub(super) fn stars<'m>(pattern: &str, metric: &'m str) -> Option<Vec<&'m str>> {
    const FIELDS: &[&str] = &[
        "empty",
        "pointless",
        "forced_log",
        "flushed_only",
        "neither",
    ];
    let (mut pattern, mut name) = (pattern.split('.'), metric.split('.'));
    let mut stars = Vec::new();
    loop {
        match (pattern.next(), name.next()) {
            (None, None) => return Some(stars),
            // What other filesystems do is no part of it.
            (Some("*"), Some(part)) if !FIELDS.contains(&part) && !part.starts_with("fs:") => {
                stars.push(part);
            }
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return None,
        }
    }
}
