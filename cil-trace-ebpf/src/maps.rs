//! Every map of the kernel side.

use crate::device::{Disk, Request};
use crate::iclog::Iclog;
use crate::profile::Departed;
use crate::push::{Checkpoint, Queued};
use crate::task::Task;
use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, HashMap, PerCpuArray, PerCpuHashMap, RingBuf};
use cil_trace_common::flight::Bio;
use cil_trace_common::function::{MAX_RANGES, Range};
use cil_trace_common::hist::Hist;
use cil_trace_common::key::Key;
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::process::Process;
use cil_trace_common::scope::{Scope, State};
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

/// Room for one stack, as the BPF stack has only 512 bytes.
#[map]
pub static FRAMES: PerCpuArray<Stack> = PerCpuArray::with_max_entries(1, 0);
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
