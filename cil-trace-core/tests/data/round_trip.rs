//! What goes into a recording comes out of it.

use crate::sample;
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::EventKind;
use cil_trace_common::hist::BUCKETS;
use cil_trace_common::lock::Lock;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::{Label, Metric};
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::{Dev, Device};
use cil_trace_core::histogram::Histogram;
use cil_trace_core::model::Model;
use cil_trace_core::recording::{Recording, Writer};
use cil_trace_core::report::schema::Report;
use cil_trace_core::series::Series;
use cil_trace_core::session::{Footer, Header, Outcome, ProbeOutcome};
use cil_trace_core::tick::{
    Blocked, Cost, InFlight, LockCaller, Loss, NextLock, ProcessRow, SampledEvent, Stack, StackRow,
    StackSums, Thread, Tick, Who,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

/// Few enough that devices meet, and that names change hands.
fn dev() -> impl Strategy<Value = Dev> {
    (0u32..3, 0u32..3).prop_map(|(major, minor)| Dev::new(major, minor))
}

fn some_dev() -> impl Strategy<Value = Dev> {
    (1u32..3, 0u32..3).prop_map(|(major, minor)| Dev::new(major, minor))
}

fn text() -> impl Strategy<Value = String> {
    "[a-z\"'\\\\é\n ]{0,8}"
}

fn device() -> impl Strategy<Value = Device> {
    let links = (
        option::of(some_dev()),
        vec(some_dev(), 0..3),
        option::of(some_dev()),
        option::of(some_dev()),
    );
    let words = vec(option::of(text()), 5);
    let facts = (
        any::<Option<bool>>(),
        any::<Option<bool>>(),
        any::<Option<u64>>(),
        any::<Option<u64>>(),
    );
    (some_dev(), "[a-c]{0,1}", links, words, facts).prop_map(|(dev, name, links, words, facts)| {
        let word = |index: usize| words[index].clone();
        Device {
            dev,
            name,
            partition_of: links.0,
            filesystem: word(0),
            mountpoint: word(1),
            write_cache: word(2),
            mount_options: word(3),
            geometry: word(4),
            fua: facts.0,
            request_based: facts.1,
            stacked_on: links.1,
            log_size_bytes: facts.2,
            iclog_size_bytes: facts.3,
            log_device: links.2,
            realtime_device: links.3,
        }
    })
}

fn label(kind: Label) -> BoxedStrategy<u16> {
    match kind {
        Label::None => Just(0).boxed(),
        Label::Cause => select(Cause::ALL).prop_map(|cause| cause as u16).boxed(),
        Label::Fsync => select(FsyncKind::ALL).prop_map(|kind| kind as u16).boxed(),
        Label::Lock => select(Lock::ALL).prop_map(|lock| lock as u16).boxed(),
    }
}

fn series() -> impl Strategy<Value = Series> {
    select(Metric::ALL).prop_flat_map(|metric| {
        let parts = (dev(), label(metric.label()), dev(), any::<Option<u32>>());
        parts.prop_map(move |(dev, label, via, stack)| Series {
            metric,
            dev,
            label,
            via,
            stack,
        })
    })
}

fn histogram() -> impl Strategy<Value = Histogram> {
    let buckets = btree_map(0..BUCKETS as u16, any::<u64>(), 0..5);
    (any::<[u64; 4]>(), buckets).prop_map(|([count, sum, a, b], buckets)| Histogram {
        count,
        sum,
        min: a.min(b),
        max: a.max(b),
        buckets,
    })
}

fn event() -> impl Strategy<Value = SampledEvent> {
    select(EventKind::ALL).prop_flat_map(|kind| {
        let labels = if kind == EventKind::Fsync {
            Label::Fsync
        } else {
            Label::Cause
        };
        let who = (any::<u32>(), any::<u32>(), text(), any::<bool>());
        let what = (
            label(labels),
            vec(any::<u64>(), kind.args().len()),
            0.0..1e9f64,
        );
        (who, what, (dev(), dev()), any::<[u64; 2]>()).prop_map(move |(who, what, devs, times)| {
            SampledEvent {
                kind,
                label: what.0,
                dev: devs.0,
                via: devs.1,
                pid: who.0,
                tid: who.1,
                comm: who.2,
                workload: who.3,
                start_ns: times[0],
                duration_ns: times[1],
                args: what.1,
                weight: what.2,
            }
        })
    })
}

fn process() -> impl Strategy<Value = ProcessRow> {
    (any::<u32>(), text(), any::<bool>(), any::<[u64; 4]>()).prop_map(
        |(pid, comm, workload, [forces, flushes_requested, log_wait_ns, lock_wait_ns])| {
            ProcessRow {
                pid,
                comm,
                workload,
                forces,
                flushes_requested,
                log_wait_ns,
                lock_wait_ns,
            }
        },
    )
}

fn loss() -> impl Strategy<Value = Loss> {
    (select(Probe::ALL), select(LossCause::ALL), any::<u64>()).prop_map(|(probe, cause, count)| {
        Loss {
            probe,
            cause,
            count,
        }
    })
}

fn stack() -> impl Strategy<Value = Stack> {
    (any::<u32>(), vec(text(), 0..4)).prop_map(|(id, frames)| Stack { id, frames })
}

fn stack_row() -> impl Strategy<Value = StackRow> {
    let who = (any::<u32>(), text(), any::<bool>()).prop_map(|(pid, comm, workload)| Who {
        pid,
        comm,
        workload,
    });
    let what = (select(StackKind::ALL), text(), dev());
    let stacks = any::<[Option<u32>; 2]>();
    (what, option::of(who), stacks, any::<[u64; 3]>()).prop_map(
        |((kind, label, dev), who, [kernel, user], [count, time_ns, bytes])| StackRow {
            kind,
            label,
            dev,
            who,
            kernel,
            user,
            sums: StackSums {
                count,
                time_ns,
                bytes,
            },
        },
    )
}

fn outcome() -> impl Strategy<Value = ProbeOutcome> {
    (text(), select(Outcome::ALL.as_slice()), text(), text()).prop_map(
        |(probe, outcome, how, reason)| ProbeOutcome {
            probe,
            outcome,
            how,
            reason,
        },
    )
}

fn in_flight() -> impl Strategy<Value = InFlight> {
    (dev(), any::<[u64; 2]>(), select(Cause::ALL)).prop_map(|(dev, [flushes, oldest_ns], cause)| {
        InFlight {
            dev,
            flushes,
            oldest_ns,
            cause: cause as u16,
        }
    })
}

fn cost() -> impl Strategy<Value = Cost> {
    any::<[u64; 2]>().prop_map(|[bpf_run_ns, own_ns]| Cost { bpf_run_ns, own_ns })
}

fn lock_caller() -> impl Strategy<Value = LockCaller> {
    (select(Lock::ALL), dev(), text(), any::<u64>()).prop_map(|(lock, dev, function, count)| {
        LockCaller {
            lock,
            dev,
            function,
            count,
        }
    })
}

fn thread() -> impl Strategy<Value = Thread> {
    (any::<[u32; 2]>(), text()).prop_map(|([pid, tid], comm)| Thread { pid, tid, comm })
}

fn next_lock() -> impl Strategy<Value = NextLock> {
    (
        select(Lock::ALL),
        dev(),
        text(),
        any::<u64>(),
        option::of(thread()),
    )
        .prop_map(|(lock, dev, function, wait_ns, holder)| NextLock {
            lock,
            dev,
            function,
            wait_ns,
            holder,
        })
}

fn blocked() -> impl Strategy<Value = Blocked> {
    let what = (select(Lock::ALL), dev(), any::<[u64; 3]>());
    let who = (thread(), option::of(thread()), any::<bool>());
    let rest = (any::<[Option<u32>; 2]>(), option::of(next_lock()));
    (what, who, rest).prop_map(|(what, who, ([waiter_stack, holder_stack], next))| {
        let (lock, dev, [start_ns, wait_ns, holder_slept_ns]) = what;
        let (waiter, holder, holder_is_reader) = who;
        Blocked {
            lock,
            dev,
            start_ns,
            wait_ns,
            waiter,
            waiter_stack,
            holder,
            holder_is_reader,
            holder_stack,
            holder_slept_ns,
            next,
        }
    })
}

fn tick() -> impl Strategy<Value = Tick> {
    let sums = (
        vec((series(), any::<u64>()), 0..8),
        vec((series(), histogram()), 0..4),
        vec(event(), 0..4),
        vec((select(EventKind::ALL), any::<u64>()), 0..4),
    );
    let rest = (
        vec(process(), 0..4),
        vec(loss(), 0..3),
        vec(stack(), 0..3),
        vec(stack_row(), 0..3),
        vec(device(), 0..4),
        vec(outcome(), 0..3),
        option::of(vec(in_flight(), 0..3)),
        option::of(cost()),
    );
    let locks = (1u32..100, vec(lock_caller(), 0..3), vec(blocked(), 0..3));
    let parts = (any::<[u64; 2]>(), sums, rest, locks);
    parts.prop_map(|([start_ns, end_ns], sums, rest, locks)| Tick {
        index: 0,
        start_ns,
        end_ns,
        counters: sums.0,
        histograms: sums.1,
        events: sums.2,
        events_seen: sums.3,
        processes: rest.0,
        losses: rest.1,
        stacks: rest.2,
        stack_rows: rest.3,
        sampled_1_in: locks.0,
        lock_callers: locks.1,
        blocked: locks.2,
        devices: rest.4,
        probes: rest.5,
        in_flight: rest.6,
        cost: rest.7,
    })
}

pub fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    vec(tick(), 0..4).prop_map(|mut ticks| {
        for (index, tick) in (0..).zip(&mut ticks) {
            tick.index = index;
        }
        ticks
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn ticks_come_back_as_they_were(ticks in ticks(), devices in vec(device(), 0..3)) {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("r.data");
        let header = Header { devices, ..Header::default() };
        let mut writer = Writer::create(&path, &header).unwrap();
        for tick in &ticks {
            writer.tick(tick).unwrap();
        }
        writer.finish(&Footer::default()).unwrap();
        let recording = Recording::open(&path).unwrap();
        prop_assert_eq!(recording.header(), &header);
        let mut read = Vec::new();
        let skipped = recording.for_each_tick(|tick| read.push(tick.clone())).unwrap();
        prop_assert_eq!(skipped, 0);
        prop_assert_eq!(read, ticks);
    }

    #[test]
    fn any_ticks_make_a_report_whose_flushes_sum_up(
        ticks in ticks(),
        devices in vec(device(), 0..3),
    ) {
        let mut model = Model::new(Header { devices, ..sample::header() });
        for tick in &ticks {
            model.apply(tick);
        }
        let report = Report::of(&model, true);
        let mut of_devices: BTreeMap<_, u64> = BTreeMap::new();
        for row in &report.devices {
            let sum = of_devices.entry(&row.device).or_default();
            *sum = sum.saturating_add(row.flushes_requested.unwrap());
        }
        let mut by_cause: BTreeMap<_, u64> = of_devices.keys().map(|&name| (name, 0)).collect();
        for row in &report.flushes {
            let sum = by_cause.entry(&row.device).or_default();
            *sum = sum.saturating_add(row.requested);
        }
        prop_assert_eq!(by_cause, of_devices);
    }

    #[test]
    fn damage_is_an_error_or_odd_numbers_but_never_a_panic(
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
    ) {
        let (_directory, path) = sample::recorded();
        let mut bytes = std::fs::read(&path)?;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        std::fs::write(&path, bytes)?;
        if let Ok(model) = Recording::open(&path).and_then(|recording| recording.model()) {
            let _ = Report::of(&model, true);
        }
    }
}

#[test]
fn header_and_footer_come_back_as_they_were() {
    let (_directory, path) = sample::recorded();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.header(), &sample::header());
    assert_eq!(recording.footer(), Some(&sample::footer()));
    assert!(!recording.interrupted());
    assert_eq!(recording.hint(), None);
}

#[test]
fn a_replay_gives_the_live_model() {
    let (_directory, path) = sample::recorded();
    let mut live = Model::new(sample::header());
    for tick in sample::ticks() {
        live.apply(&tick);
    }
    live.finish(sample::footer());
    assert_eq!(Recording::open(&path).unwrap().model().unwrap(), live);
}

#[test]
fn a_profile_that_two_threads_read_gives_the_live_model() {
    const STACKS: u32 = 60_000;
    let tick = |index: u64, shift: u32| Tick {
        index,
        stacks: (0..STACKS)
            .map(|id| Stack {
                id: 2 * (id + index as u32 * STACKS),
                frames: vec![
                    format!("leaf_{}", (id + shift) % 500),
                    format!("of \"{}\"", id / 500),
                ],
            })
            .collect(),
        // Sums of both halves, and of stacks that the other half names.
        stack_rows: (0..STACKS)
            .map(|id| StackRow {
                kind: StackKind::Cpu,
                label: String::new(),
                dev: Dev::NONE,
                who: Some(Who {
                    pid: id % 7,
                    comm: format!("worker-{}", (id + shift) % 5),
                    workload: id % 2 == 0,
                }),
                kernel: Some(2 * id),
                user: None,
                sums: StackSums {
                    count: 1 + index,
                    time_ns: u64::from(id),
                    bytes: 0,
                },
            })
            .collect(),
        ..Tick::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.data");
    let mut writer = Writer::create(&path, &sample::header()).unwrap();
    let mut live = Model::new(sample::header());
    for tick in [tick(0, 0), tick(1, 3)] {
        writer.tick(&tick).unwrap();
        live.apply(&tick);
    }
    writer.finish(&sample::footer()).unwrap();
    live.finish(sample::footer());
    let read = Recording::open(&path).unwrap().model().unwrap();
    // No dump of 120,000 stacks.
    assert!(read == live);
}
