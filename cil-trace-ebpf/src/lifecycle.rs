//! Births and deaths of tasks: what descends from the workload, and entries that are done with.

use crate::kernel::{SIGNAL_LIVE, TASK_SIGNAL, TASK_TGID, pointer, read};
use crate::maps::{PROCESSES, TASKS, WORKLOAD, armed};
use crate::stat::lose_update;
use crate::{fsync, task};
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::probe::Probe;

/// Also before the window opens: the workload's own process is made then.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn sched_process_fork(ctx: RawTracePointContext) -> i32 {
    forked(&ctx);
    0
}

fn forked(ctx: &RawTracePointContext) -> Option<()> {
    let parent: u32 = read(ctx.arg(0), &TASK_TGID)?;
    let child: u32 = read(ctx.arg(1), &TASK_TGID)?;
    if child == parent {
        return None;
    }
    WORKLOAD.get_ptr(parent)?;
    WORKLOAD
        .insert(child, 1, 0)
        .map_err(|error| lose_update(Probe::Descendants, error))
        .ok()
}

#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn sched_process_exit(ctx: RawTracePointContext) -> i32 {
    exited(ctx.arg(0));
    0
}

fn exited(leaving: u64) -> Option<()> {
    if let Some(task) = task::known() {
        if armed().is_some() {
            fsync::ended(task);
        }
        let _ = TASKS.remove(task.who.tid);
    }
    // The kernel has counted this thread out before it comes here (do_exit).
    let others: u32 = read(pointer(leaving, &TASK_SIGNAL)?, &SIGNAL_LIVE)?;
    if others == 0 {
        let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
        let _ = WORKLOAD.remove(pid);
        if let Some(process) = PROCESSES.get_ptr_mut(pid) {
            // SAFETY: a map value that outlives the program.
            unsafe { (*process).ended = 1 };
        }
    }
    Some(())
}

/// A program has been executed: the names that were known are another's.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn sched_process_exec(ctx: RawTracePointContext) -> i32 {
    executed(ctx.arg(1));
    0
}

/// A thread that executes a program becomes its process's leader, and its own number is free.
fn executed(former_tid: u32) -> Option<()> {
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if former_tid != tid {
        let _ = TASKS.remove(former_tid);
    }
    let comm = bpf_get_current_comm().ok()?;
    if let Some(task) = task::known() {
        task.who.comm = comm;
    }
    if let Some(process) = PROCESSES.get_ptr_mut(pid) {
        // SAFETY: a map value that outlives the program; the process has one thread now.
        unsafe { (*process).comm = comm };
    }
    Some(())
}
