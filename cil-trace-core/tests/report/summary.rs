//! The one-screen summary: each fact when it holds, and silence when it does not.

use crate::sample::{hist, report, skewed};
use cil_trace_core::report::schema::*;
use cil_trace_core::report::summary::{LINES, WIDTH, lines, text};
use cil_trace_core::session::{Outcome, ProbeOutcome};

/// The lines with the breaks taken out.
fn facts(report: &Report) -> String {
    let words: Vec<_> = lines(report)
        .iter()
        .flat_map(|l| l.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    words.join(" ")
}

fn flush(device: &str, cause: &str, requested: u64) -> FlushRow {
    FlushRow {
        device: device.into(),
        cause: cause.into(),
        requested,
        ..FlushRow::default()
    }
}

fn device(name: &str) -> DeviceRow {
    DeviceRow {
        device: name.into(),
        filesystem: Some("xfs".into()),
        flushes_requested: Some(100),
        ..DeviceRow::default()
    }
}

fn fsync(kind: &str, count: u64, forced_log: u64) -> FsyncRow {
    FsyncRow {
        device: "sda".into(),
        kind: kind.into(),
        count,
        forced_log: Some(forced_log),
        ..FsyncRow::default()
    }
}

#[test]
fn the_sample_fits_one_screen_and_proposes_a_command() {
    let text = text(&report(), Some("a.data"));
    insta::assert_snapshot!("screen", text);
    assert!(text.lines().count() <= LINES);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    assert!(text.ends_with("next: cil-trace report a.data loss\n"));
}

#[test]
fn story_a_pointless_flushes_of_the_push_beside_those_of_the_fsync() {
    let facts = facts(&report());
    for part in [
        "cache flushes on sda1: 150k requested, 2.4 per fsync",
        "87k 58 % cil-push pointless: 99.9 % of these pushes wrote no iclog; median",
        "B added (2 % of an iclog)",
        "63k 42 % log-force:fsync iclog fill at write: median 10 %; 98 % empty",
    ] {
        assert!(facts.contains(part), "{part} in {facts}");
    }
}

#[test]
fn a_push_that_writes_no_iclog_is_no_finding() {
    let mut healthy = report();
    healthy.flushes.retain(|row| row.cause != "cil-push");
    let facts = facts(&healthy);
    assert!(
        !facts.contains("pointless") && !facts.contains("wrote no iclog"),
        "{facts}"
    );
    assert!(
        facts.contains("log-force:fsync iclog fill at write: median"),
        "{facts}"
    );
    assert!(facts.contains("per KiB of log"), "{facts}");
}

#[test]
fn flushes_are_free_without_a_volatile_cache_and_only_there() {
    let mut sample = Report {
        devices: vec![device("sda")],
        flushes: vec![flush("sda", "log-force:fsync", 100)],
        ..Report::default()
    };
    for (cache, free) in [
        (None, false),
        (Some("write back"), false),
        (Some("write through"), true),
    ] {
        sample.devices[0].write_cache = cache.map(str::to_owned);
        assert_eq!(
            facts(&sample).contains("flushes are free here"),
            free,
            "{cache:?}"
        );
    }
}

#[test]
fn more_causes_than_fit_are_added_up() {
    let flushes = (1..=8).map(|n| flush("sda", &format!("other:function_{n}"), n * 10));
    let sample = Report {
        flushes: flushes.collect(),
        ..Report::default()
    };
    assert!(
        facts(&sample).contains("60 3 other causes"),
        "{}",
        facts(&sample)
    );
}

#[test]
fn flushes_of_a_lower_device_are_not_counted_twice() {
    let sample = Report {
        flushes: vec![
            flush("loop0", "log-force:fsync", 10),
            FlushRow {
                via: Some("loop0".into()),
                ..flush("sda", "fs:ext4", 10)
            },
        ],
        ..Report::default()
    };
    let facts = facts(&sample);
    assert!(facts.contains("cache flushes on loop0: 10 requested"));
    assert!(!facts.contains("cache flushes on sda"));
}

#[test]
fn merged_and_empty_flushes_are_those_of_the_disk() {
    let facts = facts(&report());
    assert!(
        facts.contains("sda issued 151k device flushes, 2,002 merged, 61.9k empty (41 %)"),
        "{facts}"
    );
}

#[test]
fn fan_out_is_said_of_stacked_devices() {
    let sample = Report {
        devices: vec![DeviceRow {
            stacked_on: vec!["sda".into()],
            fan_out: Some(10.0),
            ..device("dm-0")
        }],
        ..Report::default()
    };
    assert!(
        facts(&sample).contains("fan-out 10: flushes requested of sda for each requested of dm-0")
    );
    let flat = Report {
        devices: vec![device("sda")],
        ..Report::default()
    };
    assert!(!facts(&flat).contains("fan-out"));
}

#[test]
fn story_k_requests_that_wait_in_the_queue_point_at_the_scheduler() {
    let on = |queue, inside| Report {
        devices: vec![
            DeviceRow {
                partition_of: Some("sda".into()),
                flush_latency: Some(skewed(2_000_000)),
                ..device("sda1")
            },
            DeviceRow {
                queue_time: Some(skewed(queue)),
                device_time: Some(skewed(inside)),
                ..device("sda")
            },
        ],
        flushes: vec![flush("sda1", "fsync-data", 100)],
        ..Report::default()
    };
    let facts_of_queue = facts(&on(900_000_000, 100_000));
    assert!(
        facts_of_queue.contains("flush latency on sda1: p50 2.0"),
        "{facts_of_queue}"
    );
    assert!(
        facts_of_queue.contains("requests on sda: 99.9 % of their time queued"),
        "{facts_of_queue}"
    );
    assert!(facts_of_queue.contains("look at the I/O scheduler"));
    let facts_of_device = facts(&on(100_000, 900_000_000));
    assert!(
        facts_of_device.contains("requests on sda: <0.1 % of their time queued"),
        "{facts_of_device}"
    );
    assert!(!facts_of_device.contains("scheduler"));
}

#[test]
fn a_circle_of_devices_ends() {
    let sample = Report {
        devices: vec![DeviceRow {
            partition_of: Some("sda".into()),
            flush_latency: Some(skewed(1_000)),
            ..device("sda")
        }],
        flushes: vec![flush("sda", "unmount", 1)],
        ..Report::default()
    };
    assert!(facts(&sample).contains("flush latency on sda: p50"));
}

#[test]
fn story_j_fdatasync_that_forces_the_log() {
    let mut sample = Report {
        fsyncs: vec![fsync("fdatasync", 1_000, 980), fsync("fsync", 500, 500)],
        pushes: Pushes {
            bytes: Some(hist([312])),
            transactions: Some(hist([1])),
            ..Pushes::default()
        },
        ..Report::default()
    };
    assert!(facts(&sample).contains(
        "fdatasync on sda forced the log in 980 of 1,000 calls (98 %); median checkpoint: \
         1 transaction, 312 B"
    ));
    sample.fsyncs[0].forced_log = Some(3);
    assert!(!facts(&sample).contains("forced the log"));
}

#[test]
fn forces_say_their_causes_and_whether_their_end_was_seen() {
    let force = |cause: &str, count, method: &str| ForceRow {
        device: "sda".into(),
        cause: cause.into(),
        count,
        latency: Some(hist([1_000_000, 2_000_000])),
        method: Some(method.into()),
    };
    let mut sample = Report {
        forces: vec![
            force("log-force:sync", 10, "function"),
            force("log-force:fsync", 90, "function"),
        ],
        ..Report::default()
    };
    let text = facts(&sample);
    assert!(
        text.contains(
            "log forces: 100, 90 % log-force:fsync, 10 % log-force:sync; log-force:fsync p50 "
        ),
        "{text}"
    );
    assert!(!text.contains("approximated"));
    sample.forces[1].method = Some("lower_bound".into());
    assert!(
        facts(&sample).contains("p99 2.00 ms, approximated"),
        "{}",
        facts(&sample)
    );
    sample.forces.clear();
    assert!(!facts(&sample).contains("log forces"));
}

#[test]
fn the_process_that_forced_most_is_named() {
    let facts = facts(&report());
    assert!(
        facts.contains(
            "top forcer: dbench (pid 4711), 61k forces (97 %), waited 93.0 s for the log"
        ),
        "{facts}"
    );
    let mut sample = report();
    sample.processes[0].workload = false;
    assert!(crate::summary::facts(&sample).contains("pid 4711, not of the workload"));
    sample.processes.iter_mut().for_each(|row| row.forces = 0);
    assert!(!crate::summary::facts(&sample).contains("top forcer"));
}

#[test]
fn pushes_and_iclogs_are_summed_up() {
    let facts = facts(&Report {
        pushes: Pushes {
            by_device: Vec::new(),
            ..report().pushes
        },
        iclogs: report().iclogs,
        ..Report::default()
    });
    assert!(
        facts.contains("CIL pushes: 87.2k, 90 % log-force:fsync, 10 % background; 872 empty"),
        "{facts}"
    );
    assert!(facts.contains("up to 2 at once"), "{facts}");
    assert!(
        facts.contains("iclog writes: 63k, 186 MiB, fill median 11 %"),
        "{facts}"
    );
}

#[test]
fn only_waits_that_a_healthy_log_does_not_have_are_findings() {
    let wait = |kind: &str, count| WaitRow {
        kind: kind.into(),
        device: "sda".into(),
        count,
        wait: Some(hist([2_000_000, 4_000_000])),
    };
    let mut sample = Report {
        waits: vec![
            wait("force", 1_000),
            wait("commit-order", 5),
            wait("throttle", 0),
        ],
        ..Report::default()
    };
    assert!(!facts(&sample).contains("waited for"));
    sample.waits.push(wait("throttle", 2));
    sample.grants = Grants {
        waits: Some(1),
        wait: Some(hist([9_000_000_000])),
        by_device: Vec::new(),
    };
    let facts = facts(&sample);
    assert!(facts.contains("waited for: grant space 1 times, 9.00 s in all, p99 9.00 s; CIL throttle 2 times, 6.00 ms in all"), "{facts}");
}

#[test]
fn results_are_those_of_the_benchmark_not_its_rusage() {
    let facts = facts(&report());
    assert!(
        facts.contains("dbench.throughput_MB/s 312, dbench.latency_ms 48.2"),
        "{facts}"
    );
    assert!(!facts.contains(".time."), "{facts}");
}

#[test]
fn the_end_of_the_run_is_told() {
    let mut sample = report();
    assert!(facts(&sample).starts_with("dbench -t 10 2: 10.0 s, exit status 0, Linux 5.15.0-test"));
    sample.workload = Some(Workload {
        signal: Some(9),
        ..Workload::default()
    });
    assert!(facts(&sample).contains("ended by signal 9"));
    assert!(!facts(&sample).contains("interrupted"));
    sample.interrupted = true;
    assert!(facts(&sample).contains("interrupted: the end of the run is not in these numbers"));
    sample.command.clear();
    assert!(facts(&sample).starts_with("system-wide: "));
}

#[test]
fn silence_is_explained() {
    let idle = Report::default();
    assert!(facts(&idle).contains("the log was idle: no XFS was mounted in the scope"));
    let mounted = Report {
        devices: vec![device("sda")],
        ..Report::default()
    };
    assert!(facts(&mounted).contains("the log was idle: is the workload on one of the traced"));
    assert!(!facts(&report()).contains("idle"));
}

#[test]
fn loss_is_told_always() {
    assert!(facts(&Report::default()).contains("loss: none"));
    let facts = facts(&report());
    assert!(facts.contains(
        "LOST: 15 events (flush-requests map-full 12, pushes ring-buffer-full 3); 2 ends without \
         a beginning; 4 stacks lost"
    ));
}

#[test]
fn cost_and_broken_probes_are_told() {
    let mut sample = Report {
        overhead: report().overhead,
        ..Report::default()
    };
    assert!(facts(&sample).contains("tracing took 2 % of the CPUs' time"));
    assert!(!facts(&sample).contains("probes "));
    sample.probes.push(ProbeOutcome {
        probe: "ail".into(),
        outcome: Outcome::Failed,
        how: String::new(),
        reason: String::new(),
    });
    assert!(facts(&sample).contains("probes failed: ail"));
}

#[test]
fn the_least_telling_facts_go_first_when_the_screen_is_full() {
    let mut sample = report();
    sample.flushes = (1..=40)
        .flat_map(|n| {
            ["sda1", "loop0"]
                .map(|d| flush(d, &format!("other:a_rather_long_function_name_{n}"), n))
        })
        .collect();
    sample.interrupted = true;
    let lines = lines(&sample);
    assert!(lines.len() < LINES);
    let text = lines.join("\n");
    assert!(
        text.contains("LOST") && text.contains("interrupted") && !text.contains("tracing took"),
        "{text}"
    );
}
