//! A report with something in every section: a kernel with the double flush of 5.14 to 5.17 on a
//! partition of a disk, and a healthy XFS on a loop device above another filesystem of that disk.

use cil_trace_core::histogram::Histogram;
use cil_trace_core::report::schema::*;
use cil_trace_core::session::{Outcome, Overhead, ProbeOutcome, ProgramCost, SCHEMA, Scope};
use std::collections::BTreeMap;

mod locks;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A histogram of these values.
pub fn hist(values: impl IntoIterator<Item = u64>) -> Hist {
    let hist: Histogram = values.into_iter().collect();
    let any = hist.count > 0;
    Hist {
        count: hist.count,
        sum: hist.sum,
        min: any.then_some(hist.min),
        max: any.then_some(hist.max),
        p50: hist.quantile(0.5),
        p90: hist.quantile(0.9),
        p99: hist.quantile(0.99),
        p999: hist.quantile(0.999),
        buckets: hist.edges().collect(),
    }
}

/// A thousand values: most near `middle`, one in fifty near twenty times that.
pub fn skewed(middle: u64) -> Hist {
    hist((0..1000).map(|i| match i % 50 {
        0 => middle * 20 + i,
        _ => middle / 2 + middle * i / 1000,
    }))
}

fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn devices() -> Vec<DeviceRow> {
    let disk = DeviceRow {
        device: "sda".into(),
        major: 8,
        minor: 0,
        write_cache: owned("write back"),
        fua: Some(false),
        flushes_requested: Some(0),
        flushes_needed: Some(153_210),
        flushes_issued: Some(151_208),
        flushes_merged: Some(2_002),
        flushes_empty: Some(61_877),
        flush_latency: Some(skewed(900 * US)),
        queue_time: Some(skewed(40 * US)),
        device_time: Some(skewed(850 * US)),
        ..DeviceRow::default()
    };
    let partition = DeviceRow {
        device: "sda1".into(),
        minor: 1,
        partition_of: owned("sda"),
        filesystem: owned("xfs"),
        mountpoint: owned("/mnt/scratch"),
        flushes_requested: Some(150_010),
        flushes_needed: Some(153_000),
        flushes_issued: None,
        flushes_merged: None,
        flushes_empty: None,
        flush_latency: Some(skewed(950 * US)),
        queue_time: None,
        device_time: None,
        log_size_bytes: Some(64 << 20),
        iclog_size_bytes: Some(32 << 10),
        ..disk.clone()
    };
    let looped = DeviceRow {
        device: "loop0".into(),
        major: 7,
        minor: 0,
        partition_of: None,
        mountpoint: owned("/mnt/loop"),
        stacked_on: vec!["sda2".into()],
        flushes_requested: Some(210),
        flushes_needed: Some(210),
        flushes_issued: Some(210),
        flushes_merged: Some(0),
        flushes_empty: Some(0),
        fan_out: Some(2.04),
        flush_latency: Some(skewed(2 * MS)),
        queue_time: Some(skewed(1_900 * US)),
        device_time: Some(skewed(200 * US)),
        log_size_bytes: Some(16 << 20),
        ..partition.clone()
    };
    let below = DeviceRow {
        device: "sda2".into(),
        minor: 2,
        filesystem: owned("ext4"),
        mountpoint: owned("/"),
        flushes_requested: Some(428),
        flushes_needed: Some(428),
        log_size_bytes: None,
        iclog_size_bytes: None,
        ..partition.clone()
    };
    vec![disk, partition, below, looped]
}

fn flush(device: &str, cause: &str, requested: u64, middle: u64) -> FlushRow {
    FlushRow {
        device: device.into(),
        cause: cause.into(),
        requested,
        empty: Some(0),
        pointless: Some(0),
        latency: Some(skewed(middle)),
        via: None,
    }
}

fn flushes() -> Vec<FlushRow> {
    vec![
        FlushRow {
            empty: Some(61_800),
            ..flush("sda1", "log-force:fsync", 62_990, 800 * US)
        },
        FlushRow {
            pointless: Some(86_933),
            ..flush("sda1", "cil-push", 87_020, 1_100 * US)
        },
        FlushRow {
            via: owned("loop0"),
            pointless: None,
            empty: None,
            ..flush("sda2", "fs:ext4", 428, 2 * MS)
        },
        flush("loop0", "log-force:fsync", 200, 2 * MS),
        flush("loop0", "checkpoint-start", 9, 2 * MS),
        FlushRow {
            latency: None,
            ..flush("loop0", "unmount", 1, 2 * MS)
        },
    ]
}

