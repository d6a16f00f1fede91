//! Sleeps of tasks that are in a force, an fsync or a function that may wait.
//!
//! A force and an fsync have no tracepoint for their end. On a kernel whose function returns cannot
//! be probed, the end is the moment at which the task runs again after the sleep that comes last in
//! them: in a force that of `xlog_wait_on_iclog`, in an fsync that of the force, of the empty flush,
//! or of the data's writeback.

use crate::kernel::{
    HELPER_PT_REGS, SCHED_SWITCH_ARGS, TASK_PID, TASK_STACK, TASK_STATE, pointer, read,
};
use crate::maps::{TASKS, armed};
use crate::stat::now;
use crate::task::{self, Task};
use crate::{force, fsync};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::helpers::generated::{
    bpf_get_current_task, bpf_get_current_task_btf, bpf_task_pt_regs,
};
use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;
use cil_trace_common::offset::ABSENT;
use cil_trace_common::scope::State;

/// `TASK_UNINTERRUPTIBLE` without `TASK_WAKEKILL`, `TASK_NOLOAD` and the like (linux/sched.h).
const TASK_UNINTERRUPTIBLE: u32 = 2;
/// Byte offset of `orig_ax` in x86-64's `struct pt_regs` (asm/ptrace.h).
const ORIG_AX: u64 = 15 * 8;
/// Bytes of x86-64's `struct pt_regs` before it grew with 6.9.
const PT_REGS_SIZE: u64 = 21 * 8;
/// Bytes of a kernel stack on x86-64 (asm/page_64_types.h, without KASAN).
const THREAD_SIZE: u64 = 16 << 10;

/// By BTF, because it is the most frequent event of all: members are read without a helper.
#[btf_tracepoint(function = "sched_switch")]
pub fn btf_sched_switch(ctx: BtfTracePointContext) -> i32 {
    if let Some(state) = armed() {
        leaves(&ctx, state);
        enters(&ctx);
    }
    0
}

/// The task that stops running.
#[inline(always)]
fn leaves(ctx: &BtfTracePointContext, state: &State) -> Option<()> {
    let task = task::known()?;
    if task.fsync.start == 0 && task.force.start == 0 && task.wait_at == 0 {
        return None;
    }
    // The state became an argument in 5.18.
    let run_state: u32 = if SCHED_SWITCH_ARGS.load() >= 4 {
        ctx.arg(3)
    } else {
        read(ctx.arg(1), &TASK_STATE)?
    };
    // A task that is preempted on its way to sleep has that state already, and has not slept.
    let preempted = ctx.arg::<u64>(0) & 1 != 0;
    if run_state == TASK_UNINTERRUPTIBLE && !preempted {
        let mut sleep = task.sleep;
        if task.wait_at != 0 {
            sleep |= Task::SLEEP_WAIT;
        }
        // Data writeback, as long as the fsync has got no further.
        let before_log = task.fsync.forced | task.fsync.flushed == 0;
        if task.fsync.start != 0 && before_log && current_syscall() == task.fsync.syscall {
            sleep |= Task::SLEEP_FSYNC;
        }
        task.asleep = sleep;
    } else if task.fsync.start != 0
        && state.ends & State::FSYNC_END == 0
        && current_syscall() != task.fsync.syscall
    {
        fsync::ended(task);
    }
    Some(())
}

/// The task that runs next.
#[inline(always)]
fn enters(ctx: &BtfTracePointContext) -> Option<()> {
    let state = armed()?;
    let next: *const u8 = ctx.arg(2);
    // SAFETY: the verifier knows `next` as a `struct task_struct` and checks the offset.
    let tid = unsafe { *next.add(TASK_PID.load() as usize).cast::<u32>() };
    // SAFETY: the task is about to run on this CPU, so that nobody else changes its entry.
    let task = unsafe { &mut *TASKS.get_ptr_mut(tid)? };
    if task.asleep == 0 {
        return None;
    }
    let asleep = task.asleep;
    task.asleep = 0;
    if asleep & Task::SLEEP_WAIT != 0 {
        task.wait_slept = 1;
    }
    if asleep & (Task::SLEEP_FLUSH | Task::SLEEP_FSYNC) != 0 {
        task.fsync.end = now();
        task.sleep &= !Task::SLEEP_FLUSH;
    }
    if asleep & Task::SLEEP_FORCE != 0 && state.ends & State::FORCE_END == 0 {
        force::ended(task);
    }
    Some(())
}

/// Number of the system call that the current task is in; of a kernel thread, a constant.
#[inline(always)]
pub fn current_syscall() -> u64 {
    read_syscall().unwrap_or(0)
}

/// The helper for the registers came with 5.15; before, they are where asm/processor.h's
/// `task_pt_regs` has them, at the end of the stack.
#[inline(always)]
fn read_syscall() -> Option<u64> {
    let registers = if HELPER_PT_REGS.load() == ABSENT {
        // SAFETY: the helper has no precondition.
        let task = unsafe { bpf_get_current_task() };
        pointer(task, &TASK_STACK)? + THREAD_SIZE - PT_REGS_SIZE
    } else {
        // SAFETY: the first helper returns what the second expects.
        unsafe { bpf_task_pt_regs(bpf_get_current_task_btf()) as u64 }
    };
    // SAFETY: bpf_probe_read_kernel checks the address.
    unsafe { bpf_probe_read_kernel((registers + ORIG_AX) as *const u64) }.ok()
}
