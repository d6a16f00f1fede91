//! What a report makes of locks: exact counts, scaled samples, callers, roles and chains.

use crate::sample::{self, LOOP0};
use cil_trace_common::lock::Lock;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::Dev;
use cil_trace_core::model::Model;
use cil_trace_core::recording::{Recording, Writer};
use cil_trace_core::report::schema::{IlockRow, LockRow, Report};
use cil_trace_core::series::Series;
use cil_trace_core::session::{Footer, Header, Outcome};
use cil_trace_core::tick::{
    Blocked, LockCaller, NextLock, Stack, StackRow, StackSums, Thread, Tick,
};

fn series(metric: Metric, lock: Lock) -> Series {
    Series {
        label: lock as u16,
        ..Series::of(metric, LOOP0)
    }
}

fn thread(tid: u32, comm: &str) -> Thread {
    let comm = comm.into();
    Thread { pid: 1, tid, comm }
}

fn stack(id: u32, frames: &[&str]) -> Stack {
    Stack {
        id,
        frames: frames.iter().map(|&frame| frame.into()).collect(),
    }
}

fn waited(lock: Lock, stack: u32, count: u64, time_ns: u64) -> StackRow {
    StackRow {
        kind: StackKind::Lock,
        label: lock.name().into(),
        dev: LOOP0,
        who: None,
        kernel: Some(stack),
        user: None,
        sums: StackSums {
            count,
            time_ns,
            bytes: 0,
        },
    }
}

/// One second in which 1 inode in 8 was sampled.
fn tick() -> Tick {
    use Lock::{IlockExclusive, IolockShared, OtherSpin, Pages};
    let unnamed = Series {
        label: OtherSpin as u16,
        stack: Some(9),
        ..Series::of(Metric::LockWait, Dev::NONE)
    };
    Tick {
        start_ns: 1_000_000_000,
        end_ns: 2_000_000_000,
        counters: vec![
            (series(Metric::IlockAcquired, IlockExclusive), 1_001),
            (series(Metric::IlockAcquired, IolockShared), 48),
            (series(Metric::IlockTried, IolockShared), 100),
            (series(Metric::IlockTryFailed, IolockShared), 48),
            (series(Metric::IlockAfterTry, IolockShared), 5),
        ],
        histograms: vec![
            (
                series(Metric::LockWait, IlockExclusive),
                [700, 300].into_iter().collect(),
            ),
            (
                series(Metric::LockWait, Pages),
                [60, 40].into_iter().collect(),
            ),
            (unnamed, [5].into_iter().collect()),
            (
                series(Metric::LockHold, IlockExclusive),
                [20, 30].into_iter().collect(),
            ),
            (
                series(Metric::LockHold, Lock::CtxLockShared),
                [1, 2].into_iter().collect(),
            ),
        ],
        stacks: vec![
            stack(
                1,
                &[
                    "rwsem_down_write_slowpath",
                    "down_write",
                    "xfs_ilock [xfs]",
                    "xfs_vn_update_time [xfs]",
                ],
            ),
            stack(
                3,
                &[
                    "native_queued_spin_lock_slowpath",
                    "_raw_spin_lock_irq",
                    "__filemap_add_folio",
                ],
            ),
            stack(
                5,
                &[
                    "native_queued_spin_lock_slowpath",
                    "_raw_spin_lock_irqsave",
                    "__folio_end_writeback",
                ],
            ),
            stack(
                7,
                &["__schedule", "schedule", "io_schedule", "__iomap_dio_rw"],
            ),
            stack(9, &["__rmqueue_pcplist"]),
        ],
        stack_rows: vec![
            waited(IlockExclusive, 1, 2, 1_000),
            waited(Pages, 3, 1, 60),
            waited(Pages, 5, 1, 40),
        ],
        sampled_1_in: 8,
        lock_callers: vec![LockCaller {
            lock: IlockExclusive,
            dev: LOOP0,
            function: "xfs_vn_update_time".into(),
            count: 100,
        }],
        blocked: vec![
            Blocked {
                lock: IlockExclusive,
                dev: LOOP0,
                start_ns: 1_500_000_000,
                wait_ns: 700,
                waiter: thread(11, "writer"),
                waiter_stack: Some(1),
                holder: Some(thread(12, "fsync")),
                holder_is_reader: false,
                holder_stack: Some(7),
                holder_slept_ns: 650,
                next: None,
            },
            Blocked {
                lock: IlockExclusive,
                dev: LOOP0,
                start_ns: 1_600_000_000,
                wait_ns: 300,
                waiter: thread(13, "reader"),
                waiter_stack: None,
                holder: Some(thread(11, "writer")),
                holder_is_reader: true,
                holder_stack: None,
                holder_slept_ns: 0,
                next: Some(NextLock {
                    lock: Lock::CtxLockShared,
                    dev: LOOP0,
                    function: String::new(),
                    wait_ns: 250,
                    holder: Some(thread(14, "kworker/0:1")),
                }),
            },
        ],
        ..Tick::default()
    }
}

