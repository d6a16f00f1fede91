//! `xfs_ilock` and what belongs to it: which locks of inodes are taken, by whom, and how long they
//! are held.
//!
//! The most frequent events after the scheduler's: up to a million a second on a CPU. What is
//! counted exactly costs one addition in an array. The rest, with its clock reading, is done for 1
//! in N inodes, chosen by address, so that every lock that is followed has its end.

use crate::kernel::{MOUNT_SUPER, PREEMPTIBLE, SUPER_DEV, XINODE_MOUNT, dev_of_inode};
use crate::lock::{self, SLEEPERS};
use crate::maps::{ASKED, CALLERS, CALLS, HOLDS, LOCK_HISTS, POINTER, STATE};
use crate::slot;
use crate::stat::{atomic_add, lose, now, record_in};
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_probe_read_kernel};
use aya_ebpf::macros::{btf_tracepoint, fexit, kretprobe, raw_tracepoint};
use aya_ebpf::programs::{
    BtfTracePointContext, FExitContext, RawTracePointContext, RetProbeContext,
};
use cil_trace_common::hold::{self, Found, Hold, set_of, tag};
use cil_trace_common::lock::{Caller, Calls, FLAGS, Lock, hold_hist, sampled};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_common::slot::OUT;

/// `lock_flags` holds lockdep's subclass above the locks (`XFS_LOCK_MASK`, fs/xfs/xfs_inode.h).
const LOCKS: u32 = FLAGS as u32 - 1;
/// `XFS_IOLOCK_EXCL | XFS_ILOCK_EXCL | XFS_MMAPLOCK_EXCL`; the bit above each is the same lock, shared.
const EXCLUSIVE: u32 = 0b01_0101;
/// A lock that comes this much later than a trylock of the same inode has another reason.
const SOON_NS: u64 = 10_000_000;
/// Places that are looked at for a caller.
const STEPS: u32 = 8;
/// Places for callers; a power of two.
pub const PLACES: u32 = 1 << 10;

/// A call under way. All zero is none.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Asked {
    /// `struct xfs_inode`; 0 for none.
    pub inode: u64,
    /// The calling thread.
    pub tid: u32,
    /// The locks.
    pub flags: u32,
    /// The device's number; [`OUT`] if it does not count.
    pub slot: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
}

/// What an event says.
#[derive(Clone, Copy)]
struct Call<I> {
    /// The inode as the program was given it, to read from.
    given: I,
    inode: u64,
    flags: u32,
    caller: u64,
}

/// A `struct xfs_inode`.
trait Inode: Copy {
    /// `dev_t` of its filesystem; `None` if that cannot be read. Looked up last: most events are
    /// over before.
    fn dev(self) -> Option<u32>;
}

/// An address.
impl Inode for u64 {
    #[inline(always)]
    fn dev(self) -> Option<u32> {
        dev_of_inode(self)
    }
}

/// A pointer of which the verifier knows what it points to: it takes no helper.
impl Inode for *const u8 {
    #[inline(always)]
    fn dev(self) -> Option<u32> {
        // Since 6.13, and Debian's 6.12.118, the argument of a tracepoint may be null to the verifier.
        if self.is_null() {
            return None;
        }
        // SAFETY: the verifier checks each offset against the type, and a bad address reads as 0.
        unsafe {
            let mount = *self.add(XINODE_MOUNT.load() as usize).cast::<*const u8>();
            let superblock = *mount.add(MOUNT_SUPER.load() as usize).cast::<*const u8>();
            Some(*superblock.add(SUPER_DEV.load() as usize).cast::<u32>())
        }
    }
}

macro_rules! events {
    ($( $btf:ident, $raw:ident, $event:literal => $body:path; )+) => {
        $(
            #[btf_tracepoint(function = $event)]
            pub fn $btf(ctx: BtfTracePointContext) -> i32 {
                let given: *const u8 = ctx.arg(0);
                if let Some(inode) = address(&ctx, given) {
                    let (flags, caller) = (ctx.arg::<u32>(1) & LOCKS, ctx.arg(2));
                    $body(&ctx, Call { given, inode, flags, caller });
                }
                0
            }
            #[raw_tracepoint(tracepoint = $event)]
            pub fn $raw(ctx: RawTracePointContext) -> i32 {
                let inode: u64 = ctx.arg(0);
                let (flags, caller) = (ctx.arg::<u32>(1) & LOCKS, ctx.arg(2));
                $body(&ctx, Call { given: inode, inode, flags, caller });
                0
            }
        )+
    };
}

