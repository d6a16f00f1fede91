//! A session of which every number is known.
//!
//! `loop0` (XFS) lies in a file on `vda1`, a partition of `vda`; `dm-0` (XFS) stands on `vdb`.

use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::EventKind;
use cil_trace_common::lock::Lock;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::histogram::Histogram;
use cil_trace_core::recording::Writer;
use cil_trace_core::series::Series;
use cil_trace_core::session::{
    Footer, Header, KernelConfig, Machine, Outcome, Overhead, ProbeOutcome, ProgramCost, Scope,
    SeriesPosition, Workload, XfsStats,
};
use cil_trace_core::tick::{
    Blocked, Cost, InFlight, LockCaller, Loss, ProcessRow, SampledEvent, Stack, StackRow,
    StackSums, Thread, Tick,
};
use std::path::PathBuf;
use tempfile::TempDir;

pub const LOOP0: Dev = Dev::new(7, 0);
pub const VDA: Dev = Dev::new(254, 0);
pub const VDA1: Dev = Dev::new(254, 1);
pub const VDB: Dev = Dev::new(254, 16);
pub const DM0: Dev = Dev::new(253, 0);

/// The session, recorded and finished.
pub fn recorded() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    let mut writer = Writer::create(&path, &header()).unwrap();
    for tick in ticks() {
        writer.tick(&tick).unwrap();
    }
    writer.finish(&footer()).unwrap();
    (directory, path)
}

pub fn header() -> Header {
    Header {
        tool: "cil-trace 0.1.0".into(),
        machine: Machine {
            kernel: "6.12.1-sample".into(),
            kernel_version: "#1 SMP".into(),
            architecture: "x86_64".into(),
            hostname: "sample".into(),
            cpus: 2,
            memory_bytes: 4 << 30,
            kernel_config: Some(KernelConfig::of([("CONFIG_HZ".into(), "250".into())])),
        },
        command: ["dbench", "-t", "10", "2"].map(str::to_owned).to_vec(),
        scope: Scope {
            sampling_hz: None,
            devices: vec!["loop0".into()],
            pid: None,
            probe_sets: vec!["log".into(), "flush".into()],
        },
        started_at: "2026-01-02T03:04:05Z".into(),
        window_start_ns: 1_000_000_000,
        interval_ns: 1_000_000_000,
        series: Some(SeriesPosition {
            id: "2026-01-01T00:00:00Z/42".into(),
            side: "b".into(),
            round: 2,
            position: 3,
        }),
        probes: probes(),
        absent_locks: Vec::new(),
        devices: vec![
            Device {
                mountpoint: Some("/mnt/scratch".into()),
                stacked_on: vec![VDA1],
                ..xfs(LOOP0, "loop0", true)
            },
            Device {
                stacked_on: vec![VDB],
                ..xfs(DM0, "dm-0", false)
            },
            disk(VDA, "vda"),
            Device {
                partition_of: Some(VDA),
                filesystem: Some("ext4".into()),
                mountpoint: Some("/".into()),
                ..disk(VDA1, "vda1")
            },
        ],
    }
}

fn xfs(dev: Dev, name: &str, request_based: bool) -> Device {
    Device {
        filesystem: Some("xfs".into()),
        log_size_bytes: Some(64 << 20),
        iclog_size_bytes: Some(32 << 10),
        mount_options: Some("logbsize=32k,noquota,rw".into()),
        geometry: Some("bsize=4096 agcount=4 crc reflink".into()),
        request_based: Some(request_based),
        ..disk(dev, name)
    }
}

fn disk(dev: Dev, name: &str) -> Device {
    Device {
        dev,
        name: name.into(),
        write_cache: Some("write back".into()),
        fua: Some(false),
        request_based: Some(true),
        ..Device::default()
    }
}

/// Everything attached, but what a kernel without function probes lacks.
fn probes() -> Vec<ProbeOutcome> {
    let outcome = |probe| match probe {
        Probe::ForceEnd | Probe::CommitInsert | Probe::IclogSpace => Outcome::Approximated,
        Probe::CommitCtxLock => Outcome::Skipped,
        _ => Outcome::Attached,
    };
    let row = |&probe: &Probe| ProbeOutcome {
        probe: probe.name().into(),
        outcome: outcome(probe),
        how: if outcome(probe).measured() {
            "raw_tracepoint".into()
        } else {
            String::new()
        },
        reason: match outcome(probe) {
            Outcome::Attached => String::new(),
            _ => "no function probes".into(),
        },
    };
    Probe::ALL.iter().map(row).collect()
}

pub fn ticks() -> Vec<Tick> {
    vec![first(), second()]
}

