//! What user space tells the kernel side about devices.

use crate::probe::Probe;

/// What is known of a device number. Key of the device map: the kernel's `dev_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Scope {
    /// Bits of [`Scope`].
    pub flags: u32,
    /// For a disk that serves files or devices above: the loop device above it, or 0.
    pub above: u32,
}

impl Scope {
    /// An XFS lives here: its data, log or realtime device.
    pub const XFS: u32 = 1;
    /// A device beneath such a filesystem: its flushes and requests are counted.
    pub const BENEATH: u32 = 2;
    /// The device honours FUA by itself, so that a FUA write needs no flush behind it.
    pub const FUA: u32 = 4;
}

/// What user space may change while programs run: the one value of the state map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct State {
    /// 1 while the window is open.
    pub armed: u32,
    /// 1 if only devices of the device map are in scope, else every XFS is.
    pub filtered: u32,
    /// Process id of cil-trace, which is left out of all numbers.
    pub own_pid: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// Bits of [`State`]: which ends are seen by function returns.
    pub ends: u32,
    /// Of inodes, 1 in this many plus 1 has its holds measured; a power of two less 1.
    pub sampling: u32,
    /// Numbers that devices may have; see [`crate::slot`].
    pub slots: u32,
    /// Number of the reading that the longest waits belong to.
    pub epoch: u32,
    /// 1 if locks without a name of their own are wanted too.
    pub other_locks: u32,
    /// Bit by number of [`crate::lock::Kind`]: waits taken from the contention tracepoints.
    pub by_event: u32,
    /// The same: waits taken from the functions of the slow paths.
    pub by_function: u32,
    /// 1 if rwsems' slow paths are seen by function, whoever wants their waits.
    pub rwsem_by_function: u32,
    /// Bit by number of [`Probe`]: what is measured or approximated.
    pub probes: u64,
    /// When the window opened, CLOCK_MONOTONIC nanoseconds.
    pub since: u64,
    /// Address of `xlog_cil_push_work`, or 0.
    pub push_work: u64,
    /// Address of `loop_rootcg_workfn`, or 0.
    pub loop_rootcg_work: u64,
    /// Address of `loop_workfn`, or 0.
    pub loop_work: u64,
}

impl State {
    /// Whether a probe is measured or approximated.
    #[must_use]
    #[inline(always)]
    pub const fn measures(&self, probe: Probe) -> bool {
        self.probes & Self::bit(probe) != 0
    }

    /// The bit of a probe in [`State::probes`].
    #[must_use]
    #[inline(always)]
    pub const fn bit(probe: Probe) -> u64 {
        1 << probe as u64
    }

    /// The end of a log force is seen by a function's return.
    pub const FORCE_END: u32 = 1;
    /// The end of an fsync is seen by a function's return.
    pub const FSYNC_END: u32 = 2;
    /// The return of `xfs_ilock` is seen, but not what it was called with.
    pub const ILOCK_ASKED: u32 = 4;
    /// The return of `xfs_ilock` is seen.
    pub const ILOCK_RETURN: u32 = 32;
    /// The hold of the context lock by a commit is seen by function.
    pub const CTX_COMMIT: u32 = 8;
    /// The hold of the context lock by a push is seen by function.
    pub const CTX_PUSH: u32 = 16;
}