events! {
    btf_xfs_ilock, xfs_ilock, "xfs_ilock" => locks;
    btf_xfs_ilock_nowait, xfs_ilock_nowait, "xfs_ilock_nowait" => tries;
    btf_xfs_iunlock, xfs_iunlock, "xfs_iunlock" => unlocked;
    btf_xfs_ilock_demote, xfs_ilock_demote, "xfs_ilock_demote" => demoted;
}

/// A program's first argument as a number, which the verifier lets a pointer become on the way
/// through a map, or through a helper, which costs more.
#[inline(always)]
fn address(ctx: &impl EbpfContext, pointer: *const u8) -> Option<u64> {
    if PREEMPTIBLE.load() != 0 {
        // SAFETY: bpf_probe_read_kernel checks the address.
        return unsafe { bpf_probe_read_kernel(ctx.as_ptr().cast::<u64>()) }.ok();
    }
    let place = POINTER.get_ptr_mut(0)?;
    // SAFETY: a value of this CPU's own.
    unsafe {
        place.write_volatile(pointer as u64);
        Some(place.read_volatile())
    }
}

impl<I: Inode> Call<I> {
    /// The number of the device for which this call counts; [`OUT`] if it does not.
    #[inline(always)]
    fn slot(self, state: &State) -> u32 {
        if state.armed == 0 {
            return OUT;
        }
        let dev = self.given.dev();
        dev.map_or(OUT, |dev| slot::of_filesystem(Probe::Ilock, dev))
    }

    #[inline(always)]
    fn is_sampled(self, state: &State) -> bool {
        sampled(self.inode, state.sampling)
    }
}

/// The current thread, unless it is cil-trace's.
#[inline(always)]
fn thread(state: &State) -> Option<u32> {
    let id = bpf_get_current_pid_tgid();
    ((id >> 32) as u32 != state.own_pid).then_some(id as u32)
}

/// Adds 1 to the element of `field` for these locks; there is none for [`OUT`].
macro_rules! count {
    ($slot:expr, $field:ident, $flags:expr) => {
        if let Some(calls) = CALLS.get_ptr_mut($slot) {
            let calls: *mut Calls = calls;
            // SAFETY: the index is masked.
            increment(unsafe { &raw mut (*calls).$field[($flags & LOCKS) as usize] });
        }
    };
}

/// Adds 1 to a value of this CPU's own, at the least cost.
#[inline(always)]
fn increment(count: *mut u64) {
    if PREEMPTIBLE.load() != 0 {
        atomic_add(count, 1);
    } else {
        // SAFETY: a map value that outlives the program; nothing comes between.
        unsafe { *count += 1 };
    }
}

/// Before `xfs_ilock` takes anything.
#[inline(always)]
fn locks(_: &impl EbpfContext, call: Call<impl Inode>) -> Option<()> {
    let state = STATE.get(0)?;
    let tid = thread(state)?;
    let slot = call.slot(state);
    count!(slot, locked, call.flags);
    ask(state, call, tid, slot);
    if call.is_sampled(state) {
        begin(call, tid, 0, slot, state.ends & State::ILOCK_RETURN != 0);
    }
    Some(())
}

/// Before `xfs_ilock_nowait` tries anything.
#[inline(always)]
fn tries(_: &impl EbpfContext, call: Call<impl Inode>) -> Option<()> {
    let state = STATE.get(0)?;
    let tid = thread(state)?;
    let slot = call.slot(state);
    count!(slot, tried, call.flags);
    ask(state, call, tid, slot);
    if call.is_sampled(state) {
        begin(call, tid, 1, slot, true);
    }
    Some(())
}

/// Remembers a call for its return, if that is seen by a probe without the arguments.
#[inline(always)]
fn ask(state: &State, call: Call<impl Inode>, tid: u32, slot: u32) {
    if state.ends & State::ILOCK_ASKED != 0
        && let Some(asked) = ASKED.get_ptr_mut(tid & (SLEEPERS - 1))
    {
        // SAFETY: a map value that outlives the program, and no other thread has this number.
        unsafe {
            *asked = Asked {
                inode: call.inode,
                tid,
                flags: call.flags,
                slot,
                reserved: 0,
            };
        }
    }
}

/// Each of the locks in `flags`, by its bit number; no call takes one both ways.
#[inline(always)]
fn each_lock(flags: u32, mut body: impl FnMut(u32)) {
    let mut left = flags;
    for lock in 0..Lock::OF_ILOCK / 2 {
        let mode = left & 3;
        if mode != 0 {
            body(2 * lock + (mode >> 1 & 1));
        }
        // The verifier of 5.10 refuses a loop whose last instruction is a call, so one has to follow.
        // SAFETY: a variable of this function.
        left = unsafe { (&raw const left).read_volatile() } >> 2;
    }
}

