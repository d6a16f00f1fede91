//! Waits for log reservation space.

use crate::device::filesystem_in_scope;
use crate::kernel::dev_of_log;
use crate::maps::armed;
use crate::stat::{key, now, record, waited};
use crate::task;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;

const PROBE: Probe = Probe::GrantWaits;

#[raw_tracepoint(tracepoint = "xfs_log_grant_sleep")]
pub fn xfs_log_grant_sleep(_ctx: RawTracePointContext) -> i32 {
    if armed().is_some()
        && let Some(task) = task::current(PROBE)
    {
        task.grant_at = now();
    }
    0
}

#[raw_tracepoint(tracepoint = "xfs_log_grant_wake")]
pub fn xfs_log_grant_wake(ctx: RawTracePointContext) -> i32 {
    woken(ctx.arg(0));
    0
}

fn woken(log: u64) -> Option<()> {
    armed()?;
    let dev = filesystem_in_scope(dev_of_log(log)?)?;
    let task = task::current(PROBE)?;
    if task.grant_at == 0 {
        // It began before the window.
        return None;
    }
    let wait = now() - task.grant_at;
    task.grant_at = 0;
    record(PROBE, &key(Metric::GrantWait, dev, 0), wait);
    waited(PROBE, task, wait);
    Some(())
}
