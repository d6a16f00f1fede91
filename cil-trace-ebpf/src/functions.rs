//! What only a function's entry and return can tell, by fentry/fexit or kprobe/kretprobe.
//!
//! Each body stands once; the table below makes a program of it for each way of attaching. The
//! loader takes one way.

use crate::device::filesystem_in_scope;
use crate::kernel::{CIL_LOG, dev_of_log, pointer};
use crate::maps::armed;
use crate::stat::{key, now, record, waited};
use crate::task;
use crate::{flush, force, fsync};
use aya_ebpf::macros::{fentry, fexit, kprobe, kretprobe};
use aya_ebpf::programs::{FEntryContext, FExitContext, ProbeContext, RetProbeContext};
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;

macro_rules! returns {
    ($( $fexit:ident, $kretprobe:ident => $body:expr; )+) => {
        $(
            #[fexit(function = "_")]
            pub fn $fexit(_ctx: FExitContext) -> i32 {
                $body;
                0
            }
            #[kretprobe]
            pub fn $kretprobe(_ctx: RetProbeContext) -> u32 {
                $body;
                0
            }
        )+
    };
}

macro_rules! entries {
    ($( $fentry:ident, $kprobe:ident => $body:expr; )+) => {
        $(
            #[fentry(function = "_")]
            pub fn $fentry(ctx: FEntryContext) -> i32 {
                $body(ctx.arg::<u64>(0));
                0
            }
            #[kprobe]
            pub fn $kprobe(ctx: ProbeContext) -> u32 {
                if let Some(argument) = ctx.arg::<u64>(0) {
                    $body(argument);
                }
                0
            }
        )+
    };
}

#[fexit(function = "_")]
pub fn fexit_vfs_fsync_range(_ctx: FExitContext) -> i32 {
    fsync_returns();
    0
}

#[fexit(function = "_")]
pub fn fexit_vfs_fsync(_ctx: FExitContext) -> i32 {
    fsync_returns();
    0
}

returns! {
    fexit_xfs_log_force, kretprobe_xfs_log_force => force_returns();
    fexit_xfs_log_force_seq, kretprobe_xfs_log_force_seq => force_returns();
    fexit_xfs_file_fsync, kretprobe_xfs_file_fsync => fsync_returns();
    fexit_xfs_dir_fsync, kretprobe_xfs_dir_fsync => fsync_returns();
    fexit_xlog_cil_order_write, kretprobe_xlog_cil_order_write =>
        wait_returns(Probe::CommitOrder, Metric::CommitOrderWait);
    fexit_xlog_state_get_iclog_space, kretprobe_xlog_state_get_iclog_space =>
        wait_returns(Probe::IclogSpace, Metric::IclogSpaceWait);
    fexit_xlog_cil_insert_items, kretprobe_xlog_cil_insert_items => insert_returns();
}

entries! {
    fentry_xlog_cil_order_write, kprobe_xlog_cil_order_write => cil_waits;
    fentry_xlog_state_get_iclog_space, kprobe_xlog_state_get_iclog_space => log_waits;
    fentry_xlog_cil_insert_items, kprobe_xlog_cil_insert_items => log_waits;
    fentry_blkdev_issue_flush, kprobe_blkdev_issue_flush => flush::sent_without_data;
}

fn force_returns() {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        force::ended(task);
    }
}

fn fsync_returns() {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        task.fsync.end = now();
        fsync::ended(task);
    }
}

/// The function's first argument is a `struct xfs_cil`.
#[inline(always)]
fn cil_waits(cil: u64) {
    wait_begins(pointer(cil, &CIL_LOG).unwrap_or(0));
}

/// The function's first argument is a `struct xlog`.
#[inline(always)]
fn log_waits(log: u64) {
    wait_begins(log);
}

#[inline(always)]
fn wait_begins(log: u64) {
    if armed().is_some()
        && let Some(task) = task::current(Probe::CommitOrder)
    {
        task.wait_at = now();
        task.wait_slept = 0;
        task.wait_log = log;
    }
}

/// Only a call that slept is a wait.
#[inline(always)]
fn wait_returns(probe: Probe, metric: Metric) -> Option<()> {
    armed()?;
    let task = task::known()?;
    let (at, slept) = (task.wait_at, task.wait_slept);
    task.wait_at = 0;
    if at == 0 || slept == 0 {
        return None;
    }
    let wait = now() - at;
    record(
        probe,
        &key(metric, filesystem_in_scope(dev_of_log(task.wait_log)?)?, 0),
        wait,
    );
    waited(probe, task, wait);
    Some(())
}

#[inline(always)]
fn insert_returns() -> Option<()> {
    armed()?;
    let task = task::known()?;
    let at = task.wait_at;
    task.wait_at = 0;
    if at == 0 {
        return None;
    }
    let dev = filesystem_in_scope(dev_of_log(task.wait_log)?)?;
    record(
        Probe::CommitInsert,
        &key(Metric::InsertItems, dev, 0),
        now() - at,
    );
    Some(())
}
