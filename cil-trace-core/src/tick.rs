//! One snapshot of the kernel side: the unit of recording and of replay.

use crate::device::{Dev, Device};
use crate::histogram::Histogram;
use crate::series::Series;
use crate::session::ProbeOutcome;
use cil_trace_common::event::EventKind;
use cil_trace_common::lock::Lock;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;

/// Everything that happened between two readings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tick {
    /// 0 for the first.
    pub index: u64,
    /// Where it begins, CLOCK_MONOTONIC nanoseconds; the first begins with the window.
    pub start_ns: u64,
    /// Where it ends; the last ends with the window.
    pub end_ns: u64,
    /// Increments since the tick before.
    pub counters: Vec<(Series, u64)>,
    /// Increments since the tick before, with extremes as [`Histogram::between`] gives them.
    pub histograms: Vec<(Series, Histogram)>,
    /// The sample of single objects.
    pub events: Vec<SampledEvent>,
    /// Objects that the sample was drawn from, per kind.
    pub events_seen: Vec<(EventKind, u64)>,
    /// Processes whose sums changed, with their sums since the window's start.
    pub processes: Vec<ProcessRow>,
    /// Increments since the tick before.
    pub losses: Vec<Loss>,
    /// Stacks whose frames were not given in an earlier tick. A row may come before its stack.
    pub stacks: Vec<Stack>,
    /// Increments since the tick before.
    pub stack_rows: Vec<StackRow>,
    /// Of inodes, 1 in so many had its locks' holds and callers measured; 0 and 1 are all.
    pub sampled_1_in: u32,
    /// Increments of `xfs_ilock` calls by caller, of the inodes sampled.
    pub lock_callers: Vec<LockCaller>,
    /// The longest waits of each lock.
    pub blocked: Vec<Blocked>,
    /// Devices that are new, or of which more is known than before.
    pub devices: Vec<Device>,
    /// Probes that came out otherwise than was known before, because a module was loaded or
    /// released.
    pub probes: Vec<ProbeOutcome>,
    /// Flushes under way at its end, of the devices that have any; `None` if nobody looked.
    pub in_flight: Option<Vec<InFlight>>,
    /// What tracing cost in it; `None` if not known.
    pub cost: Option<Cost>,
}

/// One push, iclog write, force, flush or fsync.
#[derive(Clone, PartialEq, Debug)]
pub struct SampledEvent {
    /// What it is.
    pub kind: EventKind,
    /// The number of its cause, trigger or kind of fsync.
    pub label: u16,
    /// The device.
    pub dev: Dev,
    /// The device above, or [`Dev::NONE`].
    pub via: Dev,
    /// Process that began it.
    pub pid: u32,
    /// Thread that began it.
    pub tid: u32,
    /// Its command name.
    pub comm: String,
    /// Whether it belongs to the workload.
    pub workload: bool,
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// As named by [`EventKind::args`].
    pub args: Vec<u64>,
    /// How many objects it stands for: 1 for the slowest, seen / kept for the uniform sample.
    pub weight: f64,
}

/// What a process did to the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessRow {
    /// Process id.
    pub pid: u32,
    /// Command name.
    pub comm: String,
    /// Whether it is the command or descends from it.
    pub workload: bool,
    /// Log forces.
    pub forces: u64,
    /// Bios with PREFLUSH or FUA.
    pub flushes_requested: u64,
    /// Nanoseconds waited for the log.
    pub log_wait_ns: u64,
    /// Nanoseconds waited for contended locks.
    pub lock_wait_ns: u64,
}

impl ProcessRow {
    /// The row of ended processes that have none of their own any more, and behind it that of those
    /// of the workload. No process has such a number: the kernel's `PID_MAX_LIMIT` (threads.h).
    pub const MERGED: u32 = 4 << 20;

    /// What takes the place of a row that was added to one of those: nothing, and no name.
    #[must_use]
    pub fn moved(pid: u32) -> Self {
        Self {
            pid,
            ..Self::default()
        }
    }

