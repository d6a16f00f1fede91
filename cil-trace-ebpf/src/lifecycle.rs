//! Births and deaths of tasks: what descends from the workload, and entries that are done with.

use crate::kernel::{TASK_PID, TASK_TGID, read};
use crate::maps::{PROCESSES, TASKS, WORKLOAD};
use crate::stat::lose_update;
use crate::{fsync, task};
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
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
        fsync::ended(task);
    }
    let tid: u32 = read(leaving, &TASK_PID)?;
    let _ = TASKS.remove(tid);
    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    // The leader goes last, but for threads that outlive their main function's thread.
    if pid == tid {
        let _ = WORKLOAD.remove(pid);
        if let Some(process) = PROCESSES.get_ptr_mut(pid) {
            // SAFETY: the entry stays until user space has seen this.
            unsafe { (*process).ended = 1 };
        }
    }
    Some(())
}
