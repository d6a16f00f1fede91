//! A real benchmark: it runs as without the program, and the report of it is whole.

use crate::count::count;
use crate::tool::{device, flushes, forces, iclogs, record, uint, window};
use crate::witness::{Witness, marked};
use crate::xfs::{LogStats, Xfs};
use std::ffi::OsStr;
use std::fs;

/// Not dbench's, so that it can only have been passed on.
const STATUS: i32 = 7;

/// dbench, its output copied on the way out; fails with 1 only when dbench does.
const WORKLOAD: &str = r#"
set -o pipefail
dbench -D "$1" -t 10 2 | tee "$2" || exit 1
exit 7
"#;

#[test]
fn dbench_is_undisturbed_and_accounted_for() {
    let xfs = Xfs::new();
    let witness = Witness::of_causes(&xfs);
    let before = statistics_between_marks(&xfs, &witness, "first");
    let copy = xfs.outside("stdout");
    let workload = ["bash", "-c", WORKLOAD, "bash"].map(OsStr::new);
    let mountpoint = xfs.mountpoint();
    let workload = [&workload[..], &[mountpoint.as_os_str(), copy.as_os_str()]].concat();
    let recording = record(&["--device", xfs.device()], &workload);
    let after = statistics_between_marks(&xfs, &witness, "last");
    recording.expect_status(STATUS);
    assert!(
        recording.output.stdout == fs::read(&copy).unwrap(),
        "stdout is not dbench's own"
    );

    let report = recording.complete_report();
    assert_eq!(report["workload"]["exit_status"], STATUS);
    let flushes = flushes(&report, xfs.device());
    let requested: u64 = flushes.values().sum();
    assert_eq!(
        uint(&device(&report, xfs.device())["flushes_requested"]),
        requested
    );
    assert!(requested > 0);
    let unexplained: u64 = flushes
        .iter()
        .filter(|(cause, _)| cause.starts_with("other"))
        .map(|(_, count)| count)
        .sum();
    assert!(unexplained * 100 < requested, "{flushes:#?}");

    // Cut to the window: forces, iclog writes and flushes by cause, as two clients raced for them.
    let testimony = witness.testimony();
    let events = testimony.events();
    let counted = |window| count(&events, &xfs.subject(), &window);
    let witnessed = counted(window(&report));
    assert_eq!(
        flushes, witnessed.flushes,
        "left: the report; right: ftrace"
    );
    assert_eq!(
        forces(&report, xfs.device()),
        witnessed.forces,
        "left: the report; right: ftrace"
    );
    assert_eq!(
        iclogs(&report, xfs.device()),
        witnessed.iclogs,
        "left: the report; right: ftrace"
    );

    // Cut to the marks around them: the statistics.
    let at = |mark: &str| marked(&events, mark);
    let least = counted(at("after-first")..at("before-last")).all_forces();
    let most = counted(at("before-first")..at("after-last")).all_forces();
    let forced = after.forces - before.forces;
    assert!(
        (least..=most).contains(&forced),
        "{least} to {most} seen, {forced} in the statistics"
    );
}

/// The statistics, and marks before and after they were read.
fn statistics_between_marks(xfs: &Xfs, witness: &Witness, when: &str) -> LogStats {
    let mark = |side: &str| fs::write(witness.marker(), format!("{side}-{when}")).unwrap();
    mark("before");
    let stats = fs::read_to_string(xfs.stats()).unwrap();
    mark("after");
    LogStats::parse(&stats)
}
