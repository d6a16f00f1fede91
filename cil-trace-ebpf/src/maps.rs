//! Every map of the kernel side.

use crate::device::{Disk, Request};
use crate::iclog::Iclog;
use crate::ilock::{self, Asked};
use crate::lock::{
    Cpu, KEPT, NESTED, OTHER_PLACES, PROCESS_PLACES, SLEEPERS, STACK_PLACES, WANTED_PLACES, Wait,
    Wanted,
};
use crate::profile::Departed;
use crate::push::{Checkpoint, Queued};
use crate::stack;
use crate::task::Task;
use aya_ebpf::bindings::BPF_F_MMAPABLE;
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, PerCpuHashMap, RingBuf};
use cil_trace_common::flight::Bio;
use cil_trace_common::function::{MAX_RANGES, Range};
use cil_trace_common::hist::Hist;
use cil_trace_common::hold::{SETS, Set};
use cil_trace_common::key::Key;
use cil_trace_common::lock::{
    Blocked, Caller, Calls, Frames, HISTS_EACH, Lock, LockStack, Other, ProcessWait,
};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::process::Process;
use cil_trace_common::scope::{Scope, State};
use cil_trace_common::slot::{MOST, PLACES, Slot};
use cil_trace_common::stack::{Stack, StackKey, StackSum};

/// What user space may change while programs run.
#[map]
pub static STATE: Array<State> = Array::with_max_entries(1, 0);
/// Code ranges of [`cil_trace_common::function::Group`], sorted; `State::ranges` of them are used.
#[map]
pub static RANGES: Array<Range> = Array::with_max_entries(MAX_RANGES as u32, 0);
/// Devices in scope, by `dev_t`.
#[map]
pub static DEVICES: HashMap<u32, Scope> = HashMap::with_max_entries(1024, 0);
/// Processes of the workload, by process id.
#[map]
pub static WORKLOAD: HashMap<u32, u32> = HashMap::with_max_entries(16384, 0);

/// Sums.
#[map]
pub static COUNTERS: PerCpuHashMap<Key, u64> = PerCpuHashMap::with_max_entries(4096, 0);
/// Histograms.
#[map]
pub static HISTS: PerCpuHashMap<Key, Hist> = PerCpuHashMap::with_max_entries(512, 0);
/// What each process did, by process id.
#[map]
pub static PROCESSES: HashMap<u32, Process> = HashMap::with_max_entries(8192, 0);
/// Losses, by [`cil_trace_common::loss::slot`].
#[map]
pub static LOSSES: PerCpuArray<u64> =
    PerCpuArray::with_max_entries((Probe::ALL.len() * LossCause::ALL.len()) as u32, 0);
/// Single objects.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(4 << 20, 0);
/// Stacks by number; user space makes room for more if samples are taken.
#[map]
pub static STACKS: HashMap<u32, Stack> = HashMap::with_max_entries(4096, 0);
/// What happened with stacks of the log: flushes and pushes.
#[map]
pub static LOG_STACKS: HashMap<StackKey, StackSum> = HashMap::with_max_entries(4096, 0);
/// What happened with stacks of threads: samples, and time off the CPU; likewise.
#[map]
pub static THREAD_STACKS: HashMap<StackKey, StackSum> = HashMap::with_max_entries(1, 0);
/// Threads that are off the CPU, by thread id; likewise.
#[map]
pub static DEPARTED: HashMap<u32, Departed> = HashMap::with_max_entries(1, 0);

/// What each thread is in the middle of, by thread id.
#[map]
pub static TASKS: HashMap<u32, Task> = HashMap::with_max_entries(16384, 0);
/// Pushes that are queued, by work item.
#[map]
pub static QUEUED: HashMap<u64, Queued> = HashMap::with_max_entries(512, 0);
/// Transactions per checkpoint that is open.
#[map]
pub static CHECKPOINTS: HashMap<Checkpoint, u64> = HashMap::with_max_entries(1024, 0);
/// Pushes under way, by filesystem.
#[map]
pub static PUSHING: HashMap<u32, u64> = HashMap::with_max_entries(256, 0);
/// iclogs that a force has marked or that are being written, by address.
#[map]
pub static ICLOGS: HashMap<u64, Iclog> = HashMap::with_max_entries(4096, 0);
/// Bios with PREFLUSH or FUA under way, by address.
#[map]
pub static BIOS: HashMap<u64, Bio> = HashMap::with_max_entries(8192, 0);
/// Requests issued to a device, by address.
#[map]
pub static REQUESTS: HashMap<u64, Request> = HashMap::with_max_entries(16384, 0);
/// Whole disks, by `dev_t`.
#[map]
pub static DISKS: HashMap<u32, Disk> = HashMap::with_max_entries(512, 0);

