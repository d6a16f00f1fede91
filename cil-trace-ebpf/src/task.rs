//! What each thread is in the middle of.
//!
//! An entry is made at the first event of a thread and lives until its exit, so that a hot event
//! costs one look-up and no insertion.

use crate::maps::{NEW_TASK, TASKS, WORKLOAD, armed};
use crate::stat::lose_update;
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid};
use cil_trace_common::flight::Who;
use cil_trace_common::probe::Probe;

/// A thread. All zero is one that is in the middle of nothing.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Task {
    /// Which thread.
    pub who: Who,
    /// The loop device that this worker serves, or 0.
    pub via: u32,
    /// The commit it is in.
    pub commit: Commit,
    /// The log force it is in.
    pub force: Force,
    /// The fsync it is in.
    pub fsync: Fsync,
    /// The push it runs.
    pub push: Push,
    /// The bio that a stacked device has just passed on, and that device.
    pub remapped_bio: u64,
    /// See `remapped_bio`.
    pub remapped_from: u32,
    /// Device and cause of the flush it requested last; a stacked device passes them on.
    pub flush_dev: u32,
    /// See `flush_dev`.
    pub flush_cause: u32,
    /// 1 after `xfsaild` asked for a push.
    pub ail_push: u32,
    /// When it began to wait for reservation space, or 0.
    pub grant_at: u64,
    /// What the next sleep is for: bits of [`Task`].
    pub sleep: u32,
    /// What the sleep it is in is for.
    pub asleep: u32,
    /// When it entered a function that may wait, or 0.
    pub wait_at: u64,
    /// `struct xlog` of that function.
    pub wait_log: u64,
    /// When it got the CIL's context lock, as far as that is known, or 0.
    pub ctx_lock_at: u64,
    /// 1 if it slept in that function.
    pub wait_slept: u32,
    /// Where it is about to send a flush without data, on a kernel whose bios do not tell; or 0.
    pub empty_to: u32,
}

impl Task {
    /// The sleep in `xlog_wait_on_iclog`, with which a log force ends.
    pub const SLEEP_FORCE: u32 = 1;
    /// The sleep in `submit_bio_wait` for an empty flush.
    pub const SLEEP_FLUSH: u32 = 2;
    /// Another uninterruptible sleep inside an fsync.
    pub const SLEEP_FSYNC: u32 = 4;
    /// Any sleep in a function that may wait.
    pub const SLEEP_WAIT: u32 = 8;
}

/// A commit, from `xfs_trans_commit` to `xfs_trans_free`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Commit {
    /// Its beginning, or 0.
    pub start: u64,
    /// When its items were in the CIL, or 0.
    pub inserted: u64,
    /// When it began to put its items into the CIL, or 0; known where a probe sees it.
    pub insert_at: u64,
    /// When it began to be throttled, or 0.
    pub throttled: u64,
    /// `struct xfs_mount`.
    pub mount: u64,
    /// Start of a contended wait for `xc_ctx_lock`, or 0.
    pub lock_at: u64,
    /// Waited for `xc_ctx_lock`.
    pub lock_ns: u64,
    /// 1 for a roll inside a commit, which goes on when the roll has ended.
    pub roll: u64,
}

/// A log force.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Force {
    /// Its beginning, or 0.
    pub start: u64,
    /// Filesystem.
    pub dev: u32,
    /// Cause.
    pub cause: u32,
    /// 1 if it lies inside the fsync that the task is in.
    pub in_fsync: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
}

/// An fsync.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Fsync {
    /// Its beginning, or 0.
    pub start: u64,
    /// The last moment known to lie inside it, or 0.
    pub end: u64,
    /// Filesystem.
    pub dev: u32,
    /// Kind.
    pub kind: u32,
    /// 1 if the log was forced inside it.
    pub forced: u32,
    /// 1 if an empty flush was requested inside it.
    pub flushed: u32,
    /// Number of the system call it is in, as `orig_ax` has it.
    pub syscall: u64,
}

/// A push, from `xlog_cil_push_work`'s start to its end.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Push {
    /// Its beginning, or 0.
    pub start: u64,
    /// When it was queued, or 0 if that was not seen.
    pub queued: u64,
    /// `struct xfs_cil`.
    pub cil: u64,
    /// Sequence of the checkpoint.
    pub sequence: u64,
    /// Bytes written to iclogs.
    pub bytes: u64,
    /// The iclog it released last.
    pub last_iclog: u64,
    /// Where the offset is that a reservation of iclog space returns.
    pub offset_at: u64,
    /// Filesystem.
    pub dev: u32,
    /// Trigger.
    pub trigger: u32,
    /// Reservations of iclog space; 0 in an empty push.
    pub spaces: u32,
    /// iclogs submitted inside.
    pub iclogs: u32,
    /// Flushes requested inside.
    pub flushes: u32,
    /// Empty flushes that it issued itself.
    pub own_flushes: u32,
    /// `ic_offset` where the write under way began, plus 1; 0 for none.
    pub write_from: u32,
    /// Number of the stack that queued it.
    pub stack: u32,
    /// Who queued it.
    pub who: Who,
}

/// The current thread's entry, if it has one and is not cil-trace's.
#[inline(always)]
pub fn known() -> Option<&'static mut Task> {
    let id = bpf_get_current_pid_tgid();
    // SAFETY: only the thread itself writes its entry, and it runs on one CPU.
    let task = unsafe { &mut *TASKS.get_ptr_mut(id as u32)? };
    // An entry of another process is left over from a thread that became its leader by exec.
    (task.who.pid == (id >> 32) as u32).then_some(task)
}

/// The current thread's entry, made if need be; `None` for cil-trace itself and the idle task.
#[inline(always)]
pub fn current(probe: Probe) -> Option<&'static mut Task> {
    if let Some(task) = known() {
        return Some(task);
    }
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if tid == 0 || pid == armed()?.own_pid {
        return None;
    }
    // Also over an entry of another process.
    if let Err(error) = TASKS.insert(tid, NEW_TASK.get(0)?, 0) {
        lose_update(probe, error);
        return None;
    }
    // SAFETY: as in `known`.
    let task = unsafe { &mut *TASKS.get_ptr_mut(tid)? };
    task.who.pid = pid;
    task.who.tid = tid;
    task.who.workload = u32::from(WORKLOAD.get_ptr(pid).is_some());
    task.who.comm = bpf_get_current_comm().unwrap_or_default();
    Some(task)
}
