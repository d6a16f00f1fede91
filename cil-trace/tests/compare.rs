//! `compare` on files: what a side may be, and what is said of one that is none.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use flate2::Compression;
use flate2::read::GzEncoder;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use tempfile::TempDir;

/// A directory with the checked-in recordings, and what is written besides.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
        for entry in fs::read_dir(source).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
        }
        Self(directory)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn copy(&self, from: &str, to: &str) -> &Self {
        let to = self.0.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(self.0.path().join(from), to).unwrap();
        self
    }

    fn compare(&self, args: &[&str]) -> Assert {
        Command::new(env!("CARGO_BIN_EXE_cil-trace"))
            .arg("compare")
            .args(args)
            .current_dir(&self.0)
            .assert()
    }

    fn printed(&self, args: &[&str]) -> String {
        let assert = self.compare(args).success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    }
}

#[test]
fn recordings_make_the_table_that_people_post() {
    let text = Files::new().printed(&[
        "dbench.data",
        "few=fsync.data",
        "--metric",
        "cil-trace.f*s.loop0.*fsync",
        "--metric",
        "cil-trace.iclogs.fill_pct.p50",
        "--metric",
        "cil-trace.commits.count",
    ]);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("compare.lkp", text);
    });
}

#[test]
fn a_directory_of_recordings_is_a_side() {
    let files = Files::new();
    for run in 1..=4 {
        files.copy("fsync.data", &format!("runs/00{run}.data"));
    }
    files
        .copy("fsync.data", "runs/001.data.old")
        .write("runs/notes.txt", "not a run");
    let json = files.printed(&["dbench.data", "runs", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sides"][1]["runs"], serde_json::json!([4, 4]));
    assert_eq!(json["sides"][1]["label"], "runs");
    let histograms = json["histograms"].as_array().unwrap();
    let latency = histograms
        .iter()
        .find(|h| h["metric"] == "cil-trace.fsyncs.loop0.fsync.latency_ns")
        .unwrap();
    // Of four runs with twenty fsyncs each.
    assert_eq!(latency["sides"][1]["count"], 80);
}

#[test]
fn a_damaged_recording_leaves_the_others_of_its_side() {
    let files = Files::new();
    for run in 1..=4 {
        files.copy("fsync.data", &format!("runs/00{run}.data"));
    }
    let whole = fs::read(files.0.path().join("runs/004.data")).unwrap();
    files.write("runs/004.data", &whole[..whole.len() / 2]);
    let text = files.printed(&["dbench.data", "runs"]);
    for words in ["runs/004.data left out: ", "runs: dbench 1, runs 3"] {
        assert!(text.contains(words), "no `{words}`:\n{text}");
    }
}

const ROWS: &str =
    r#"{"aim7.jobs-per-min": [100, 101, 99, 100], "aim7.time.elapsed_time": [30, 30, 31, 30]}"#;

#[test]
fn lkps_directories_are_sides_with_cases() {
    let files = Files::new();
    for side in ["old", "new"] {
        for case in ["disk_rd", "disk_wrt"] {
            files.write(&format!("{side}/{case}/matrix.json"), ROWS);
            files.write(
                &format!("{side}/{case}/avg.json"),
                r#"{"aim7.jobs-per-min": 5}"#,
            );
        }
    }
    let text = files.printed(&["old", "new"]);
    assert!(
        text.contains(
            "\n    100.00            +0.0%     100.00        GEO-MEAN aim7.jobs-per-min\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("\n    100.00            +0.0%     100.00        disk_wrt\n"),
        "{text}"
    );
    assert!(text.contains("runs: old 4, new 4"), "{text}");
    let csv = files.printed(&["old", "new", "--format", "csv"]);
    assert!(
        csv.starts_with("case,metric,side,base,value,change_pct,"),
        "{csv}"
    );
    let markdown = files.printed(&["old", "new", "--format", "markdown", "--metric", "*jobs*"]);
    assert!(
        markdown.contains("| GEO-MEAN | aim7.jobs-per-min"),
        "{markdown}"
    );
}

#[test]
fn lkps_directory_of_a_commit_is_a_side_packed_or_not() {
    let files = Files::new();
    let failing = r#"{"aim7.jobs-per-min": [90, 91, 89], "dmesg.BUG": [0, 0, 0, 1],
                      "last_state.is_incomplete_run": [0, 0, 0, 1]}"#;
    let mut packed = Vec::new();
    GzEncoder::new(failing.as_bytes(), Compression::default())
        .read_to_end(&mut packed)
        .unwrap();
    // Beside the matrix stand the runs that it was made of.
    files
        .write("v5.18/matrix.json", ROWS)
        .write("v5.18/avg.json", "{}")
        .write("v5.18/0/stats.json", r#"{"aim7.jobs-per-min": 1}"#)
        .write("v5.19/matrix.json.gz", packed)
        .write("broken.json.gz", [0x1f, 0x8b, 8]);
    let text = files.printed(&["v5.18", "v5.19/matrix.json.gz"]);
    for row in [
        "            :4           25%           1:4     dmesg.BUG",
        "    100.00           -10.0%      90.00        aim7.jobs-per-min",
        "runs: v5.18 4, v5.19 3",
    ] {
        assert!(text.contains(row.trim_start()), "no `{row}`:\n{text}");
    }
    let broken = files.compare(&["v5.18", "broken.json.gz"]).code(1);
    broken.stderr(contains("broken.json.gz is no matrix").and(contains("cannot be unpacked")));
}

#[test]
fn only_what_has_changed_is_shown_when_that_is_wanted() {
    let files = Files::new();
    files.write(
        "a.json",
        r#"{"t.x": [1, 1.01, 0.99, 1, 1], "t.y": [1, 1.01, 0.99, 1, 1]}"#,
    );
    files.write(
        "b.json",
        r#"{"t.x": [2, 2.01, 1.99, 2, 2], "t.y": [1, 1.01, 0.99, 1, 1]}"#,
    );
    let text = files.printed(&["a.json", "b.json", "--changed"]);
    assert!(
        text.contains("  t.x\n") && !text.contains("  t.y\n"),
        "{text}"
    );
    let text = files.printed(&["a.json", "b.json", "--changed", "--primary", "t.y"]);
    assert!(text.contains("  t.x\n"), "{text}");
}

#[test]
fn halves_that_differ_are_a_failure() {
    let files = Files::new();
    files.write(
        "steady.json",
        r#"{"t.x": [1, 1.02, 0.99, 1.01, 1, 0.98, 1.01, 1, 0.99, 1.02]}"#,
    );
    let steady = files.compare(&["--aa", "steady.json"]).success();
    steady.stdout(contains(
        "A/A: of 1 tests between halves of the same runs 0 found a change, no more than",
    ));
    files.write("few.json", r#"{"t.x": [1, 2, 3, 4, 5, 6, 7]}"#);
    let few = files.compare(&["--aa", "few.json"]).code(1);
    few.stdout(contains("it takes eight runs"));
    files.write(
        "by-turns.json",
        r#"{"t.x": [1, 2, 1.01, 2.01, 1, 2, 1.01, 2.02, 1, 2]}"#,
    );
    let turns = files.compare(&["--aa", "by-turns.json"]).code(1);
    turns.stdout(contains("more than 5 %: the runs drift"));
}

#[test]
fn what_is_no_side_is_told_with_a_remedy() {
    let files = Files::new();
    files
        .write("text.json", "no JSON")
        .write("list.json", "[1, 2]")
        .write("empty/x.txt", "");
    files
        .copy("fsync.data", "mixed/1.data")
        .copy("fsync.data", "mixed/case/1.data");
    files.write("one.json", r#"{"t.x": [1]}"#);
    for (args, said) in [
        (
            &["one.json", "missing.data"][..],
            "no recording at missing.data",
        ),
        (&["one.json", "missing.json"], "missing.json"),
        (&["one.json", "text.json"], "text.json is no matrix"),
        (&["one.json", "list.json"], "list.json is no matrix"),
        (
            &["one.json", "empty"],
            "empty holds no recording and no matrix",
        ),
        (
            &["one.json", "mixed"],
            "mixed holds recordings and also directories",
        ),
    ] {
        files
            .compare(args)
            .code(1)
            .stdout("")
            .stderr(contains(said));
    }
    for args in [
        &["one.json", "one.json", "--primary", "x"][..],
        &["one.json", "one.json", "--metric", "y*"],
    ] {
        files
            .compare(args)
            .code(2)
            .stdout("")
            .stderr(contains("no metric"));
    }
}

#[test]
fn an_interrupted_recording_is_compared_and_said_to_be_one() {
    let assert = Files::new()
        .compare(&["fsync.data", "interrupted.data"])
        .success();
    assert.stdout(
        contains("warning: interrupted.data: the recording has no end")
            .and(contains("warning: no verdict with fewer than 4")),
    );
}
