//! Sums by stack: what is counted, and the map that both sides share.

named_enum! {
    /// What the stacks of a sum have in common.
    pub enum StackKind {
        /// Bios with PREFLUSH or FUA, where they are queued.
        Flush = 0 => "flush",
        /// CIL pushes, where they are queued.
        Push = 1 => "push",
        /// Samples of what runs on a CPU.
        Cpu = 2 => "cpu",
        /// Stretches of time in which a thread does not run.
        Offcpu = 3 => "offcpu",
        /// Waits for a lock.
        Lock = 4 => "lock",
        /// Holds of a lock, where it is released.
        Hold = 5 => "hold",
    }
}

/// Stands for a stack that the kernel could not give or keep.
pub const LOST: u32 = u32::MAX;

/// Frames that the kernel gives of a stack at most (`kernel.perf_event_max_stack`, unless changed).
pub const DEPTH: usize = 127;

/// A stack, by a number that its hash decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Stack {
    /// All 64 bits of the hash, to tell stacks of one number apart.
    pub hash: u64,
    /// Frames in use.
    pub len: u32,
    /// An [`Origin`].
    pub origin: u32,
    /// Return addresses, leaf first.
    pub frames: [u64; DEPTH],
}

named_enum! {
    /// Where a stack was taken.
    pub enum Origin {
        /// The kernel's part, in a tracepoint: the tracer's own functions are on top of it.
        Tracepoint = 0 => "tracepoint",
        /// The kernel's part, where the clock interrupted it.
        Clock = 1 => "clock",
        /// The program's part.
        User = 2 => "user",
    }
}

/// What a sum is about: key of a map of [`StackSum`]. Fields that a kind does not use are 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(C)]
pub struct StackKey {
    /// A [`StackKind`].
    pub kind: u16,
    /// For flushes and pushes a [`Cause`](crate::cause::Cause); for time off the CPU a
    /// [`Departure`].
    pub label: u16,
    /// The device, as the kernel's `dev_t`.
    pub dev: u32,
    /// Id of the kernel stack; 0 for none, or [`LOST`].
    pub kernel: u32,
    /// Id of the user stack; 0 for none, or [`LOST`].
    pub user: u32,
    /// Process id.
    pub pid: u32,
    /// Tells apart what a process id stood for one after another: executed programs, and processes.
    pub space: u32,
    /// 1 if the process belongs to the workload.
    pub workload: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// The thread's command name, NUL-padded.
    pub comm: [u8; 16],
}

/// What was summed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct StackSum {
    /// When it began to be, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: u64,
    /// How many.
    pub count: u64,
    /// How long, nanoseconds.
    pub time_ns: u64,
    /// How much, bytes.
    pub bytes: u64,
}

named_enum! {
    /// How a thread left its CPU.
    pub enum Departure {
        /// It still could run.
        Preempted = 0 => "preempted",
        /// It sleeps until what it waits for has happened.
        Blocked = 1 => "blocked",
        /// It sleeps, and a signal would wake it; or it is idle.
        Sleeping = 2 => "sleeping",
    }
}