fn model(header: Header) -> Model {
    let mut model = Model::new(header);
    model.apply(&tick());
    model
}

fn report() -> Report {
    Report::of(&model(sample::header()), true)
}

fn ilock<'a>(report: &'a Report, lock: &str, mode: &str) -> &'a IlockRow {
    let is = |row: &&IlockRow| row.lock == lock && row.mode == mode;
    report.ilock.iter().find(is).unwrap()
}

fn lock<'a>(report: &'a Report, name: &str) -> &'a LockRow {
    report.locks.iter().find(|row| row.lock == name).unwrap()
}

#[test]
fn counts_are_exact_and_what_is_sampled_is_scaled() {
    let report = report();
    let exclusive = ilock(&report, "ILOCK", "exclusive");
    assert_eq!((exclusive.acquired, exclusive.sampled_1_in), (1_001, 8));
    let wait = exclusive.wait.as_ref().unwrap();
    assert_eq!((wait.count, wait.sum), (2, 1_000));
    let hold = exclusive.hold.as_ref().unwrap();
    assert_eq!((hold.count, hold.sum, hold.max), (16, 400, Some(30)));
    assert_eq!(hold.buckets.iter().map(|bucket| bucket.2).sum::<u64>(), 16);
    let caller = &exclusive.callers[0];
    assert_eq!(caller.function, "xfs_vn_update_time");
    assert_eq!((caller.count, caller.wait_ns), (800, 1_000));
    // Holds of the context lock are not sampled.
    let context = lock(&report, "xc_ctx_lock").hold.as_ref().unwrap();
    assert_eq!((context.count, context.sum), (2, 3));
}

/// Story C: tried, failed, and then locked the same inode.
#[test]
fn trylocks_that_fail_and_lock_then() {
    let report = report();
    let shared = ilock(&report, "IOLOCK", "shared");
    assert_eq!(shared.trylock_tried, 100);
    assert_eq!(shared.trylock_failed, Some(48));
    assert_eq!(shared.trylock_then_lock, 40);
}

#[test]
fn without_function_returns_a_failed_trylock_is_not_known() {
    let mut header = sample::header();
    for row in &mut header.probes {
        if row.probe == Probe::IlockReturn.name() {
            row.outcome = Outcome::Approximated;
        }
        if row.probe == Probe::RwsemWaits.name() {
            row.outcome = Outcome::Approximated;
        }
    }
    let report = Report::of(&model(header), false);
    let shared = ilock(&report, "IOLOCK", "shared");
    assert_eq!(shared.trylock_failed, None);
    assert_eq!(shared.hold_method.as_deref(), Some("upper_bound"));
    assert_eq!(shared.wait_method.as_deref(), Some("lower_bound"));
}

#[test]
fn waits_for_a_page_cache_have_roles() {
    let report = report();
    let pages = lock(&report, "i_pages");
    let roles: Vec<_> = pages
        .roles
        .iter()
        .map(|role| (role.role.as_str(), role.waits, role.wait_ns))
        .collect();
    assert_eq!(roles, [("writer", 1, 60), ("writeback end", 1, 40)]);
    assert_eq!((pages.waits, pages.kind.as_str()), (Some(2), "spin"));
}

#[test]
fn a_lock_without_a_name_goes_by_who_waits_and_has_no_device() {
    let report = report();
    let other = lock(&report, "other@__rmqueue_pcplist");
    assert_eq!((other.device.as_deref(), other.waits), (None, Some(1)));
}

/// Story G: what stood in the way, as one chain.
#[test]
fn a_blocker_is_named_with_what_it_waits_for() {
    let report = report();
    let [first, second] = report.blockers.as_slice() else {
        panic!("{:#?}", report.blockers);
    };
    assert_eq!(first.waiter, "writer (11)");
    assert_eq!(first.waiter_function, "xfs_vn_update_time");
    assert_eq!(first.holder.as_deref(), Some("fsync (12)"));
    assert_eq!(
        first.holder_waits_for.as_deref(),
        Some("direct I/O in io_schedule")
    );
    assert_eq!(
        second.holder.as_deref(),
        Some("writer (11) and perhaps other readers")
    );
    assert_eq!(
        second.holder_waits_for.as_deref(),
        Some("xc_ctx_lock shared of loop0, held by kworker/0:1 (14)")
    );
}

#[test]
fn a_tick_has_the_waits_of_all_locks() {
    let report = report();
    assert_eq!(report.ticks.unwrap()[0].lock_wait_ns, Some(1_105));
}

#[test]
fn a_recording_gives_the_same_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r.data");
    let mut writer = Writer::create(&path, &sample::header()).unwrap();
    writer.tick(&tick()).unwrap();
    writer.finish(&Footer::default()).unwrap();
    let mut live = model(sample::header());
    live.finish(Footer::default());
    let replayed = Recording::open(&path).unwrap().model().unwrap();
    assert_eq!(Report::of(&replayed, true), Report::of(&live, true));
}
