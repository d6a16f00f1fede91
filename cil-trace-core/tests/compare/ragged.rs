//! Input as it comes: gaps, single runs, other devices, recordings without an end.

use crate::sample::{model, side};
use cil_trace_core::compare::devices::Layout;
use cil_trace_core::compare::run::{Run, State};
use cil_trace_core::compare::samples::Samples;
use cil_trace_core::compare::style::{Style, explanation, notes};
use cil_trace_core::compare::{CompareError, Comparison, Options, Side};
use cil_trace_core::report::format::{csv, markdown};
use glob::Pattern;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn recorded(label: &str, runs: Vec<Run>) -> Side {
    Side {
        label: label.to_owned(),
        cases: BTreeMap::from([(String::new(), Samples::new(runs, Vec::new()))]),
    }
}

fn run(name: &str) -> Run {
    Run::of(
        &format!("{name}.data"),
        &model(name),
        &Layout::of(&model("fsync")),
    )
}

fn column(comparison: &Comparison, metric: &str) -> Vec<Option<f64>> {
    let row = comparison
        .rows
        .iter()
        .find(|row| row.metric == metric)
        .unwrap();
    row.cells.iter().map(|cell| cell.mean).collect()
}

#[test]
fn a_recording_without_an_end_is_said_and_left_out_beside_whole_ones() {
    let sides = vec![
        recorded("whole", vec![run("fsync")]),
        recorded("cut", vec![run("interrupted")]),
        recorded("both", vec![run("interrupted"), run("fsync")]),
    ];
    let comparison = Comparison::of(sides, Options::default()).unwrap();
    let warnings = comparison.warnings.join("\n");
    assert!(warnings.contains(
        "interrupted.data: the recording has no end, it counts what was seen until then\n"
    ));
    assert!(warnings.contains("until then; left out"));
    let fsyncs = column(&comparison, "cil-trace.fsyncs.loop0.fsync");
    assert_eq!(fsyncs, [Some(20.0); 3]);
    assert_eq!(comparison.sides[2].runs, (1, 1));
}

#[test]
fn a_failed_run_is_left_out_unless_all_failed() {
    let failed = || Run {
        state: State::Failed("ended with status 1".to_owned()),
        ..run("dbench")
    };
    let some = Samples::new(vec![run("fsync"), failed()], Vec::new());
    assert_eq!(some.runs.len(), 1);
    assert_eq!(
        some.warnings,
        ["dbench.data: the workload ended with status 1; left out"]
    );
    let all = Samples::new(vec![failed(), failed()], Vec::new());
    assert_eq!((all.runs.len(), all.warnings.len()), (2, 2));
}

#[test]
fn another_number_of_the_same_device_is_the_same_device() {
    let mut moved = model("fsync").header().clone();
    for device in &mut moved.devices {
        if device.name == "loop0" {
            device.name = "loop7".to_owned();
        }
        // The first recording names the place differently too.
        device.mountpoint = device.mountpoint.as_ref().map(|place| format!("{place}.2"));
    }
    let moved = cil_trace_core::model::Model::new(moved);
    let base = Layout::of(&model("fsync"));
    let aliases = base.aliases(&Layout::of(&moved));
    assert_eq!(aliases.get("loop7").map(String::as_str), Some("loop0"));

    let renamed = Run::of("moved.data", &moved, &base);
    let comparison = Comparison::of(
        vec![
            recorded("here", vec![run("fsync")]),
            recorded("there", vec![renamed]),
        ],
        Options::default(),
    )
    .unwrap();
    assert_eq!(
        column(&comparison, "cil-trace.flushes.loop0.log-force:fsync"),
        [Some(20.0), Some(0.0)]
    );
    let device = comparison
        .differences
        .iter()
        .find(|d| d.name == "device")
        .unwrap();
    assert!(device.values[1][0].starts_with("loop7"), "{device:?}");
}