fn counter(metric: Metric, dev: Dev, count: u64) -> (Series, u64) {
    (Series::of(metric, dev), count)
}

fn by_cause(metric: Metric, dev: Dev, cause: Cause, count: u64) -> (Series, u64) {
    (
        Series {
            label: cause as u16,
            ..Series::of(metric, dev)
        },
        count,
    )
}

fn by_fsync(metric: Metric, dev: Dev, kind: FsyncKind, count: u64) -> (Series, u64) {
    (
        Series {
            label: kind as u16,
            ..Series::of(metric, dev)
        },
        count,
    )
}

fn by_lock(metric: Metric, lock: Lock, count: u64) -> (Series, u64) {
    let series = Series {
        label: lock as u16,
        ..Series::of(metric, LOOP0)
    };
    (series, count)
}

fn thread(tid: u32, comm: &str) -> Thread {
    let comm = comm.into();
    Thread {
        pid: 100,
        tid,
        comm,
    }
}

fn histogram(series: (Series, u64), values: &[u64]) -> (Series, Histogram) {
    (series.0, values.iter().copied().collect())
}

/// A flush of a lower device.
fn below(metric: Metric, dev: Dev, cause: Cause, via: Dev, count: u64) -> (Series, u64) {
    (
        Series {
            label: cause as u16,
            via,
            ..Series::of(metric, dev)
        },
        count,
    )
}

/// A flush that only its stack explains.
fn unexplained(metric: Metric, dev: Dev, stack: u32, count: u64) -> (Series, u64) {
    (
        Series {
            stack: Some(stack),
            ..Series::of(metric, dev)
        },
        count,
    )
}

