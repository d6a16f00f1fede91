//! Kernel stacks: which functions of interest they hold, and a place to keep them.

use crate::maps::{FRAMES, NEW_STACK, RANGES, STACKS};
use crate::stat::{EEXIST, lose, lose_update};
use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::BPF_NOEXIST;
use aya_ebpf::helpers::generated::bpf_get_stack;
use cil_trace_common::function::MAX_RANGES;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;

/// Frames that are looked at; the way from a system call to the log is shorter.
pub const DEPTH: usize = 32;

/// Return addresses, leaf first.
pub type Frames = [u64; DEPTH];

/// A stack that user space reads.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stack {
    /// All 64 bits of the hash, to tell stacks of one id apart.
    pub hash: u64,
    /// Its frames; 0 past the last.
    pub frames: Frames,
}

/// The bit of the group whose code holds `address`, or 0.
///
/// Finds the last range that begins at or before it, bit by bit of its index: so the verifier knows
/// each index, and no bounds that it could get wrong (some builds of 6.18 do, and write a warning to
/// the kernel's log).
#[inline(always)]
pub fn group_of(address: u64, ranges: u32) -> u64 {
    let mut index = 0;
    let mut bit = MAX_RANGES as u32 / 2;
    while bit != 0 {
        let candidate = index | bit;
        if candidate < ranges
            && RANGES
                .get(candidate)
                .is_some_and(|range| range.start <= address)
        {
            index = candidate;
        }
        bit /= 2;
    }
    match RANGES.get(index) {
        Some(range) if range.start <= address && address < range.end => range.group,
        _ => 0,
    }
}

/// The current kernel stack; valid until the next call on this CPU.
#[inline(always)]
pub fn capture(probe: Probe, ctx: &impl EbpfContext) -> Option<&'static Frames> {
    let frames = FRAMES.get_ptr_mut(0)?;
    // SAFETY: the buffer is a map value of exactly this size.
    let size = unsafe {
        *frames = [0; DEPTH];
        bpf_get_stack(ctx.as_ptr(), frames.cast(), size_of::<Frames>() as u32, 0)
    };
    if size <= 0 {
        lose(probe, LossCause::StackLost);
        return None;
    }
    // SAFETY: the value outlives the program.
    Some(unsafe { &*frames })
}

/// The groups of all functions in a stack.
#[inline(never)]
pub fn groups_in(frames: &Frames, ranges: u32) -> u64 {
    let mut groups = 0;
    for &address in frames {
        if address == 0 {
            break;
        }
        groups |= group_of(address, ranges);
    }
    groups
}

/// Keeps a stack for user space; returns its id, never 0, or 0 if it is lost.
#[inline(never)]
pub fn keep(frames: &Frames) -> u32 {
    let probe = Probe::FlushRequests;
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &address in frames {
        // FNV-1a over words; the shift carries high bits down.
        hash = (hash ^ address).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    let id = hash as u32 | 1;
    // SAFETY: entries are never changed or removed once they are made.
    if let Some(stack) = unsafe { STACKS.get(id) } {
        if stack.hash == hash {
            return id;
        }
        lose(probe, LossCause::StackLost);
        return 0;
    }
    let Some(new) = NEW_STACK.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: a value of this CPU's own.
    let new = unsafe {
        (*new).hash = hash;
        (*new).frames = *frames;
        &*new
    };
    match STACKS.insert(id, new, u64::from(BPF_NOEXIST)) {
        Ok(()) | Err(EEXIST) => id,
        Err(error) => {
            lose_update(probe, error);
            0
        }
    }
}
