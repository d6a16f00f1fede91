//! iclogs on kernels without tracepoints for them (before 5.14): by the functions that got them later.

use crate::iclog::{completed, flushed_before, released, submitted, switched, waited_for};
use crate::maps::armed;
use crate::probe_context::return_address;
use crate::{push, task};
use aya_ebpf::helpers::bpf_probe_read_kernel;
use aya_ebpf::macros::{kprobe, kretprobe};
use aya_ebpf::programs::{ProbeContext, RetProbeContext};

/// `(log, iclog, eventual_size)`
#[kprobe]
pub fn kprobe_xlog_state_switch_iclogs(ctx: ProbeContext) -> u32 {
    if let (Some(iclog), Some(caller)) = (ctx.arg(1), return_address(&ctx)) {
        switched(&ctx, iclog, caller);
    }
    0
}

/// `(iclog)`
#[kprobe]
pub fn kprobe_xlog_wait_on_iclog(ctx: ProbeContext) -> u32 {
    ctx.arg(0).map(waited_for);
    0
}

/// `(log, len, &iclog, ticket, &continued, &offset)`, of which the last says where in the iclog the
/// space begins, when the function returns.
#[kprobe]
pub fn kprobe_iclog_get_space(ctx: ProbeContext) -> u32 {
    if armed().is_some()
        && let Some(task) = task::known()
    {
        task.push.offset_at = ctx.arg(5).unwrap_or(0);
    }
    0
}

#[kretprobe]
pub fn kretprobe_iclog_get_space(ctx: RetProbeContext) -> u32 {
    got_space(&ctx);
    0
}

fn got_space(ctx: &RetProbeContext) -> Option<()> {
    armed()?;
    let task = task::known()?;
    let error: i32 = ctx.ret();
    if error != 0 || task.push.offset_at == 0 {
        return None;
    }
    // SAFETY: bpf_probe_read_kernel checks the address.
    let offset = unsafe { bpf_probe_read_kernel(task.push.offset_at as *const u32) };
    push::writes_from(task, offset.ok()?);
    Some(())
}

/// `(log, iclog)`
#[kprobe]
pub fn kprobe_xlog_state_release_iclog(ctx: ProbeContext) -> u32 {
    if let Some(iclog) = ctx.arg(1) {
        released(iclog);
    }
    0
}

/// `(iclog)`: the one with the commit record.
#[kprobe]
pub fn kprobe_xfs_log_release_iclog(ctx: ProbeContext) -> u32 {
    if let Some(iclog) = ctx.arg(0) {
        released(iclog);
    }
    0
}

/// `(log, iclog)`
#[kprobe]
pub fn kprobe_xlog_sync(ctx: ProbeContext) -> u32 {
    ctx.arg(1).map(submitted);
    0
}

/// `(log, iclog, block, count, need_flush)`
#[kprobe]
pub fn kprobe_xlog_write_iclog(ctx: ProbeContext) -> u32 {
    if armed().is_some()
        && let (Some(iclog), Some(need_flush)) = (ctx.arg(1), ctx.arg::<u64>(4))
        && need_flush as u8 == 0
    {
        flushed_before(iclog);
    }
    0
}

/// `(iclog)`
#[kprobe]
pub fn kprobe_xlog_state_done_syncing(ctx: ProbeContext) -> u32 {
    ctx.arg(0).map(completed);
    0
}