fn fsync(device: &str, kind: &str, count: u64, forced_log: u64, neither: u64) -> FsyncRow {
    FsyncRow {
        device: device.into(),
        kind: kind.into(),
        count,
        latency: Some(skewed(2 * MS)),
        forced_log: Some(forced_log),
        flushed_only: Some(count - forced_log - neither),
        neither: Some(neither),
    }
}

fn force(device: &str, cause: &str, count: u64, method: Option<&str>) -> ForceRow {
    ForceRow {
        device: device.into(),
        cause: cause.into(),
        count,
        latency: method.map(|_| skewed(1_500 * US)),
        method: method.map(str::to_owned),
    }
}

fn pushes(count: u64) -> Pushes {
    Pushes {
        count: Some(count),
        empty: Some(count / 100),
        by_trigger: BTreeMap::from([
            ("log-force:fsync".to_owned(), count - count / 10),
            ("background".to_owned(), count / 10),
        ]),
        bytes: Some(skewed(620)),
        transactions: Some(skewed(3)),
        queue_delay: Some(skewed(12 * US)),
        run_time: Some(skewed(80 * US)),
        wrote_no_iclog: Some(count - count / 10),
        with_flush: Some(count),
        iclogs: Some(count / 10),
        flushes: Some(count),
        max_concurrent: Some(2),
        by_device: Vec::new(),
    }
}

fn iclogs(writes: u64, cause: &str) -> Iclogs {
    Iclogs {
        writes: Some(writes),
        bytes: Some(writes * 3_100),
        fill_pct: Some(hist((0..100).map(|i| 3 + i % 17))),
        latency: Some(skewed(700 * US)),
        by_cause: vec![
            IclogCause {
                cause: cause.into(),
                writes: writes - 12,
                bytes: writes * 3_000,
                fill_pct: Some(hist((0..100).map(|i| 4 + i % 13))),
            },
            IclogCause {
                cause: "iclog-write".into(),
                writes: 12,
                bytes: writes * 100,
                fill_pct: Some(hist([100; 12])),
            },
        ],
        by_device: Vec::new(),
    }
}

fn commits(count: u64) -> Commits {
    let latency = skewed(4 * US);
    Commits {
        count: Some(count),
        per_s: Some(count as f64 / 10.04),
        split: Some(CommitSplit {
            ctx_lock_ns: None,
            insert_ns: latency.sum / 2,
            throttle_ns: Some(latency.sum / 20),
            other_ns: latency.sum - latency.sum / 2 - latency.sum / 20,
        }),
        latency: Some(latency),
        by_device: Vec::new(),
    }
}

fn waits() -> Vec<WaitRow> {
    ["throttle", "commit-order", "iclog-space", "force"]
        .iter()
        .zip([3, 41, 0, 63_000])
        .map(|(kind, count)| WaitRow {
            kind: (*kind).to_owned(),
            device: "sda1".into(),
            count,
            wait: (*kind != "force").then(|| hist((0..count).map(|i| (i + 1) * 3 * MS))),
        })
        .collect()
}

fn processes() -> Vec<ProcessRow> {
    let row = |pid, comm: &str, workload, forces, flushes, log_wait_ns| ProcessRow {
        pid,
        comm: comm.into(),
        workload,
        forces,
        flushes_requested: Some(flushes),
        lock_wait_ns: None,
        log_wait_ns,
    };
    vec![
        row(4_711, "dbench", true, 61_000, 62_000, 93 * S),
        row(12, "kworker/u8:1-xfs-cil/sda1", false, 0, 87_020, 0),
        row(4_713, "<script>alert(1)</script>", true, 2_000, 900, 3 * S),
        row(998, "a|b\u{1b}[2J,\"c\"", false, 10, 9, 700 * US),
    ]
}

fn probes() -> Vec<ProbeOutcome> {
    let probe = |probe: &str, outcome, how: &str, reason: &str| ProbeOutcome {
        probe: probe.into(),
        outcome,
        how: how.into(),
        reason: reason.into(),
    };
    vec![
        probe(
            "commits",
            Outcome::Attached,
            "raw_tracepoint xfs_trans_commit_items",
            "",
        ),
        probe(
            "commit-insert",
            Outcome::Approximated,
            "inlined in this kernel, measured as xfs_trans_commit to xfs_trans_commit_items less \
             the wait for xc_ctx_lock",
            "no function xlog_cil_insert_items: it is inlined or absent",
        ),
        probe(
            "commit-ctx-lock",
            Outcome::Skipped,
            "",
            "this kernel has no kprobes (CONFIG_KPROBES is not set)",
        ),
        probe(
            "force-end",
            Outcome::Failed,
            "",
            "kretprobe xfs_log_force: EBUSY",
        ),
        probe(
            "flush-requests",
            Outcome::Attached,
            "raw_tracepoint block_bio_queue",
            "",
        ),
    ]
}

