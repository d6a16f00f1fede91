//! The report of the sample, and what holds for any report.

use crate::sample::{self, DM0, LOOP0, VDA, VDA1, VDB};
use cil_trace_common::cause::Cause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_core::device::Dev;
use cil_trace_core::model::Model;
use cil_trace_core::recording::Recording;
use cil_trace_core::report::schema::{DeviceRow, Report, WaitRow};
use cil_trace_core::series::Series;
use cil_trace_core::session::{Footer, Header, Outcome};

fn model() -> Model {
    model_of(sample::header())
}

fn model_of(header: Header) -> Model {
    let mut model = Model::new(header);
    for tick in sample::ticks() {
        model.apply(&tick);
    }
    model.finish(sample::footer());
    model
}

/// The sample with these probes come out differently.
fn with(outcome: Outcome, probes: &[Probe]) -> Report {
    let mut header = sample::header();
    for row in &mut header.probes {
        if probes.iter().any(|probe| probe.name() == row.probe) {
            row.outcome = outcome;
        }
    }
    let mut model = Model::new(header);
    for mut tick in sample::ticks() {
        // It would come out as it does later.
        tick.probes.clear();
        model.apply(&tick);
    }
    model.finish(sample::footer());
    Report::of(&model, true)
}

fn row(report: &Report, dev: Dev) -> &DeviceRow {
    let is = |row: &&DeviceRow| (row.major, row.minor) == (dev.major(), dev.minor());
    report.devices.iter().find(is).unwrap()
}

fn wait<'a>(report: &'a Report, kind: &str, device: &str) -> Option<&'a WaitRow> {
    report
        .waits
        .iter()
        .find(|row| row.kind == kind && row.device == device)
}

