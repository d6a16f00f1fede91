//! The maps of the kernel side, typed.

use super::mapped::Mapped;
use anyhow::{Context as _, Result, bail};
use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray, PerCpuHashMap, RingBuf};
use cil_trace_common::flight::Bio;
use cil_trace_common::function::{MAX_RANGES, Range};
use cil_trace_common::hist::Hist;
use cil_trace_common::key::Key;
use cil_trace_common::lock::{Blocked, Caller, Calls, LockStack, Other, ProcessWait};
use cil_trace_common::process::Process;
use cil_trace_common::scope::{Scope, State};
use cil_trace_common::stack::{Stack, StackKey, StackSum};
use std::iter;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Entries that maps have room for, where that depends on what is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rooms {
    /// `HISTS`.
    pub histograms: u32,
    /// `STACKS`.
    pub stacks: u32,
    /// `THREAD_STACKS`.
    pub thread_stacks: u32,
    /// `DEPARTED`.
    pub departed: u32,
}

/// Every map that user space reads or writes.
pub struct Maps {
    state: Array<MapData, State>,
    ranges: Array<MapData, Range>,
    devices: HashMap<MapData, u32, Scope>,
    workload: HashMap<MapData, u32, u32>,
    /// Sums.
    pub counters: PerCpuHashMap<MapData, Key, u64>,
    /// Histograms.
    pub hists: PerCpuHashMap<MapData, Key, Hist>,
    /// Sums by process.
    pub processes: HashMap<MapData, u32, Process>,
    /// Losses.
    pub losses: PerCpuArray<MapData, u64>,
    /// Stacks by id.
    pub stacks: HashMap<MapData, u32, Stack>,
    /// Stacks for which there is room.
    pub stacks_room: usize,
    /// Sums by stack of the log.
    pub log_stacks: HashMap<MapData, StackKey, StackSum>,
    /// Sums by stack of threads.
    pub thread_stacks: HashMap<MapData, StackKey, StackSum>,
    /// Such sums for which there is room.
    pub thread_stacks_room: usize,
    thread_stacks_fd: OwnedFd,
    /// Flushes under way, by the address of their bio.
    pub bios: HashMap<MapData, u64, Bio>,
    /// Single objects.
    pub events: RingBuf<MapData>,
    /// Devices by their number.
    pub claims: HashMap<MapData, u32, u32>,
    /// Calls of `xfs_ilock`, by the device's number.
    pub calls: PerCpuArray<MapData, Calls>,
    /// Waits and holds of named locks.
    pub lock_hists: PerCpuArray<MapData, Hist>,
    /// Where locks of inodes are taken.
    pub callers: PerCpuArray<MapData, Caller>,
    /// Stacks of waits, holds and holders.
    pub lock_stacks: Mapped<LockStack>,
    /// Waits for locks without a name of their own.
    pub others: PerCpuArray<MapData, Other>,
    /// Waits of processes.
    pub process_waits: Mapped<ProcessWait>,
    /// The longest waits of each lock.
    pub blocked: PerCpuArray<MapData, Blocked>,
}

impl Maps {
    /// Takes the maps out of a loaded object.
    ///
    /// # Errors
    ///
    /// If the object does not have them, which is a mistake in the build.
    pub fn take(ebpf: &mut Ebpf, rooms: &Rooms) -> Result<Self> {
        macro_rules! map {
            ($name:literal) => {
                ebpf.take_map($name)
                    .with_context(|| format!("the eBPF object has no map {}", $name))?
                    .try_into()
                    .with_context(|| format!("the map {} is of another type", $name))?
            };
        }
        macro_rules! mapped {
            ($name:literal) => {
                ebpf.take_map($name)
                    .with_context(|| format!("the eBPF object has no map {}", $name))
                    .and_then(Mapped::new)
                    .with_context(|| format!("the map {}", $name))?
            };
        }
        let fd = match ebpf.map("THREAD_STACKS") {
            Some(Map::HashMap(map)) => map.fd().as_fd().try_clone_to_owned(),
            _ => bail!("the eBPF object has no map THREAD_STACKS"),
        };
        Ok(Self {
            state: map!("STATE"),
            ranges: map!("RANGES"),
            devices: map!("DEVICES"),
            workload: map!("WORKLOAD"),
            counters: map!("COUNTERS"),
            hists: map!("HISTS"),
            processes: map!("PROCESSES"),
            losses: map!("LOSSES"),
            stacks: map!("STACKS"),
            stacks_room: rooms.stacks as usize,
            log_stacks: map!("LOG_STACKS"),
            thread_stacks: map!("THREAD_STACKS"),
            thread_stacks_room: rooms.thread_stacks as usize,
            thread_stacks_fd: fd.context("cannot duplicate a map's descriptor")?,
            bios: map!("BIOS"),
            events: map!("EVENTS"),
            claims: map!("CLAIMS"),
            calls: map!("CALLS"),
            lock_hists: map!("LOCK_HISTS"),
            callers: map!("CALLERS"),
            lock_stacks: mapped!("LOCK_STACKS"),
            others: map!("OTHERS"),
            process_waits: mapped!("PROCESS_WAITS"),
            blocked: map!("BLOCKED"),
        })
    }

    /// The map of [`Maps::thread_stacks`].
    #[must_use]
    pub fn thread_stacks_fd(&self) -> BorrowedFd<'_> {
        self.thread_stacks_fd.as_fd()
    }

    /// Replaces the state.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn set_state(&mut self, state: &State) -> Result<()> {
        self.state
            .set(0, state, 0)
            .context("cannot write the state map")
    }

    /// Fills the table of code ranges, which must be sorted and no more than [`MAX_RANGES`].
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn set_ranges(&mut self, ranges: &[Range]) -> Result<()> {
        let table = ranges.iter().chain(iter::repeat(&Range::NONE));
        for (index, range) in (0..MAX_RANGES as u32).zip(table) {
            self.ranges
                .set(index, range, 0)
                .context("cannot write the map of code ranges")?;
        }
        Ok(())
    }

    /// Brings a device into scope.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn set_device(&mut self, dev: u32, scope: Scope) -> Result<()> {
        self.devices
            .insert(dev, scope, 0)
            .context("cannot write the device map")
    }

    /// The processes of the workload.
    ///
    /// # Errors
    ///
    /// If the map cannot be read.
    pub fn workload(&self) -> Result<Vec<u32>> {
        let pids = self.workload.keys();
        pids.collect::<Result<_, _>>()
            .context("cannot read the workload map")
    }

    /// Counts a process to the workload, with all that descends from it from now on.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn add_to_workload(&mut self, pid: u32) -> Result<()> {
        self.workload
            .insert(pid, 1, 0)
            .context("cannot write the workload map")
    }
}
