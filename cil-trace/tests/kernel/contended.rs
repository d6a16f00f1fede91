//! A lock of the log under its own name: `xc_cil_lock`, which every commit took until Linux 6.0.

use crate::shell::output;
use crate::tool::{record, rows, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::ffi::OsStr;

/// Six at once create files, each in a directory of its own.
const WORKLOAD: &str = r#"
set -e
create() {
    mkdir -p "$1"
    for number in {1..400}; do : >"$1/$number"; done
    rm -rf "$1"
}
for process in {1..6}; do create "$1/$process" & done
wait
"#;

/// Whether two commits meet is chance; that none do in so many rounds is none.
const ROUNDS: usize = 6;

fn report(xfs: &Xfs) -> Value {
    let mountpoint = xfs.mountpoint();
    let workload = ["bash", "-c", WORKLOAD, "bash"].map(OsStr::new);
    let workload = [&workload[..], &[mountpoint.as_os_str()]].concat();
    let recording = record(&["--device", xfs.device(), "--probes", "locks"], &workload);
    recording.expect_status(0);
    recording.complete_report()
}

fn cil_lock<'a>(report: &'a Value, xfs: &Xfs) -> Option<&'a Value> {
    rows(report, "locks", xfs.device()).find(|row| row["lock"] == "xc_cil_lock")
}

#[test]
fn the_cils_lock_is_named_where_there_is_one() {
    let xfs = Xfs::new();
    let release = output("uname", &["-r"]);
    let major: u32 = release.split('.').next().unwrap().parse().unwrap();
    if major >= 6 {
        let report = report(&xfs);
        assert_eq!(cil_lock(&report, &xfs), None);
        let absent = report["absent_locks"].as_array().unwrap();
        assert!(absent.contains(&"xc_cil_lock".into()), "{absent:?}");
        return;
    }
    let mut rounds = (0..ROUNDS).map(|_| report(&xfs));
    let report = rounds.find(|report| cil_lock(report, &xfs).is_some());
    let report = report.expect("no commit waited for another");
    let row = cil_lock(&report, &xfs).unwrap();
    assert_eq!(row["kind"], "spin");
    assert!(uint(&row["waits"]) > 0);
    assert_eq!(row["callers"][0]["function"], "xlog_cil_commit");
    assert_eq!(report["absent_locks"].as_array().map(Vec::len), Some(0));
}