    /// Whether its process has no row of its own any more.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        *self == Self::moved(self.pid)
    }

    /// Whether it says where sums stand and not what was done: as [`ProcessRow::moved`], or the row
    /// that took them.
    #[must_use]
    pub fn is_merge(&self) -> bool {
        self.pid >= Self::MERGED || self.is_moved()
    }

    /// What it did since it had done what `before` says. A smaller sum is one that began anew.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self {
            forces: less(self.forces, before.forces),
            flushes_requested: less(self.flushes_requested, before.flushes_requested),
            log_wait_ns: less(self.log_wait_ns, before.log_wait_ns),
            lock_wait_ns: less(self.lock_wait_ns, before.lock_wait_ns),
            ..self.clone()
        }
    }

    /// Adds what it did later.
    pub fn add(&mut self, more: &Self) {
        self.forces = self.forces.saturating_add(more.forces);
        self.flushes_requested = self
            .flushes_requested
            .saturating_add(more.flushes_requested);
        self.log_wait_ns = self.log_wait_ns.saturating_add(more.log_wait_ns);
        self.lock_wait_ns = self.lock_wait_ns.saturating_add(more.lock_wait_ns);
        self.comm.clone_from(&more.comm);
        self.workload = more.workload;
    }
}

/// Something that happened and is missing from a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Whose numbers are short.
    pub probe: Probe,
    /// Why.
    pub cause: LossCause,
    /// How many.
    pub count: u64,
}

/// A stack with its symbols.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack {
    /// Its id in this recording.
    pub id: u32,
    /// Function names, leaf first; unresolved frames are hexadecimal addresses.
    pub frames: Vec<String>,
}

/// The bios with PREFLUSH or FUA that a device has not completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// The device they were sent to.
    pub dev: Dev,
    /// How many.
    pub flushes: u64,
    /// When the oldest was queued, CLOCK_MONOTONIC nanoseconds.
    pub oldest_ns: u64,
    /// The number of the oldest's cause.
    pub cause: u16,
}

/// What tracing cost, as time on CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Nanoseconds spent in the programs.
    pub bpf_run_ns: u64,
    /// Nanoseconds spent in cil-trace itself.
    pub own_ns: u64,
}

/// What happened with one stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackRow {
    /// What the sums are of.
    pub kind: StackKind,
    /// What tells rows of one kind apart: a cause's name, a lock's, a reason's; or empty.
    pub label: String,
    /// The device, or [`Dev::NONE`].
    pub dev: Dev,
    /// Whose stack it is, where that matters.
    pub who: Option<Who>,
    /// The kernel's part of the stack; [`LOST`](cil_trace_common::stack::LOST) if it was lost.
    pub kernel: Option<u32>,
    /// The program's part of the stack; likewise.
    pub user: Option<u32>,
    /// What was summed up.
    pub sums: StackSums,
}

/// A thread, as far as stacks are told apart by it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Who {
    /// Process id.
    pub pid: u32,
    /// The thread's command name.
    pub comm: String,
    /// Whether it belongs to the workload.
    pub workload: bool,
}

/// What is added up by stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StackSums {
    /// How many.
    pub count: u64,
    /// How long, nanoseconds.
    pub time_ns: u64,
    /// How much, bytes.
    pub bytes: u64,
}

/// Calls of `xfs_ilock` from one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockCaller {
    /// The lock.
    pub lock: Lock,
    /// The filesystem.
    pub dev: Dev,
    /// The function that called.
    pub function: String,
    /// How often.
    pub count: u64,
}

/// One of the longest waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// The lock.
    pub lock: Lock,
    /// The filesystem, or [`Dev::NONE`].
    pub dev: Dev,
    /// When it began, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// How long it was.
    pub wait_ns: u64,
    /// Who waited.
    pub waiter: Thread,
    /// Where.
    pub waiter_stack: Option<u32>,
    /// Who held the lock when the wait began, if the lock says so.
    pub holder: Option<Thread>,
    /// True if the holder is the last of perhaps several readers.
    pub holder_is_reader: bool,
    /// Where the holder slept meanwhile, if it did.
    pub holder_stack: Option<u32>,
    /// How long it slept there.
    pub holder_slept_ns: u64,
    /// The lock that the holder itself waited for.
    pub next: Option<NextLock>,
}

/// The lock that a holder waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextLock {
    /// The lock.
    pub lock: Lock,
    /// The filesystem, or [`Dev::NONE`].
    pub dev: Dev,
    /// The function that waited, which names a lock without a name of its own; empty if unknown.
    pub function: String,
    /// How long it waited; 0 if it still did.
    pub wait_ns: u64,
    /// Who held that one, if the lock says so.
    pub holder: Option<Thread>,
}

/// A thread by its names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Command name.
    pub comm: String,
}
