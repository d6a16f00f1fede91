//! The commands that read a recording, on recordings of real runs: without root, and anywhere.
//!
//! `INSTA_UPDATE=always cargo test -p cil-trace --test golden` blesses a wanted change.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Sections whose order or rounding depends on nothing but the recording.
const SECTIONS: &[&str] = &[
    "summary",
    "workload",
    "devices",
    "flushes",
    "fsyncs",
    "forces",
    "pushes",
    "iclogs",
    "commits",
    "grants",
    "waits",
    "log_space",
    "ail",
    "processes",
    "ticks",
    "overhead",
    "events",
    "loss",
    "probes",
];

/// A copy, because SQLite writes a `-shm` beside a recording that has a `-wal`.
fn recordings() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    for entry in fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    directory
}

fn run(directory: &TempDir, args: &[&str]) -> (String, String) {
    let assert = Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .args(args)
        .current_dir(directory)
        .assert()
        .success();
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn golden(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn whole_reports_are_as_blessed() {
    let directory = recordings();
    for recording in ["fsync", "dbench", "interrupted"] {
        let (text, _) = run(&directory, &["report", &format!("{recording}.data")]);
        golden(&format!("{recording}.text"), &text);
    }
}

#[test]
fn every_section_comes_in_every_format() {
    let directory = recordings();
    for format in ["csv", "markdown"] {
        let mut all = String::new();
        for section in SECTIONS {
            let args = ["report", "dbench.data", section, "--format", format];
            all.push_str(&format!("== {section}\n{}\n", run(&directory, &args).0));
        }
        golden(&format!("dbench.{format}"), &all);
    }
}

#[test]
fn json_keeps_its_names() {
    let directory = recordings();
    let (text, _) = run(
        &directory,
        &["report", "fsync.data", "--format", "json", "--per-tick"],
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    golden("fsync.json", &serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn a_known_sequence_has_its_counts() {
    let directory = recordings();
    let (text, _) = run(&directory, &["report", "fsync.data", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["fsyncs"][0]["count"], 20);
    assert_eq!(json["fsyncs"][0]["forced_log"], 20);
    let rows = json["flushes"].as_array().unwrap();
    for device in json["devices"].as_array().unwrap() {
        let requested: u64 = rows
            .iter()
            .filter(|row| row["device"] == device["device"])
            .map(|row| row["requested"].as_u64().unwrap())
            .sum();
        assert_eq!(device["flushes_requested"], requested);
    }
}

#[test]
fn an_interrupted_recording_says_so() {
    let directory = recordings();
    let (text, hint) = run(
        &directory,
        &["report", "interrupted.data", "--format", "json"],
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["interrupted"], true);
    assert_eq!(json["fsyncs"][0]["count"], 20);
    assert!(hint.contains("interrupted.data-wal"), "{hint}");
}

/// `flush_stacks` of the first version, and the table that came after it, hold the same.
#[test]
fn every_export_of_stacks_adds_up_to_the_report() {
    let directory = recordings();
    for recording in ["fsync.data", "dbench.data"] {
        let (text, _) = run(&directory, &["report", recording, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let requested: u64 = report["flushes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| {
                row["via"].is_null() && !row["cause"].as_str().unwrap().starts_with("fs:")
            })
            .map(|row| row["requested"].as_u64().unwrap())
            .sum();
        let export = |format| {
            let args = ["export", recording, "--kind", "flush", "--format", format];
            run(&directory, &args).0
        };
        let folded = export("folded");
        let weights = folded
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        assert_eq!(weights.sum::<u64>(), requested, "folded");
        let json: serde_json::Value = serde_json::from_str(&export("json")).unwrap();
        assert_eq!(json["total"], requested);
        let speedscope: serde_json::Value = serde_json::from_str(&export("speedscope")).unwrap();
        assert_eq!(speedscope["profiles"][0]["endValue"], requested);
        let csv = export("csv");
        let counts = csv.lines().skip(1).map(|line| {
            let cells: Vec<_> = line.rsplitn(4, ',').collect();
            cells[2].parse::<u64>().unwrap()
        });
        assert_eq!(counts.sum::<u64>(), requested, "csv");
        golden(&format!("{recording}.folded"), &folded);
    }
}

#[test]
fn a_picture_without_javascript_is_as_blessed() {
    let directory = recordings();
    run(&directory, &["report", "fsync.data", "--html", "page.html"]);
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    let picture = page.split("<section").find(|part| part.contains("<svg"));
    golden("fsync.flush.svg", &picture.unwrap().replace("<g>", "\n<g>"));
}
