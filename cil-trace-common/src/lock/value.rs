//! Values of the kernel side's maps on locks. All zero is a free place in each of them.

use super::{FLAGS, Lock};
use crate::hist::Hist;

/// Frames of a stack that are kept; the way from a system call to the log is shorter.
pub const DEPTH: usize = 32;
/// Return addresses, leaf first; 0 past the last.
pub type Frames = [u64; DEPTH];

/// Calls on one device by the locks that they ask for. Counts wrap.
///
/// One addition per call, whatever the number of locks; user space takes the combinations apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Calls {
    /// Of `xfs_ilock`.
    pub locked: [u64; FLAGS],
    /// Of `xfs_ilock_nowait`.
    pub tried: [u64; FLAGS],
    /// Of `xfs_ilock_nowait` that returned 0.
    pub failed: [u64; FLAGS],
    /// Of `xfs_ilock`, soon after a trylock of the same lock by the same thread; by the lock's bit.
    /// Sampled as holds are.
    pub after_try: [u64; Lock::OF_ILOCK as usize],
}

impl Calls {
    /// No calls.
    pub const NONE: Self = Self {
        locked: [0; FLAGS],
        tried: [0; FLAGS],
        failed: [0; FLAGS],
        after_try: [0; Lock::OF_ILOCK as usize],
    };
}

/// One place in the code that takes locks of inodes of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Caller {
    /// Return address of `xfs_ilock`; 0 for none.
    pub address: u64,
    /// The device's number, and the locks in the low bits; see [`Caller::key`].
    pub key: u64,
    /// Calls. Sampled as holds are.
    pub count: u64,
}

impl Caller {
    /// The key of these locks of a device.
    #[must_use]
    #[inline(always)]
    pub const fn key(slot: u32, flags: u32) -> u64 {
        (slot as u64) << Lock::OF_ILOCK | flags as u64
    }

    /// The device's number.
    #[must_use]
    pub const fn slot(&self) -> u32 {
        (self.key >> Lock::OF_ILOCK) as u32
    }

    /// The locks, as bits of `lock_flags`.
    #[must_use]
    pub const fn flags(&self) -> u32 {
        self.key as u32 & (FLAGS as u32 - 1)
    }
}

/// A stack, and what it is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct LockStack {
    /// [`LockStack::hash_of`] this stack; 0 for none.
    pub hash: u64,
    /// What it is of; see [`super::Span::of`].
    pub what: u32,
    /// The device's number.
    pub slot: u32,
    /// How often. All CPUs add to it.
    pub count: u64,
    /// How long together, nanoseconds.
    pub ns: u64,
    /// The stack.
    pub frames: Frames,
}

impl LockStack {
    /// Tells stacks apart; never 0. Places are taken without a lock, so a hash that does not fit
    /// means that two CPUs have mixed theirs.
    #[must_use]
    #[inline(always)]
    pub fn hash_of(frames: &Frames, what: u32, slot: u32) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ (what as u64) << 32 ^ slot as u64;
        for &address in frames {
            if address == 0 {
                break;
            }
            // FNV-1a over words; the shift carries high bits down.
            hash = (hash ^ address).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 29;
        }
        hash | 1
    }
}

/// Waits of one lock without a name in one function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Other {
    /// A return address in the function; 0 if it is not known.
    pub caller: u64,
    /// Number of the [`super::Lock`].
    pub lock: u64,
    /// The waits; without one, the place is free.
    pub waits: Hist,
}

/// A process that has waited for locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct ProcessWait {
    /// Process id; 0 for none.
    pub pid: u32,
    /// 1 if it belongs to the workload.
    pub workload: u32,
    /// Waited, nanoseconds.
    pub ns: u64,
    /// Command name, NUL-padded.
    pub comm: [u8; 16],
}

/// A thread by its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id; 0 for none.
    pub tid: u32,
    /// 1 for the last of perhaps several readers, which may be gone.
    pub reader: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// Command name, NUL-padded.
    pub comm: [u8; 16],
}

impl Thread {
    /// No thread.
    pub const NONE: Self = Self {
        pid: 0,
        tid: 0,
        reader: 0,
        reserved: 0,
        comm: [0; 16],
    };
}

/// The next link of a chain: a lock that a holder waits for, and who holds that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Next {
    /// Number of the lock plus 1; 0 for none.
    pub lock: u32,
    /// The device's number.
    pub slot: u32,
    /// How long it waited; 0 as long as it does.
    pub ns: u64,
    /// A return address in the function that waits, for a lock without a name.
    pub caller: u64,
    /// Who holds that one.
    pub holder: Thread,
}

impl Next {
    /// No link.
    pub const NONE: Self = Self {
        lock: 0,
        slot: 0,
        ns: 0,
        caller: 0,
        holder: Thread::NONE,
    };
}

/// One of the longest waits for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Blocked {
    /// Number of the reading that it belongs to; never 0.
    pub epoch: u32,
    /// Number of the [`super::Lock`].
    pub lock: u32,
    /// The device's number.
    pub slot: u32,
    /// Place of the waiter's stack plus 1, or 0.
    pub stack: u32,
    /// When it began, CLOCK_MONOTONIC nanoseconds.
    pub start: u64,
    /// How long it was.
    pub ns: u64,
    /// A return address in the function that waits, for a lock without a name.
    pub caller: u64,
    /// Who waited.
    pub waiter: Thread,
    /// Who held the lock, if that is known.
    pub holder: Thread,
    /// How long the holder slept where `holder_stack` says.
    pub holder_slept_ns: u64,
    /// Place of the holder's stack plus 1, or 0.
    pub holder_stack: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// The lock that the holder has waited for itself.
    pub next: Next,
}
