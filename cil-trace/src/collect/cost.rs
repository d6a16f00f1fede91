//! What tracing costs from tick to tick: the programs' time, and this process's own.

use crate::trace::Tracer;
use cil_trace_core::tick::Cost;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The cost up to the last look.
pub struct Meter(Option<Cost>);

impl Meter {
    /// Begins now; without `run_times` the kernel keeps no times, and no cost is known.
    pub fn new(tracer: &Tracer, run_times: bool) -> Self {
        Self(if run_times { so_far(tracer) } else { None })
    }

    /// The cost since the last look.
    pub fn since(&mut self, tracer: &Tracer) -> Option<Cost> {
        let before = self.0?;
        let now = so_far(tracer)?;
        self.0 = Some(now);
        Some(Cost {
            bpf_run_ns: now.bpf_run_ns.saturating_sub(before.bpf_run_ns),
            own_ns: now.own_ns.saturating_sub(before.own_ns),
        })
    }
}

fn so_far(tracer: &Tracer) -> Option<Cost> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let own = usage.user_time() + usage.system_time();
    Some(Cost {
        bpf_run_ns: tracer.costs().iter().map(|program| program.run_ns).sum(),
        own_ns: own.num_nanoseconds().unsigned_abs(),
    })
}
