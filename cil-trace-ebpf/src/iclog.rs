//! iclogs: who makes them go out, how full they are, and how long the write takes.
//!
//! The cause of a write is decided here, before the bio exists: a force that switches an iclog, or
//! that waits for one which others still write to, marks it, whoever submits it; without a mark the
//! flags tell (`xlog_cil_set_ctx_write_state` and `xlog_cil_push_work` set them).

use crate::device::filesystem_in_scope;
use crate::kernel::{
    ICLOG_FLAGS, ICLOG_LOG, ICLOG_OFFSET, ICLOG_STATE, LOG_BLOCKS, LOG_CURR_BLOCK, LOG_CURR_CYCLE,
    LOG_ICLOG_SIZE, LOG_TAIL_LSN, dev_of_log, pointer, read,
};
use crate::maps::{ICLOGS, armed};
use crate::stat::{EEXIST, add, count, emit, event, key, lose_update, now, record};
use crate::task::{self, Task};
use crate::{force, push, stack};
use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::cause::Cause;
use cil_trace_common::event::EventKind;
use cil_trace_common::flight::{NOBODY, Who};
use cil_trace_common::function::Group;
use cil_trace_common::metric::Metric;
use cil_trace_common::offset::ABSENT;
use cil_trace_common::probe::Probe;

const PROBE: Probe = Probe::Iclogs;

/// `enum xlog_iclog_state` (fs/xfs/xfs_log_priv.h).
const XLOG_STATE_ACTIVE: u32 = 0;
const XLOG_STATE_WANT_SYNC: u32 = 1;
const XLOG_STATE_DIRTY: u32 = 5;
/// `ic_flags` (fs/xfs/xfs_log_priv.h).
const XLOG_ICL_NEED_FLUSH: u32 = 1;
const XLOG_ICL_NEED_FUA: u32 = 2;
/// Bytes of a basic block, the unit of log addresses (`BBSIZE`).
const BBSIZE: u64 = 512;

/// An iclog that a force has marked, or that is being written.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Iclog {
    /// When its write was submitted, or 0.
    pub at: u64,
    /// 1 if `cause` was decided by a force.
    pub marked: u32,
    /// Why it goes out.
    pub cause: u32,
    /// Filesystem.
    pub dev: u32,
    /// `ic_offset` when it was submitted.
    pub offset: u32,
    /// `ic_flags` when it was submitted.
    pub flags: u32,
    /// Flushes of pushes whose commit record it holds, and that wrote no iclog.
    pub unresolved_flushes: u32,
    /// Who made it go out.
    pub who: Who,
}

/// The entry of an iclog, made if need be.
#[inline(always)]
pub fn entry(iclog: u64) -> Option<&'static mut Iclog> {
    if ICLOGS.get_ptr(iclog).is_none() {
        let new = Iclog {
            at: 0,
            marked: 0,
            cause: 0,
            dev: 0,
            offset: 0,
            flags: 0,
            unresolved_flushes: 0,
            who: NOBODY,
        };
        if let Err(error) = ICLOGS.insert(iclog, new, u64::from(BPF_NOEXIST))
            && error != EEXIST
        {
            lose_update(PROBE, error);
        }
    }
    // SAFETY: changes to an iclog's entry come under its log's `l_icloglock`.
    ICLOGS
        .get_ptr_mut(iclog)
        .map(|entry| unsafe { &mut *entry })
}

/// `dev_t` of an iclog's filesystem, if that is in scope.
#[inline(always)]
fn dev_of(iclog: u64) -> Option<u32> {
    filesystem_in_scope(dev_of_log(pointer(iclog, &ICLOG_LOG)?)?)
}

/// The force that `task` is in makes `iclog` go out.
#[inline(always)]
fn mark(iclog: u64, task: &Task, cause: u32) {
    if let Some(entry) = entry(iclog)
        && entry.marked == 0
    {
        entry.marked = 1;
        entry.cause = cause;
        entry.who = task.who;
    }
}