fn first() -> Tick {
    use Cause::{CheckpointCommit, ForeignFs, LogForceFsync};
    Tick {
        index: 0,
        start_ns: 1_000_000_000,
        end_ns: 2_000_000_000,
        counters: vec![
            counter(Metric::Commits, LOOP0, 900),
            counter(Metric::CommitInsert, LOOP0, 300_000),
            by_cause(Metric::Pushes, LOOP0, LogForceFsync, 100),
            counter(Metric::PushesWroteNoIclog, LOOP0, 95),
            counter(Metric::PushesWithFlush, LOOP0, 4),
            counter(Metric::PushIclogs, LOOP0, 6),
            counter(Metric::PushFlushes, LOOP0, 4),
            by_cause(Metric::IclogWrites, LOOP0, LogForceFsync, 100),
            by_cause(Metric::IclogBytes, LOOP0, LogForceFsync, 350_000),
            by_cause(Metric::IclogWrites, LOOP0, CheckpointCommit, 4),
            by_cause(Metric::IclogBytes, LOOP0, CheckpointCommit, 130_000),
            by_cause(Metric::Forces, LOOP0, LogForceFsync, 100),
            by_fsync(Metric::Fsyncs, LOOP0, FsyncKind::Fsync, 103),
            by_fsync(Metric::FsyncForced, LOOP0, FsyncKind::Fsync, 100),
            by_fsync(Metric::FsyncFlushed, LOOP0, FsyncKind::Fsync, 5),
            by_fsync(Metric::FsyncForcedAndFlushed, LOOP0, FsyncKind::Fsync, 3),
            by_cause(Metric::FlushRequested, LOOP0, LogForceFsync, 100),
            by_cause(Metric::FlushRequested, LOOP0, CheckpointCommit, 4),
            by_cause(Metric::FlushEmpty, LOOP0, LogForceFsync, 7),
            unexplained(Metric::FlushRequested, LOOP0, 1, 1),
            counter(Metric::FlushNeeded, LOOP0, 208),
            counter(Metric::FlushIssued, LOOP0, 205),
            counter(Metric::FlushIssuedEmpty, LOOP0, 9),
            below(Metric::FlushRequested, VDA1, ForeignFs, LOOP0, 205),
            counter(Metric::FlushNeeded, VDA1, 205),
            counter(Metric::FlushIssued, VDA, 200),
            counter(Metric::FlushIssuedEmpty, VDA, 0),
            counter(Metric::AilPush, LOOP0, 40),
            counter(Metric::AilPinned, LOOP0, 3),
            by_lock(Metric::IlockAcquired, Lock::IlockExclusive, 100),
            by_lock(Metric::IlockTried, Lock::IlockExclusive, 20),
        ],
        histograms: vec![
            histogram(counter(Metric::CommitLatency, LOOP0, 0), &[1_000; 900]),
            histogram(counter(Metric::PushQueueDelay, LOOP0, 0), &[2_000, 3_000]),
            histogram(counter(Metric::PushRunTime, LOOP0, 0), &[20_000, 40_000]),
            histogram(counter(Metric::PushBytes, LOOP0, 0), &[620, 32_000]),
            histogram(counter(Metric::PushTransactions, LOOP0, 0), &[2, 9]),
            histogram(counter(Metric::PushConcurrency, LOOP0, 0), &[1, 1, 2]),
            histogram(
                by_cause(Metric::IclogFill, LOOP0, LogForceFsync, 0),
                &[10; 100],
            ),
            histogram(
                by_cause(Metric::IclogFill, LOOP0, CheckpointCommit, 0),
                &[99; 4],
            ),
            histogram(counter(Metric::IclogLatency, LOOP0, 0), &[150_000; 104]),
            histogram(
                by_cause(Metric::ForceLatency, LOOP0, LogForceFsync, 0),
                &[165_000; 100],
            ),
            histogram(
                by_fsync(Metric::FsyncLatency, LOOP0, FsyncKind::Fsync, 0),
                &[170_000; 103],
            ),
            histogram(
                by_cause(Metric::FlushLatency, LOOP0, LogForceFsync, 0),
                &[140_000; 100],
            ),
            histogram(unexplained(Metric::FlushLatency, LOOP0, 1, 0), &[90_000]),
            histogram(
                below(Metric::FlushLatency, VDA1, ForeignFs, LOOP0, 0),
                &[80_000; 205],
            ),
            histogram(counter(Metric::QueueTime, LOOP0, 0), &[4_000; 205]),
            histogram(counter(Metric::DeviceTime, LOOP0, 0), &[100_000; 205]),
            histogram(counter(Metric::GrantWait, LOOP0, 0), &[5_000_000]),
            histogram(counter(Metric::LogUsed, LOOP0, 0), &[3, 4, 4]),
            histogram(counter(Metric::LogFree, LOOP0, 0), &[60 << 20, 61 << 20]),
            histogram(
                by_lock(Metric::LockWait, Lock::IlockExclusive, 0),
                &[40_000, 8_000],
            ),
            histogram(
                by_lock(Metric::LockHold, Lock::IlockExclusive, 0),
                &[900, 3_000, 70_000],
            ),
        ],
        events: vec![SampledEvent {
            kind: EventKind::Force,
            label: LogForceFsync as u16,
            dev: LOOP0,
            via: Dev::NONE,
            pid: 100,
            tid: 101,
            comm: "dbench".into(),
            workload: true,
            start_ns: 1_500_000_000,
            duration_ns: 165_000,
            args: vec![],
            weight: 100.0,
        }],
        events_seen: vec![(EventKind::Force, 100)],
        processes: vec![
            process(100, "dbench", true, 60, 9_000_000),
            process(7, "kworker/0:1", false, 1, 9_000_000),
        ],
        losses: vec![
            loss(Probe::Forces, LossCause::RingBufferFull, 2),
            loss(Probe::FlushEnd, LossCause::Unpaired, 1),
        ],
        stacks: vec![stack(
            1,
            &[
                "0xffffffffc0123456",
                "submit_bio_noacct",
                "blkdev_issue_flush",
                "xfs_mystery",
                "kthread",
            ],
        )],
        stack_rows: vec![StackRow {
            kind: StackKind::Flush,
            label: Cause::Other.name().into(),
            dev: LOOP0,
            who: None,
            kernel: Some(1),
            user: None,
            sums: StackSums {
                count: 1,
                ..StackSums::default()
            },
        }],
        devices: vec![],
        probes: vec![],
        in_flight: Some(vec![]),
        cost: Some(Cost {
            bpf_run_ns: 2_000_000,
            own_ns: 4_000_000,
        }),
        sampled_1_in: 8,
        lock_callers: vec![LockCaller {
            lock: Lock::IlockExclusive,
            dev: LOOP0,
            function: "xfs_create".into(),
            count: 12,
        }],
        blocked: vec![Blocked {
            lock: Lock::IlockExclusive,
            dev: LOOP0,
            start_ns: 1_600_000_000,
            wait_ns: 40_000,
            waiter: thread(101, "dbench"),
            waiter_stack: None,
            holder: Some(thread(102, "dbench")),
            holder_is_reader: false,
            holder_stack: None,
            holder_slept_ns: 0,
            next: None,
        }],
    }
}

