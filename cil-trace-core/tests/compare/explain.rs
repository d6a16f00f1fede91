//! The few differences that account for a change, in words.

use crate::sample::side;
use cil_trace_core::compare::{Comparison, Options};
use serde_json::{Map, Value, json};

/// A matrix of six runs, each a little off the mean.
fn matrix(means: &[(&str, f64)]) -> String {
    let noise = [0.997, 1.001, 0.999, 1.003, 1.002, 0.998];
    let column = |(index, (name, mean)): (usize, &(&str, f64))| {
        // Another order for each, as they do not vary together.
        let values: Vec<f64> = (0..6)
            .map(|run| mean * noise[(run * (1 + index % 2 * 4) + index) % 6])
            .collect();
        ((*name).to_owned(), json!(values))
    };
    let columns: Map<String, Value> = means.iter().enumerate().map(column).collect();
    Value::Object(columns).to_string()
}

fn explained(base: &[(&str, f64)], changed: &[(&str, f64)]) -> Vec<String> {
    let mut other: Vec<(&str, f64)> = base.to_vec();
    for (name, mean) in changed {
        other.iter_mut().find(|(known, _)| known == name).unwrap().1 = *mean;
    }
    let sides = [("old", base.to_vec()), ("new", other)];
    let sides = sides.map(|(label, means)| side(label, &[("", &matrix(&means))]));
    let options = Options {
        explain: true,
        ..Options::default()
    };
    let comparison = Comparison::of(sides.into(), options).unwrap();
    comparison.explanations[0].lines.clone()
}

/// dbench in March 2022: a flush of the push's own before each fsync's.
const DBENCH: &[(&str, f64)] = &[
    ("dbench.loop_time_ms", 73.11),
    ("dbench.throughput_MB/s", 500.0),
    ("cil-trace.fsyncs.sda.fsync", 75_000.0),
    ("cil-trace.fsyncs.sda.fsync.forced_log", 75_000.0),
    ("cil-trace.commits.count", 300_000.0),
    ("cil-trace.forces.sda.log-force:fsync", 75_000.0),
    ("cil-trace.flushes.sda.log-force:fsync", 75_000.0),
    ("cil-trace.flushes.sda.log-force:fsync.empty", 9_000.0),
    ("cil-trace.flushes.sda.cil-push", 75_000.0),
    ("cil-trace.flushes.sda.cil-push.pointless", 74_000.0),
    ("cil-trace.pushes.count", 75_000.0),
    ("cil-trace.pushes.by_trigger.log-force:fsync", 75_000.0),
    ("cil-trace.locks.xc_cil_lock.wait_ns.sum", 21.3e9),
    ("cil-trace.locks.b_sema.wait_ns.sum", 1.2e9),
    ("cil-trace.locks.ail_lock.wait_ns.sum", 0.1e9),
];

#[test]
fn flushes_that_are_gone_are_named_with_their_cause() {
    let lines = explained(
        DBENCH,
        &[
            ("dbench.throughput_MB/s", 570.0),
            ("cil-trace.flushes.sda.cil-push", 0.0),
            ("cil-trace.flushes.sda.cil-push.pointless", 0.0),
        ],
    );
    assert_eq!(
        lines,
        [
            "dbench.throughput_MB/s 500 → 570 (+14 %)",
            "flushes per fsync 2.0 → 1.0, all of it `cil-push`",
        ]
    );
}

#[test]
fn fewer_fsyncs_are_the_reason_for_fewer_forces() {
    let tenth: Vec<(&str, f64)> = DBENCH
        .iter()
        .filter(|(name, _)| {
            !name.contains("locks") && name.starts_with("cil-trace") && !name.contains("commits")
        })
        .map(|(name, mean)| (*name, mean / 10.0))
        .collect();
    let lines = explained(DBENCH, &tenth);
    assert_eq!(
        lines[..3],
        [
            "fsyncs 75k → 7,500 (-90 %), all of it `fsync`",
            "log forces 75k → 7,500 (-90 %), all of it `log-force:fsync`; 1.0 per fsync as before",
            "flushes 150k → 15k (-90 %), 50 % of it `cil-push`, 50 % `log-force:fsync`; 2.0 per fsync as before",
        ]
    );
}

#[test]
fn contention_that_moved_is_told_from_one_that_is_gone() {
    let moved = explained(
        DBENCH,
        &[
            ("cil-trace.locks.xc_cil_lock.wait_ns.sum", 0.0),
            ("cil-trace.locks.b_sema.wait_ns.sum", 18.4e9),
        ],
    );
    assert_eq!(
        moved,
        [
            "lock waits moved rather than vanished: `xc_cil_lock` 21.3 s → 0 ns, `b_sema` 1.20 s → \
             18.4 s; all locks 22.6 s → 18.5 s"
        ]
    );
    let gone = explained(DBENCH, &[("cil-trace.locks.xc_cil_lock.wait_ns.sum", 0.0)]);
    assert_eq!(
        gone,
        ["lock waits per commit 75.3 us → 4.33 us, all of it `xc_cil_lock`"]
    );
}

#[test]
fn what_differs_by_chance_is_not_explained() {
    assert_eq!(
        explained(DBENCH, &[]),
        ["nothing that was measured differs beyond chance"]
    );
}
