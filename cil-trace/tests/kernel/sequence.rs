//! A sequence whose numbers are known: the statistics, the witness and the report must agree on
//! every one.

use crate::count::{Counts, count};
use crate::shell::output;
use crate::tool::{agree, device, record, reported, uint, window};
use crate::trace::Event;
use crate::witness::{Witness, marked};
use crate::xfs::{LogStats, Xfs};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// A mounted XFS under the witness's eyes, and the sequence to run on it.
struct Sequence {
    xfs: Xfs,
    witness: Witness,
    before: LogStats,
}

impl Sequence {
    fn on(xfs: Xfs) -> Self {
        let before = LogStats::of(&xfs);
        Self {
            witness: Witness::of(&xfs),
            before,
            xfs,
        }
    }

    fn command(&self) -> Vec<OsString> {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/sequence.sh");
        let Self { xfs, witness, .. } = self;
        let paths = [
            script,
            xfs.mountpoint(),
            xfs.stats(),
            xfs.outside("stats"),
            witness.marker(),
        ];
        paths
            .into_iter()
            .map(OsString::from)
            .chain(["unmount".into()])
            .collect()
    }

    /// The statistics were read between the marks, so they lie between the counts up to there.
    fn check_statistics(&self, events: &[Event<'_>]) {
        let until = |mark| count(events, &self.xfs.subject(), &(0..marked(events, mark)));
        let (early, late) = (until("before-statistics"), until("after-statistics"));
        let after = LogStats::parse(&fs::read_to_string(self.xfs.outside("stats")).unwrap());
        let agree = |number: fn(&Counts) -> u64, statistics: u64| {
            let seen = number(&early)..=number(&late);
            assert!(
                seen.contains(&statistics),
                "{seen:?} seen, {statistics} in the statistics"
            );
        };
        agree(Counts::iclog_writes, after.writes - self.before.writes);
        agree(Counts::all_forces, after.forces - self.before.forces);
        assert_eq!(late.fsyncs, 200);
    }
}

/// A witness that is wrong proves nothing.
#[test]
fn the_witness_agrees_with_the_statistics() {
    let sequence = Sequence::on(Xfs::new());
    let command = sequence.command();
    output(&command[0].to_string_lossy(), &command[1..]);
    sequence.check_statistics(&sequence.witness.testimony().events());
}

#[test]
fn the_report_agrees_with_the_witness() {
    agrees_with_the_witness(&Sequence::on(Xfs::new()));
}

#[test]
fn on_a_partition_the_report_agrees_with_the_witness_too() {
    agrees_with_the_witness(&Sequence::on(Xfs::on_partition()));
}

fn agrees_with_the_witness(sequence: &Sequence) {
    let (name, disk) = (sequence.xfs.device(), sequence.xfs.disk());
    let command = sequence.command();
    let workload: Vec<_> = command.iter().map(OsString::as_os_str).collect();
    let recording = record(&["--device", name], &workload);
    recording.expect_status(0);
    let report = recording.complete_report();

    let testimony = sequence.witness.testimony();
    let events = testimony.events();
    sequence.check_statistics(&events);
    let subject = sequence.xfs.subject();
    let witnessed = count(&events, &subject, &window(&report));
    assert_eq!(witnessed.fsyncs, 200, "the window is not the workload's");
    agree(
        reported(&report, name, disk),
        witnessed.named(subject.iclog_events),
    );

    let requested: u64 = witnessed.flushes.values().sum();
    assert_eq!(uint(&device(&report, name)["flushes_requested"]), requested);
    let disk_row = device(&report, disk);
    let merged = witnessed.flushes_needed.cast_signed() - witnessed.flushes_issued.cast_signed();
    assert_eq!(disk_row["flushes_merged"], merged);
    if name != disk {
        assert_eq!(device(&report, name)["partition_of"], disk);
    }
}