/// Puts a hold in place for each lock that is asked for. Waits that follow move its beginning.
#[inline(always)]
fn begin(call: Call<impl Inode>, tid: u32, tried: u32, slot: u32, returns: bool) {
    // Where returns are probed, the caller is hidden from the event.
    if tried == 0 && slot != OUT && !returns {
        called(call.caller, Caller::key(slot, call.flags));
    }
    let start = now();
    each_lock(call.flags, |bit| {
        let hold = Hold {
            tag: tag(call.inode, bit),
            start,
            tid,
            tried,
        };
        put(&hold, slot, bit);
    });
}

#[inline(never)]
fn put(hold: &Hold, slot: u32, bit: u32) {
    let Some(set) = HOLDS.get_ptr_mut(set_of(hold.tag, hold.tid)) else {
        return;
    };
    // SAFETY: a map value that outlives the program; see `hold` on writers side by side.
    match hold::begin(unsafe { &mut *set }, *hold) {
        Found::Tried(at) if hold.tried == 0 && hold.start - at < SOON_NS => {
            if let Some(calls) = CALLS.get_ptr_mut(slot)
                && bit < Lock::OF_ILOCK
            {
                // SAFETY: the index is in bounds.
                increment(unsafe { &raw mut (*calls).after_try[bit as usize] });
            }
        }
        // One from before the window was begun while the programs were still being attached.
        Found::Open(at) if slot != OUT && STATE.get(0).is_some_and(|state| at >= state.since) => {
            lose(Probe::Ilock, LossCause::Unpaired);
        }
        _ => {}
    }
}