#[test]
fn different_circumstances_are_listed() {
    let mut other = run("fsync");
    for (name, value) in &mut other.facts {
        if name == "kernel" {
            "5.10.0".clone_into(value);
        }
    }
    other.facts.push(("kernel config".into(), "1".into()));
    other.facts.push(("CONFIG_HZ".into(), "250".into()));
    let mut base = run("fsync");
    base.facts.push(("kernel config".into(), "2".into()));
    base.facts.push(("CONFIG_HZ".into(), "1000".into()));
    base.facts.push(("CONFIG_PREEMPT".into(), "y".into()));
    other.losses.push(("forces".into(), "map full".into(), 12));
    other.overhead_pct = Some(25.0);
    let sides = vec![recorded("new", vec![base]), recorded("old", vec![other])];
    let comparison = Comparison::of(sides, Options::default()).unwrap();
    let text = notes::lines(&comparison).join("\n");
    for said in [
        "CONFIG_HZ       new: 1000 | old: 250",
        "CONFIG_PREEMPT  new: y | old: n",
        "old: 5.10.0",
        "old lost events: 12 forces (map full) in 1 of 1 runs",
        "tracing itself cost one side more",
    ] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
    assert!(
        !text.contains("kernel config"),
        "the options say it:\n{text}"
    );
}

#[test]
fn sides_without_anything_in_common_are_told_so() {
    let no_cases = side("a", &[("", r#"{"t.x": [1]}"#)]);
    let cases = side("b", &[("disk_rd", r#"{"t.x": [1]}"#)]);
    let error = Comparison::of(vec![no_cases.clone(), cases], Options::default()).unwrap_err();
    assert!(error.to_string().contains("a: none; b: disk_rd"), "{error}");
    let empty = side("b", &[("", "{}")]);
    let error = Comparison::of(vec![empty.clone(), empty], Options::default()).unwrap_err();
    assert!(matches!(error, CompareError::Empty));
    let misspelt = Options {
        primary: Some("t.X".into()),
        ..Options::default()
    };
    let error = Comparison::of(vec![no_cases.clone(), no_cases.clone()], misspelt).unwrap_err();
    assert!(matches!(error, CompareError::NoPrimary { .. }));
    let nothing = Options {
        metrics: vec![Pattern::new("y*").unwrap()],
        ..Options::default()
    };
    let error = Comparison::of(vec![no_cases.clone(), no_cases], nothing).unwrap_err();
    assert!(error.to_string().contains("`y*`"));
}

/// A value as a benchmark may leave it.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..5_i32).prop_map(|n| n.to_string()),
        4 => (-1e3..1e9_f64).prop_map(|n| n.to_string()),
        1 => Just("NaN".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("1e308".to_owned()),
        1 => Just("-1e-308".to_owned()),
        1 => Just("\"x\"".to_owned()),
    ]
}

/// A matrix with gaps of every kind.
fn matrix() -> impl Strategy<Value = String> {
    let names = [
        "t.a",
        "t.b.p99",
        "u%",
        "perf-profile.c.d",
        "t.time.elapsed_time",
    ];
    let columns = proptest::collection::vec(proptest::collection::vec(value(), 0..7), names.len());
    columns.prop_map(move |columns| {
        let lists = columns
            .iter()
            .zip(names)
            .map(|(values, name)| format!("\"{name}\": [{}]", values.join(", ")));
        format!("{{{}}}", lists.collect::<Vec<_>>().join(", "))
    })
}

proptest! {
    // Each is compared six times.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_matrices_are_compared_without_a_panic(
        sides in proptest::collection::vec(proptest::collection::vec(matrix(), 1..3), 2..4),
        changed: bool,
    ) {
        let cases = ["x", "y"];
        let sides: Vec<Side> = sides.iter().enumerate().map(|(index, matrices)| {
            let named: Vec<_> = cases.iter().zip(matrices).map(|(case, json)| (*case, json.as_str())).collect();
            side(&format!("side {index}"), &named)
        }).collect();
        let halves = sides[0].halves();
        let options = Options { changed, explain: true, threads: 2, ..Options::default() };
        for sides in [sides, halves] {
            let Ok(comparison) = Comparison::of(sides, options.clone()) else { continue };
            for style in Style::ALL {
                let text = style.render(&comparison);
                prop_assert!(!text.contains("NaN") && !text.contains("inf "), "{}", text);
            }
            let json = comparison.json();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            prop_assert!(explanation(&comparison).contains(" against "));
            csv::table(&comparison.table()).unwrap();
            prop_assert!(markdown::table(&comparison.table()).starts_with("| "));
            for row in &comparison.rows {
                for change in &row.changes {
                    if let Some(test) = &change.test {
                        prop_assert!(test.q >= test.p.p - 1e-12 && test.q <= 1.0);
                    }
                }
            }
        }
    }
}
