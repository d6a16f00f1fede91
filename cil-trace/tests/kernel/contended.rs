//! A lock of the log under its own name: `xc_cil_lock`, which every commit took until Linux 6.0.

use crate::own::{directory, record_own};
use crate::shell::output;
use crate::tool::{self, rows, uint};
use crate::xfs::Xfs;
use serde_json::Value;
use std::fs::{self, File};
use std::thread;

/// Whether two commits meet is chance; that none do in so many rounds is none.
const ROUNDS: usize = 6;

fn report(xfs: &Xfs) -> Value {
    // Six threads preempt one another, and may make the tracer lose some of all that it counts.
    let recording = record_own(xfs, "contended::workload_creates", &[]);
    tool::report(&recording.file())
}

/// Six at once create files, each in a directory of its own.
#[test]
#[ignore = "a workload of the test below"]
fn workload_creates() {
    let directory = directory();
    thread::scope(|scope| {
        for number in 0..6 {
            let own = directory.join(format!("by-{number}"));
            scope.spawn(move || {
                fs::create_dir(&own).unwrap();
                for file in 0..1_000 {
                    File::create(own.join(file.to_string())).unwrap();
                }
                fs::remove_dir_all(own).unwrap();
            });
        }
    });
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
