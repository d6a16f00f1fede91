//! Waits for locks that have no name of their own: by the function that waits.

use crate::maps::{LOCK_HISTS, OTHERS};
use crate::stack::group_of;
use crate::stat::{lose, record_in};
use crate::verifier::forget;
use cil_trace_common::function::Group;
use cil_trace_common::lock::Frames;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;

/// Places for them on each CPU; a power of two.
pub const OTHER_PLACES: u32 = 128;
/// Places that are looked at for one.
const STEPS: u32 = 8;
/// Frames that the tracer and the lock itself take at most at the top of a stack.
const TOP: usize = 12;

/// Where the function that waits has called the lock's functions; `None` if it is one of BPF itself,
/// whose locks are the tracer's own. `id` is any number, see [`forget`].
#[inline(always)]
pub fn caller(frames: &Frames, id: u64) -> Option<u64> {
    let (mut inside, mut caller, mut of_bpf) = (0, 0, 0);
    for &address in &frames[..TOP] {
        let group = group_of(address);
        if group == Group::Locking.bit() {
            // What stood between two of the lock's functions was the tracer's trampoline.
            (inside, caller) = (1, 0);
        } else if inside != 0 {
            if caller != 0 {
                break;
            }
            (caller, of_bpf) = (address, u64::from(group == Group::Bpf.bit()));
        }
        inside = forget(inside, id);
        caller = forget(caller, id);
        of_bpf = forget(of_bpf, id);
    }
    (of_bpf == 0).then_some(caller)
}

/// Records a wait.
#[inline(always)]
pub fn record(probe: Probe, caller: u64, lock: u32, ns: u64) {
    let lock = u64::from(lock);
    let first = ((caller ^ lock << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
    for step in 0..STEPS {
        let Some(other) = OTHERS.get_ptr_mut(first.wrapping_add(step) & (OTHER_PLACES - 1)) else {
            return;
        };
        // SAFETY: a value of this CPU's own.
        let other = unsafe { &mut *other };
        if other.waits.count == 0 {
            other.caller = caller;
            other.lock = lock;
        }
        if other.caller == caller && other.lock == lock {
            record_in(&raw mut other.waits, ns);
            return;
        }
    }
    lose(probe, LossCause::MapFull);
}

/// Records a wait for a named lock.
#[inline(always)]
pub fn record_named(index: u32, ns: u64) {
    if let Some(hist) = LOCK_HISTS.get_ptr_mut(index) {
        record_in(hist, ns);
    }
}
