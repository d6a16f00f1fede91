//! What tracing costs from tick to tick: the programs' time, and this process's own.
//!
//! The kernel keeps the programs' times for a part of the time only; that part stands for all.

use crate::trace::Tracer;
use cil_trace_core::tick::Cost;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The cost up to the last look.
pub struct Meter {
    before: Option<Look>,
    /// The programs' share of the time that was measured last, which stands for ticks in which
    /// nothing is.
    share: f64,
}

/// Sums at one moment.
#[derive(Clone, Copy)]
struct Look {
    /// CLOCK_MONOTONIC nanoseconds.
    at_ns: u64,
    /// For how long the kernel has kept the programs' times.
    measured_ns: u64,
    bpf_run_ns: u64,
    own_ns: u64,
}

impl Meter {
    /// Begins at `at_ns`, CLOCK_MONOTONIC nanoseconds; the kernel has kept the programs' times for
    /// `measured_ns`. Without it no cost is known.
    pub fn new(tracer: &Tracer, at_ns: u64, measured_ns: Option<u64>) -> Self {
        Self {
            before: look(tracer, at_ns, measured_ns),
            share: 0.0,
        }
    }

    /// The cost since the last look.
    pub fn since(&mut self, tracer: &Tracer, at_ns: u64, measured_ns: Option<u64>) -> Option<Cost> {
        let before = self.before?;
        let now = look(tracer, at_ns, measured_ns)?;
        self.before = Some(now);
        let measured_ns = now.measured_ns.saturating_sub(before.measured_ns);
        if measured_ns != 0 {
            let run_ns = now.bpf_run_ns.saturating_sub(before.bpf_run_ns);
            self.share = run_ns as f64 / measured_ns as f64;
        }
        let elapsed_ns = now.at_ns.saturating_sub(before.at_ns);
        Some(Cost {
            bpf_run_ns: (self.share * elapsed_ns as f64).round() as u64,
            own_ns: now.own_ns.saturating_sub(before.own_ns),
        })
    }
}

fn look(tracer: &Tracer, at_ns: u64, measured_ns: Option<u64>) -> Option<Look> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let own = usage.user_time() + usage.system_time();
    Some(Look {
        at_ns,
        measured_ns: measured_ns?,
        bpf_run_ns: tracer.costs().iter().map(|program| program.run_ns).sum(),
        own_ns: own.num_nanoseconds().unsigned_abs(),
    })
}
