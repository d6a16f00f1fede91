//! CIL pushes: who queued them, how long they waited and ran, and what they did.

use crate::ctx_lock;
use crate::device::filesystem_in_scope;
use crate::kernel::{
    CIL_CTX, CIL_LOG, CIL_PUSH_WORK, CTX_CIL, CTX_PUSH_WORK, CTX_SEQUENCE, container, dev_of_log,
    pointer, read,
};
use crate::maps::{CHECKPOINTS, LOG_STACKS, PUSHING, QUEUED, armed};
use crate::stack;
use crate::stat::{EEXIST, add, atomic_add, count, emit, event, key, lose_update, now, record};
use crate::task::{self, Push, Task};
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::cause::Cause;
use cil_trace_common::event::EventKind;
use cil_trace_common::flight::Who;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::{LOST, StackKey, StackKind};

const PROBE: Probe = Probe::Pushes;

/// A checkpoint that takes transactions.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Checkpoint {
    /// `struct xfs_cil`.
    pub cil: u64,
    /// `xfs_cil_ctx.sequence`.
    pub sequence: u64,
}

/// A push that waits for a worker.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Queued {
    /// When it was queued.
    pub at: u64,
    /// Why.
    pub trigger: u32,
    /// Number of the stack that queued it.
    pub stack: u32,
    /// By whom.
    pub who: Who,
}

/// `struct xfs_cil` and the checkpoint's sequence of a push work item.
///
/// Since 5.15 every context has a work item of its own; before, the CIL had one.
#[inline(always)]
fn checkpoint_of(work: u64) -> Option<Checkpoint> {
    let (cil, context) = match container(work, &CTX_PUSH_WORK) {
        Some(context) => (pointer(context, &CTX_CIL)?, context),
        None => {
            let cil = container(work, &CIL_PUSH_WORK)?;
            (cil, pointer(cil, &CIL_CTX)?)
        }
    };
    Some(Checkpoint {
        cil,
        sequence: read(context, &CTX_SEQUENCE)?,
    })
}

#[inline(always)]
fn dev_of(checkpoint: &Checkpoint) -> Option<u32> {
    filesystem_in_scope(dev_of_log(pointer(checkpoint.cil, &CIL_LOG)?)?)
}

/// A push is queued by the current task.
#[inline(always)]
pub fn queued(ctx: &RawTracePointContext, work: u64) -> Option<()> {
    dev_of(&checkpoint_of(work)?)?;
    let task = task::current(PROBE)?;
    // A commit begins outside any force, so that a force comes first: it is inside the commit, for
    // busy extents.
    let trigger = if task.ail_push != 0 {
        Cause::Ail as u32
    } else if task.force.start != 0 {
        task.force.cause
    } else if task.commit.start != 0 {
        Cause::Background as u32
    } else {
        Cause::Other as u32
    };
    let queued = Queued {
        at: now(),
        trigger,
        stack: stack::capture(PROBE, ctx).map_or(LOST, |frames| stack::keep(PROBE, frames)),
        who: task.who,
    };
    QUEUED
        .insert(work, queued, 0)
        .map_err(|error| lose_update(PROBE, error))
        .ok()
}

/// A worker starts a push.
#[inline(always)]
pub fn started(work: u64) -> Option<()> {
    let checkpoint = checkpoint_of(work)?;
    let dev = dev_of(&checkpoint)?;
    let task = task::current(PROBE)?;
    let start = now();
    task.push.start = start;
    task.push.cil = checkpoint.cil;
    task.push.sequence = checkpoint.sequence;
    task.push.bytes = 0;
    task.push.last_iclog = 0;
    task.push.dev = dev;
    task.push.spaces = 0;
    task.push.iclogs = 0;
    task.push.flushes = 0;
    task.push.own_flushes = 0;
    task.push.write_from = 0;
    // SAFETY: the entry is copied before it is removed.
    if let Some(queued) = unsafe { QUEUED.get(work) } {
        task.push.queued = queued.at;
        task.push.trigger = queued.trigger;
        task.push.stack = queued.stack;
        task.push.who = queued.who;
        let _ = QUEUED.remove(work);
        record(
            PROBE,
            &key(Metric::PushQueueDelay, dev, 0),
            start - task.push.queued,
        );
    } else {
        // It was queued before the window.
        task.push.queued = 0;
        task.push.trigger = Cause::Other as u32;
        task.push.stack = LOST;
        task.push.who = task.who;
    }
    count(PROBE, Metric::Pushes, dev, task.push.trigger as u16);
    stack::sum(&LOG_STACKS, PROBE, &by_stack(&task.push), 1, 0, 0);
    record(PROBE, &key(Metric::PushConcurrency, dev, 0), under_way(dev));
    Some(())
}

