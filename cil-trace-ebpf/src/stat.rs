//! Updates of the maps that user space reads: counters, histograms, losses, events.

use crate::kernel::{TASK_COMM, TASK_GROUP_LEADER, pointer, read};
use crate::maps::{COUNTERS, EVENTS, HISTS, LOSSES, NEW_HIST, PROCESSES};
use crate::task::Task;
use aya_ebpf::bindings::{BPF_NOEXIST, BPF_RB_NO_WAKEUP};
use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_ktime_get_ns};
use aya_ebpf::maps::PerCpuHashMap;
use cil_trace_common::event::{ARGS, Event, EventKind};
use cil_trace_common::flight::Who;
use cil_trace_common::hist::{Hist, bucket_of};
use cil_trace_common::key::Key;
use cil_trace_common::loss::{LossCause, slot};
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::process::Process;

const E2BIG: i32 = -7;
/// The entry has been made by another CPU meanwhile.
pub const EEXIST: i32 = -17;

/// CLOCK_MONOTONIC, nanoseconds.
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: the helper has no precondition.
    unsafe { bpf_ktime_get_ns() }
}

/// The key of a metric of one device.
#[inline(always)]
pub fn key(metric: Metric, dev: u32, label: u16) -> Key {
    Key {
        metric: metric as u16,
        label,
        dev,
        via: 0,
        stack: 0,
    }
}

/// Counts what is missing from `probe`'s numbers.
#[inline(always)]
pub fn lose(probe: Probe, cause: LossCause) {
    if let Some(count) = LOSSES.get_ptr_mut(slot(probe as u16, cause)) {
        atomic_add(count, 1);
    }
}

/// Counts a failed update by its error.
#[inline(always)]
pub fn lose_update(probe: Probe, error: i32) {
    lose(
        probe,
        if error == E2BIG {
            LossCause::MapFull
        } else {
            LossCause::MapBusy
        },
    );
}

/// Adds to a value that others may change too, wrapping: other CPUs, and of a value of this CPU's own
/// a task that this one is preempted by. Since 7.0 a program on a tracepoint may be preempted, and
/// one on a function's trampoline always could.
///
/// The core library has no atomic addition for this target; the instruction is as old as BPF maps.
#[inline(always)]
pub fn atomic_add(value: *mut u64, n: u64) {
    #[cfg(target_arch = "bpf")]
    // SAFETY: the callers pass a map value, aligned to 8 bytes, that outlives the program.
    unsafe {
        core::arch::asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) value, in(reg) n);
    }
    #[cfg(not(target_arch = "bpf"))]
    let _ = (value, n);
}

/// The same for 32 bits.
#[inline(always)]
fn atomic_add_u32(value: *mut u32, n: u32) {
    #[cfg(target_arch = "bpf")]
    // SAFETY: the callers pass a map value, aligned to 4 bytes, that outlives the program.
    unsafe {
        core::arch::asm!("lock *(u32 *)({0} + 0) += {1}", in(reg) value, in(reg) u64::from(n));
    }
    #[cfg(not(target_arch = "bpf"))]
    let _ = (value, n);
}

/// Adds `n` to a counter.
#[inline(always)]
pub fn add(probe: Probe, key: &Key, n: u64) {
    add_in(&COUNTERS, probe, key, n);
}

/// Adds `n` to a sum in `map`.
#[inline(always)]
pub fn add_in(map: &PerCpuHashMap<Key, u64>, probe: Probe, key: &Key, n: u64) {
    if let Some(counter) = map.get_ptr_mut(key) {
        atomic_add(counter, n);
        return;
    }
    match map.insert(key, n, u64::from(BPF_NOEXIST)) {
        Ok(()) => {}
        // Another CPU made the entry meanwhile.
        Err(EEXIST) => {
            if let Some(counter) = map.get_ptr_mut(key) {
                atomic_add(counter, n);
            }
        }
        Err(error) => lose_update(probe, error),
    }
}

/// Adds 1 to a counter of one device.
#[inline(always)]
pub fn count(probe: Probe, metric: Metric, dev: u32, label: u16) {
    add(probe, &key(metric, dev, label), 1);
}

/// Records a value in a histogram.
#[inline(always)]
pub fn record(probe: Probe, key: &Key, value: u64) {
    if HISTS.get_ptr(key).is_none() {
        let Some(new) = NEW_HIST.get(0) else { return };
        match HISTS.insert(key, new, u64::from(BPF_NOEXIST)) {
            Ok(()) | Err(EEXIST) => {}
            Err(error) => return lose_update(probe, error),
        }
    }
    if let Some(hist) = HISTS.get_ptr_mut(key) {
        record_in(hist, value);
    }
}

/// Records a value in a map's histogram; [`Hist::record`] for one that others may change too.
#[inline(always)]
pub fn record_in(hist: *mut Hist, value: u64) {
    // SAFETY: a map value that outlives the program. Of the extremes, one that is overwritten has
    // nearly been reached.
    let hist = unsafe { &mut *hist };
    atomic_add(&raw mut hist.count, 1);
    atomic_add(&raw mut hist.sum, value);
    if value > hist.max {
        hist.max = value;
    }
    if !value > hist.not_min {
        hist.not_min = !value;
    }
    if let Some(bucket) = hist.buckets.get_mut(bucket_of(value)) {
        atomic_add_u32(bucket, 1);
    }
}

/// The sums of the process that `task` belongs to, made if need be. Its threads add to them side by
/// side, so only [`atomic_add`] may change them.
#[inline(always)]
pub fn process(probe: Probe, task: &Task) -> Option<*mut Process> {
    let pid = task.who.pid;
    if PROCESSES.get_ptr(pid).is_none() {
        let new = Process {
            comm: leader_comm().unwrap_or(task.who.comm),
            workload: task.who.workload,
            ..Process::default()
        };
        match PROCESSES.insert(pid, new, u64::from(BPF_NOEXIST)) {
            Ok(()) | Err(EEXIST) => {}
            Err(error) => lose_update(probe, error),
        }
    }
    PROCESSES.get_ptr_mut(pid)
}

/// Command name of the current process, which is its leader's.
#[inline(always)]
fn leader_comm() -> Option<[u8; 16]> {
    // SAFETY: the helper has no precondition.
    let leader = pointer(unsafe { bpf_get_current_task() }, &TASK_GROUP_LEADER)?;
    read(leader, &TASK_COMM)
}

/// The current process has waited for the log.
#[inline(always)]
pub fn waited(probe: Probe, task: &Task, wait_ns: u64) {
    if let Some(process) = process(probe, task) {
        // SAFETY: a map value that outlives the program; the address is taken, nothing is read.
        atomic_add(unsafe { &raw mut (*process).log_wait_ns }, wait_ns);
    }
}

/// Hands one object to user space.
#[inline(always)]
pub fn emit(probe: Probe, event: Event) {
    match EVENTS.reserve::<Event>(0) {
        Some(mut entry) => {
            entry.write(event);
            entry.submit(u64::from(BPF_RB_NO_WAKEUP));
        }
        None => lose(probe, LossCause::RingBufferFull),
    }
}

/// An object that `who` began.
#[inline(always)]
pub fn event(
    kind: EventKind,
    label: u32,
    dev: u32,
    who: &Who,
    start_ns: u64,
    duration_ns: u64,
) -> Event {
    Event {
        kind: kind as u16,
        label: label as u16,
        dev,
        via: 0,
        tid: who.tid,
        pid: who.pid,
        workload: who.workload,
        comm: who.comm,
        start_ns,
        duration_ns,
        args: [0; ARGS],
    }
}
