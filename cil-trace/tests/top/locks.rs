//! The tabs of locks, on a session with two rows that only their mode tells apart.

use crate::{LOOP0, LOOP1, S, live, press, text};
use cil_trace::top::state::State;
use cil_trace::top::update::Input;
use cil_trace_common::hist::bucket_of;
use cil_trace_common::lock::Lock;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::device::Dev;
use cil_trace_core::histogram::Histogram;
use cil_trace_core::series::Series;
use cil_trace_core::session::{Outcome, ProbeOutcome};
use cil_trace_core::tick::{Stack, StackRow, StackSums, Tick};
use crossterm::event::KeyCode;
use std::collections::BTreeMap;

/// Waits of so long.
fn waits(lock: Lock, dev: Dev, ns: &[u64]) -> (Series, Histogram) {
    let mut buckets = BTreeMap::new();
    for &ns in ns {
        *buckets
            .entry(u16::try_from(bucket_of(ns)).unwrap())
            .or_default() += 1;
    }
    let series = Series {
        label: lock as u16,
        ..Series::of(Metric::LockWait, dev)
    };
    let hist = Histogram {
        count: ns.len() as u64,
        sum: ns.iter().sum(),
        min: ns.iter().copied().min().unwrap(),
        max: ns.iter().copied().max().unwrap(),
        buckets,
    };
    (series, hist)
}

fn contended() -> State {
    let mut state = live(1);
    let locks = [
        (Lock::CtxLockShared, LOOP0, "xlog_cil_commit", 40_000),
        (Lock::CtxLockExclusive, LOOP0, "xlog_cil_push_work", 9_000),
        (Lock::CtxLockShared, LOOP1, "xlog_cil_commit", 700),
    ];
    let (mut histograms, mut stacks, mut stack_rows) = (Vec::new(), Vec::new(), Vec::new());
    for (id, (lock, dev, function, ns)) in (0..).zip(locks) {
        histograms.push(waits(lock, dev, &[ns, ns]));
        let frames = [function, &format!("entry_{id}")].map(str::to_owned);
        stacks.push(Stack {
            id,
            frames: frames.to_vec(),
        });
        stack_rows.push(StackRow {
            kind: StackKind::Lock,
            label: lock.name().to_owned(),
            dev,
            who: None,
            kernel: Some(id),
            user: None,
            sums: StackSums {
                count: 2,
                time_ns: 2 * ns,
                bytes: 0,
            },
        });
    }
    let probes = vec![ProbeOutcome {
        probe: Probe::RwsemWaits.name().to_owned(),
        outcome: Outcome::Attached,
        how: "fentry".to_owned(),
        reason: String::new(),
    }];
    state.update(Input::Ticks(vec![Tick {
        index: 1,
        start_ns: S,
        end_ns: 2 * S,
        histograms,
        stacks,
        stack_rows,
        probes,
        ..Tick::default()
    }]));
    press(&mut state, KeyCode::Char('4'));
    state
}

#[test]
fn locks_come_by_the_time_waited_and_each_can_be_chosen() {
    let mut state = contended();
    let screen = text(&mut state, 80, 24);
    let of = |words: &str| screen.find(words).unwrap_or_else(|| panic!("{screen}"));
    let most = of("xc_ctx_lock  rwsem shared     loop0");
    let less = of("xc_ctx_lock  rwsem exclusive  loop0");
    assert!(most < less && less < of("xc_ctx_lock  rwsem shared     loop1"));
    for row in [1, 2, 2] {
        press(&mut state, KeyCode::Down);
        assert_eq!(state.place().row, row, "rows share their key");
    }
}

#[test]
fn enter_opens_callers_histogram_and_stacks_of_that_lock() {
    let mut state = contended();
    press(&mut state, KeyCode::Down);
    press(&mut state, KeyCode::Enter);
    let lines = state.shown.lines.join("\n");
    for part in [
        "callers",
        "xlog_cil_push_work                                2    18.0 us",
        "xc_ctx_lock exclusive: wait",
        "@@@",
        "stack of 2, 18.0 us in all",
        "entry_1",
    ] {
        assert!(lines.contains(part), "no {part}:\n{lines}");
    }
    for other in ["entry_0", "entry_2", "xlog_cil_commit"] {
        assert!(!lines.contains(other), "{other} is another's:\n{lines}");
    }
    press(&mut state, KeyCode::Esc);
    assert_eq!(state.place().row, 1);
}
