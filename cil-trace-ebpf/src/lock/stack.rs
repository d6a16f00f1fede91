//! Stacks of waits, holds and holders, and what they sum up to.
//!
//! A place is found by hash and taken without a lock. Two CPUs that take one at the same moment mix
//! their frames, which user space sees by the hash.

use crate::maps::{LOCK_FRAMES, LOCK_STACKS};
use crate::stat::{atomic_add, lose};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::generated::bpf_get_stack;
use cil_trace_common::lock::{Frames, LockStack};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;

/// Places for stacks; a power of two.
pub const STACK_PLACES: u32 = 1 << 12;
/// Places that are looked at for one stack.
const STEPS: u32 = 8;

/// The current kernel stack, in this CPU's scratch space: only under a [`super::Guard`].
#[inline(always)]
pub fn capture(probe: Probe, ctx: &impl EbpfContext) -> Option<&'static Frames> {
    let frames = LOCK_FRAMES.get_ptr_mut(0)?;
    // SAFETY: the buffer is a map value of exactly this size.
    let size = unsafe { bpf_get_stack(ctx.as_ptr(), frames.cast(), size_of::<Frames>() as u32, 0) };
    captured(probe, frames, size)
}

/// The frames of which the kernel has written `size` bytes.
#[inline(always)]
pub fn captured(probe: Probe, frames: *mut Frames, size: i64) -> Option<&'static Frames> {
    if size <= 0 {
        lose(probe, LossCause::StackLost);
        return None;
    }
    // SAFETY: a map value of this CPU's own. The kernel clears what it does not fill.
    Some(unsafe { &*frames })
}

/// The place of a stack plus 1, taken if need be; 0 if there is none left.
#[inline(never)]
pub fn keep(frames: &Frames, what: u32, slot: u32, probe: Probe) -> u32 {
    let hash = LockStack::hash_of(frames, what, slot);
    for step in 0..STEPS {
        let place = ((hash >> 32) as u32).wrapping_add(step) & (STACK_PLACES - 1);
        let Some(stack) = LOCK_STACKS.get_ptr_mut(place) else {
            return 0;
        };
        // SAFETY: a map value that outlives the program; see above on writers side by side.
        let stack = unsafe { &mut *stack };
        if stack.hash == 0 {
            stack.what = what;
            stack.slot = slot;
            stack.frames = *frames;
            stack.hash = hash;
        }
        if stack.hash == hash {
            return place + 1;
        }
    }
    lose(probe, LossCause::StackLost);
    0
}

/// Adds to what a stack sums up to.
#[inline(always)]
pub fn add(place_plus_1: u32, count: u64, ns: u64) {
    if place_plus_1 != 0
        && let Some(stack) = LOCK_STACKS.get_ptr_mut(place_plus_1 - 1)
    {
        // SAFETY: a map value that outlives the program; the addresses are taken, nothing is read.
        unsafe {
            atomic_add(&raw mut (*stack).count, count);
            atomic_add(&raw mut (*stack).ns, ns);
        }
    }
}
