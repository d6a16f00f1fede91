//! What the AIL's pushes met, item by item.

use crate::device::filesystem_in_scope;
use crate::kernel::{ITEM_LOG, ITEM_MOUNT, dev_of_log, dev_of_mount, pointer};
use crate::maps::armed;
use crate::stat::count;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;

macro_rules! outcomes {
    ($( $event:ident => $metric:ident ),+ $(,)?) => {
        $(
            #[raw_tracepoint(tracepoint = "_")]
            pub fn $event(ctx: RawTracePointContext) -> i32 {
                item(ctx.arg(0), Metric::$metric);
                0
            }
        )+
    };
}

outcomes! {
    xfs_ail_push => AilPush,
    xfs_ail_pinned => AilPinned,
    xfs_ail_locked => AilLocked,
    xfs_ail_flushing => AilFlushing,
}

/// Log items point to their log since 6.1, to their mount before.
#[inline(always)]
fn item(item: u64, metric: Metric) -> Option<()> {
    armed()?;
    let dev = match pointer(item, &ITEM_LOG) {
        Some(log) => dev_of_log(log)?,
        None => dev_of_mount(pointer(item, &ITEM_MOUNT)?)?,
    };
    count(Probe::Ail, metric, filesystem_in_scope(dev)?, 0);
    Some(())
}
