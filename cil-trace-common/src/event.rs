//! Ring-buffer records: the rare objects, one by one, for timelines and lists of the slowest.

named_enum! {
    /// What a record is about. [`EventKind::args`] names the meaning of its arguments.
    pub enum EventKind {
        /// A push of the CIL, from `xlog_cil_push_work`'s start to its end.
        Push = 0 => "push",
        /// An iclog write, from submission to completion.
        Iclog = 1 => "iclog",
        /// A log force, from call to (perhaps approximated) end.
        Force = 2 => "force",
        /// A bio with PREFLUSH or FUA, from queueing to completion.
        Flush = 3 => "flush",
        /// An fsync, from call to (perhaps approximated) end.
        Fsync = 4 => "fsync",
    }
}

/// Number of arguments of an [`Event`].
pub const ARGS: usize = 6;

impl EventKind {
    /// What [`Event::args`] hold for this kind, in order; the rest are 0.
    #[must_use]
    pub const fn args(self) -> &'static [&'static str] {
        match self {
            Self::Push => &[
                "queue_delay_ns",
                "bytes",
                "transactions",
                "iclogs",
                "flushes",
                "empty",
            ],
            Self::Iclog => &["offset_bytes", "flags"],
            Self::Force => &[],
            Self::Flush => &["bytes", "preflush", "fua"],
            Self::Fsync => &["forced_log", "flushed"],
        }
    }
}

/// One ring-buffer record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Event {
    /// An [`EventKind`].
    pub kind: u16,
    /// A [`Cause`](crate::cause::Cause), or for fsyncs a [`FsyncKind`](crate::cause::FsyncKind).
    pub label: u16,
    /// The device, as the kernel's `dev_t`.
    pub dev: u32,
    /// The device above, or 0.
    pub via: u32,
    /// Thread id of the task that began it.
    pub tid: u32,
    /// Process id of the task that began it.
    pub pid: u32,
    /// 1 if that task belongs to the workload.
    pub workload: u32,
    /// Its command name, NUL-padded.
    pub comm: [u8; 16],
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// See [`EventKind::args`].
    pub args: [u64; ARGS],
}
