//! The command line of the binary: what it takes, what it refuses, and with which status.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use assert_cmd::Command;
use cil_trace::cli;
use cil_trace::options::{
    CompareOptions, Diff, ExportOptions, Filter, FlamegraphOptions, Invocation, RecordOptions,
    Repeat, ReportOptions, Series, Target, Tracing,
};
use cil_trace::workload::{self, RunAs};
use cil_trace_common::stack::StackKind;
use cil_trace_core::compare::style::Style;
use cil_trace_core::export;
use cil_trace_core::flame::Per;
use cil_trace_core::probes::Set;
use cil_trace_core::profile::Weight;
use cil_trace_core::report::format::Format;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cil-trace"))
}

fn parse(line: &str) -> Invocation {
    cli::parse(line.split(' ').map(OsString::from)).unwrap()
}

/// The status that a command line is refused with.
fn refused(line: &str) -> i32 {
    let words = format!("cil-trace {line}");
    cli::parse(words.split(' ').map(OsString::from))
        .unwrap_err()
        .exit_code()
}

fn record(line: &str) -> RecordOptions {
    match parse(&format!("cil-trace record {line}")) {
        Invocation::Record(options) => options,
        other => panic!("{other:?}"),
    }
}

fn report(line: &str) -> ReportOptions {
    match parse(&format!("cil-trace report{line}")) {
        Invocation::Report(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn record_has_defaults() {
    assert_eq!(
        record("-- dbench -t 10 2"),
        RecordOptions {
            output: "cil-trace.data".into(),
            target: Target::Command(workload::Options {
                argv: ["dbench", "-t", "10", "2"].map(OsString::from).to_vec(),
                run_as: RunAs::Invoker,
                capture: false,
                results: vec![],
            }),
            tracing: Tracing {
                filters: vec![],
                wait_for_xfs: false,
                probes: vec![Set::Log, Set::Flush, Set::Ilock, Set::Locks, Set::Cpu],
                interval: Duration::from_secs(1),
                sampling_hz: 997,
                sampling: 8,
                debuginfo: None,
            },
            duration: None,
            repeat: Repeat::Once { prepare: None },
            strict: false,
            quiet: false,
        }
    );
    assert_eq!(
        record("dbench -t 10 2"),
        record("-- dbench -t 10 2"),
        "as perf has it"
    );
}

#[test]
fn record_takes_every_option() {
    let options = record(
        "-o f --mount /srv --device loop2 --device /dev/sda1 --probes flush --interval 250ms -F 99 \
         --overhead-budget off \
         --duration 2m --strict -q --capture --results a --results b --user dave --prepare sync -- x",
    );
    assert_eq!(
        options,
        RecordOptions {
            output: "f".into(),
            target: Target::Command(workload::Options {
                argv: vec!["x".into()],
                run_as: RunAs::User("dave".to_owned()),
                capture: true,
                results: vec!["a".into(), "b".into()],
            }),
            tracing: Tracing {
                filters: vec![
                    Filter::Mount("/srv".into()),
                    Filter::Device("loop2".to_owned()),
                    Filter::Device("sda1".to_owned()),
                ],
                wait_for_xfs: false,
                probes: vec![Set::Flush],
                interval: Duration::from_millis(250),
                sampling_hz: 99,
                sampling: 1,
                debuginfo: None,
            },
            duration: Some(Duration::from_secs(120)),
            repeat: Repeat::Once {
                prepare: Some("sync".to_owned()),
            },
            strict: true,
            quiet: true,
        }
    );
    assert_eq!(record("-p 12").target, Target::Process(12));
    assert_eq!(record("-a").target, Target::Everything);
    assert!(record("-a").tracing.wait_for_xfs);
    assert!(!record("--duration 1s").tracing.wait_for_xfs);
    assert_eq!(record("--duration 1s").target, Target::Everything);
    assert_eq!(
        record("-a --probes locks,flush,log").tracing.probes,
        [Set::Log, Set::Flush, Set::Locks]
    );
    assert_eq!(record("-a --probes all").tracing.probes, Set::ALL);
    let Target::Command(command) = record("-a --keep-root -- x").target else {
        panic!()
    };
    assert_eq!(command.run_as, RunAs::Ourselves);
}

#[test]
fn a_series_goes_into_a_directory_and_reads_results() {
    let line = [
        "record",
        "--runs",
        "5",
        "--against",
        "b -x 1",
        "--prepare",
        "sync; true",
        "--",
        "a",
    ];
    let words = std::iter::once("cil-trace").chain(line).map(OsString::from);
    let Ok(Invocation::Record(options)) = cli::parse(words) else {
        panic!()
    };
    assert_eq!(options.output, PathBuf::from("cil-trace.runs"));
    assert_eq!(
        options.repeat,
        Repeat::Series(Series {
            runs: 5,
            against: Some(["b", "-x", "1"].map(OsString::from).to_vec()),
            prepare: Some("sync; true".to_owned()),
        })
    );
    let Target::Command(command) = options.target else {
        panic!()
    };
    assert!(command.capture, "the runs are to be compared");
    for line in [
        "record --runs 0 -- a",
        "record --runs 5",
        "record --against b -- a",
        "record --prepare b -a",
    ] {
        assert_eq!(refused(line), 2, "{line}");
    }
}

fn compare(line: &str) -> CompareOptions {
    match parse(&format!("cil-trace compare {line}")) {
        Invocation::Compare(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn compare_takes_sides_with_labels() {
    let options = compare(
        "old=a b/6.12 --style mmtests --metric x.* --metric y --primary x.z --changed --explain \
         --lower-is-better *.z --format json",
    );
    let labels: Vec<_> = options
        .sides
        .iter()
        .map(|side| side.label.as_str())
        .collect();
    assert_eq!(labels, ["old", "6.12"]);
    assert_eq!(
        (options.style, options.format),
        (Style::Mmtests, Format::Json)
    );
    let compare = &options.compare;
    assert_eq!(compare.metrics.len(), 2);
    assert_eq!(compare.primary.as_deref(), Some("x.z"));
    assert!(compare.changed && compare.explain && !compare.halves);
    assert!(compare.lower_is_better[0].matches("x.z"));
    assert!(self::compare("--aa a").compare.halves);
    assert_eq!(self::compare("a b c").style, Style::Lkp);
}

#[test]
fn compare_needs_something_to_compare_with() {
    for line in [
        "compare",
        "compare a",
        "compare --aa a b",
        "compare a b --style lkpp",
        "compare a b --metric [",
        "compare a b --explain --format csv",
    ] {
        assert_eq!(refused(line), 2, "{line}");
    }
}

#[test]
fn a_word_of_report_is_a_section_or_the_recording() {
    let all = ReportOptions {
        input: "cil-trace.data".into(),
        sections: vec![],
        format: Format::Text,
        per_tick: false,
        html: None,
    };
    assert_eq!(report(""), all);
    let some = ReportOptions {
        sections: vec!["pushes".to_owned(), "flushes".to_owned()],
        ..all
    };
    assert_eq!(report(" pushes flushes"), some);
    let named = ReportOptions {
        input: "./pushes".into(),
        ..some
    };
    assert_eq!(report(" pushes ./pushes flushes"), named);
    let options = report(" --format json --per-tick --html out.html");
    assert_eq!((options.format, options.per_tick), (Format::Json, true));
    assert_eq!(options.html, Some("out.html".into()));
}

#[test]
fn flamegraph_weighs_a_kind_by_what_one_looks_for_in_it() {
    for (flags, kind, weight) in [
        ("flush", StackKind::Flush, Weight::Count),
        ("offcpu", StackKind::Offcpu, Weight::Time),
        ("hold --weight count", StackKind::Hold, Weight::Count),
        ("push --weight bytes", StackKind::Push, Weight::Bytes),
    ] {
        let options = FlamegraphOptions {
            input: "cil-trace.data".into(),
            kind,
            weight,
            diff: None,
            output: Some("x.svg".into()),
        };
        let line = format!("cil-trace flamegraph --kind {flags} -o x.svg");
        assert_eq!(parse(&line), Invocation::Flamegraph(options), "{line}");
    }
}

#[test]
fn flamegraph_compares() {
    for (flags, per) in [
        ("", None),
        (" --per second", Some(Per::Second)),
        (
            " --per fio.write_iops",
            Some(Per::Work("fio.write_iops".into())),
        ),
    ] {
        let line = format!("cil-trace flamegraph --kind cpu new --diff old{flags}");
        let Invocation::Flamegraph(options) = parse(&line) else {
            panic!("{line}");
        };
        let base = "old".into();
        assert_eq!(options.diff, Some(Diff { base, per }));
    }
}

#[test]
fn export_weighs_by_count() {
    for (flags, format, stacks) in [
        (
            "pprof --kind offcpu",
            export::Format::Pprof,
            Some((StackKind::Offcpu, Weight::Count)),
        ),
        (
            "json --kind cpu --weight time",
            export::Format::Json,
            Some((StackKind::Cpu, Weight::Time)),
        ),
        ("perfetto", export::Format::Perfetto, None),
    ] {
        let options = ExportOptions {
            input: "x.data".into(),
            format,
            stacks,
            output: Some("out".into()),
        };
        let line = format!("cil-trace export x.data -o out --format {flags}");
        assert_eq!(parse(&line), Invocation::Export(options), "{line}");
    }
}

/// What is refused, and what the message has to name.
const REFUSED: &[(&[&str], &str)] = &[
    (&[], "Usage:"),
    (&["frobnicate"], "frobnicate"),
    (
        &["flamegraph", "--kind", "cpu", "--per", "second"],
        "--diff",
    ),
    (&["export"], "--format"),
    (&["export", "--format", "folded"], "--kind"),
    (
        &["export", "--format", "perfetto", "--kind", "cpu"],
        "leave --kind away",
    ),
    (&["export", "--format", "parquet"], "export csv"),
    (&["export", "--format", "csv", "--weight", "time"], "--kind"),
    (&["record"], "--duration 10s"),
    (&["record", "--"], "-p PID"),
    (&["record", "-p", "1", "--", "true"], "cannot be used with"),
    (&["record", "-p", "1", "-a"], "cannot be used with"),
    (&["record", "-p", "0"], "0 is not in"),
    (&["record", "-p", "x"], "invalid digit"),
    (&["record", "-a", "--user", "dave"], "COMMAND"),
    (&["record", "-a", "--keep-root"], "COMMAND"),
    (&["record", "-a", "--capture"], "COMMAND"),
    (&["record", "-a", "--results", "f"], "COMMAND"),
    (
        &["record", "--user", "dave", "--keep-root", "--", "true"],
        "cannot be used with",
    ),
    (&["record", "--duration", "0s"], "longer than nothing"),
    (&["record", "--duration", "10"], "500ms, 10s or 2m"),
    (&["record", "-a", "--interval", "soon"], "500ms, 10s or 2m"),
    (
        &["record", "-a", "--overhead-budget", "0"],
        "in percent, such as 4, or off",
    ),
    (
        &["record", "-a", "--probes", "log,waits"],
        "[possible values: all, log, flush, ilock, locks",
    ),
    (&["record", "-a", "--device", "/srv/image"], "lsblk"),
    (&["record", "-a", "--runs", "3"], "COMMAND"),
    (&["compare", "a"], "--aa"),
    (
        &["compare", "a", "b", "--style", "x"],
        "[possible values: lkp, mmtests, ci]",
    ),
    (&["report", "--format", "csv"], "exactly one section"),
    (
        &["report", "--format", "markdown", "a"],
        "exactly one section",
    ),
    (&["report", "a", "b"], "no section named `b`; sections are "),
    (
        &["flamegraph", "--kind", "gpu"],
        "[possible values: cpu, offcpu",
    ),
    (&["flamegraph"], "--kind"),
    (
        &["doctor", "--format", "xml"],
        "[possible values: text, json]",
    ),
    (&["completions", "tcsh"], "[possible values: "),
];

#[test]
fn what_is_refused_is_usage_and_says_what_to_do() {
    for &(args, named) in REFUSED {
        let assert = binary().args(args).assert().code(2).stdout("");
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.contains(named), "{args:?}: {stderr}");
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let version = concat!("cil-trace ", env!("CARGO_PKG_VERSION"), "\n");
    binary()
        .arg("--version")
        .assert()
        .success()
        .stdout(version)
        .stderr("");
    for command in cli::command().get_subcommands() {
        let help = binary()
            .args([command.get_name(), "--help"])
            .assert()
            .success()
            .stderr("");
        help.stdout(contains(format!("Usage: cil-trace {}", command.get_name())));
    }
}

#[test]
fn the_definition_is_sound() {
    cli::command().debug_assert();
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = binary()
            .args(["completions", shell])
            .assert()
            .success()
            .stderr("");
        script.stdout(contains("keep-root").and(contains("flamegraph")));
    }
}

#[test]
fn a_page_per_command() {
    let directory = tempfile::tempdir().unwrap();
    let man = directory.path().join("man1");
    binary()
        .arg("man")
        .arg(&man)
        .assert()
        .success()
        .stdout("")
        .stderr("");
    for command in cli::command().get_subcommands() {
        if command.is_hide_set() {
            continue;
        }
        let page = man.join(format!("cil-trace-{}.1", command.get_name()));
        assert!(
            fs::read_to_string(&page).unwrap().contains(".SH SYNOPSIS"),
            "{page:?}"
        );
    }
    let page = fs::read_to_string(man.join("cil-trace-record.1")).unwrap();
    assert!(
        page.contains("dbench") && page.contains("keep\\-root"),
        "{page}"
    );
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("man1");
    let assert = binary().arg("man").arg(&below).assert().code(1);
    assert.stderr(contains(below.to_str().unwrap()).and(contains("give a directory")));
}

#[test]
fn a_closed_reader_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cil-trace"))
        .args(["completions", "bash"])
        .stdout(Stdio::from(writer))
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
}
