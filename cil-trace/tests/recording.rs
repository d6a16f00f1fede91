//! The commands that read a recording: without root, and anywhere.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use cil_trace_common::cause::Cause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::recording::Writer;
use cil_trace_core::series::Series;
use cil_trace_core::session::{Footer, Header, Outcome, ProbeOutcome};
use cil_trace_core::tick::{Stack, StackRow, StackSums, Tick};
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

/// A directory with a recording of seven flushes, under the name that every command looks for.
struct Recorded(TempDir);

impl Recorded {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let dev = Dev::new(7, 2);
        let header = Header {
            tool: "cil-trace 0".to_owned(),
            probes: vec![ProbeOutcome {
                probe: Probe::FlushRequests.name().to_owned(),
                outcome: Outcome::Attached,
                how: String::new(),
                reason: String::new(),
            }],
            devices: vec![Device {
                dev,
                name: "loop2".to_owned(),
                ..Device::default()
            }],
            ..Header::default()
        };
        let cause = Cause::LogForceFsync as u16;
        let flushes = Series {
            label: cause,
            ..Series::of(Metric::FlushRequested, dev)
        };
        let frames = vec![
            "submit_bio".to_owned(),
            "xlog_state_release_iclog".to_owned(),
        ];
        let tick = Tick {
            end_ns: 1_000_000_000,
            counters: vec![(flushes, 7)],
            stacks: vec![Stack { id: 1, frames }],
            stack_rows: vec![StackRow {
                kind: StackKind::Flush,
                label: Cause::LogForceFsync.name().to_owned(),
                dev,
                who: None,
                kernel: Some(1),
                user: None,
                sums: StackSums {
                    count: 7,
                    ..StackSums::default()
                },
            }],
            ..Tick::default()
        };
        let path = directory.path().join("cil-trace.data");
        let mut writer = Writer::create(&path, &header).unwrap();
        writer.tick(&tick).unwrap();
        writer
            .finish(&Footer {
                window_end_ns: 1_000_000_000,
                ..Footer::default()
            })
            .unwrap();
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Assert {
        Command::new(env!("CARGO_BIN_EXE_cil-trace"))
            .args(args)
            .current_dir(&self.0)
            .assert()
    }
}

#[test]
fn report_finds_the_recording_and_prints_in_every_format() {
    let recorded = Recorded::new();
    let row = || {
        contains("loop2")
            .and(contains("log-force:fsync"))
            .and(contains("7"))
    };
    recorded.run(&["report"]).success().stdout(row()).stderr("");
    for format in ["text", "csv", "markdown"] {
        let args = ["report", "flushes", "--format", format];
        recorded.run(&args).success().stdout(row()).stderr("");
    }
    let json = recorded
        .run(&["report", "--format", "json", "cil-trace.data"])
        .success();
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["flushes"][0]["requested"], 7);
    assert!(json.get("ticks").is_none());
}

#[test]
fn ticks_come_when_they_are_asked_for() {
    let recorded = Recorded::new();
    let json = recorded
        .run(&["report", "--per-tick", "--format", "json"])
        .success();
    let json: serde_json::Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_eq!(json["ticks"][0]["flushes_requested"], 7);
    let csv = recorded
        .run(&["report", "ticks", "--format", "csv"])
        .success();
    let csv = String::from_utf8(csv.get_output().stdout.clone()).unwrap();
    assert_eq!(csv.lines().count(), 2, "a header and one tick: {csv}");
}

#[test]
fn report_writes_a_page() {
    let recorded = Recorded::new();
    recorded
        .run(&["report", "--html", "out.html"])
        .success()
        .stdout("")
        .stderr("");
    let page = fs::read_to_string(recorded.path("out.html")).unwrap();
    assert!(page.contains("loop2") && page.contains("xlog_state_release_iclog"));
    let missing = recorded.run(&["report", "--html", "no/out.html"]).code(1);
    missing.stderr(contains("no/out.html: cannot be written"));
}

#[test]
fn flamegraph_writes_or_prints_a_picture() {
    let recorded = Recorded::new();
    let picture = || contains("<svg").and(contains("xlog_state_release_iclog"));
    recorded
        .run(&["flamegraph", "--kind", "flush"])
        .success()
        .stdout(picture());
    recorded
        .run(&["flamegraph", "--kind", "flush", "-o", "x.svg"])
        .success()
        .stdout("");
    let written = fs::read_to_string(recorded.path("x.svg")).unwrap();
    assert!(predicates::Predicate::eval(&picture(), &written));
}

#[test]
fn what_is_no_recording_is_told_with_status_1() {
    let recorded = Recorded::new();
    fs::write(recorded.path("text"), "no recording\n").unwrap();
    for command in [&["report"][..], &["flamegraph", "--kind", "flush"]] {
        let missing = recorded
            .run(&[command, &["missing"]].concat())
            .code(1)
            .stdout("");
        missing.stderr(contains("no recording at missing").and(contains("cil-trace record")));
        let text = recorded
            .run(&[command, &["text"]].concat())
            .code(1)
            .stdout("");
        text.stderr(contains("text is not a cil-trace recording"));
    }
}

#[test]
fn a_closed_reader_is_no_failure() {
    let recorded = Recorded::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .args(["report", "--format", "json"])
        .current_dir(&recorded.0)
        .stdout(Stdio::from(writer))
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}
