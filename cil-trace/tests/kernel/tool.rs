//! Running cil-trace, and reading what it reports.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The built program.
///
/// # Panics
/// `cargo xtask test` did not start this.
pub fn program() -> PathBuf {
    let path = std::env::var_os("CIL_TRACE_BIN");
    path.expect(
        "CIL_TRACE_BIN names the program to test; `cargo xtask test --level kernel` sets it",
    )
    .into()
}

/// A recording that was made.
pub struct Recording {
    directory: TempDir,
    /// How `record` ended, and what it and the workload printed.
    pub output: Output,
}

/// `record ARGS -o FILE -- WORKLOAD`.
pub fn record<A: AsRef<OsStr>>(args: &[A], workload: &[&OsStr]) -> Recording {
    let directory = TempDir::new().unwrap();
    let output = Command::new(program())
        .args(["record", "--keep-root"])
        .args(args)
        .arg("-o")
        .arg(directory.path().join(FILE))
        .arg("--")
        .args(workload)
        .output()
        .unwrap();
    Recording { directory, output }
}

const FILE: &str = "cil-trace.data";

/// Probes on contended waits: one in an interrupt of the same program is left out by the kernel, which
/// runs no program within itself.
const NESTING: [&str; 3] = ["spin-waits", "rwlock-waits", "commit-ctx-lock"];

impl Recording {
    /// The file.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join(FILE)
    }

    /// Its report, which must not have lost anything but contended waits in interrupts.
    pub fn complete_report(&self) -> Value {
        let report = report(&self.file());
        let loss = &report["loss"];
        let rows = loss["by_probe"].as_array().unwrap().iter();
        let nested: u64 = rows
            .filter(|row| {
                row["cause"] == "preempted" && NESTING.iter().any(|probe| row["probe"] == *probe)
            })
            .map(|row| uint(&row["count"]))
            .sum();
        assert_eq!(uint(&loss["total"]), nested, "{loss:#}");
        report
    }

    /// # Panics
    /// The workload did not end with `status`.
    pub fn expect_status(&self, status: i32) {
        let Output {
            status: actual,
            stdout,
            stderr,
        } = &self.output;
        assert_eq!(
            actual.code(),
            Some(status),
            "{actual}\n{}\n{}",
            String::from_utf8_lossy(stdout),
            String::from_utf8_lossy(stderr)
        );
    }
}

/// `report FILE --format json`.
pub fn report(file: &Path) -> Value {
    report_with(file, &[])
}

/// The same with a row for each tick.
pub fn report_by_tick(file: &Path) -> Value {
    report_with(file, &["--per-tick"])
}

fn report_with(file: &Path, args: &[&str]) -> Value {
    let report = Command::new(program())
        .arg("report")
        .arg(file)
        .args(["--format", "json"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        report.status.success(),
        "{}",
        String::from_utf8_lossy(&report.stderr)
    );
    serde_json::from_slice(&report.stdout).unwrap()
}

/// The window of a report, CLOCK_MONOTONIC.
pub fn window(report: &Value) -> std::ops::Range<u64> {
    uint(&report["window"]["start_ns"])..uint(&report["window"]["end_ns"])
}

/// The row of `devices` for `device`.
pub fn device<'a>(report: &'a Value, device: &str) -> &'a Value {
    rows(report, "devices", device)
        .next()
        .unwrap_or_else(|| panic!("no {device} in {:#}", report["devices"]))
}

/// The rows of a section for `device`.
pub fn rows<'a>(report: &'a Value, section: &str, device: &str) -> impl Iterator<Item = &'a Value> {
    let rows = report[section].as_array();
    let rows = rows.unwrap_or_else(|| panic!("{section} is no list: {:#}", report[section]));
    rows.iter().filter(move |row| row["device"] == device)
}

