//! What threads do, whatever it has to do with the log: samples of the CPUs, and time off them.

use crate::kernel::{
    SCHED_SWITCH_ARGS, TASK_EXECS, TASK_GROUP_LEADER, TASK_PID, TASK_START_TIME, TASK_STATE,
    pointer, read,
};
use crate::maps::{CLOCK_FRAMES, DEPARTED, SWITCH_FRAMES, THREAD_STACKS, WORKLOAD, armed};
use crate::stack::{keep, sum, take};
use crate::stat::{lose, lose_update, now};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::bpf_get_current_task;
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid};
use aya_ebpf::macros::{btf_tracepoint, perf_event};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::{BtfTracePointContext, PerfEventContext};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_common::stack::{Departure, LOST, Origin, Stack, StackKey, StackKind};

/// Bits of a task's state (linux/sched.h): what sleeps and can be woken by a signal.
const TASK_INTERRUPTIBLE: u32 = 1;
/// `EXIT_DEAD`, `EXIT_ZOMBIE` and `TASK_DEAD`: it never runs again.
const DEAD: u32 = 0x10 | 0x20 | 0x80;
/// What waits for work and is no load.
const TASK_NOLOAD: u32 = 0x400;

/// A thread that has left its CPU.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Departed {
    /// What its absence is counted by.
    pub key: StackKey,
    /// Since when.
    pub at: u64,
}

/// The current thread's part of a key, and its stacks; `None` for the idle task and cil-trace.
#[inline(always)]
fn key(
    state: &State,
    probe: Probe,
    ctx: &impl EbpfContext,
    buffer: &'static PerCpuArray<Stack>,
    kernel: Origin,
) -> Option<StackKey> {
    let id = bpf_get_current_pid_tgid();
    let pid = (id >> 32) as u32;
    if pid == 0 || pid == state.own_pid {
        return None;
    }
    let mut key = StackKey {
        pid,
        space: space().unwrap_or(0),
        workload: u32::from(WORKLOAD.get_ptr(pid).is_some()),
        comm: bpf_get_current_comm().unwrap_or_default(),
        ..StackKey::default()
    };
    if let Some(stack) = take(buffer, 0, ctx, kernel) {
        key.kernel = keep(probe, stack);
    }
    if let Some(stack) = take(buffer, 0, ctx, Origin::User) {
        key.user = keep(probe, stack);
    }
    if key.kernel == 0 && key.user == 0 {
        key.kernel = LOST;
        lose(probe, LossCause::StackLost);
    }
    Some(key)
}

/// Tells apart the programs that run one after another under a process id.
#[inline(always)]
fn space() -> Option<u32> {
    // SAFETY: the helper has no precondition.
    let leader = pointer(unsafe { bpf_get_current_task() }, &TASK_GROUP_LEADER)?;
    let started: u64 = read(leader, &TASK_START_TIME)?;
    // The lower half of what became 64 bits wide in 5.7.
    let executed: u32 = read(leader, &TASK_EXECS)?;
    Some((started >> 8) as u32 ^ executed.wrapping_mul(0x9e37_79b1))
}

/// One sample of what this CPU runs.
#[perf_event]
pub fn cpu_clock(ctx: PerfEventContext) -> u32 {
    let probe = Probe::CpuSamples;
    if let Some(state) = armed()
        && let Some(mut key) = key(state, probe, &ctx, &CLOCK_FRAMES, Origin::Clock)
    {
        key.kind = StackKind::Cpu as u16;
        sum(&THREAD_STACKS, probe, &key, 1, 0, 0);
    }
    0
}

/// A CPU goes from one thread to another.
#[btf_tracepoint(function = "sched_switch")]
pub fn btf_offcpu(ctx: BtfTracePointContext) -> i32 {
    if let Some(state) = armed() {
        leaves(&ctx, state);
        returns(&ctx);
    }
    0
}

#[inline(always)]
fn leaves(ctx: &BtfTracePointContext, state: &State) -> Option<()> {
    let probe = Probe::OffCpu;
    // The state became an argument in 5.18.
    let run_state: u32 = if SCHED_SWITCH_ARGS.load() >= 4 {
        ctx.arg(3)
    } else {
        read(ctx.arg(1), &TASK_STATE)?
    };
    if run_state & DEAD != 0 {
        return None;
    }
    let mut key = key(state, probe, ctx, &SWITCH_FRAMES, Origin::Tracepoint)?;
    key.kind = StackKind::Offcpu as u16;
    let preempted = ctx.arg::<u64>(0) & 1 != 0;
    key.label = if preempted || run_state == 0 {
        Departure::Preempted as u16
    } else if run_state & (TASK_INTERRUPTIBLE | TASK_NOLOAD) != 0 {
        Departure::Sleeping as u16
    } else {
        Departure::Blocked as u16
    };
    let tid = bpf_get_current_pid_tgid() as u32;
    let departed = Departed { key, at: now() };
    DEPARTED
        .insert(tid, departed, 0)
        .map_err(|error| lose_update(probe, error))
        .ok()
}

#[inline(always)]
fn returns(ctx: &BtfTracePointContext) -> Option<()> {
    let next: *const u8 = ctx.arg(2);
    // SAFETY: the verifier knows `next` as a `struct task_struct` and checks the offset.
    let tid = unsafe { *next.add(TASK_PID.load() as usize).cast::<u32>() };
    // SAFETY: the thread is about to run on this CPU, so that nobody else changes its entry.
    let departed = *unsafe { DEPARTED.get(tid) }?;
    let _ = DEPARTED.remove(tid);
    let away = now() - departed.at;
    sum(&THREAD_STACKS, Probe::OffCpu, &departed.key, 1, away, 0);
    Some(())
}
