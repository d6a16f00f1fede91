//! Which metrics a report becomes.

use crate::sample::{aliases, report};
use cil_trace_core::compare::metrics::Metrics;
use serde_json::Value;

#[test]
fn rows_are_named_by_what_tells_them_apart() {
    let metrics = Metrics::of(&report("dbench"), &aliases(&[]));
    for (name, value) in [
        ("cil-trace.flushes.loop0.log-force:fsync", 2983.0),
        ("cil-trace.flushes.loop0.log-force:fsync.empty", 1049.0),
        (
            "cil-trace.flushes.loop0.log-force:fsync.latency_ns.p50",
            249_617.0,
        ),
        ("cil-trace.flushes.vda.fs:ext4.loop0", 6650.0),
        ("cil-trace.forces.loop0.log-force:fsync", 3387.0),
        ("cil-trace.fsyncs.loop0.fsync.forced_log", 3387.0),
        ("cil-trace.commits.per_s", 51_892.679_904_785_8),
        ("cil-trace.pushes.by_trigger.log-force:fsync", 2988.0),
        ("cil-trace.pushes.bytes.p50", 2879.0),
        ("cil-trace.iclogs.fill_pct.p50", 8.0),
        ("cil-trace.devices.vda.flushes_issued", 6650.0),
        ("cil-trace.loss.total", 0.0),
        ("dbench.throughput_MB/s", 811.443),
    ] {
        assert_eq!(metrics.values.get(name), Some(&value), "{name}");
    }
}

/// How many numbers there are below a value.
fn numbers(value: &Value) -> usize {
    match value {
        Value::Number(_) => 1,
        Value::Array(items) => items.iter().map(numbers).sum(),
        Value::Object(fields) => fields.values().map(numbers).sum(),
        _ => 0,
    }
}

#[test]
fn no_section_with_numbers_is_left_out() {
    let report = report("dbench");
    let metrics = Metrics::of(&report, &aliases(&[]));
    let json = serde_json::to_value(&report).unwrap();
    let facts = ["schema", "window", "scope", "ticks"];
    for (section, value) in json.as_object().unwrap() {
        let named = metrics.values.keys().any(|name| {
            name.strip_prefix("cil-trace.")
                .is_some_and(|rest| rest.split('.').next() == Some(section))
        });
        assert_eq!(
            named,
            numbers(value) > 0 && !facts.contains(&&**section),
            "{section}"
        );
    }
}

#[test]
fn nothing_seen_is_zero_and_nothing_measured_is_nothing() {
    let busy = Metrics::of(&report("dbench"), &aliases(&[]));
    let quiet = Metrics::of(&report("fsync"), &aliases(&[]));
    // Both ran on loop0; the second had no worker force.
    let force = "cil-trace.forces.loop0.log-force:worker";
    assert_eq!(quiet.values.get(force), None);
    assert_eq!(quiet.value(force, &busy), Some(0.0));
    let latency = "cil-trace.flushes.loop0.checkpoint-start.latency_ns";
    assert_eq!(quiet.value(&format!("{latency}.count"), &busy), Some(0.0));
    assert_eq!(quiet.value(&format!("{latency}.p99"), &busy), None);

    // Another machine has no loop0 that could have been counted on.
    let elsewhere = Metrics::of(&report("fsync"), &aliases(&[("loop0", "sda")]));
    assert!(
        elsewhere
            .values
            .contains_key("cil-trace.forces.sda.log-force:fsync")
    );
    assert_eq!(elsewhere.value(force, &busy), None);

    let mut blind = report("fsync");
    blind.forces.clear();
    for probe in &mut blind.probes {
        probe.outcome = cil_trace_core::session::Outcome::Skipped;
    }
    let blind = Metrics::of(&blind, &aliases(&[]));
    assert_eq!(blind.value(force, &busy), None);
}