#[raw_tracepoint(tracepoint = "xlog_iclog_switch")]
pub fn xlog_iclog_switch(ctx: RawTracePointContext) -> i32 {
    switched(&ctx, ctx.arg(0), ctx.arg(1));
    0
}

/// `iclog` takes no more, at the wish of the function that `caller` lies in.
#[inline(always)]
pub fn switched(ctx: &impl EbpfContext, iclog: u64, caller: u64) -> Option<()> {
    armed()?;
    let task = task::current(PROBE)?;
    let caller = stack::group_of(caller);
    if task.push.start != 0 || caller == Group::IclogSpace.bit() {
        return None;
    }
    dev_of(iclog)?;
    let cause = if task.force.start != 0 {
        task.force.cause
    } else {
        // The unmount record goes out by no log force; so does the log cover's.
        let frames = stack::capture(PROBE, ctx)?;
        force::outermost(stack::groups_in(frames)) as u32
    };
    mark(iclog, task, cause);
    Some(())
}

#[raw_tracepoint(tracepoint = "xlog_iclog_wait_on")]
pub fn xlog_iclog_wait_on(ctx: RawTracePointContext) -> i32 {
    waited_for(ctx.arg(0));
    0
}

/// The force that the current task is in waits for `iclog`, if that is not written yet.
#[inline(always)]
pub fn waited_for(iclog: u64) -> Option<()> {
    armed()?;
    let task = task::known()?;
    // A force without XFS_LOG_SYNC never comes here, and may be what the task was in last.
    if task.force.start == 0
        || task.push.start != 0
        || dev_of_log(pointer(iclog, &ICLOG_LOG)?)? != task.force.dev
    {
        return None;
    }
    match read::<u32>(iclog, &ICLOG_STATE)? {
        // A force has set both flags on an iclog that others still write to.
        XLOG_STATE_WANT_SYNC => mark(iclog, task, task.force.cause),
        XLOG_STATE_ACTIVE | XLOG_STATE_DIRTY => {
            force::does_not_wait(task);
            return Some(());
        }
        _ => {}
    }
    task.sleep |= Task::SLEEP_FORCE;
    Some(())
}

#[raw_tracepoint(tracepoint = "xlog_iclog_get_space")]
pub fn xlog_iclog_get_space(ctx: RawTracePointContext) -> i32 {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        push::writes_from(task, read(ctx.arg(0), &ICLOG_OFFSET).unwrap_or(0));
    }
    0
}

#[raw_tracepoint(tracepoint = "xlog_iclog_release")]
pub fn xlog_iclog_release(ctx: RawTracePointContext) -> i32 {
    released(ctx.arg(0));
    0
}

/// The current task has written to `iclog` what it wanted to.
#[inline(always)]
pub fn released(iclog: u64) {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        push::writes_to(task, iclog, read(iclog, &ICLOG_OFFSET).unwrap_or(0));
    }
}

#[raw_tracepoint(tracepoint = "xlog_iclog_syncing")]
pub fn xlog_iclog_syncing(ctx: RawTracePointContext) -> i32 {
    submitted(ctx.arg(0));
    0
}

/// `iclog` is on its way to the device.
#[inline(always)]
pub fn submitted(iclog: u64) -> Option<()> {
    armed()?;
    let dev = dev_of(iclog)?;
    let task = task::current(PROBE)?;
    let offset: u32 = read(iclog, &ICLOG_OFFSET)?;
    let flags = flags(iclog)?;
    let entry = entry(iclog)?;
    if entry.marked == 0 {
        entry.cause = if flags == 0 {
            Cause::IclogWrite as u32
        } else if task.push.start == 0 && task.force.start != 0 {
            task.force.cause
        } else if ICLOG_FLAGS.load() == ABSENT {
            Cause::IclogWrite as u32
        } else if flags & XLOG_ICL_NEED_FUA != 0 {
            Cause::CheckpointCommit as u32
        } else {
            Cause::CheckpointStart as u32
        };
        entry.who = task.who;
    }
    entry.at = now();
    entry.dev = dev;
    entry.offset = offset;
    entry.flags = flags;
    let label = entry.cause as u16;
    if flags & XLOG_ICL_NEED_FLUSH != 0 && entry.unresolved_flushes != 0 {
        let pointless = u64::from(entry.unresolved_flushes);
        add(
            PROBE,
            &key(Metric::FlushPointless, dev, Cause::CilPush as u16),
            pointless,
        );
    }
    entry.unresolved_flushes = 0;
    if task.push.start != 0 {
        task.push.iclogs += 1;
    }
    count(PROBE, Metric::IclogWrites, dev, label);
    add(
        PROBE,
        &key(Metric::IclogBytes, dev, label),
        u64::from(offset),
    );
    let log = pointer(iclog, &ICLOG_LOG)?;
    let size: u32 = read(log, &LOG_ICLOG_SIZE)?;
    if size != 0 {
        let percent = u64::from(offset) * 100 / u64::from(size);
        record(PROBE, &key(Metric::IclogFill, dev, label), percent);
    }
    record_space(log, dev)
}

