//! A contended wait, from where it begins to where it ends.
//!
//! What spins stays on its CPU, and an interrupt may wait in between: a stack for each CPU. What
//! sleeps may wake on another CPU: a place for each thread. Both keep the first beginning, as some
//! locks say more than once that they begin to wait.

use super::{Cpu, Guard, holder, name, other, process, stack};
use crate::maps::{HOLDS, SLEEPS, SPINS, WORKLOAD, armed};
use crate::slot;
use crate::stat::{lose, now};
use crate::verifier::forget;
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use cil_trace_common::hold::{find, set_of, tag};
use cil_trace_common::lock::{Lock, Span, Thread, wait_hist};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_common::slot::{NONE, OUT};

/// Places for threads that sleep; a power of two. Threads with neighbouring numbers do not meet.
pub const SLEEPERS: u32 = 1 << 13;
/// Waits that may be nested on a CPU: of a task, and of soft, hard and non-maskable interrupts.
pub const NESTED: u32 = 4;

/// A wait under way. All zero is none.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Wait {
    /// Address of the lock; 0 for none.
    pub address: u64,
    /// When it began.
    pub start: u64,
    /// `struct xfs_inode` of a lock that `xfs_ilock` takes, else 0.
    pub inode: u64,
    /// By which a lock without a name is told apart.
    pub caller: u64,
    /// Number of the [`Lock`].
    pub lock: u32,
    /// The device's number.
    pub slot: u32,
    /// Place of its stack plus 1, or 0.
    pub stack: u32,
    /// The waiting thread.
    pub tid: u32,
    /// Who holds the lock, as far as the lock says so.
    pub holder: Thread,
}

/// A wait begins for the lock at `address`, of which `unknown` says the kind and mode.
#[inline(always)]
pub fn begins(probe: Probe, ctx: &impl EbpfContext, address: u64, unknown: Lock) -> Option<()> {
    let state = armed()?;
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if pid == state.own_pid {
        return None;
    }
    let guard = Guard::enter(probe)?;
    let place = if unknown.kind().sleeps() {
        SLEEPS.get_ptr_mut(tid & (SLEEPERS - 1))?
    } else {
        // What was left behind has no end any more.
        if guard.0.spins >= NESTED {
            guard.0.spins = 0;
        }
        SPINS.get_ptr_mut(guard.0.spins)?
    };
    // SAFETY: a value of this CPU's or this thread's own, that outlives the program.
    let place = unsafe { &mut *place };
    if place.address == address && place.tid == tid {
        return None;
    }
    // Two threads that sleep have one place: the wait of the one before has no end.
    if unknown.kind().sleeps() && place.address != 0 && place.start >= state.since {
        lose(probe, LossCause::MapFull);
    }
    place.address = 0;
    let wait = Wait {
        address,
        start: now(),
        tid,
        ..recognise(probe, ctx, address, unknown, id, state)?
    };
    *place = wait;
    if unknown.kind().sleeps() {
        holder::waited_for(&wait);
    } else {
        guard.0.spins += 1;
    }
    Some(())
}

/// What the lock is; `None` if it is out of scope, or the tracer's own.
#[inline(always)]
fn recognise(
    probe: Probe,
    ctx: &impl EbpfContext,
    address: u64,
    unknown: Lock,
    id: u64,
    state: &State,
) -> Option<Wait> {
    let mut wait = Wait {
        address,
        start: 0,
        inode: 0,
        caller: 0,
        lock: unknown as u32,
        slot: NONE,
        stack: 0,
        tid: 0,
        holder: Thread::NONE,
    };
    if let Some(named) = name::name(address, unknown) {
        wait.lock = forget(named.lock as u64, id) as u32;
        wait.inode = named.inode;
        match slot::find(named.dev) {
            Some(OUT) => return None,
            Some(slot) => wait.slot = slot,
            // Of a filesystem that is not XFS, or is new.
            None if state.filtered != 0 => return None,
            None => {}
        }
    } else if state.other_locks == 0
        || state.filtered != 0 && WORKLOAD.get_ptr((id >> 32) as u32).is_none()
    {
        return None;
    }
    wait.holder = holder::of(address, unknown);
    if let Some(frames) = stack::capture(probe, ctx) {
        if wait.lock >= Lock::NAMED {
            wait.caller = other::caller(frames, id)?;
        }
        wait.stack = stack::keep(frames, Span::Wait.of(wait.lock), wait.slot, probe);
    }
    Some(wait)
}

/// The wait for the lock at `address` is over.
#[inline(always)]
pub fn ends(probe: Probe, address: u64) -> Option<()> {
    let state = armed()?;
    let now = now();
    let id = bpf_get_current_pid_tgid();
    let (pid, tid) = ((id >> 32) as u32, id as u32);
    if pid == state.own_pid {
        return None;
    }
    let guard = Guard::enter(probe)?;
    let wait = spun(&mut *guard.0, address).or_else(|| slept(address, tid))?;
    let ns = now.saturating_sub(wait.start);
    if wait.lock < Lock::NAMED {
        other::record_named(wait_hist(wait.slot, wait.lock), ns);
    } else {
        other::record(probe, wait.caller, wait.lock, ns);
    }
    stack::add(wait.stack, 1, ns);
    process::waited(probe, pid, ns);
    if wait.inode != 0 {
        taken(wait.inode, wait.lock, tid, now);
    }
    holder::released(state, &wait, pid, ns);
    Some(())
}

/// Takes a wait off this CPU's stack, with what lies above it and never ended.
#[inline(always)]
fn spun(cpu: &mut Cpu, address: u64) -> Option<Wait> {
    for index in (0..NESTED).rev() {
        // SAFETY: a value of this CPU's own.
        let wait = unsafe { &mut *SPINS.get_ptr_mut(index)? };
        if index < cpu.spins && wait.address == address {
            cpu.spins = index;
            wait.address = 0;
            return Some(*wait);
        }
    }
    None
}

#[inline(always)]
fn slept(address: u64, tid: u32) -> Option<Wait> {
    // SAFETY: a map value that outlives the program, and no other thread has this number.
    let wait = unsafe { &mut *SLEEPS.get_ptr_mut(tid & (SLEEPERS - 1))? };
    if wait.address != address || wait.tid != tid {
        return None;
    }
    wait.address = 0;
    Some(*wait)
}

/// A lock of an inode has been got: only now its hold begins.
#[inline(always)]
fn taken(inode: u64, lock: u32, tid: u32, now: u64) -> Option<()> {
    let tag = tag(inode, lock);
    let set = HOLDS.get_ptr_mut(set_of(tag, tid))?;
    // SAFETY: a map value that outlives the program; see `hold` on writers side by side.
    find(unsafe { &mut *set }, tag, tid)?.start = now;
    Some(())
}