#[inline(always)]
fn by_stack(push: &Push) -> StackKey {
    StackKey {
        kind: StackKind::Push as u16,
        label: push.trigger as u16,
        dev: push.dev,
        kernel: push.stack,
        ..StackKey::default()
    }
}

/// Pushes of a filesystem under way, this one included.
#[inline(always)]
fn under_way(dev: u32) -> u64 {
    if PUSHING.get_ptr(dev).is_none()
        && let Err(error) = PUSHING.insert(dev, 0, u64::from(BPF_NOEXIST))
        && error != EEXIST
    {
        lose_update(PROBE, error);
    }
    let Some(pushing) = PUSHING.get_ptr_mut(dev) else {
        return 1;
    };
    atomic_add(pushing, 1);
    // SAFETY: a map value; another CPU may have added to it meanwhile, and then that push is
    // under way too.
    unsafe { core::ptr::read_volatile(pushing) }
}

/// The push of the current worker ends.
#[inline(always)]
pub fn ended() -> Option<()> {
    let task = task::known()?;
    let push = &task.push;
    let (start, dev) = (push.start, push.dev);
    // It started before the window, or its filesystem is out of scope.
    if start == 0 {
        return None;
    }
    if let Some(pushing) = PUSHING.get_ptr_mut(dev) {
        atomic_add(pushing, u64::MAX);
    }
    let run_time = now() - start;
    record(PROBE, &key(Metric::PushRunTime, dev, 0), run_time);
    add(
        PROBE,
        &key(Metric::PushIclogs, dev, 0),
        u64::from(push.iclogs),
    );
    add(
        PROBE,
        &key(Metric::PushFlushes, dev, 0),
        u64::from(push.flushes),
    );
    if push.flushes != 0 {
        count(PROBE, Metric::PushesWithFlush, dev, 0);
    }
    let empty = push.spaces == 0;
    let transactions = if empty {
        count(PROBE, Metric::PushesEmpty, dev, 0);
        0
    } else {
        record(PROBE, &key(Metric::PushBytes, dev, 0), push.bytes);
        if push.iclogs == 0 {
            count(PROBE, Metric::PushesWroteNoIclog, dev, 0);
            leave_flushes_unresolved(push);
        }
        transactions(push)
    };
    stack::sum(&LOG_STACKS, PROBE, &by_stack(push), 0, run_time, push.bytes);
    emit_push(push, run_time, transactions, empty);
    task.push.start = 0;
    Some(())
}

/// Transactions in the checkpoint of a push that has ended.
#[inline(always)]
fn transactions(push: &Push) -> u64 {
    let checkpoint = Checkpoint {
        cil: push.cil,
        sequence: push.sequence,
    };
    // SAFETY: the value is copied before it is removed.
    let Some(&transactions) = (unsafe { CHECKPOINTS.get(checkpoint) }) else {
        // All of them were committed before the window.
        return 0;
    };
    let _ = CHECKPOINTS.remove(checkpoint);
    record(
        PROBE,
        &key(Metric::PushTransactions, push.dev, 0),
        transactions,
    );
    transactions
}

/// Leaves the flushes of a push that wrote no iclog with the iclog that holds its commit record:
/// they were pointless if that one goes out with a PREFLUSH of its own.
#[inline(always)]
fn leave_flushes_unresolved(push: &Push) {
    if push.own_flushes == 0 {
        return;
    }
    if let Some(iclog) = crate::iclog::entry(push.last_iclog) {
        iclog.unresolved_flushes += push.own_flushes;
    }
}

#[inline(always)]
fn emit_push(push: &Push, run_time: u64, transactions: u64, empty: bool) {
    let trigger = push.trigger;
    let mut event = event(
        EventKind::Push,
        trigger,
        push.dev,
        &push.who,
        push.start,
        run_time,
    );
    event.args = [
        if push.queued == 0 {
            0
        } else {
            push.start - push.queued
        },
        push.bytes,
        transactions,
        u64::from(push.iclogs),
        u64::from(push.flushes),
        u64::from(empty),
    ];
    emit(PROBE, event);
}

/// The push that `task` runs reserved space in an iclog, from `offset` on.
#[inline(always)]
pub fn writes_from(task: &mut Task, offset: u32) {
    if task.push.start != 0 {
        if armed().is_some_and(|state| state.measures(Probe::CtxLockHold)) {
            ctx_lock::push_writes(task);
        }
        task.push.spaces += 1;
        task.push.write_from = offset + 1;
    }
}

/// The push that `task` runs released an iclog that is now full up to `offset`.
#[inline(always)]
pub fn writes_to(task: &mut Task, iclog: u64, offset: u32) {
    if task.push.start != 0 {
        task.push.last_iclog = iclog;
        if task.push.write_from != 0 {
            let from = task.push.write_from - 1;
            task.push.bytes += u64::from(offset.saturating_sub(from));
            task.push.write_from = 0;
        }
    }
}
