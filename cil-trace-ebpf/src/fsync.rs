//! fsyncs: what kind, how long, and whether they forced the log or only flushed the device.

use crate::device::filesystem_in_scope;
use crate::kernel::dev_of_inode;
use crate::maps::armed;
use crate::stat::{count, emit, event, key, lose, now, record};
use crate::task::{self, Fsync, Task};
use crate::{force, sched, stack};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::cause::FsyncKind;
use cil_trace_common::event::EventKind;
use cil_trace_common::function::Group;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;

#[raw_tracepoint(tracepoint = "xfs_file_fsync")]
pub fn xfs_file_fsync(ctx: RawTracePointContext) -> i32 {
    started(&ctx, false);
    0
}

#[raw_tracepoint(tracepoint = "xfs_dir_fsync")]
pub fn xfs_dir_fsync(ctx: RawTracePointContext) -> i32 {
    started(&ctx, true);
    0
}

fn started(ctx: &RawTracePointContext, directory: bool) -> Option<()> {
    armed()?;
    // First of all, so that the time in this program is in the latency, as the workload sees it.
    let start = now();
    let task = task::current(Probe::Fsyncs)?;
    // What is left of an earlier fsync or force is over, also of a filesystem in scope when this
    // one is not.
    forget(task);
    force::forget(task);
    let dev = filesystem_in_scope(dev_of_inode(ctx.arg(0))?)?;
    let kind = if directory {
        FsyncKind::Dir
    } else {
        kind_of(stack::capture(Probe::Fsyncs, ctx).map_or(0, |frames| stack::groups_in(frames)))
    };
    task.fsync = Fsync {
        start,
        end: 0,
        dev,
        kind: kind as u32,
        forced: 0,
        flushed: 0,
        syscall: sched::current_syscall(),
    };
    count(Probe::Fsyncs, Metric::Fsyncs, dev, kind as u16);
    Some(())
}

#[inline(always)]
fn kind_of(groups: u64) -> FsyncKind {
    if groups & Group::Write.bit() != 0 {
        FsyncKind::OSync
    } else if groups & Group::Fdatasync.bit() != 0 {
        FsyncKind::Fdatasync
    } else {
        FsyncKind::Fsync
    }
}

/// Whether `task` is in the fsync of a directory that has not forced the log yet.
///
/// `xfs_dir_fsync` ends with a tail call of `xfs_log_force_seq` and so does not show as its caller.
#[inline(always)]
pub fn tail_calls(task: &Task) -> bool {
    task.fsync.start != 0
        && task.fsync.kind == FsyncKind::Dir as u32
        && task.fsync.forced == 0
        && sched::current_syscall() == task.fsync.syscall
}

/// The fsync that `task` is in forces the log.
#[inline(always)]
pub fn forces_log(task: &mut Task) {
    if task.fsync.forced == 0 {
        task.fsync.forced = 1;
        did(task, Metric::FsyncForced, task.fsync.flushed);
    }
}

/// The fsync that `task` is in sends an empty flush and will wait for it.
#[inline(always)]
pub fn flushes(task: &mut Task) {
    if task.fsync.start == 0 {
        return;
    }
    task.sleep |= Task::SLEEP_FLUSH;
    if task.fsync.flushed == 0 {
        task.fsync.flushed = 1;
        did(task, Metric::FsyncFlushed, task.fsync.forced);
    }
}

/// Counts what an fsync has done for the first time, and whether it has now done both.
#[inline(always)]
fn did(task: &Task, what: Metric, other: u32) {
    let (dev, label) = (task.fsync.dev, task.fsync.kind as u16);
    count(Probe::Fsyncs, what, dev, label);
    if other != 0 {
        count(Probe::Fsyncs, Metric::FsyncForcedAndFlushed, dev, label);
    }
}

/// Another call begins. Where fsyncs end by function returns, the end of the one before was missed.
#[inline(always)]
fn forget(task: &mut Task) {
    if armed().is_some_and(|state| state.ends & State::FSYNC_END != 0) {
        if task.fsync.start != 0 {
            lose(Probe::FsyncEnd, LossCause::Unpaired);
        }
        task.fsync.start = 0;
    }
    ended(task);
}

/// The fsync that `task` was in is over; it ended at its last known moment.
#[inline(always)]
pub fn ended(task: &mut Task) {
    let fsync = task.fsync;
    task.fsync.start = 0;
    task.sleep &= !Task::SLEEP_FLUSH;
    // Without a known moment (it never slept) its duration is not known.
    if fsync.start == 0 || fsync.end == 0 {
        return;
    }
    let duration = fsync.end - fsync.start;
    let probe = Probe::FsyncEnd;
    record(
        probe,
        &key(Metric::FsyncLatency, fsync.dev, fsync.kind as u16),
        duration,
    );
    let mut event = event(
        EventKind::Fsync,
        fsync.kind,
        fsync.dev,
        &task.who,
        fsync.start,
        duration,
    );
    event.args[0] = u64::from(fsync.forced);
    event.args[1] = u64::from(fsync.flushed);
    emit(probe, event);
}
