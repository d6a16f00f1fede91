//! Who holds a lock that is waited for, where it sleeps meanwhile, and what it waits for itself.
//!
//! Locks that sleep know their holder. From the moment that somebody waits for it, the holder is
//! wanted: when it is woken its stack says where it has slept, whenever it went to sleep. The
//! longest waits of each lock are kept with what was found out.

use super::wait::Wait;
use super::{Guard, stack};
use crate::kernel::{
    MUTEX_OWNER, RWSEM_OWNER, SEMAPHORE_HOLDER, TASK_COMM, TASK_PID, TASK_TGID, read,
};
use crate::maps::{BLOCKED, LOCK_FRAMES, SLEEPS, WANTED, armed};
use crate::stat::{atomic_add, now};
use aya_ebpf::helpers::generated::bpf_get_task_stack;
use aya_ebpf::helpers::{bpf_get_current_comm, bpf_get_current_pid_tgid};
use aya_ebpf::macros::btf_tracepoint;
use aya_ebpf::programs::BtfTracePointContext;
use cil_trace_common::lock::{Blocked, Frames, Lock, Next, Span, Thread};
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;

/// Places for threads that are waited for; a power of two.
pub const WANTED_PLACES: u32 = 1 << 10;
/// Waits that are kept of each lock, on each CPU and in each reading.
pub const KEPT: u32 = 2;
/// A shorter sleep explains nothing, and its stack costs a microsecond.
const SHORT_NS: u64 = 50_000;
/// A holder that nobody has given up waiting for in this time is one whose waiters were lost.
const STALE_NS: u64 = 60_000_000_000;

/// Bits of `owner` that are flags: of rwsems and mutexes (kernel/locking/rwsem.c, mutex.h).
const OWNER_FLAGS: u64 = 7;
/// In an rwsem's owner: the last reader, of perhaps several, and perhaps gone.
const READER_OWNED: u64 = 1;

/// A thread that holds a lock for which others wait. All zero is a free place.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Wanted {
    /// Thread id; 0 for none.
    pub tid: u32,
    /// Place of its stack plus 1, or 0.
    pub stack: u32,
    /// How many wait for it.
    pub waiters: u64,
    /// 1 once it has woken a waiter: what it does from then on is in nobody's way.
    pub released: u64,
    /// Since when it may have slept: it was wanted, or has been woken.
    pub since: u64,
    /// How long the sleep was that `stack` is of.
    pub slept_ns: u64,
    /// The lock that it has waited for itself, the longest such wait.
    pub next: Next,
}

/// Who holds a lock, as far as the lock says so.
#[inline(always)]
pub fn of(address: u64, unknown: Lock) -> Thread {
    let owner = match unknown {
        Lock::OtherShared | Lock::OtherExclusive => read::<u64>(address, &RWSEM_OWNER),
        Lock::OtherMutex => read(address, &MUTEX_OWNER),
        Lock::OtherSemaphore => read(address, &SEMAPHORE_HOLDER),
        _ => None,
    };
    owner.and_then(thread).unwrap_or(Thread::NONE)
}

#[inline(always)]
fn thread(owner: u64) -> Option<Thread> {
    let task = owner & !OWNER_FLAGS;
    Some(Thread {
        pid: read(task, &TASK_TGID)?,
        tid: read(task, &TASK_PID)?,
        reader: (owner & READER_OWNED) as u32,
        reserved: 0,
        comm: read(task, &TASK_COMM)?,
    })
}

/// A wait has begun that sleeps: its holder is wanted from now on, and if the waiter is wanted
/// itself, the chain has a link more.
#[inline(always)]
pub fn waited_for(wait: &Wait) -> Option<()> {
    if let Some(waiter) = wanted(wait.tid) {
        // SAFETY: see `Wanted`'s map: a race costs one link of a chain.
        unsafe { (*waiter).next = next(wait, 0) };
    }
    let tid = wait.holder.tid;
    if tid == 0 || tid == wait.tid {
        return None;
    }
    let place = WANTED.get_ptr_mut(tid & (WANTED_PLACES - 1))?;
    // SAFETY: a map value that outlives the program. Of two waiters that mark different holders in
    // one place at the same moment, one learns nothing of its holder.
    unsafe {
        let free = (*place).waiters == 0 || wait.start - (*place).since > STALE_NS;
        if free {
            *place = Wanted {
                tid,
                stack: 0,
                waiters: 0,
                released: 0,
                since: wait.start,
                slept_ns: 0,
                next: chained(tid),
            };
        }
        if (*place).tid == tid {
            atomic_add(&raw mut (*place).waiters, 1);
            (*place).released = 0;
        }
    }
    Some(())
}

/// What a thread waits for already, if it is a lock.
#[inline(always)]
fn chained(tid: u32) -> Next {
    match SLEEPS.get(tid & (super::SLEEPERS - 1)) {
        Some(wait) if wait.tid == tid && wait.address != 0 => next(wait, 0),
        _ => Next::NONE,
    }
}

