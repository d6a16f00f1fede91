//! Log forces: who asks for them, and when they have got what they wanted.

use crate::device::filesystem_in_scope;
use crate::kernel::dev_of_mount;
use crate::maps::armed;
use crate::stat::{count, emit, key, now, process, record};
use crate::task::{self, Force, Task};
use crate::{fsync, stack};
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::cause::{Cause, FsyncKind};
use cil_trace_common::event::{ARGS, Event, EventKind};
use cil_trace_common::function::Group;
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
    let state = armed()?;
    let start = now();
    let caller = stack::group_of(ctx.arg(2), state.ranges);
    if caller == Group::LogForce.bit() {
        return None;
    }
    let dev = filesystem_in_scope(dev_of_mount(ctx.arg(0))?)?;
    let task = task::current(Probe::Forces)?;
    if caller == Group::Ail.bit() && ctx.arg::<u64>(1) != 0 {
        task.ail_push = 1;
        return None;
    }
    task.ail_push = 0;
    task.sleep &= !Task::SLEEP_FORCE;
    let fsync = Group::Fsync.bit() | Group::DirFsync.bit();
    let groups = if caller & fsync != 0 {
        caller
    } else {
        caller
            | stack::capture(Probe::Forces, ctx)
                .map_or(0, |frames| stack::groups_in(frames, state.ranges))
    };
    let hidden = caller == 0 || caller == Group::ReturnProbe.bit();
    // A transaction inside an fsync may force the log too; the fsync has not done so by that.
    let from_fsync = groups & fsync != 0 && groups & Group::TransCommit.bit() == 0
        || hidden && fsync::tail_calls(task);
    let cause = if from_fsync && task.fsync.start != 0 {
        fsync::forces_log(task);
        if task.fsync.kind == FsyncKind::OSync as u32 {
            Cause::ODsync
        } else {
            Cause::LogForceFsync
        }
    } else {
        outermost(groups)
    };
    task.force = Force {
        start,
        dev,
        cause: cause as u32,
    };
    count(Probe::Forces, Metric::Forces, dev, cause as u16);
    process(Probe::Forces, task, |process| process.forces += 1);
    Some(())
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
    let Force { start, dev, cause } = task.force;
    if start == 0 {
        return;
    }
    let now = now();
    task.force.start = 0;
    task.sleep &= !Task::SLEEP_FORCE;
    if task.fsync.start != 0 {
        task.fsync.end = now;
    }
    let duration = now - start;
    let probe = Probe::ForceEnd;
    record(
        probe,
        &key(Metric::ForceLatency, dev, cause as u16),
        duration,
    );
    process(probe, task, |process| process.log_wait_ns += duration);
    emit(
        probe,
        Event {
            kind: EventKind::Force as u16,
            label: cause as u16,
            dev,
            via: 0,
            tid: task.tid,
            pid: task.pid,
            workload: task.workload,
            comm: task.comm,
            start_ns: start,
            duration_ns: duration,
            args: [0; ARGS],
        },
    );
}