/// Counts a call by the place in the code that it came from.
#[inline(never)]
fn called(address: u64, key: u64) {
    let first = ((address ^ key << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
    for step in 0..STEPS {
        let Some(caller) = CALLERS.get_ptr_mut((first + step) & (PLACES - 1)) else {
            return;
        };
        // SAFETY: a value of this CPU's own.
        let caller = unsafe { &mut *caller };
        if caller.address == 0 {
            caller.address = address;
            caller.key = key;
        }
        if caller.address == address && caller.key == key {
            increment(&raw mut caller.count);
            return;
        }
    }
    lose(Probe::Ilock, LossCause::MapFull);
}

/// After `xfs_iunlock` has given everything back.
#[inline(always)]
fn unlocked(ctx: &impl EbpfContext, call: Call<impl Inode>) -> Option<()> {
    let state = STATE.get(0)?;
    if !call.is_sampled(state) {
        return None;
    }
    let tid = thread(state)?;
    let slot = call.slot(state);
    let now = now();
    each_lock(call.flags, |bit| {
        end(ctx, call.inode, bit, tid, slot, now, state);
    });
    Some(())
}

/// After the locks in `flags` became shared.
#[inline(always)]
fn demoted(ctx: &impl EbpfContext, call: Call<impl Inode>) -> Option<()> {
    let state = STATE.get(0)?;
    if !call.is_sampled(state) {
        return None;
    }
    let tid = thread(state)?;
    let slot = call.slot(state);
    let start = now();
    each_lock(call.flags & EXCLUSIVE, |bit| {
        end(ctx, call.inode, bit, tid, slot, start, state);
        let hold = Hold {
            tag: tag(call.inode, bit + 1),
            start,
            tid,
            tried: 0,
        };
        put(&hold, slot, bit + 1);
    });
    Some(())
}

/// Takes a hold out and records it, if all of it lies in the window.
#[inline(always)]
fn end(ctx: &impl EbpfContext, inode: u64, bit: u32, tid: u32, slot: u32, now: u64, state: &State) {
    let start = take(tag(inode, bit), tid);
    if slot == OUT || start != 0 && start < state.since {
        return;
    }
    if start == 0 {
        return lose(Probe::Ilock, LossCause::Unpaired);
    }
    let ns = now - start;
    if let Some(hist) = LOCK_HISTS.get_ptr_mut(hold_hist(slot, bit)) {
        if PREEMPTIBLE.load() != 0 {
            record_in(hist, ns);
        } else {
            // SAFETY: a value of this CPU's own; nothing comes between.
            unsafe { (*hist).record(ns) };
        }
    }
    lock::held(Probe::Ilock, ctx, bit, slot, ns);
}

/// Takes a hold out; when it began, or 0 if there is none.
#[inline(never)]
fn take(tag: u64, tid: u32) -> u64 {
    HOLDS.get_ptr_mut(set_of(tag, tid)).map_or(0, |set| {
        // SAFETY: as in `put`.
        hold::end(unsafe { &mut *set }, tag, tid).unwrap_or(0)
    })
}

#[fexit(function = "_")]
pub fn fexit_xfs_ilock(ctx: FExitContext) -> i32 {
    with_arguments(&ctx, true);
    0
}

#[fexit(function = "_")]
pub fn fexit_xfs_ilock_nowait(ctx: FExitContext) -> i32 {
    with_arguments(&ctx, false);
    0
}

#[kretprobe]
pub fn kretprobe_xfs_ilock(ctx: RetProbeContext) -> u32 {
    as_asked(&ctx, true);
    0
}

#[kretprobe]
pub fn kretprobe_xfs_ilock_nowait(ctx: RetProbeContext) -> u32 {
    as_asked(&ctx, false);
    0
}

/// A call returns, seen with its arguments.
#[inline(always)]
fn with_arguments(ctx: &FExitContext, blocking: bool) -> Option<()> {
    let state = STATE.get(0)?;
    let pointer: *const u8 = ctx.arg(0);
    let call = Call {
        given: pointer,
        inode: address(ctx, pointer)?,
        flags: ctx.arg::<u32>(1) & LOCKS,
        caller: 0,
    };
    let got = blocking || ctx.arg::<u32>(2) != 0;
    if got && !call.is_sampled(state) {
        return None;
    }
    let (tid, slot) = (thread(state)?, call.slot(state));
    if blocking && slot != OUT {
        called(behind_trampoline(ctx), Caller::key(slot, call.flags));
    }
    returned(state, call.inode, call.flags, tid, slot, got)
}

/// The caller of the function at whose end this runs. The function itself sees the trampoline in its
/// place.
///
/// Above a trampoline's copy of arguments and return value stand its caller's frame pointer, the
/// function's own return into the trampoline, and this address (`arch_prepare_bpf_trampoline`,
/// arch/x86/net/bpf_jit_comp.c, from 5.10 on).
#[inline(always)]
fn behind_trampoline(ctx: &FExitContext) -> u64 {
    /// Of `xfs_ilock`.
    const ARGUMENTS: u64 = 2;
    if cfg!(bpf_target_arch = "x86_64") {
        let place = ctx.as_ptr() as u64 + (ARGUMENTS + 3) * 8;
        // SAFETY: bpf_probe_read_kernel checks the address.
        unsafe { bpf_probe_read_kernel(place as *const u64) }.unwrap_or(0)
    } else {
        0
    }
}

/// A call returns; its arguments are those that its event had.
#[inline(always)]
fn as_asked(ctx: &RetProbeContext, blocking: bool) -> Option<()> {
    let state = STATE.get(0)?;
    let tid = thread(state)?;
    // SAFETY: a map value that outlives the program, and no other thread has this number.
    let asked = unsafe { &mut *ASKED.get_ptr_mut(tid & (SLEEPERS - 1))? };
    if asked.inode == 0 || asked.tid != tid {
        return None;
    }
    let Asked {
        inode, flags, slot, ..
    } = *asked;
    asked.inode = 0;
    if blocking && slot != OUT && sampled(inode, state.sampling) {
        called(returns_to(ctx), Caller::key(slot, flags));
    }
    let got = blocking || ctx.ret::<u32>() != 0;
    returned(state, inode, flags, tid, slot, got)
}

/// Where a function returns to whose return is probed (since 5.15: bf094cffea2a, "x86/kprobes: Fixup
/// return address in generic trampoline handler").
#[inline(always)]
fn returns_to(ctx: &RetProbeContext) -> u64 {
    // SAFETY: a kretprobe's context is the registers.
    let registers = unsafe { &*ctx.regs };
    #[cfg(bpf_target_arch = "x86_64")]
    {
        registers.rip
    }
    #[cfg(not(bpf_target_arch = "x86_64"))]
    {
        let _ = registers;
        0
    }
}

/// The holds begin, or the trylock has failed.
#[inline(always)]
fn returned(state: &State, inode: u64, flags: u32, tid: u32, slot: u32, got: bool) -> Option<()> {
    if !got {
        count!(slot, failed, flags);
        return None;
    }
    if !sampled(inode, state.sampling) {
        return None;
    }
    let now = now();
    each_lock(flags, |bit| {
        let tag = tag(inode, bit);
        let Some(set) = HOLDS.get_ptr_mut(set_of(tag, tid)) else {
            return;
        };
        // SAFETY: as in `put`.
        if let Some(hold) = hold::find(unsafe { &mut *set }, tag, tid) {
            hold.start = now;
            hold.tried = 0;
        }
    });
    Some(())
}