#[inline(always)]
fn next(wait: &Wait, ns: u64) -> Next {
    Next {
        lock: wait.lock + 1,
        slot: wait.slot,
        ns,
        caller: wait.caller,
        holder: wait.holder,
    }
}

/// A thread's entry, if somebody waits for it.
#[inline(always)]
fn wanted(tid: u32) -> Option<*mut Wanted> {
    let place = WANTED.get_ptr_mut(tid & (WANTED_PLACES - 1))?;
    // SAFETY: a map value that outlives the program.
    unsafe { ((*place).tid == tid && (*place).waiters != 0).then_some(place) }
}

/// A wait is over. If it is one of the longest, it is kept with what is known of its holder.
#[inline(always)]
pub fn released(state: &State, wait: &Wait, pid: u32, ns: u64) -> Option<()> {
    if let Some(waiter) = wanted(wait.tid) {
        // SAFETY: as above.
        unsafe {
            if (*waiter).next.ns <= ns {
                (*waiter).next = next(wait, ns);
            }
        }
    }
    let mut known = (0, 0, Next::NONE);
    if let Some(holder) = wanted(wait.holder.tid) {
        // SAFETY: as above.
        unsafe {
            known = ((*holder).slept_ns, (*holder).stack, (*holder).next);
            atomic_add(&raw mut (*holder).waiters, u64::MAX);
        }
    }
    let bank = state.epoch & 1;
    let first = (bank * Lock::ALL.len() as u32 + wait.lock) * KEPT;
    let mut shortest = None;
    let mut least = ns;
    for index in 0..KEPT {
        let place = BLOCKED.get_ptr_mut(first + index)?;
        // SAFETY: a value of this CPU's own.
        let kept = unsafe {
            if (*place).epoch == state.epoch {
                (*place).ns
            } else {
                0
            }
        };
        if kept < least || shortest.is_none() && kept == 0 {
            least = kept;
            shortest = Some(place);
        }
    }
    // SAFETY: as above.
    unsafe {
        *shortest? = Blocked {
            epoch: state.epoch,
            lock: wait.lock,
            slot: wait.slot,
            stack: wait.stack,
            start: wait.start,
            ns,
            caller: wait.caller,
            waiter: Thread {
                pid,
                tid: wait.tid,
                reader: 0,
                reserved: 0,
                comm: bpf_get_current_comm().unwrap_or_default(),
            },
            holder: wait.holder,
            holder_slept_ns: known.0,
            holder_stack: known.1,
            reserved: 0,
            next: known.2,
        };
    }
    Some(())
}

/// A thread is woken: if somebody waits for it, its stack tells where it has slept. If it waits
/// itself, and the holder wakes it, the holder has released the lock.
#[btf_tracepoint(function = "sched_waking")]
pub fn btf_sched_waking(ctx: BtfTracePointContext) -> i32 {
    woken(&ctx);
    0
}

/// The current thread wakes the thread `waiter`.
#[inline(always)]
fn releases(waiter: u32) -> Option<()> {
    let wait = SLEEPS.get(waiter & (super::SLEEPERS - 1))?;
    let current = bpf_get_current_pid_tgid() as u32;
    if wait.address != 0 && wait.tid == waiter && wait.holder.tid == current {
        // SAFETY: as above.
        unsafe { (*wanted(current)?).released = 1 };
    }
    Some(())
}

#[inline(always)]
fn woken(ctx: &BtfTracePointContext) -> Option<()> {
    let task: *const u8 = ctx.arg(0);
    // SAFETY: the verifier knows the argument as a `struct task_struct` and checks the offset.
    let tid = unsafe { *task.add(TASK_PID.load() as usize).cast::<u32>() };
    releases(tid);
    let holder = wanted(tid)?;
    armed()?;
    let now = now();
    // SAFETY: as above.
    let slept = unsafe {
        let slept = now.saturating_sub((*holder).since);
        (*holder).since = now;
        ((*holder).released == 0 && slept > SHORT_NS && slept > (*holder).slept_ns)
            .then_some(slept)?
    };
    let probe = Probe::Holders;
    let _guard = Guard::enter(probe)?;
    let frames = LOCK_FRAMES.get_ptr_mut(0)?;
    // SAFETY: the buffer is a map value of exactly this size, and the first argument is what the
    // helper expects.
    let size = unsafe {
        bpf_get_task_stack(
            task.cast_mut().cast(),
            frames.cast(),
            size_of::<Frames>() as u32,
            0,
        )
    };
    let frames = stack::captured(probe, frames, size)?;
    let place = stack::keep(frames, Span::Holder.of(0), 0, probe);
    // SAFETY: as above.
    unsafe {
        (*holder).slept_ns = slept;
        (*holder).stack = place;
    }
    Some(())
}
