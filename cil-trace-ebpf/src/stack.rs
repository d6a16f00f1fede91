//! Kernel stacks: which functions of interest they hold, and a place to keep them.

use crate::maps::{FRAMES, RANGES, STACKS};
use crate::stat::{EEXIST, atomic_add, lose, lose_update, now};
use aya_ebpf::EbpfContext;
use aya_ebpf::bindings::{BPF_F_USER_STACK, BPF_NOEXIST};
use aya_ebpf::helpers::generated::bpf_get_stack;
use aya_ebpf::maps::{HashMap, PerCpuArray};
use cil_trace_common::function::MAX_RANGES;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::{DEPTH, LOST, Origin, Stack, StackKey, StackSum};

/// Frames that are searched for groups; the way from a system call to the log is shorter.
const SEARCHED: usize = 32;

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

/// Probes whose program takes stacks by [`capture`]; of each, one program does.
const TAKERS: [Probe; 5] = [
    Probe::Forces,
    Probe::Fsyncs,
    Probe::Iclogs,
    Probe::FlushRequests,
    Probe::Pushes,
];
/// Places in [`FRAMES`].
pub const PLACES: u32 = TAKERS.len() as u32;

/// Where a probe's program keeps its stack; past the last place for one that has none.
#[inline(always)]
const fn place(probe: Probe) -> u32 {
    let mut place = 0;
    while place < TAKERS.len() && TAKERS[place] as u16 != probe as u16 {
        place += 1;
    }
    place as u32
}

/// The current kernel stack; valid until the program ends.
///
/// Since 7.0 a program on a tracepoint may be preempted, and another task's programs run meanwhile on
/// the same CPU. So each program has a place of its own; of itself there is no second run, as the
/// kernel leaves that out (and counts it: [`LossCause::Preempted`]).
#[inline(always)]
pub fn capture(probe: Probe, ctx: &impl EbpfContext) -> Option<&'static mut Stack> {
    let stack = take(&FRAMES, place(probe), ctx, Origin::Tracepoint);
    if stack.is_none() {
        lose(probe, LossCause::StackLost);
    }
    stack
}

/// The current stack in a place of a buffer, where nothing that interrupts this program may use it; `None` if
/// it is empty or the kernel cannot give it.
#[expect(clippy::mut_from_ref, reason = "each CPU has a value of its own")]
#[inline(always)]
pub fn take(
    buffer: &'static PerCpuArray<Stack>,
    place: u32,
    ctx: &impl EbpfContext,
    origin: Origin,
) -> Option<&'static mut Stack> {
    let flags = if origin as u16 == Origin::User as u16 {
        u64::from(BPF_F_USER_STACK)
    } else {
        0
    };
    // SAFETY: a value of this CPU's own, which outlives the program.
    let stack = unsafe { &mut *buffer.get_ptr_mut(place)? };
    // SAFETY: the buffer is exactly as long as stated.
    let size = unsafe {
        bpf_get_stack(
            ctx.as_ptr(),
            stack.frames.as_mut_ptr().cast(),
            size_of::<[u64; DEPTH]>() as u32,
            flags,
        )
    };
    if size <= 0 {
        return None;
    }
    stack.len = size as u32 / size_of::<u64>() as u32;
    stack.origin = origin as u32;
    Some(stack)
}

/// The groups of all functions in a stack.
#[inline(never)]
pub fn groups_in(stack: &Stack, ranges: u32) -> u64 {
    let mut groups = 0;
    for (place, &address) in stack.frames[..SEARCHED].iter().enumerate() {
        if place as u32 >= stack.len {
            break;
        }
        groups |= group_of(address, ranges);
    }
    groups
}

/// Keeps a stack for user space; returns its number, never 0, or [`LOST`].
#[inline(never)]
pub fn keep(probe: Probe, stack: &mut Stack) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ u64::from(stack.origin);
    for (place, &address) in stack.frames.iter().enumerate() {
        if place as u32 >= stack.len {
            break;
        }
        // FNV-1a over words; the shift carries high bits down.
        hash = (hash ^ address).wrapping_mul(0x0000_0100_0000_01b3);
        hash ^= hash >> 29;
    }
    let id = match hash as u32 | 1 {
        LOST => LOST - 2,
        id => id,
    };
    // SAFETY: entries are never changed once they are made.
    if let Some(known) = unsafe { STACKS.get(id) } {
        if known.hash == hash {
            return id;
        }
        lose(probe, LossCause::StackLost);
        return LOST;
    }
    stack.hash = hash;
    let stack: &Stack = stack;
    match STACKS.insert(id, stack, u64::from(BPF_NOEXIST)) {
        Ok(()) | Err(EEXIST) => id,
        Err(error) => {
            lose_update(probe, error);
            LOST
        }
    }
}

/// Adds to the sums of a stack.
#[inline(always)]
pub fn sum(
    map: &HashMap<StackKey, StackSum>,
    probe: Probe,
    key: &StackKey,
    count: u64,
    time_ns: u64,
    bytes: u64,
) {
    if map.get_ptr(key).is_none() {
        let new = StackSum {
            at_ns: now(),
            count,
            time_ns,
            bytes,
        };
        match map.insert(key, new, u64::from(BPF_NOEXIST)) {
            Ok(()) => return,
            // Another CPU made the entry meanwhile.
            Err(EEXIST) => {}
            Err(error) => return lose_update(probe, error),
        }
    }
    if let Some(sum) = map.get_ptr_mut(key) {
        // SAFETY: a map value that outlives the program; addresses are taken, nothing is read.
        let [counts, times, sizes] = unsafe {
            [
                &raw mut (*sum).count,
                &raw mut (*sum).time_ns,
                &raw mut (*sum).bytes,
            ]
        };
        atomic_add(counts, count);
        atomic_add(times, time_ns);
        atomic_add(sizes, bytes);
    }
}
