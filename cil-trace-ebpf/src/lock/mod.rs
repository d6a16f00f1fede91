//! Contended locks: which one, for how long, by whom, and who held it.
//!
//! Everything here runs where a lock is waited for, also in interrupts and with other locks held.
//! So it writes to arrays only, which take no lock, allocate nothing and reach nothing that could
//! wait itself; what must be shared between CPUs is made so that a race costs a number and never
//! more.

mod holder;
mod name;
mod other;
mod process;
mod stack;
mod wait;

pub use holder::{KEPT, WANTED_PLACES, Wanted};
pub use other::OTHER_PLACES;
pub use process::PROCESS_PLACES;
pub use stack::STACK_PLACES;
pub use wait::{NESTED, SLEEPERS, Wait, begins, ends};

use crate::maps::{CPU, HELD};
use crate::stat::lose;
use aya_ebpf::EbpfContext;
use cil_trace_common::lock::Span;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;

/// A lock was held for `ns`. Where, is told of one hold for each [`QUANTUM_NS`] that are spent, so
/// that a stack's share of the time is right and its cost is bounded.
#[inline(always)]
pub fn held(probe: Probe, ctx: &impl EbpfContext, lock: u32, slot: u32, ns: u64) -> Option<()> {
    let time = HELD.get_ptr_mut(0)?;
    // SAFETY: a value of this CPU's own.
    let time = unsafe {
        *time += ns;
        let spent = *time;
        if spent < QUANTUM_NS {
            return None;
        }
        *time = 0;
        spent
    };
    let _guard = Guard::enter(probe)?;
    let frames = stack::capture(probe, ctx)?;
    let place = stack::keep(frames, Span::Hold.of(lock), slot, probe);
    // As many holds of this length take that time.
    stack::add(place, if ns < time { time / ns.max(1) } else { 1 }, time);
    Some(())
}

/// Time spent in holds on one CPU for each stack that is taken.
const QUANTUM_NS: u64 = 1_000_000;

/// Keeps programs on one CPU apart, as they share scratch space: an interrupt may come between.
pub struct Guard(&'static mut Cpu);

/// What is going on on a CPU.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Cpu {
    /// 1 while a program of this module is at work.
    pub busy: u32,
    /// Waits under way that spin.
    pub spins: u32,
}

impl Guard {
    /// `None`, and a counted loss of `probe`, if another program is at work on this CPU.
    #[inline(always)]
    pub fn enter(probe: Probe) -> Option<Self> {
        // SAFETY: a value of this CPU's own; what comes in between leaves it as it was.
        let cpu = unsafe { &mut *CPU.get_ptr_mut(0)? };
        if cpu.busy != 0 {
            lose(probe, LossCause::Preempted);
            return None;
        }
        cpu.busy = 1;
        Some(Self(cpu))
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.busy = 0;
    }
}
