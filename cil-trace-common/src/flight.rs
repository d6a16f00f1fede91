//! What is under way: a bio that asks for a flush, and the thread that began something.

/// A thread by its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Who {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name, as of its last exec.
    pub comm: [u8; 16],
    /// 1 if its process belongs to the workload.
    pub workload: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
}

/// No thread.
pub const NOBODY: Who = Who {
    pid: 0,
    tid: 0,
    comm: [0; 16],
    workload: 0,
    reserved: 0,
};

/// A bio with PREFLUSH or FUA under way: from its queueing to its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Bio {
    /// When it was queued, CLOCK_MONOTONIC nanoseconds.
    pub at: u64,
    /// Where it was sent.
    pub dev: u32,
    /// Why: a [`Cause`](crate::cause::Cause).
    pub cause: u32,
    /// The device above, or 0.
    pub via: u32,
    /// Id of its stack if nothing explains it, or 0.
    pub stack: u32,
    /// Its bytes.
    pub bytes: u32,
    /// [`Bio::PREFLUSH`], [`Bio::FUA`] or both.
    pub flags: u32,
    /// Device flushes that it requires; with any, its data completes before it does.
    pub needed: u32,
    /// Number of its stack, or 0.
    pub kept: u32,
    /// Who sent it.
    pub who: Who,
}

impl Bio {
    /// Flush the device's cache first.
    pub const PREFLUSH: u32 = 1;
    /// Its own data must be durable.
    pub const FUA: u32 = 2;
}