/// What the report says of the filesystem on `device_name`, whose whole disk is `disk`; null what
/// could not be measured.
///
/// # Panics
/// Something measured is missing, or something that was not measured has a value.
pub fn reported(report: &Value, device_name: &str, disk: &str) -> Value {
    let measured = |probe: &str| {
        let outcome = outcome(report, probe)["outcome"].as_str();
        matches!(outcome, Some("attached" | "approximated"))
    };
    let number = |probe: &str, value: &Value| {
        assert_eq!(value.is_u64(), measured(probe), "{probe}: {value:#}");
        value.clone()
    };
    let map = |probe: &str, map: BTreeMap<String, Value>| {
        assert!(measured(probe) || map.is_empty(), "{probe}: {map:#?}");
        measured(probe).then_some(map)
    };
    let pushes = of_device(&report["pushes"], device_name);
    let by_trigger = pushes["by_trigger"].as_object().into_iter().flatten();
    let fsyncs = rows(report, "fsyncs", device_name).filter(|row| row["kind"] != "dir");
    let fsyncs: u64 = fsyncs.map(|row| uint(&row["count"])).sum();
    let iclogs = iclogs(report, device_name).into_iter();
    let own = device(report, device_name);
    let disk = device(report, disk);
    // Without iclogs it cannot be known.
    let without_iclog = &pushes["wrote_no_iclog"];
    json!({
        "forces": map("forces", values(forces(report, device_name))),
        "pushes": number("pushes", &pushes["count"]),
        "empty_pushes": number("pushes", &pushes["empty"]),
        "pushes_without_iclog": number(if measured("iclogs") { "pushes" } else { "iclogs" }, without_iclog),
        "pushes_by_trigger": map("pushes", by_trigger.map(|(trigger, count)| (trigger.clone(), count.clone())).collect()),
        "iclogs": map("iclogs", iclogs.map(|(cause, (writes, bytes))| {
            (cause, json!({"writes": writes, "bytes": bytes}))
        }).collect()),
        "commits": number("commits", &of_device(&report["commits"], device_name)["count"]),
        "fsyncs": measured("fsyncs").then_some(fsyncs),
        "flushes": map("flush-requests", values(flushes(report, device_name))),
        "flushes_needed": number("flush-requests", &own["flushes_needed"]),
        "flushes_issued": number("flush-issues", &disk["flushes_issued"]),
        "flushes_empty": number("flush-issues", &disk["flushes_empty"]),
    })
}

fn values(map: BTreeMap<String, u64>) -> BTreeMap<String, Value> {
    map.into_iter()
        .map(|(name, count)| (name, count.into()))
        .collect()
}

/// Holds what [`reported`] gives against [`Counts::named`], in everything that both know.
///
/// [`Counts::named`]: crate::count::Counts::named
pub fn agree(mut reported: Value, mut witnessed: Value) {
    forget(&mut reported, &witnessed);
    forget(&mut witnessed, &reported);
    assert_eq!(reported, witnessed, "left: the report; right: ftrace");
}

/// Makes null what is null in `other`.
fn forget(known: &mut Value, other: &Value) {
    match (known, other) {
        (known, Value::Null) => *known = Value::Null,
        (Value::Object(known), Value::Object(other)) => {
            for (name, known) in known {
                if let Some(other) = other.get(name) {
                    forget(known, other);
                }
            }
        }
        _ => {}
    }
}

/// What became of a probe: its row.
pub fn outcome<'a>(report: &'a Value, probe: &str) -> &'a Value {
    let rows = report["probes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["probe"] == probe);
    row.unwrap_or_else(|| panic!("no probe {probe}"))
}

/// Forces by cause.
pub fn forces(report: &Value, device: &str) -> BTreeMap<String, u64> {
    sums(rows(report, "forces", device), "count")
}

/// Bios with PREFLUSH or FUA by cause.
pub fn flushes(report: &Value, device: &str) -> BTreeMap<String, u64> {
    sums(rows(report, "flushes", device), "requested")
}

/// iclog writes and their bytes by cause.
pub fn iclogs(report: &Value, device: &str) -> BTreeMap<String, (u64, u64)> {
    let causes = &of_device(&report["iclogs"], device)["by_cause"];
    let causes = causes.as_array().into_iter().flatten();
    let row = |row: &Value| {
        (
            text(&row["cause"]),
            (uint(&row["writes"]), uint(&row["bytes"])),
        )
    };
    causes.map(row).collect()
}

/// The part of a section for one device, which is null if it says nothing of it; the section itself
/// where only one was watched.
fn of_device<'a>(section: &'a Value, device: &str) -> &'a Value {
    match section["by_device"].as_array() {
        Some(rows) => {
            let row = rows.iter().find(|row| row["device"] == device);
            row.unwrap_or(&Value::Null)
        }
        None => section,
    }
}

/// `field` summed by cause.
pub fn sums<'a>(rows: impl Iterator<Item = &'a Value>, field: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(text(&row["cause"])).or_default() += uint(&row[field]);
    }
    sums
}

/// A number that was measured.
pub fn uint(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("not a number that was measured: {value:#}"))
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a text: {value:#}"))
        .to_owned()
}
