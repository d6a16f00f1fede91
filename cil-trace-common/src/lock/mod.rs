//! The locks that are told apart: one row each, read by all who name, count or report one.

mod value;

pub use value::*;

named_enum! {
    /// How a lock waits.
    pub enum Kind {
        /// `spinlock_t`, `raw_spinlock_t`.
        Spin = 0 => "spin",
        /// `rwlock_t`.
        Rwlock = 1 => "rwlock",
        /// `struct rw_semaphore`, also per CPU.
        Rwsem = 2 => "rwsem",
        /// `struct mutex`, also those with priority inheritance.
        Mutex = 3 => "mutex",
        /// `struct semaphore`.
        Semaphore = 4 => "semaphore",
    }
}

impl Kind {
    /// Whether a waiter sleeps, so that it may end on another CPU than it began.
    #[must_use]
    #[inline(always)]
    pub const fn sleeps(self) -> bool {
        matches!(self, Self::Rwsem | Self::Mutex | Self::Semaphore)
    }
}

named_enum! {
    /// How a lock is held.
    pub enum Mode {
        /// By one.
        Exclusive = 0 => "exclusive",
        /// By several side by side.
        Shared = 1 => "shared",
    }
}

macro_rules! locks {
    ($( $(#[$meta:meta])* $variant:ident = $value:literal => $text:literal, $lock:literal, $kind:ident, $mode:ident; )+) => {
        $crate::named_enum! {
            /// A lock and the mode in which it is taken.
            pub enum Lock { $( $(#[$meta])* $variant = $value => $text ),+ }
        }
        impl Lock {
            /// The lock's name, without the mode.
            #[must_use]
            pub const fn lock(self) -> &'static str {
                match self { $( Self::$variant => $lock ),+ }
            }
            /// What kind of lock it is.
            #[must_use]
            #[inline(always)]
            pub const fn kind(self) -> Kind {
                match self { $( Self::$variant => Kind::$kind ),+ }
            }
            /// The mode in which it is taken.
            #[must_use]
            pub const fn mode(self) -> Mode {
                match self { $( Self::$variant => Mode::$mode ),+ }
            }
        }
    };
}

locks! {
    /// `i_rwsem` of an XFS inode. The first six stand in the order of `lock_flags`' bits
    /// (fs/xfs/xfs_inode.h; the same from 5.10 on).
    IolockExclusive = 0 => "IOLOCK exclusive", "IOLOCK", Rwsem, Exclusive;
    /// `i_rwsem`, shared.
    IolockShared = 1 => "IOLOCK shared", "IOLOCK", Rwsem, Shared;
    /// `i_lock`.
    IlockExclusive = 2 => "ILOCK exclusive", "ILOCK", Rwsem, Exclusive;
    /// `i_lock`, shared.
    IlockShared = 3 => "ILOCK shared", "ILOCK", Rwsem, Shared;
    /// `invalidate_lock` of the inode's mapping; `i_mmaplock` before 5.15.
    MmaplockExclusive = 4 => "MMAPLOCK exclusive", "MMAPLOCK", Rwsem, Exclusive;
    /// `invalidate_lock`, shared.
    MmaplockShared = 5 => "MMAPLOCK shared", "MMAPLOCK", Rwsem, Shared;
    /// The CIL's context lock, by a push.
    CtxLockExclusive = 6 => "xc_ctx_lock exclusive", "xc_ctx_lock", Rwsem, Exclusive;
    /// The CIL's context lock, by a commit. What comes up to here has holds.
    CtxLockShared = 7 => "xc_ctx_lock shared", "xc_ctx_lock", Rwsem, Shared;
    /// The CIL's item list; gone since 6.0.
    CilLock = 8 => "xc_cil_lock", "xc_cil_lock", Spin, Exclusive;
    /// The CIL's push state.
    PushLock = 9 => "xc_push_lock", "xc_push_lock", Spin, Exclusive;
    /// The iclogs' state machine.
    IclogLock = 10 => "l_icloglock", "l_icloglock", Spin, Exclusive;
    /// Reservations of new transactions.
    ReserveHead = 11 => "reserve_head.lock", "reserve_head.lock", Spin, Exclusive;
    /// Reservations of rolled transactions.
    WriteHead = 12 => "write_head.lock", "write_head.lock", Spin, Exclusive;
    /// The AIL.
    Ail = 13 => "ail_lock", "ail_lock", Spin, Exclusive;
    /// Extents freed and not yet in the log, by allocation group.
    BusyExtents = 14 => "busy_extents.lock", "busy_extents.lock", Spin, Exclusive;
    /// `i_flags` of an XFS inode.
    InodeFlags = 15 => "i_flags_lock", "i_flags_lock", Spin, Exclusive;
    /// The page cache of a file, of any filesystem.
    Pages = 16 => "i_pages", "i_pages", Spin, Exclusive;
    /// A metadata buffer.
    Buffer = 17 => "b_sema", "b_sema", Semaphore, Exclusive;
    /// Any other spinlock. What comes from here on is named by the function that waits.
    OtherSpin = 18 => "other spin", "other", Spin, Exclusive;
    /// Any other rwlock, for reading.
    OtherRead = 19 => "other rwlock shared", "other", Rwlock, Shared;
    /// Any other rwlock, for writing.
    OtherWrite = 20 => "other rwlock exclusive", "other", Rwlock, Exclusive;
    /// Any other rwsem, shared.
    OtherShared = 21 => "other rwsem shared", "other", Rwsem, Shared;
    /// Any other rwsem, exclusive.
    OtherExclusive = 22 => "other rwsem exclusive", "other", Rwsem, Exclusive;
    /// Any mutex.
    OtherMutex = 23 => "other mutex", "other", Mutex, Exclusive;
    /// Any other semaphore.
    OtherSemaphore = 24 => "other semaphore", "other", Semaphore, Exclusive;
}

impl Lock {
    /// Locks of an inode that `xfs_ilock` takes, by the bit of `lock_flags`.
    pub const OF_ILOCK: u32 = 6;
    /// Locks whose holds are measured: those with a number below.
    pub const WITH_HOLDS: u32 = 8;
    /// Locks that are known by their address: those with a number below.
    pub const NAMED: u32 = Self::OtherSpin as u32;

    /// Whether it is known by its address, and not only by the function that waits.
    #[must_use]
    #[inline(always)]
    pub const fn is_named(self) -> bool {
        (self as u32) < Self::NAMED
    }
}

/// Histograms of one device: a wait for each named lock, a hold for each that has one.
pub const HISTS_EACH: u32 = Lock::NAMED + Lock::WITH_HOLDS;

/// Where a named lock's waits stand in the array of histograms.
#[must_use]
#[inline(always)]
pub const fn wait_hist(slot: u32, lock: u32) -> u32 {
    slot * HISTS_EACH + lock
}

/// Where a lock's holds stand in the array of histograms.
#[must_use]
#[inline(always)]
pub const fn hold_hist(slot: u32, lock: u32) -> u32 {
    slot * HISTS_EACH + Lock::NAMED + lock
}

named_enum! {
    /// What the time of a stack is.
    pub enum Span {
        /// Until a lock was got.
        Wait = 0 => "wait",
        /// Until a lock was given back.
        Hold = 1 => "hold",
        /// None: where a thread slept while others waited for it.
        Holder = 2 => "holder",
    }
}

impl Span {
    /// What a stack is of, as the kernel side has it.
    #[must_use]
    #[inline(always)]
    pub const fn of(self, lock: u32) -> u32 {
        (self as u32) << 8 | lock
    }
}

/// Combinations of the six lock bits in `lock_flags`.
pub const FLAGS: usize = 1 << Lock::OF_ILOCK;

/// The bit numbers of the locks in `flags`, one for each of the three locks that an inode has, as
/// no call takes one both ways.
#[inline(always)]
pub fn bits(flags: u32) -> impl Iterator<Item = u32> {
    (0..Lock::OF_ILOCK / 2).filter_map(move |lock| {
        let mode = flags >> (2 * lock) & 3;
        (mode != 0).then_some(2 * lock + (mode >> 1 & 1))
    })
}

/// Whether holds of an inode are measured, when 1 in `mask + 1` is.
#[must_use]
#[inline(always)]
pub const fn sampled(inode: u64, mask: u32) -> bool {
    // Fibonacci hashing: the low bits of an address are alike in a slab.
    (inode.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u32 & mask == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_what_the_arrays_rely_on() {
        for (index, &lock) in Lock::ALL.iter().enumerate() {
            assert_eq!(lock as usize, index);
            assert_eq!(lock.is_named(), lock.lock() != "other");
        }
        let ilock = &Lock::ALL[..Lock::OF_ILOCK as usize];
        assert!(ilock.iter().all(|lock| lock.lock().ends_with("LOCK")));
        let last = hold_hist(0, Lock::WITH_HOLDS - 1);
        assert_eq!(last + 1, wait_hist(1, 0));
    }

    #[test]
    fn a_call_takes_each_lock_in_one_mode() {
        use std::vec::Vec;
        assert_eq!(bits(0b00_0000).count(), 0);
        assert_eq!(bits(0b10_0101).collect::<Vec<_>>(), [0, 2, 5]);
        for bit in 0..Lock::OF_ILOCK {
            assert_eq!(bits(1 << bit).collect::<Vec<_>>(), [bit]);
        }
    }

    /// A slab's objects lie at equal distances, and each of them must have the same chance.
    #[test]
    fn one_in_n_inodes_is_sampled_whatever_their_distance() {
        for distance in [984, 1000, 1024, 4096] {
            for mask in [0, 1, 7, 63] {
                let inodes = (0..10_000).map(|index| 0xffff_8881_0000_0000 + index * distance);
                let sampled = inodes.filter(|&inode| sampled(inode, mask)).count() as f64;
                let expected = 10_000.0 / f64::from(mask + 1);
                assert!(
                    (sampled - expected).abs() < expected * 0.2,
                    "{sampled} of 10,000 at {distance} bytes, mask {mask}"
                );
            }
        }
    }
}
