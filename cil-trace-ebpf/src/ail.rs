//! What the AIL's pushes met, item by item.

use crate::device::filesystem_in_scope;
use crate::kernel::{
    AIL_LOG, AIL_PUSH_AIL, ITEM_LOG, ITEM_MOUNT, dev_of_log, dev_of_mount, pointer,
};
use crate::maps::armed;
use crate::stat::count;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use cil_trace_common::metric::Metric;
use cil_trace_common::offset::ABSENT;
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

/// The events' first argument became the AIL when log items were found to be freed by then; before,
/// it was the item, which points to its log since 6.1 and pointed to its mount until then.
#[inline(always)]
fn item(argument: u64, metric: Metric) -> Option<()> {
    armed()?;
    let dev = if AIL_PUSH_AIL.load() != ABSENT {
        dev_of_log(pointer(argument, &AIL_LOG)?)?
    } else if let Some(log) = pointer(argument, &ITEM_LOG) {
        dev_of_log(log)?
    } else {
        dev_of_mount(pointer(argument, &ITEM_MOUNT)?)?
    };
    count(Probe::Ail, metric, filesystem_in_scope(dev)?, 0);
    Some(())
}