#[test]
fn the_whole_report() {
    let (_directory, path) = sample::recorded();
    let model = Recording::open(&path).unwrap().model().unwrap();
    let report = Report::of(&model, true);
    insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn flushes_by_cause_sum_to_those_of_the_device() {
    let mut model = model();
    let mut stray = sample::ticks().remove(0);
    stray.index = 2;
    // A device that nobody described is in the report, too.
    stray.counters = vec![(Series::of(Metric::FlushRequested, Dev::new(9, 9)), 5)];
    model.apply(&stray);
    let report = Report::of(&model, false);
    assert_eq!(row(&report, Dev::new(9, 9)).device, "9:9");
    for device in &report.devices {
        let rows = report
            .flushes
            .iter()
            .filter(|row| row.device == device.device);
        let sum: u64 = rows.map(|row| row.requested).sum();
        assert_eq!(Some(sum), device.flushes_requested, "{}", device.device);
    }
}

#[test]
fn a_partition_is_its_disks() {
    let report = Report::of(&model(), false);
    let [disk, partition] = [row(&report, VDA), row(&report, VDA1)];
    assert_eq!(disk.flushes_requested, Some(0));
    assert_eq!(disk.flushes_issued, Some(200));
    assert_eq!(disk.flushes_empty, Some(0));
    assert_eq!(disk.flushes_merged, Some(5));
    assert_eq!(partition.flushes_requested, Some(205));
    assert_eq!(partition.flushes_needed, Some(205));
    assert_eq!(partition.flushes_issued, None);
    assert_eq!(partition.flushes_empty, None);
    assert_eq!(partition.flushes_merged, None);
    assert_eq!(partition.queue_time, None);
}

#[test]
fn fan_out_is_of_what_stands_on_something() {
    let report = Report::of(&model(), false);
    assert_eq!(row(&report, DM0).fan_out, Some(10.0));
    assert_eq!(row(&report, LOOP0).fan_out, Some(205.0 / 106.0));
    assert_eq!(row(&report, VDB).fan_out, None);
}

#[test]
fn the_flushes_of_a_loop_devices_partition_fan_out_of_the_loop_device() {
    let mut header = sample::header();
    let part = Dev::new(259, 0);
    let partition = cil_trace_core::device::Device {
        dev: part,
        name: "loop0p1".into(),
        partition_of: Some(LOOP0),
        ..Default::default()
    };
    header.devices.push(partition);
    let mut model = Model::new(header);
    let mut tick = sample::ticks().remove(0);
    let below = Series {
        label: Cause::ForeignFs as u16,
        via: LOOP0,
        ..Series::of(Metric::FlushRequested, VDA1)
    };
    tick.counters = vec![(Series::of(Metric::FlushRequested, part), 4), (below, 8)];
    model.apply(&tick);
    let report = Report::of(&model, false);
    assert_eq!(row(&report, LOOP0).fan_out, Some(2.0));
    assert_eq!(row(&report, part).fan_out, None);
}

#[test]
fn a_bio_based_device_has_no_requests_to_count() {
    let report = Report::of(&model(), false);
    let dm = row(&report, DM0);
    assert_eq!(dm.flushes_requested, Some(2));
    assert_eq!(
        (dm.flushes_issued, dm.flushes_merged, dm.flushes_empty),
        (None, None, None)
    );
    let unmount = report
        .flushes
        .iter()
        .find(|row| row.device == "dm-0")
        .unwrap();
    assert_eq!(unmount.empty, None);
}

#[test]
fn what_nothing_explains_is_named_by_its_function() {
    let report = Report::of(&model(), false);
    let rows: Vec<_> = report
        .flushes
        .iter()
        .filter(|row| row.cause.starts_with("other"))
        .collect();
    assert_eq!(rows.len(), 1, "two stacks, one function");
    assert_eq!(
        (rows[0].cause.as_str(), rows[0].requested),
        ("other:xfs_mystery", 2)
    );
    let ext4 = report
        .flushes
        .iter()
        .find(|row| row.device == "vda1")
        .unwrap();
    assert_eq!(
        (ext4.cause.as_str(), ext4.via.as_deref()),
        ("fs:ext4", Some("loop0"))
    );
}

#[test]
fn the_parts_of_a_commit_sum_to_it() {
    let report = Report::of(&model(), false);
    let split = report.commits.split.unwrap();
    assert_eq!(split.ctx_lock_ns, None);
    let parts = split.insert_ns + split.throttle_ns.unwrap() + split.other_ns;
    assert_eq!(parts, report.commits.latency.unwrap().sum);
}

#[test]
fn without_probes_nothing_is_zero() {
    let report = with(Outcome::Failed, Probe::ALL);
    let mut json = serde_json::to_value(&report).unwrap();
    let json = json.as_object_mut().unwrap();
    // What is known without any probe.
    for known in [
        "schema",
        "started_at",
        "duration_ns",
        "window",
        "workload",
        "overhead",
        "events",
        "loss",
        "processes",
    ] {
        json.remove(known).unwrap();
    }
    for device in json["devices"].as_array_mut().unwrap() {
        for known in ["major", "minor", "log_size_bytes", "iclog_size_bytes"] {
            device.as_object_mut().unwrap().remove(known);
        }
    }
    for row in json["ticks"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("t_ns");
    }
    let text = serde_json::to_string(&json).unwrap();
    let number = text
        .split([':', ',', '[', '{'])
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(number, None, "{text}");
}

#[test]
fn with_probes_and_nothing_seen_all_is_zero() {
    let mut model = Model::new(sample::header());
    model.finish(sample::footer());
    let report = Report::of(&model, false);
    assert_eq!(report.commits.count, Some(0));
    assert_eq!(report.pushes.max_concurrent, Some(0));
    assert_eq!(report.iclogs.latency.as_ref().unwrap().count, 0);
    assert_eq!(row(&report, LOOP0).flushes_merged, Some(0));
    assert_eq!(report.ail[0].push, 0);
    assert_eq!(
        report
            .waits
            .iter()
            .filter(|row| row.kind == "throttle")
            .count(),
        2
    );
}

#[test]
fn the_end_of_a_force_says_how_it_was_seen() {
    let ends = [Probe::ForceEnd];
    for (outcome, method) in [
        (Outcome::Attached, Some("function")),
        (Outcome::Approximated, Some("lower_bound")),
        (Outcome::Skipped, None),
    ] {
        let report = with(outcome, &ends);
        let force = &report.forces[0];
        assert_eq!(
            (force.cause.as_str(), force.count),
            ("log-force:fsync", 100)
        );
        assert_eq!(force.method.as_deref(), method);
        assert_eq!(force.latency.is_some(), method.is_some());
        assert_eq!(wait(&report, "force", "loop0").is_some(), method.is_some());
    }
}

#[test]
fn waits_for_an_iclog_come_from_the_statistics_where_no_probe_sees_them() {
    let report = with(Outcome::Approximated, &[Probe::IclogSpace]);
    let row = wait(&report, "iclog-space", "loop0").unwrap();
    assert_eq!((row.count, &row.wait), (4, &None), "the counter wrapped");
    let report = with(Outcome::Skipped, &[Probe::IclogSpace]);
    assert_eq!(wait(&report, "iclog-space", "loop0"), None, "not asked for");
    let report = with(Outcome::Attached, &[Probe::IclogSpace]);
    let row = wait(&report, "iclog-space", "loop0").unwrap();
    assert_eq!((row.count, row.wait.is_some()), (0, true));
}

#[test]
fn unpaired_ends_and_lost_stacks_are_not_lost_events() {
    let loss = Report::of(&model(), false).loss;
    assert_eq!((loss.total, loss.unpaired, loss.stacks_lost), (3, 1, 1));
    assert_eq!(loss.by_probe.len(), 3);
}

#[test]
fn processes_that_waited_longest_come_first() {
    let report = Report::of(&model(), false);
    let order: Vec<_> = report.processes.iter().map(|row| row.pid).collect();
    assert_eq!(order, [100, 7, 8]);
    assert_eq!(
        report.processes[0].forces, 61,
        "sums since the start, not increments"
    );
}

#[test]
fn without_a_footer_it_is_interrupted_and_ends_with_the_last_tick() {
    let mut model = Model::new(sample::header());
    assert_eq!(Report::of(&model, false).duration_ns, 0);
    model.apply(&sample::ticks()[0]);
    let report = Report::of(&model, true);
    assert!(report.interrupted);
    assert_eq!(report.window.end_ns, 2_000_000_000);
    assert_eq!(report.ticks.unwrap().len(), 1);
    assert_eq!((report.workload, report.overhead), (None, None));
    let aborted = Footer {
        interrupted: true,
        ..sample::footer()
    };
    model.finish(aborted);
    assert!(Report::of(&model, false).interrupted);
}

#[test]
fn the_parts_of_the_commits_sum_to_their_latency_however_insertion_is_measured() {
    for outcome in [Outcome::Attached, Outcome::Approximated] {
        let commits = with(outcome, &[Probe::CommitInsert]).commits;
        let split = commits.split.unwrap();
        let parts = split.ctx_lock_ns.unwrap_or(0)
            + split.insert_ns
            + split.throttle_ns.unwrap_or(0)
            + split.other_ns;
        assert_eq!(parts, commits.latency.unwrap().sum, "{outcome:?}");
    }
    let none = with(Outcome::Skipped, &[Probe::CommitInsert]);
    assert_eq!(none.commits.split, None);
}
