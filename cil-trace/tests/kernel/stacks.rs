//! Stacks: their sums are the report's, and they lead where the flushes come from.

use crate::tool::{device, program, record, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// What a command on a recording prints.
pub fn ask(arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program())
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The stacks of a kind, as JSON.
pub fn stacks(kind: &str, file: &Path) -> Value {
    let text = ask(&["export", "--format", "json", "--kind", kind], file);
    serde_json::from_str(&text).unwrap()
}

/// Each stack of an export: its row, and all of its functions from the root on.
pub fn rows(export: &Value) -> impl Iterator<Item = (&Value, Vec<&str>)> {
    export["stacks"].as_array().unwrap().iter().map(|row| {
        let parts = ["user", "kernel"].into_iter();
        let functions = parts.flat_map(|part| row[part].as_array().unwrap());
        (row, functions.map(|name| name.as_str().unwrap()).collect())
    })
}

#[test]
fn the_widest_flush_stack_goes_through_fsync_and_all_add_up() {
    let xfs = Xfs::new();
    let mountpoint = xfs.mountpoint();
    let workload = ["dbench", "-t", "4", "2", "-D"].map(OsStr::new);
    let workload = [&workload[..], &[mountpoint.as_os_str()]].concat();
    let recording = record(&["--device", xfs.device()], &workload);
    recording.expect_status(0);
    let report = recording.complete_report();
    let requested = uint(&device(&report, xfs.device())["flushes_requested"]);
    assert!(requested > 0);

    let folded = ask(
        &["export", "--format", "folded", "--kind", "flush"],
        &recording.file(),
    );
    let lines: Vec<(&str, u64)> = folded
        .lines()
        .map(|line| {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            (stack, weight.parse().unwrap())
        })
        .collect();
    let total: u64 = lines.iter().map(|(_, weight)| weight).sum();
    assert_eq!(total, requested);
    let (widest, _) = lines.iter().max_by_key(|(_, weight)| weight).unwrap();
    assert!(widest.contains(";xfs_file_fsync;"), "{widest}");
    assert!(widest.starts_with(xfs.device()), "{widest}");

    let svg = ask(&["flamegraph", "--kind", "flush"], &recording.file());
    assert!(svg.contains(&format!("total_samples=\"{requested}\"")));
    assert!(svg.contains("<title>xfs_file_fsync ("));

    // Times and bytes are those of the histograms.
    let export = stacks("flush", &recording.file());
    let sum = |field: &str| rows(&export).map(|(row, _)| uint(&row[field])).sum::<u64>();
    let latency = &device(&report, xfs.device())["flush_latency"];
    assert_eq!(sum("time_ns"), uint(&latency["sum"]));
    assert!(sum("bytes") > 0);
    let export = stacks("push", &recording.file());
    let sum = |field: &str| rows(&export).map(|(row, _)| uint(&row[field])).sum::<u64>();
    let pushes = &report["pushes"];
    assert_eq!(sum("count"), uint(&pushes["count"]));
    assert_eq!(sum("time_ns"), uint(&pushes["run_time"]["sum"]));
    assert_eq!(sum("bytes"), uint(&pushes["bytes"]["sum"]));
}