/// Numbers of devices by hash of their `dev_t`; see [`cil_trace_common::slot`].
#[map]
pub static SLOTS: Array<Slot> = Array::with_max_entries(PLACES, 0);
/// Devices by their number.
#[map]
pub static CLAIMS: HashMap<u32, u32> = HashMap::with_max_entries(MOST, 0);
/// Calls of `xfs_ilock` and the like, by the device's number. User space makes it and the next one
/// as large as there are numbers.
#[map]
pub static CALLS: PerCpuArray<Calls> = PerCpuArray::with_max_entries(MOST, 0);
/// Waits and holds of named locks, by [`cil_trace_common::lock::wait_hist`] and `hold_hist`.
#[map]
pub static LOCK_HISTS: PerCpuArray<Hist> = PerCpuArray::with_max_entries(MOST * HISTS_EACH, 0);
/// Locks of inodes that are held, by [`cil_trace_common::hold::set_of`].
#[map]
pub static HOLDS: Array<Set> = Array::with_max_entries(SETS, 0);
/// Where locks of inodes are taken, by hash.
#[map]
pub static CALLERS: PerCpuArray<Caller> = PerCpuArray::with_max_entries(ilock::PLACES, 0);

/// What is going on on each CPU.
#[map]
pub static CPU: PerCpuArray<Cpu> = PerCpuArray::with_max_entries(1, 0);
/// Where a pointer becomes a number.
#[map]
pub static POINTER: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);
/// Time spent in holds since a stack of one was taken, nanoseconds.
#[map]
pub static HELD: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);
/// Calls of `xfs_ilock` and `xfs_ilock_nowait` under way, by the low bits of the thread id, where
/// their return does not tell what they were called with.
#[map]
pub static ASKED: Array<Asked> = Array::with_max_entries(SLEEPERS, 0);
/// Waits under way that spin, outermost first; [`Cpu::spins`] of them are used.
#[map]
pub static SPINS: PerCpuArray<Wait> = PerCpuArray::with_max_entries(NESTED, 0);
/// Waits under way that sleep, by the low bits of the thread id.
#[map]
pub static SLEEPS: Array<Wait> = Array::with_max_entries(SLEEPERS, 0);
/// Stacks of waits, holds and holders, by hash.
#[map]
pub static LOCK_STACKS: Array<LockStack> = Array::with_max_entries(STACK_PLACES, BPF_F_MMAPABLE);
/// Waits for locks without a name of their own, by hash of the function that waits.
#[map]
pub static OTHERS: PerCpuArray<Other> = PerCpuArray::with_max_entries(OTHER_PLACES, 0);
/// Waits of processes, by hash of the process id.
#[map]
pub static PROCESS_WAITS: Array<ProcessWait> =
    Array::with_max_entries(PROCESS_PLACES, BPF_F_MMAPABLE);
/// Threads that hold a lock for which others wait, by the low bits of the thread id.
#[map]
pub static WANTED: Array<Wanted> = Array::with_max_entries(WANTED_PLACES, 0);
/// The longest waits of each lock, in two banks: user space reads one while the other is filled.
#[map]
pub static BLOCKED: PerCpuArray<Blocked> =
    PerCpuArray::with_max_entries(2 * Lock::ALL.len() as u32 * KEPT, 0);
/// Room for one stack of [`crate::lock`].
#[map]
pub static LOCK_FRAMES: PerCpuArray<Frames> = PerCpuArray::with_max_entries(1, 0);

/// Room for stacks, as the BPF stack has only 512 bytes: a place for each of
/// [`stack::capture`]'s programs.
#[map]
pub static FRAMES: PerCpuArray<Stack> = PerCpuArray::with_max_entries(stack::PLACES, 0);
/// The same for what the clock interrupts.
#[map]
pub static CLOCK_FRAMES: PerCpuArray<Stack> = PerCpuArray::with_max_entries(1, 0);
/// The same for a switch, in which nothing else is traced but by the clock.
#[map]
pub static SWITCH_FRAMES: PerCpuArray<Stack> = PerCpuArray::with_max_entries(1, 0);
/// Never written: the value of a new histogram.
#[map]
pub static NEW_HIST: PerCpuArray<Hist> = PerCpuArray::with_max_entries(1, 0);
/// Never written: the value of a new task.
#[map]
pub static NEW_TASK: PerCpuArray<Task> = PerCpuArray::with_max_entries(1, 0);
/// The state, if the window is open.
#[inline(always)]
pub fn armed() -> Option<&'static State> {
    STATE.get(0).filter(|state| state.armed != 0)
}
