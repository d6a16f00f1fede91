//! Exports of a real recording, read by the tools that they are for: each finds what the report
//! counts.
//!
//! `cargo xtask test --level exports` installs the tools and runs this.

use crate::shell::output;
use crate::stacks::{ask, stacks};
use crate::tool::{Recording, device, program, record, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A benchmark's recording with every kind of stack, and its report.
struct Recorded {
    recording: Recording,
    report: Value,
    device: String,
}

fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let xfs = Xfs::new();
        let mountpoint = xfs.mountpoint();
        let workload = ["dbench", "-t", "3", "2", "-D"].map(OsStr::new);
        let workload = [&workload[..], &[mountpoint.as_os_str()]].concat();
        let arguments = ["--device", xfs.device(), "--probes", "all"];
        let recording = record(&arguments, &workload);
        recording.expect_status(0);
        Recorded {
            report: recording.complete_report(),
            device: xfs.device().to_owned(),
            recording,
        }
    })
}

impl Recorded {
    fn flushes(&self) -> u64 {
        uint(&device(&self.report, &self.device)["flushes_requested"])
    }
}

/// Where the tools are.
fn tools() -> PathBuf {
    let path = std::env::var_os("CIL_TRACE_EXPORTS");
    path.expect("`cargo xtask test --level exports` sets CIL_TRACE_EXPORTS")
        .into()
}

/// Exports into a file.
fn export(directory: &TempDir, arguments: &[&str]) -> PathBuf {
    let path = directory.path().join(arguments.join("_"));
    let status = Command::new(program())
        .arg("export")
        .arg(recorded().recording.file())
        .arg("-o")
        .arg(&path)
        .arg("--format")
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success(), "{arguments:?}: {status}");
    path
}

/// Runs a Python program on files with the wheels, and gives the numbers that it prints.
fn python(source: &str, files: &[&Path]) -> Vec<u64> {
    let python = tools().join("venv/bin/python");
    let files = files.iter().map(|file| file.as_os_str());
    let arguments: Vec<_> = ["-c".as_ref(), source.as_ref()]
        .into_iter()
        .chain(files)
        .collect();
    output(python.to_str().unwrap(), &arguments)
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

#[test]
fn pprof_counts_what_the_report_counts() {
    let recorded = recorded();
    let file = recorded.recording.file();
    let directory = TempDir::new().unwrap();
    for (kind, unit, total) in [
        ("flush", "contentions", recorded.flushes()),
        (
            "push",
            "contentions",
            uint(&recorded.report["pushes"]["count"]),
        ),
        ("cpu", "samples", uint(&stacks("cpu", &file)["total"])),
        (
            "offcpu",
            "contentions",
            uint(&stacks("offcpu", &file)["total"]),
        ),
    ] {
        assert!(total > 0, "no {kind}");
        let path = export(&directory, &["pprof", "--kind", kind]);
        let arguments = ["tool", "pprof", "-top"].map(OsStr::new);
        let index = format!("-sample_index={unit}");
        let arguments = [&arguments[..], &[OsStr::new(&index), path.as_os_str()]].concat();
        let top = output("go", &arguments);
        assert!(top.contains(&format!("Type: {unit}\n")), "{top}");
        assert!(
            top.contains(&format!("% of {total} total")),
            "{total} {kind}:\n{top}"
        );
        // The other value is the time.
        let time = if kind == "cpu" { "cpu" } else { "delay" };
        let index = format!("-sample_index={time}");
        let arguments = [
            OsStr::new("tool"),
            "pprof".as_ref(),
            "-top".as_ref(),
            index.as_ref(),
            path.as_os_str(),
        ];
        assert!(output("go", &arguments).contains(&format!("Type: {time}\n")));
    }
}

#[test]
fn speedscope_shows_what_the_report_counts() {
    let directory = TempDir::new().unwrap();
    let requested = recorded().flushes();
    let folded = ask(
        &["export", "--format", "folded", "--kind", "flush"],
        &recorded().recording.file(),
    );
    let through_fsync: u64 = folded
        .lines()
        .filter(|line| line.contains(";xfs_file_fsync;"))
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert!(through_fsync > 0 && through_fsync <= requested);
    for format in ["folded", "pprof", "speedscope"] {
        let file = export(&directory, &[format, "--kind", "flush"]);
        let page = opened(&directory, &file);
        let row = page
            .split("<tr")
            .find(|row| row.contains(">xfs_file_fsync<"))
            .unwrap_or_else(|| panic!("{format}: {page}"));
        let shown = format!("{} (", with_commas(through_fsync));
        assert!(row.contains(&shown), "{format}: {shown} is not in {row}");
    }
}

/// A file in speedscope's table of functions, as Chromium shows it.
fn opened(directory: &TempDir, file: &Path) -> String {
    let name = file.file_name().unwrap().to_string_lossy();
    let contents = output("base64", &["-w0".as_ref(), file.as_os_str()]);
    // What speedscope's own command does.
    let script = directory.path().join(format!("{name}.js"));
    let load = format!("speedscope.loadFileFromBase64('{name}', '{contents}')");
    fs::write(&script, load).unwrap();
    let page = tools().join("node_modules/speedscope/dist/release/index.html");
    let address = format!(
        "file://{}#localProfilePath={}&view=sandwich",
        page.display(),
        script.display()
    );
    output(
        "chromium",
        &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            // Of the page's clock: it is at rest long before.
            "--virtual-time-budget=30000",
            // The table holds the rows that are in view.
            "--window-size=1200,4000",
            "--dump-dom",
            &address,
        ],
    )
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    if first > 0 {
        parts.push(&digits[..first]);
    }
    let rest = digits.as_bytes()[first..].chunks(3);
    parts.extend(rest.map(|chunk| std::str::from_utf8(chunk).unwrap()));
    parts.join(",")
}

