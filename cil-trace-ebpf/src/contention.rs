//! Where a lock's slow path begins and ends: by its functions, else by `lock:contention_*`.
//!
//! The tracepoints come after a spinlock's pending bit and an rwsem's optimistic spinning, and do not
//! see those; the functions do. Which lock kinds are taken from the tracepoints is in the state.
#![expect(
    non_snake_case,
    reason = "programs bear the names of the kernel's functions"
)]

use crate::lock::{begins, ends};
use crate::maps::armed;
use crate::{commit, ctx_lock};
use aya_ebpf::EbpfContext;
use aya_ebpf::macros::{fentry, fexit, raw_tracepoint};
use aya_ebpf::programs::{FEntryContext, FExitContext, RawTracePointContext};
use cil_trace_common::lock::{Kind, Lock};
use cil_trace_common::probe::Probe;

/// `flags` of `lock:contention_begin` (include/trace/events/lock.h); none is a semaphore.
const LCB_F_SPIN: u32 = 1;
const LCB_F_READ: u32 = 2;
const LCB_F_WRITE: u32 = 4;
const LCB_F_RT: u32 = 8;
const LCB_F_MUTEX: u32 = 32;

/// The probe of a lock kind's waits.
const fn probe_of(kind: Kind) -> Probe {
    match kind {
        Kind::Spin => Probe::SpinWaits,
        Kind::Rwlock => Probe::RwlockWaits,
        Kind::Rwsem => Probe::RwsemWaits,
        Kind::Mutex => Probe::MutexWaits,
        Kind::Semaphore => Probe::SemaphoreWaits,
    }
}

/// Kind and mode of a lock from the flags of its event.
#[inline(always)]
const fn unknown(flags: u32) -> Lock {
    if flags & (LCB_F_MUTEX | LCB_F_RT) != 0 {
        Lock::OtherMutex
    } else if flags & (LCB_F_SPIN | LCB_F_READ) == LCB_F_SPIN | LCB_F_READ {
        Lock::OtherRead
    } else if flags & (LCB_F_SPIN | LCB_F_WRITE) == LCB_F_SPIN | LCB_F_WRITE {
        Lock::OtherWrite
    } else if flags & LCB_F_SPIN != 0 {
        Lock::OtherSpin
    } else if flags & LCB_F_READ != 0 {
        Lock::OtherShared
    } else if flags & LCB_F_WRITE != 0 {
        Lock::OtherExclusive
    } else {
        Lock::OtherSemaphore
    }
}

#[raw_tracepoint(tracepoint = "contention_begin")]
pub fn contention_begin(ctx: RawTracePointContext) -> i32 {
    let Some(state) = armed() else { return 0 };
    let (address, flags) = (ctx.arg::<u64>(0), ctx.arg::<u32>(1));
    let lock = unknown(flags);
    if state.rwsem_by_function == 0 && lock as u32 == Lock::OtherShared as u32 {
        commit::waits_for_lock(address);
    }
    if state.by_event & 1 << lock.kind() as u32 != 0 {
        begins(probe_of(lock.kind()), &ctx, address, lock);
    }
    0
}

#[raw_tracepoint(tracepoint = "contention_end")]
pub fn contention_end(ctx: RawTracePointContext) -> i32 {
    let Some(state) = armed() else { return 0 };
    let address = ctx.arg::<u64>(0);
    if state.rwsem_by_function == 0 {
        commit::got_lock(address);
        ctx_lock::got(address);
    }
    if state.by_event != 0 {
        ends(Probe::SpinWaits, address);
    }
    0
}

macro_rules! slow_paths {
    ($( $fentry:ident, $fexit:ident => $lock:ident; )+) => {
        $(
            #[fentry(function = "_")]
            pub fn $fentry(ctx: FEntryContext) -> i32 {
                enters(&ctx, ctx.arg(0), Lock::$lock);
                0
            }
            #[fexit(function = "_")]
            pub fn $fexit(ctx: FExitContext) -> i32 {
                leaves(ctx.arg(0), Lock::$lock);
                0
            }
        )+
    };
}

slow_paths! {
    fentry_native_queued_spin_lock_slowpath, fexit_native_queued_spin_lock_slowpath => OtherSpin;
    fentry___pv_queued_spin_lock_slowpath, fexit___pv_queued_spin_lock_slowpath => OtherSpin;
    fentry_queued_read_lock_slowpath, fexit_queued_read_lock_slowpath => OtherRead;
    fentry_queued_write_lock_slowpath, fexit_queued_write_lock_slowpath => OtherWrite;
    fentry_rwsem_down_read_slowpath, fexit_rwsem_down_read_slowpath => OtherShared;
    fentry_rwsem_down_write_slowpath, fexit_rwsem_down_write_slowpath => OtherExclusive;
    fentry___mutex_lock_slowpath, fexit___mutex_lock_slowpath => OtherMutex;
    fentry___down, fexit___down => OtherSemaphore;
}

#[inline(always)]
fn enters(ctx: &impl EbpfContext, address: u64, lock: Lock) {
    if matches!(lock, Lock::OtherShared) {
        commit::waits_for_lock(address);
    }
    if armed().is_some_and(|state| state.by_function & 1 << lock.kind() as u32 != 0) {
        begins(probe_of(lock.kind()), ctx, address, lock);
    }
}

#[inline(always)]
fn leaves(address: u64, lock: Lock) {
    match lock {
        Lock::OtherShared => commit::got_lock(address),
        Lock::OtherExclusive => ctx_lock::got(address),
        _ => {}
    }
    ends(probe_of(lock.kind()), address);
}
