//! How long the CIL's context lock is held: side by side by commits, alone by a push.
//!
//! It is taken without a tracepoint. A commit's hold lies inside `xlog_cil_commit`, before it is
//! throttled; a push's ends when the contexts have been switched. Where those are not functions that
//! can be probed, the hold begins with the commit or the push and ends at the next tracepoint, which
//! is more. A contended wait moves the beginning.

use crate::device::filesystem_in_scope;
use crate::kernel::{CIL_CTX_LOCK, dev_of_mount, member};
use crate::maps::{LOCK_HISTS, STATE, armed};
use crate::slot;
use crate::stat::{now, record_in};
use crate::task::{self, Task};
use aya_ebpf::macros::{fentry, fexit, kprobe, kretprobe};
use aya_ebpf::programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext};
use cil_trace_common::lock::{Lock, hold_hist};
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_common::slot::OUT;

macro_rules! functions {
    ($( $macro:ident $name:ident, $ctx:ident => $body:expr; )+) => {
        $(
            #[$macro]
            pub fn $name(_ctx: $ctx) -> u32 {
                $body;
                0
            }
        )+
    };
}

functions! {
    kprobe kprobe_xlog_cil_commit, ProbeContext => commit_enters();
    kretprobe kretprobe_xlog_cil_commit, RetProbeContext => commit_leaves();
    kretprobe kretprobe_xlog_cil_ctx_switch, RetProbeContext => push_leaves();
}

#[fentry(function = "_")]
pub fn fentry_xlog_cil_commit(_ctx: FEntryContext) -> i32 {
    commit_enters();
    0
}

#[fexit(function = "_")]
pub fn fexit_xlog_cil_commit(_ctx: FExitContext) -> i32 {
    commit_leaves();
    0
}

#[fexit(function = "_")]
pub fn fexit_xlog_cil_ctx_switch(_ctx: FExitContext) -> i32 {
    push_leaves();
    0
}

fn commit_enters() {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        task.ctx_lock_at = now();
    }
}

fn commit_leaves() {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        commit_holds(task);
    }
}

fn push_leaves() {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        push_holds(task);
    }
}

/// Whether the ends are seen by these functions: bits of [`State`].
#[inline(always)]
fn by_function(bit: u32) -> bool {
    STATE.get(0).is_some_and(|state| state.ends & bit != 0)
}

/// The current task has got a lock for which it waited.
#[inline(always)]
pub fn got(address: u64) {
    if let Some(task) = task::known()
        && task.push.start != 0
        && task.push.spaces == 0
        && member(task.push.cil, &CIL_CTX_LOCK) == Some(address)
    {
        task.ctx_lock_at = now();
    }
}

/// A commit is over, as far as tracepoints tell.
#[inline(always)]
pub fn commit_ended(task: &mut Task) {
    if !by_function(State::CTX_COMMIT) {
        commit_holds(task);
    }
}

/// A push has got iclog space, so it has switched the contexts.
#[inline(always)]
pub fn push_writes(task: &mut Task) {
    if !by_function(State::CTX_PUSH) {
        push_holds(task);
    }
}

/// A commit in `task` has given the lock back, at the latest when it was throttled.
#[inline(always)]
fn commit_holds(task: &mut Task) -> Option<()> {
    let from = later(task.commit.start, task.ctx_lock_at);
    let to = if task.commit.throttled != 0 {
        task.commit.throttled
    } else {
        now()
    };
    task.ctx_lock_at = 0;
    if from == 0 || task.commit.inserted == 0 {
        return None;
    }
    held(
        dev_of_mount(task.commit.mount)?,
        Lock::CtxLockShared,
        to - from,
    )
}

/// The push in `task` has given the lock back.
#[inline(always)]
fn push_holds(task: &mut Task) -> Option<()> {
    if task.push.start == 0 || task.push.spaces != 0 {
        return None;
    }
    let from = later(task.push.start, task.ctx_lock_at);
    task.ctx_lock_at = 0;
    held(task.push.dev, Lock::CtxLockExclusive, now() - from)
}

const fn later(a: u64, b: u64) -> u64 {
    if a > b { a } else { b }
}

#[inline(always)]
fn held(dev: u32, lock: Lock, ns: u64) -> Option<()> {
    let slot = slot::of_filesystem(Probe::CtxLockHold, filesystem_in_scope(dev)?);
    if slot != OUT {
        let hist = LOCK_HISTS.get_ptr_mut(hold_hist(slot, lock as u32))?;
        record_in(hist, ns);
    }
    Some(())
}