/// Slices by kind, in the order of its arguments; and fails if two of a track overlap.
const TIMELINE: &str = r#"
import sys, collections
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto
trace = proto.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
tracks, kinds, until, at = {}, collections.Counter(), {}, {}
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    track = tracks[event.track_uuid]
    assert packet.timestamp_clock_id == 3 and track.name
    if event.type == event.TYPE_SLICE_BEGIN:
        assert event.track_uuid not in at, "overlap on " + track.name
        assert until.get(event.track_uuid, 0) <= packet.timestamp
        assert "(sampled events)" in tracks[track.parent_uuid].name
        at[event.track_uuid] = packet.timestamp
        kinds[event.categories[0]] += 1
    elif event.type == event.TYPE_SLICE_END:
        assert at.pop(event.track_uuid) <= packet.timestamp
        until[event.track_uuid] = packet.timestamp
assert not at
print(sum(kinds.values()), *(kinds[kind] for kind in ["push", "iclog", "force", "flush"]))
"#;

#[test]
fn perfetto_reads_every_event_of_the_sample() {
    let directory = TempDir::new().unwrap();
    let file = export(&directory, &["perfetto"]);
    let counted = python(TIMELINE, &[&file]);
    assert_eq!(counted[0], uint(&recorded().report["events"]["kept"]));
    assert!(counted.iter().all(|&count| count > 0), "{counted:?}");
}

/// Flushes that XFS asked for, pushes, and flushes by stack.
const TABLES: &str = r#"
import json, sys, pandas
csv, stacks, everything = sys.argv[1:]
everything = json.load(open(everything))
for sums in [pandas.read_csv(csv), pandas.DataFrame(everything["sums"])]:
    flushes = sums[(sums.metric == "flush_requested") & sums.via.isna() & (sums.label != "fs")]
    print(int(flushes.value.sum()), int(sums[sums.metric == "pushes"].value.sum()))
by_stack = pandas.DataFrame(everything["stacks"])
for stacks in [pandas.read_csv(stacks), by_stack[by_stack.kind == "flush"]]:
    print(int(stacks["count"].sum()))
"#;

#[test]
fn pandas_adds_up_to_the_report() {
    let directory = TempDir::new().unwrap();
    let files = [
        export(&directory, &["csv"]),
        export(&directory, &["csv", "--kind", "flush"]),
        export(&directory, &["json"]),
    ];
    let files: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let (flushes, pushes) = (
        recorded().flushes(),
        uint(&recorded().report["pushes"]["count"]),
    );
    assert_eq!(
        python(TABLES, &files),
        [flushes, pushes, flushes, pushes, flushes, flushes]
    );
}
