//! Log forces: who asks for them, and when they have got what they wanted.

use crate::device::filesystem_in_scope;
use crate::kernel::dev_of_mount;
use crate::maps::armed;
use crate::stat::{atomic_add, count, emit, event, key, lose, now, process, record, waited};
use crate::task::{self, Force, Task};
use crate::{fsync, stack};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::EventKind;
use cil_trace_common::function::Group;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;

#[raw_tracepoint(tracepoint = "xfs_log_force")]
pub fn xfs_log_force(ctx: RawTracePointContext) -> i32 {
    started(&ctx);
    0
}

/// The event fires twice for most forces, the second time from `xlog_cil_force_seq` with a log
/// force as its caller; and it fires when `xfsaild` asks for a push, with a sequence as `lsn`.
fn started(ctx: &RawTracePointContext) -> Option<()> {
    armed()?;
    let start = now();
    let caller = stack::group_of(ctx.arg(2));
    if caller == Group::LogForce.bit() {
        return None;
    }
    let task = task::current(Probe::Forces)?;
    if caller == Group::Ail.bit() && ctx.arg::<u64>(1) != 0 {
        task.ail_push = 1;
        return None;
    }
    task.ail_push = 0;
    forget(task);
    let fsync = Group::Fsync.bit() | Group::DirFsync.bit();
    let groups = if caller & fsync != 0 {
        caller
    } else {
        caller | stack::capture(Probe::Forces, ctx).map_or(0, |frames| stack::groups_in(frames))
    };
    let hidden = caller == 0 || caller == Group::ReturnProbe.bit();
    let in_fsync = groups & fsync != 0 || hidden && fsync::tail_calls(task);
    if !in_fsync {
        fsync::ended(task);
    }
    let dev = filesystem_in_scope(dev_of_mount(ctx.arg(0))?)?;
    // A transaction inside an fsync may force the log too; the fsync has not done so by that.
    let by_fsync = in_fsync && task.fsync.start != 0 && groups & Group::TransCommit.bit() == 0;
    let cause = if by_fsync {
        fsync::forces_log(task);
        if task.fsync.kind == FsyncKind::OSync as u32 {
            Cause::ODsync
        } else {
            Cause::LogForceFsync
        }
    } else if caller & Group::SyncedChange.bit() != 0 {
        Cause::ODsync
    } else {
        outermost(groups)
    };
    task.force = Force {
        start,
        dev,
        cause: cause as u32,
        in_fsync: u32::from(in_fsync),
        reserved: 0,
    };
    count(Probe::Forces, Metric::Forces, dev, cause as u16);
    if let Some(process) = process(Probe::Forces, task) {
        // SAFETY: a map value that outlives the program; the address is taken, nothing is read.
        atomic_add(unsafe { &raw mut (*process).forces }, 1);
    }
    Some(())
}

/// What the task was in is no force any more. Where forces end by function returns, the end of this
/// one was missed: too many calls were under way for the return probe.
#[inline(always)]
pub fn forget(task: &mut Task) {
    task.sleep &= !Task::SLEEP_FORCE;
    if task.force.start != 0 {
        task.force.start = 0;
        if armed().is_some_and(|state| state.ends & State::FORCE_END != 0) {
            lose(Probe::ForceEnd, LossCause::Unpaired);
        }
    }
}

/// The outermost known reason for a log force, from the groups in its stack.
#[inline(always)]
pub fn outermost(groups: u64) -> Cause {
    let has = |group: Group| groups & group.bit() != 0;
    if has(Group::Unmount) {
        Cause::Unmount
    } else if has(Group::Freeze) {
        Cause::Freeze
    } else if has(Group::Remount) {
        Cause::Remount
    } else if has(Group::LogWorker) {
        Cause::LogForceWorker
    } else if has(Group::Write) && has(Group::Fsync) {
        Cause::ODsync
    } else if has(Group::Fsync)
        || has(Group::DirFsync)
        || has(Group::Fdatasync)
        || has(Group::FsyncCall)
    {
        Cause::LogForceFsync
    } else if has(Group::SyncFs) {
        Cause::LogForceSync
    } else if has(Group::TransCommit) {
        Cause::LogForceSyncTransaction
    } else if has(Group::Ail) {
        Cause::LogForceAil
    } else {
        Cause::LogForceOther
    }
}

/// The force that `task` is in has nothing to wait for.
#[inline(always)]
pub fn does_not_wait(task: &mut Task) {
    if armed().is_some_and(|state| state.ends & State::FORCE_END == 0) {
        ended(task);
    }
}

/// The force that `task` is in ends now.
#[inline(always)]
pub fn ended(task: &mut Task) {
    let Force {
        start,
        dev,
        cause,
        in_fsync,
        ..
    } = task.force;
    if start == 0 {
        return;
    }
    let now = now();
    task.force.start = 0;
    task.sleep &= !Task::SLEEP_FORCE;
    if in_fsync != 0 && task.fsync.start != 0 {
        task.fsync.end = now;
    }
    let duration = now - start;
    let probe = Probe::ForceEnd;
    record(
        probe,
        &key(Metric::ForceLatency, dev, cause as u16),
        duration,
    );
    waited(probe, task, duration);
    emit(
        probe,
        event(EventKind::Force, cause, dev, &task.who, start, duration),
    );
}