/// What an iclog's write asks of the device. Until 5.14 that was not up to the iclog: every write was
/// to be durable, and flushed first.
#[inline(always)]
fn flags(iclog: u64) -> Option<u32> {
    if ICLOG_FLAGS.load() == ABSENT {
        return Some(XLOG_ICL_NEED_FLUSH | XLOG_ICL_NEED_FUA);
    }
    read(iclog, &ICLOG_FLAGS)
}

/// The write of `iclog` needs no flush: the data device has been flushed separately, because the log
/// is on another, or because the write is split at the log's end.
#[inline(always)]
pub fn flushed_before(iclog: u64) {
    if let Some(entry) = ICLOGS.get_ptr_mut(iclog) {
        // SAFETY: an iclog is written by one task at a time.
        unsafe { (*entry).flags &= !XLOG_ICL_NEED_FLUSH };
    }
}

/// Records how much of the log lies between its tail and its head.
///
/// The tail is a log sequence number, cycle in the upper and block in the lower half; the head is
/// kept as two members (fs/xfs/xfs_log_priv.h). `struct xlog` gives both in basic blocks.
#[inline(always)]
fn record_space(log: u64, dev: u32) -> Option<()> {
    let blocks = u64::from(read::<u32>(log, &LOG_BLOCKS)?);
    let head_cycle = u64::from(read::<u32>(log, &LOG_CURR_CYCLE)?);
    let head = u64::from(read::<u32>(log, &LOG_CURR_BLOCK)?);
    let tail: u64 = read(log, &LOG_TAIL_LSN)?;
    let (tail_cycle, tail) = (tail >> 32, tail & 0xffff_ffff);
    let used = if head_cycle == tail_cycle {
        head.checked_sub(tail)?
    } else {
        head + blocks - tail
    };
    if blocks == 0 || used > blocks {
        return None;
    }
    record(PROBE, &key(Metric::LogUsed, dev, 0), used * 100 / blocks);
    record(
        PROBE,
        &key(Metric::LogFree, dev, 0),
        (blocks - used) * BBSIZE,
    );
    Some(())
}

#[raw_tracepoint(tracepoint = "xlog_iclog_sync_done")]
pub fn xlog_iclog_sync_done(ctx: RawTracePointContext) -> i32 {
    completed(ctx.arg(0));
    0
}

/// The write of `iclog` is done.
#[inline(always)]
pub fn completed(iclog: u64) -> Option<()> {
    armed()?;
    // SAFETY: the entry is copied before it is removed.
    let entry = *unsafe { ICLOGS.get(iclog) }?;
    let _ = ICLOGS.remove(iclog);
    // Submitted before the window.
    if entry.at == 0 {
        return None;
    }
    let latency = now() - entry.at;
    record(PROBE, &key(Metric::IclogLatency, entry.dev, 0), latency);
    let mut event = event(
        EventKind::Iclog,
        entry.cause,
        entry.dev,
        &entry.who,
        entry.at,
        latency,
    );
    event.args[0] = u64::from(entry.offset);
    event.args[1] = u64::from(entry.flags);
    emit(PROBE, event);
    Some(())
}
