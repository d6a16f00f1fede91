//! Work items: pushes of the CIL are queued, run and end; loop workers serve their device.

use crate::kernel::{
    LOOP_DISK, LOOP_ROOTCG_WORK, LOOP_WORKER_DEVICE, LOOP_WORKER_WORK, WORK_FUNC, container,
    dev_of_disk, pointer, read,
};
use crate::maps::armed;
use crate::{push, task};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;

#[raw_tracepoint(tracepoint = "workqueue_queue_work")]
pub fn workqueue_queue_work(ctx: RawTracePointContext) -> i32 {
    let work: u64 = ctx.arg(2);
    if let Some(state) = armed()
        && is_push(state, read(work, &WORK_FUNC).unwrap_or(0))
    {
        push::queued(&ctx, work);
    }
    0
}

#[raw_tracepoint(tracepoint = "workqueue_execute_start")]
pub fn workqueue_execute_start(ctx: RawTracePointContext) -> i32 {
    started(ctx.arg(0));
    0
}

fn started(work: u64) -> Option<()> {
    let state = armed()?;
    let function = read(work, &WORK_FUNC)?;
    if is_push(state, function) {
        return push::started(work);
    }
    let loop_device = if function == state.loop_rootcg_work && function != 0 {
        container(work, &LOOP_ROOTCG_WORK)?
    } else if function == state.loop_work && function != 0 {
        pointer(container(work, &LOOP_WORKER_WORK)?, &LOOP_WORKER_DEVICE)?
    } else {
        return None;
    };
    task::current(Probe::LoopWorkers)?.via = dev_of_disk(pointer(loop_device, &LOOP_DISK)?)?;
    Some(())
}

#[raw_tracepoint(tracepoint = "workqueue_execute_end")]
pub fn workqueue_execute_end(ctx: RawTracePointContext) -> i32 {
    ended(ctx.arg(1));
    0
}

fn ended(function: u64) -> Option<()> {
    let state = armed()?;
    if is_push(state, function) {
        return push::ended();
    }
    if function != 0 && (function == state.loop_rootcg_work || function == state.loop_work) {
        task::known()?.via = 0;
    }
    Some(())
}

#[inline(always)]
fn is_push(state: &State, function: u64) -> bool {
    // Loop workers are seen by the same programs; then pushes may not have been asked for.
    function != 0 && function == state.push_work && state.measures(Probe::Pushes)
}
