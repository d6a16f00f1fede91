//! Commits: `xfs_trans_commit` → items in the CIL → `xfs_trans_free`, and where the time goes.

use crate::device::filesystem_in_scope;
use crate::kernel::{
    CIL_CTX, CIL_CTX_LOCK, CTX_SEQUENCE, LOG_CIL, MOUNT_LOG, TRANS_MOUNT, dev_of_mount, member,
    pointer, read,
};
use crate::maps::{CHECKPOINTS, armed};
use crate::push::Checkpoint;
use crate::stat::{EEXIST, add, atomic_add, count, key, lose_update, now, record, waited};
use crate::{ctx_lock, force, task};
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::macros::{kprobe, raw_tracepoint};
use aya_ebpf::programs::{ProbeContext, RawTracePointContext};
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;

#[raw_tracepoint(tracepoint = "xfs_trans_commit")]
pub fn xfs_trans_commit(ctx: RawTracePointContext) -> i32 {
    start(&ctx);
    0
}

fn start(ctx: &RawTracePointContext) -> Option<()> {
    armed()?;
    let task = task::current(Probe::Commits)?;
    // A commit begins outside any force: what is left of one is over.
    force::forget(task);
    // Deferred work is done at the beginning of a commit, in transactions that are rolled.
    let roll = task.commit.start != 0 && task.commit.inserted == 0;
    task.commit.roll = u64::from(roll);
    task.commit.mount = pointer(ctx.arg(0), &TRANS_MOUNT)?;
    task.commit.start = now();
    task.commit.inserted = 0;
    task.commit.insert_at = 0;
    task.commit.throttled = 0;
    task.commit.lock_at = 0;
    task.commit.lock_ns = 0;
    Some(())
}

/// Wherever the compiler has put the beginning of `xlog_cil_insert_items`.
#[kprobe]
pub fn inlined_xlog_cil_insert_items(_ctx: ProbeContext) -> u32 {
    if armed().is_some()
        && let Some(task) = task::known()
        && task.commit.start != 0
    {
        task.commit.insert_at = now();
    }
    0
}

#[raw_tracepoint(tracepoint = "xfs_log_ticket_ungrant")]
pub fn xfs_log_ticket_ungrant(_ctx: RawTracePointContext) -> i32 {
    insert_ends();
    0
}

#[raw_tracepoint(tracepoint = "xfs_log_ticket_regrant")]
pub fn xfs_log_ticket_regrant(_ctx: RawTracePointContext) -> i32 {
    insert_ends();
    0
}

/// What `xlog_cil_commit` does next after the insertion.
fn insert_ends() -> Option<()> {
    armed()?;
    let task = task::known()?;
    let at = task.commit.insert_at;
    if at == 0 {
        return None;
    }
    task.commit.insert_at = 0;
    let dev = filesystem_in_scope(dev_of_mount(task.commit.mount)?)?;
    record(
        Probe::CommitInsert,
        &key(Metric::InsertItems, dev, 0),
        now() - at,
    );
    Some(())
}

#[raw_tracepoint(tracepoint = "xfs_trans_commit_items")]
pub fn xfs_trans_commit_items(ctx: RawTracePointContext) -> i32 {
    inserted(&ctx);
    0
}

fn inserted(ctx: &RawTracePointContext) -> Option<()> {
    armed()?;
    let task = task::current(Probe::Commits)?;
    let mount = pointer(ctx.arg(0), &TRANS_MOUNT)?;
    let dev = filesystem_in_scope(dev_of_mount(mount)?)?;
    count(Probe::Commits, Metric::Commits, dev, 0);
    if task.commit.start != 0 {
        task.commit.inserted = now();
    }
    let cil = pointer(pointer(mount, &MOUNT_LOG)?, &LOG_CIL)?;
    let sequence = read(pointer(cil, &CIL_CTX)?, &CTX_SEQUENCE)?;
    add_transaction(&Checkpoint { cil, sequence });
    Some(())
}

