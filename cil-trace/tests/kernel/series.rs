//! Series of recordings, and what a comparison makes of a real one.

use crate::eventually::eventually;
use crate::tool::{forces, program, report, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RUNS: usize = 5;
/// Files of a run, and of a turn of the side that syncs every tenth.
const FILES: u64 = 200;
const TENTH: u64 = 10;

/// `record --runs`, on this filesystem and beside it.
struct Series<'a> {
    xfs: &'a Xfs,
    directory: PathBuf,
}

impl<'a> Series<'a> {
    fn new(xfs: &'a Xfs) -> Self {
        let directory = xfs.outside("runs");
        Self { xfs, directory }
    }

    fn command(&self, args: &[&str], workload: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(["record", "--keep-root", "--device", self.xfs.device(), "-o"])
            .arg(&self.directory)
            .args(args)
            .arg("--")
            .args(workload);
        command
    }

    fn record(&self, args: &[&str], workload: &[&str]) -> Output {
        self.command(args, workload).output().unwrap()
    }

    /// The recordings, by their place below the directory.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut pending = vec![self.directory.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let below = path.strip_prefix(&self.directory).unwrap();
                    files.push(below.to_string_lossy().into_owned());
                }
            }
        }
        files.sort();
        files
    }

    fn compare(&self, args: &[&str]) -> String {
        let output = Command::new(program())
            .arg("compare")
            .args([self.directory.join("a"), self.directory.join("b")])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// fs_mark in a directory of its own, so many files.
fn fs_mark(directory: &Path, files: u64, sync: u32) -> String {
    let directory = directory.display();
    format!("fs_mark -d {directory} -t 1 -n {files} -s 4096 -S {sync}")
}

/// fs_mark with an fsync of every tenth file: it has no such method, so nine files without and one
/// with are an iteration.
fn every_tenth(directory: &Path) -> String {
    let without = fs_mark(directory, TENTH - 1, 0);
    let with = fs_mark(directory, 1, 1);
    let iterations = FILES / TENTH;
    format!("for i in $(seq {iterations}); do {without} && {with} || exit; done")
}

#[test]
fn fewer_fsyncs_are_explained_by_forces_and_flushes() {
    let xfs = Xfs::new();
    let directory = xfs.mountpoint().join("marks");
    let series = Series::new(&xfs);
    let every = fs_mark(&directory, FILES, 1);
    let workload: Vec<&str> = every.split(' ').collect();
    let shown = directory.display();
    let prepare = format!("rm -rf {shown}; mkdir {shown}; sync");
    let tenth = every_tenth(&directory);
    let runs = RUNS.to_string();
    let output = series.record(
        &["--runs", &runs, "--against", &tenth, "--prepare", &prepare],
        &workload,
    );
    assert!(output.status.success(), "{}", said(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    let iterations = (FILES / TENTH) as usize;
    assert_eq!(
        printed.matches("FSUse%").count(),
        RUNS + RUNS * 2 * iterations,
        "the workload's own output"
    );

    // Each recording knows its place; the times show that the order was kept.
    let expected: Vec<String> = ["a", "b"]
        .iter()
        .flat_map(|side| (1..=RUNS).map(move |run| format!("{side}/00{run}.data")))
        .collect();
    assert_eq!(series.files(), expected);
    let reports: Vec<(String, Value)> = expected
        .iter()
        .map(|file| (file.clone(), report(&series.directory.join(file))))
        .collect();
    let mut by_time: Vec<_> = reports
        .iter()
        .map(|(file, report)| (report["started_at"].as_str().unwrap(), file.as_str()))
        .collect();
    by_time.sort_unstable();
    let order: Vec<_> = by_time.iter().map(|(_, file)| *file).collect();
    let turns = [
        "a/001", "b/001", "b/002", "a/002", "a/003", "b/003", "b/004", "a/004", "a/005", "b/005",
    ];
    assert_eq!(order, turns.map(|file| format!("{file}.data")));

    // What --prepare did is in none of them, and each side did what it should.
    for (file, report) in &reports {
        let expected = match file.as_bytes()[0] {
            b'a' => FILES,
            _ => FILES / TENTH,
        };
        let forces = forces(report, xfs.device());
        assert_eq!(
            forces.get("log-force:fsync"),
            Some(&expected),
            "{file}: {forces:?}"
        );
        assert_eq!(forces.get("log-force:sync"), None, "{file}: {forces:?}");
        assert_eq!(uint(&report["loss"]["total"]), 0);
    }

    let explained = series.compare(&["--explain"]);
    let line = |start: &str| {
        let found = explained
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no `{start}`:\n{explained}"))
    };
    let fewer = format!(
        "{FILES} → {} (-90 %), all of it `log-force:fsync`",
        FILES / TENTH
    );
    assert!(line("log forces ").contains(&fewer), "{explained}");
    let flushes = line("flushes ");
    assert!(
        flushes.contains("all of it `log-force:fsync`"),
        "{explained}"
    );

    let json: Value =
        serde_json::from_str(&series.compare(&["--format", "json", "--metric", "cil-trace.f*"]))
            .unwrap();
    let force = format!("cil-trace.forces.{}.log-force:fsync", xfs.device());
    let row = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["metric"] == force)
        .unwrap();
    assert_eq!(
        row["sides"][0]["values"],
        serde_json::json!(vec![FILES as f64; RUNS])
    );
    assert_eq!(
        row["sides"][1]["values"],
        serde_json::json!(vec![(FILES / TENTH) as f64; RUNS])
    );
    assert_eq!(row["changes"][0]["verdict"], "changed");
    let names: Vec<_> = json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["command"],
        "one machine, one filesystem: {:#}",
        json["differences"]
    );
}

#[test]
fn a_failed_run_ends_the_series_and_is_kept() {
    let xfs = Xfs::new();
    let series = Series::new(&xfs);
    let counter = xfs.outside("counter");
    let counter = counter.display();
    let script = format!("echo x >> {counter}; test $(wc -l < {counter}) -lt 2 || exit 3");
    let output = series.record(&["--runs", "4"], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert_eq!(series.files(), ["001.data", "002.data"]);
    assert!(
        said(&output).contains("2 of 4 recordings"),
        "{}",
        said(&output)
    );
    let failed = report(&series.directory.join("002.data"));
    assert_eq!(failed["workload"]["exit_status"], 3);

    let again = series.record(&["--runs", "4"], &["true"]);
    assert_eq!(again.status.code(), Some(125));
    assert!(said(&again).contains("not empty"), "{}", said(&again));
}

#[test]
fn what_cannot_be_prepared_or_found_leaves_nothing() {
    let xfs = Xfs::new();
    let series = Series::new(&xfs);
    let unprepared = series.record(&["--runs", "2", "--prepare", "exit 4"], &["true"]);
    assert_eq!(unprepared.status.code(), Some(125));
    assert!(
        said(&unprepared).contains("`exit 4` ended with status 4"),
        "{}",
        said(&unprepared)
    );
    let missing = series.record(&["--runs", "2", "--against", "true"], &["/no/such"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(!series.directory.exists());
}

#[test]
fn a_run_whose_time_is_over_is_no_failure() {
    let xfs = Xfs::new();
    let series = Series::new(&xfs);
    let output = series.record(
        &["--runs", "2", "--duration", "300ms", "-q"],
        &["sleep", "60"],
    );
    assert_eq!(
        (output.status.code(), said(&output)),
        (Some(0), String::new())
    );
    assert_eq!(series.files(), ["001.data", "002.data"]);
}

#[test]
fn an_interrupt_ends_the_series_and_keeps_what_is_there() {
    let xfs = Xfs::new();
    let series = Series::new(&xfs);
    let started = xfs.outside("started");
    let script = format!("echo x >> {}; sleep 60", started.display());
    let mut child = series
        .command(&["--runs", "3"], &["sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the first run goes", || started.exists());
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(series.files(), ["001.data"]);
    assert_eq!(fs::read_to_string(started).unwrap(), "x\n");
    let report = report(&series.directory.join("001.data"));
    assert_eq!(report["workload"]["signal"], 2);
    assert_eq!(
        report["interrupted"], false,
        "the recording itself is whole"
    );
}