/// The report.
pub fn report() -> Report {
    let tick = |i: u64| TickRow {
        t_ns: 5_000 * S + i * S,
        commits: Some(40_000 + i),
        pushes: Some(8_700),
        forces: Some(6_300),
        flushes_requested: Some(15_000),
        flushes_issued: (i != 2).then_some(15_100),
        lock_wait_ns: Some(400 * MS),
    };
    Report {
        scope: Scope::default(),
        schema: SCHEMA,
        tool: "cil-trace 0.1.0".into(),
        kernel: "5.15.0-test".into(),
        command: ["dbench", "-t", "10", "2"].map(str::to_owned).to_vec(),
        started_at: "2026-01-02T03:04:05Z".into(),
        duration_ns: 10 * S + 40 * MS,
        interrupted: false,
        window: Window {
            start_ns: 5_000 * S,
            end_ns: 5_010 * S + 40 * MS,
        },
        workload: Some(Workload {
            exit_status: Some(0),
            signal: None,
            wall_ns: 10 * S + 31 * MS,
            user_ns: 2 * S,
            sys_ns: 7 * S,
            metrics: BTreeMap::from([
                ("dbench.throughput_MB/s".to_owned(), 312.417),
                ("dbench.latency_ms".to_owned(), 48.2),
                (
                    "dbench.time.voluntary_context_switches".to_owned(),
                    183_202.0,
                ),
            ]),
        }),
        devices: devices(),
        flushes: flushes(),
        fsyncs: vec![
            fsync("sda1", "fsync", 50_000, 49_000, 0),
            fsync("sda1", "fdatasync", 12_504, 12_400, 4),
            fsync("loop0", "fsync", 200, 200, 0),
        ],
        forces: vec![
            force("sda1", "log-force:worker", 2, None),
            force("sda1", "log-force:fsync", 63_010, Some("lower_bound")),
            force("loop0", "log-force:fsync", 200, Some("lower_bound")),
        ],
        pushes: Pushes {
            by_device: vec![
                PushesOfDevice {
                    device: "sda1".into(),
                    pushes: pushes(87_020),
                },
                PushesOfDevice {
                    device: "loop0".into(),
                    pushes: Pushes {
                        with_flush: None,
                        flushes: None,
                        ..pushes(200)
                    },
                },
            ],
            ..pushes(87_220)
        },
        iclogs: Iclogs {
            by_device: vec![IclogsOfDevice {
                device: "sda1".into(),
                iclogs: iclogs(63_010, "log-force:fsync"),
            }],
            ..iclogs(63_010, "log-force:fsync")
        },
        commits: commits(402_117),
        grants: Grants {
            waits: Some(7),
            wait: Some(hist([
                3 * MS,
                5 * MS,
                5 * MS,
                6 * MS,
                9 * MS,
                12 * MS,
                310 * MS,
            ])),
            by_device: Vec::new(),
        },
        waits: waits(),
        log_space: vec![LogSpaceRow {
            device: "sda1".into(),
            used_pct: hist((0..100).map(|i| 20 + i % 60)),
            min_free_bytes: Some(12 << 20),
        }],
        ail: vec![AilRow {
            device: "sda1".into(),
            push: 120_330,
            pinned: 1_204,
            locked: 33,
            flushing: 9_000,
        }],
        ilock: locks::ilock(),
        locks: locks::locks(),
        blockers: locks::blockers(),
        absent_locks: vec!["xc_cil_lock".into()],
        processes: processes(),
        ticks: Some((1..=3).map(tick).collect()),
        overhead: Some(Overhead {
            bpf_run_ns: 410 * MS,
            bpf_runs: 2_400_000,
            per_program: vec![
                ProgramCost {
                    program: "trans_commit_items".into(),
                    run_ns: 110 * MS,
                    runs: 402_117,
                },
                ProgramCost {
                    program: "block_bio_queue".into(),
                    run_ns: 300 * MS,
                    runs: 1_997_883,
                },
            ],
            share_of_cpu_pct: 2.04,
            sampled_1_in: 8,
            measured_ns: Some(S),
        }),
        events: Events {
            seen: 302_000,
            kept: 2_000,
        },
        loss: Loss {
            by_probe: vec![
                LossRow {
                    probe: "flush-requests".into(),
                    cause: "map-full".into(),
                    count: 12,
                },
                LossRow {
                    probe: "pushes".into(),
                    cause: "ring-buffer-full".into(),
                    count: 3,
                },
            ],
            total: 15,
            unpaired: 2,
            stacks_lost: 4,
        },
        probes: probes(),
    }
}