/// One more transaction in a checkpoint.
#[inline(always)]
fn add_transaction(checkpoint: &Checkpoint) {
    if let Some(transactions) = CHECKPOINTS.get_ptr_mut(checkpoint) {
        atomic_add(transactions, 1);
        return;
    }
    if let Err(error) = CHECKPOINTS.insert(checkpoint, 0, u64::from(BPF_NOEXIST))
        && error != EEXIST
    {
        return lose_update(Probe::Pushes, error);
    }
    if let Some(transactions) = CHECKPOINTS.get_ptr_mut(checkpoint) {
        atomic_add(transactions, 1);
    }
}

#[raw_tracepoint(tracepoint = "xfs_log_cil_wait")]
pub fn xfs_log_cil_wait(_ctx: RawTracePointContext) -> i32 {
    if armed().is_some()
        && let Some(task) = task::known()
        && task.commit.throttled == 0
    {
        task.commit.throttled = now();
    }
    0
}

#[raw_tracepoint(tracepoint = "xfs_trans_free")]
pub fn xfs_trans_free(_ctx: RawTracePointContext) -> i32 {
    end();
    0
}

fn end() -> Option<()> {
    let state = armed()?;
    let task = task::known()?;
    if state.measures(Probe::CtxLockHold) {
        ctx_lock::commit_ended(task);
    }
    let commit = task.commit;
    let now = now();
    task.commit.start = if commit.roll != 0 { now } else { 0 };
    task.commit.roll = 0;
    task.commit.inserted = 0;
    task.commit.throttled = 0;
    task.commit.lock_at = 0;
    task.commit.lock_ns = 0;
    // A cancelled transaction, or a commit that logged nothing.
    if commit.start == 0 || commit.inserted == 0 {
        return None;
    }
    let dev = filesystem_in_scope(dev_of_mount(commit.mount)?)?;
    let probe = Probe::Commits;
    record(
        probe,
        &key(Metric::CommitLatency, dev, 0),
        now - commit.start,
    );
    add(
        probe,
        &key(Metric::CommitInsert, dev, 0),
        commit.inserted - commit.start,
    );
    if commit.lock_ns != 0 {
        add(
            Probe::CommitCtxLock,
            &key(Metric::CommitCtxLock, dev, 0),
            commit.lock_ns,
        );
    }
    if commit.throttled != 0 {
        let wait = now - commit.throttled;
        add(Probe::Throttle, &key(Metric::CommitThrottle, dev, 0), wait);
        record(Probe::Throttle, &key(Metric::ThrottleWait, dev, 0), wait);
        waited(Probe::Throttle, task, wait);
    }
    Some(())
}

/// The current task begins to wait for an rwsem as a reader: perhaps for the context lock, in a
/// commit. Only look-ups here: an update that takes a bucket lock on a lock's slow path can
/// dead-lock.
#[inline(always)]
pub fn waits_for_lock(address: u64) {
    if let Some(task) = task::known()
        && task.commit.start != 0
        && task.commit.inserted == 0
        && task.commit.lock_at == 0
        && context_lock(task.commit.mount) == Some(address)
    {
        task.commit.lock_at = now();
    }
}

/// The current task has got a lock.
#[inline(always)]
pub fn got_lock(address: u64) {
    if let Some(task) = task::known()
        && task.commit.lock_at != 0
        && context_lock(task.commit.mount) == Some(address)
    {
        let now = now();
        task.commit.lock_ns += now - task.commit.lock_at;
        task.commit.lock_at = 0;
        task.ctx_lock_at = now;
    }
}

/// Address of a mount's `xc_ctx_lock`.
#[inline(always)]
fn context_lock(mount: u64) -> Option<u64> {
    member(
        pointer(pointer(mount, &MOUNT_LOG)?, &LOG_CIL)?,
        &CIL_CTX_LOCK,
    )
}
