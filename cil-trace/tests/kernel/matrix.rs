//! What every kernel must show, and what is different between them.
//!
//! Runs on this machine's kernel, and on others in virtual machines: `cargo xtask test --vm all`.

use crate::count::count;
use crate::shell::output;
use crate::symbols::has_iclog_events;
use crate::tool::{
    Recording, agree, device, flushes, outcome, program, record, reported, rows, uint, window,
};
use crate::witness::Witness;
use crate::xfs::{LogStats, Xfs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// `record ARGS -- bash -c SCRIPT bash WORDS`, which must succeed.
fn recorded(args: &[&str], script: &str, words: &[&OsStr]) -> Recording {
    let command = ["bash", "-ec", script, "bash"].map(OsStr::new);
    let recording = record(args, &[&command[..], words].concat());
    recording.expect_status(0);
    recording
}

/// One recording for all that is asked of any, as loading takes long where a machine is emulated.
#[test]
fn one_fsync_of_a_new_file() {
    const FSYNC: &str = r#"dd if=/dev/zero of="$1/new" bs=4k count=1 conv=fsync status=none"#;
    let xfs = Xfs::new();
    output("sync", &["-f".as_ref(), xfs.mountpoint().as_os_str()]);
    let args = ["--probes", "all", "--device", xfs.device()];
    let recording = recorded(&args, FSYNC, &[xfs.mountpoint().as_os_str()]);
    let report = recording.complete_report();
    every_program_that_has_a_place_has_loaded(&report);
    each_number_comes_with_the_way_it_was_got(&report, &recording.file());
    one_flush_is_asked_for(&report, &xfs);
}

/// A kernel's verifier, or its BTF, may refuse a program that others take.
fn every_program_that_has_a_place_has_loaded(report: &Value) {
    let program = program();
    let listed = output(&program.to_string_lossy(), &["probes", "--format", "json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(report["probes"].as_array().unwrap().len(), listed.len());
    for row in &listed {
        let loaded = outcome(report, row["probe"].as_str().unwrap());
        match row["way"].as_str() {
            Some(way) => {
                let measured = ["attached", "approximated"];
                assert!(
                    measured.contains(&loaded["outcome"].as_str().unwrap()),
                    "{loaded:#}"
                );
                assert!(
                    loaded["how"].as_str().unwrap().starts_with(way),
                    "{loaded:#}, not {way}"
                );
            }
            None => assert_ne!(loaded["outcome"], "failed", "{loaded:#}"),
        }
    }
}

/// What was not measured comes with the reason.
fn each_number_comes_with_the_way_it_was_got(report: &Value, file: &Path) {
    for row in report["probes"].as_array().unwrap() {
        let told = match row["outcome"].as_str() {
            Some("attached" | "approximated") => &row["how"],
            Some("skipped") => &row["reason"],
            _ => panic!("{row:#}"),
        };
        assert!(!told.as_str().unwrap_or_default().is_empty(), "{row:#}");
    }
    let insert = outcome(report, "commit-insert");
    // None of the kernels in question has it as a function; this needs its debug information.
    if insert["outcome"] == "approximated" {
        let told = "inlined in this kernel, measured as";
        assert!(insert["how"].as_str().unwrap().contains(told), "{insert:#}");
        let args = ["report".as_ref(), file.as_os_str(), "probes".as_ref()];
        let text = output(&program().to_string_lossy(), &args);
        // As it is wrapped to the terminal's width.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(told), "{text}");
    }
}

fn one_flush_is_asked_for(report: &Value, xfs: &Xfs) {
    let expected = BTreeMap::from([("log-force:fsync".to_owned(), 1)]);
    assert_eq!(flushes(report, xfs.device()), expected);
    let disk = device(report, xfs.disk());
    assert_eq!(
        disk["write_cache"], "write back",
        "the disk has nothing to flush"
    );
    let issued = if disk["fua"] == true { 1 } else { 2 };
    assert_eq!(disk["flushes_issued"], issued);
}

/// Until 5.14 (eef983ffeae7) every iclog was written with PREFLUSH and FUA.
#[test]
fn of_a_large_checkpoint_only_old_kernels_flush_every_iclog() {
    const CREATES: &str =
        r#"mkdir "$1/d"; for i in {1..2000}; do : >"$1/d/$i"; done; sync -f "$1""#;
    /// The checkpoint's size differs a little with the directory's layout: seen were 18 and 19.
    const ICLOGS: std::ops::RangeInclusive<u64> = 15..=25;
    let xfs = Xfs::new();
    let before = LogStats::of(&xfs);
    let args = ["--device", xfs.device()];
    let report = recorded(&args, CREATES, &[xfs.mountpoint().as_os_str()]).complete_report();
    let written = LogStats::of(&xfs).since(before);
    let flushes = flushes(&report, xfs.device());
    let of = |cause: &str, number| (cause.to_owned(), number);
    assert!(ICLOGS.contains(&written.writes), "{written:?}");
    let expected = if has_iclog_events() {
        BTreeMap::from([of("checkpoint-start", 1), of("log-force:sync", 1)])
    } else {
        // The last one is the one that the sync pushes out.
        let others = written.writes - 1;
        BTreeMap::from([of("iclog-write", others), of("log-force:sync", 1)])
    };
    assert_eq!(flushes, expected, "{written:?}");
}

#[test]
fn four_processes_creating_and_unlinking_agree_with_the_witness() {
    const WORKLOAD: &str = r#"
for process in {1..4}; do
    {
        mkdir "$1/$process"
        for i in {1..300}; do : >"$1/$process/$i"; done
        sync -f "$1"
        rm -r "$1/$process"
    } &
done
wait
sync -f "$1"
"#;
    let xfs = Xfs::new();
    let witness = Witness::of(&xfs);
    let args = ["--device", xfs.device()];
    let report = recorded(&args, WORKLOAD, &[xfs.mountpoint().as_os_str()]).complete_report();
    let testimony = witness.testimony();
    let subject = xfs.subject();
    let witnessed = count(&testimony.events(), &subject, &window(&report));
    assert!(witnessed.commits >= 2 * 4 * 300, "{witnessed:#?}");
    let reported = reported(&report, xfs.device(), xfs.disk());
    if subject.iclog_events {
        let unknown = reported
            .as_object()
            .unwrap()
            .iter()
            .find(|(_, value)| value.is_null());
        assert_eq!(unknown, None, "not measured");
    }
    agree(reported, witnessed.named(subject.iclog_events));
    // An async flush of a push's own came with 5.14 and went with 5.18.
    assert!(rows(&report, "flushes", xfs.device()).all(|row| row["cause"] != "cil-push"));
}

/// While everything is followed, that includes what is mounted after the start.
#[test]
fn a_filesystem_that_is_mounted_later_is_followed() {
    const WORKLOAD: &str = concat!(
        include_str!("fsyncs.sh"),
        r#"
mount "/dev/$2" "$1"
fsyncs "$1" 50
umount "$1"
"#
    );
    let there = Xfs::new();
    let later = Xfs::over(&there);
    later.unmount();
    let witness = Witness::of(&later);
    let words = [later.mountpoint().into_os_string(), later.device().into()];
    let words: Vec<_> = words.iter().map(|word| word.as_os_str()).collect();
    let report = recorded(&["-a"], WORKLOAD, &words).complete_report();
    let testimony = witness.testimony();
    let subject = later.subject();
    let witnessed = count(&testimony.events(), &subject, &window(&report));
    assert_eq!(witnessed.fsyncs, 50);
    agree(
        reported(&report, later.device(), later.disk()),
        witnessed.named(subject.iclog_events),
    );
    assert!(uint(&device(&report, later.device())["flushes_requested"]) >= 50);
}

/// What `doctor` says here is what it was found to say of this kernel without it.
#[test]
#[ignore = "needs a kernel that was noted down: cargo xtask test --level vm"]
fn doctor_says_what_was_noted_down() {
    const NOTED: &[(&str, &str)] = &[
        ("5.10", include_str!("../doctor/5.10.snap")),
        ("6.1", include_str!("../doctor/6.1.snap")),
        ("6.12", include_str!("../doctor/6.12.snap")),
        ("6.18", include_str!("../doctor/6.18.snap")),
        ("newest", include_str!("../doctor/newest.snap")),
    ];
    let kernel = std::env::var("CIL_TRACE_TEST_KERNEL").unwrap();
    let (_, noted) = NOTED.iter().find(|(key, _)| *key == kernel).unwrap();
    // As when it was noted down: the loop driver is there to be probed.
    output("modprobe", &["loop"]);
    let _xfs = Xfs::new();
    let said = output(&program().to_string_lossy(), &["doctor"]);
    let (_, said) = said.split_once("What can be measured\n").unwrap();
    let (_, noted) = noted.split_once("\n---\n").unwrap();
    assert_eq!(
        said, noted,
        "left: here; right: cil-trace/tests/doctor/{kernel}.snap"
    );
}