/// A second in which a filesystem on `dm-0` joins, and the disk beneath it becomes known.
fn second() -> Tick {
    use Cause::{Background, LogForceAil, LogForceFsync, Unmount};
    Tick {
        index: 1,
        start_ns: 2_000_000_000,
        end_ns: 3_000_000_000,
        counters: vec![
            counter(Metric::Commits, LOOP0, 100),
            counter(Metric::CommitInsert, LOOP0, 40_000),
            counter(Metric::CommitThrottle, LOOP0, 10_000),
            counter(Metric::Commits, DM0, 10),
            by_cause(Metric::Pushes, LOOP0, LogForceFsync, 3),
            by_cause(Metric::Pushes, DM0, Background, 1),
            counter(Metric::PushesEmpty, DM0, 1),
            by_cause(Metric::Forces, LOOP0, LogForceAil, 2),
            by_cause(Metric::Forces, DM0, Unmount, 1),
            by_cause(Metric::FlushRequested, DM0, Unmount, 2),
            unexplained(Metric::FlushRequested, LOOP0, 2, 1),
            counter(Metric::FlushNeeded, LOOP0, 1),
            counter(Metric::FlushNeeded, DM0, 2),
            below(Metric::FlushRequested, VDB, Unmount, DM0, 20),
            counter(Metric::FlushNeeded, VDB, 20),
            counter(Metric::FlushIssued, VDB, 20),
        ],
        histograms: vec![
            histogram(counter(Metric::CommitLatency, LOOP0, 0), &[2_000; 100]),
            histogram(counter(Metric::ThrottleWait, LOOP0, 0), &[10_000]),
            histogram(
                by_cause(Metric::ForceLatency, LOOP0, LogForceAil, 0),
                &[70_000, 90_000],
            ),
        ],
        events: vec![],
        events_seen: vec![(EventKind::Force, 3)],
        processes: vec![
            process(100, "dbench", true, 61, 9_200_000),
            process(8, "umount", false, 1, 0),
        ],
        losses: vec![
            loss(Probe::FlushRequests, LossCause::StackLost, 1),
            loss(Probe::Forces, LossCause::RingBufferFull, 1),
        ],
        stacks: vec![stack(2, &["__submit_bio", "xfs_mystery"])],
        stack_rows: vec![StackRow {
            kind: StackKind::Flush,
            label: Cause::Other.name().into(),
            dev: LOOP0,
            who: None,
            kernel: Some(2),
            user: None,
            sums: StackSums {
                count: 1,
                ..StackSums::default()
            },
        }],
        devices: vec![disk(VDB, "vdb")],
        probes: vec![ProbeOutcome {
            probe: Probe::Ail.name().into(),
            outcome: Outcome::Attached,
            how: "raw_tracepoint xfs_ail_push".into(),
            reason: "not measured in the first 1.0 s: XFS is not loaded".into(),
        }],
        in_flight: Some(vec![InFlight {
            dev: VDB,
            flushes: 2,
            oldest_ns: 2_400_000_000,
            cause: Unmount as u16,
        }]),
        cost: Some(Cost {
            bpf_run_ns: 1_000_000,
            own_ns: 3_000_000,
        }),
        ..Tick::default()
    }
}

fn process(pid: u32, comm: &str, workload: bool, forces: u64, log_wait_ns: u64) -> ProcessRow {
    let comm = comm.into();
    ProcessRow {
        pid,
        comm,
        workload,
        forces,
        flushes_requested: forces,
        log_wait_ns,
        lock_wait_ns: 0,
    }
}

fn loss(probe: Probe, cause: LossCause, count: u64) -> Loss {
    Loss {
        probe,
        cause,
        count,
    }
}

fn stack(id: u32, frames: &[&str]) -> Stack {
    Stack {
        id,
        frames: frames.iter().map(|&frame| frame.into()).collect(),
    }
}

pub fn footer() -> Footer {
    Footer {
        window_end_ns: 3_000_000_000,
        interrupted: false,
        workload: Some(Workload {
            exit_status: Some(0),
            signal: None,
            wall_ns: 1_990_000_000,
            user_ns: 700_000_000,
            sys_ns: 900_000_000,
            metrics: [
                ("dbench.throughput_MB/s".to_owned(), 123.4),
                ("dbench.time.voluntary_context_switches".to_owned(), 2048.0),
            ]
            .into(),
        }),
        overhead: Some(Overhead {
            bpf_run_ns: 3_000_000,
            bpf_runs: 5_000,
            per_program: vec![ProgramCost {
                program: "xfs_log_force".into(),
                run_ns: 3_000_000,
                runs: 5_000,
            }],
            share_of_cpu_pct: 0.075,
            sampled_1_in: 1,
            measured_ns: Some(200_000_000),
        }),
        xfs_stats: vec![XfsStats {
            device: "loop0".into(),
            start: "extent_alloc 1 2 3 4\nlog 10 20 4294967295 40 5\n".into(),
            end: "extent_alloc 2 3 4 5\nlog 114 1000 3 142 9\n".into(),
            end_ns: 3_000_000_000,
        }],
    }
}
