//! Brings the eBPF object into the kernel: offsets, maps, and the programs of the probe table.

use super::attach::{Attached, Attacher, Usage};
use super::bpf;
use super::kernel::RunningKernel;
use super::maps::{Maps, Rooms};
use crate::symbols::Records;
use anyhow::{Result, bail};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use cil_trace_common::function::Group;
use cil_trace_common::lock::{HISTS_EACH, Kind};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_common::slot::MOST;
use cil_trace_core::probes::{
    Kernel as _, PROBES, Program, Row, Set, open_ways, outcomes, version,
};
use cil_trace_core::session::{Outcome, ProbeOutcome, ProgramCost};
use std::collections::BTreeMap;

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/cil-trace-ebpf"));

/// What to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Probe sets wanted.
    pub sets: Vec<Set>,
    /// Only devices of the device map are in scope.
    pub filtered: bool,
    /// Let the programs log what they cannot explain.
    pub diagnostics: bool,
    /// Filesystems to make room for; some more may be mounted later.
    pub filesystems: usize,
    /// Of inodes, 1 in so many has its holds measured: a power of two.
    pub sampling: u32,
    /// Samples a second of each CPU.
    pub sampling_hz: u32,
}

impl Options {
    fn rooms(&self) -> Rooms {
        let asked = |set: Set| self.sets.contains(&set);
        // Each takes 1.3 KiB on every possible CPU, so not more than can be needed.
        let histograms = (self.filesystems + SPARE_FILESYSTEMS) * HISTOGRAMS_EACH;
        let threads = asked(Set::Cpu) || asked(Set::Offcpu);
        Rooms {
            histograms: u32::try_from(histograms).unwrap_or(u32::MAX),
            // A KiB each.
            stacks: if threads { 8192 } else { 2048 },
            thread_stacks: if threads { 16384 } else { 1 },
            departed: if asked(Set::Offcpu) { 32768 } else { 1 },
        }
    }
}

/// Histograms that one busy filesystem and its disk have at most: a row of the metrics table for
/// each of the causes that occur together.
const HISTOGRAMS_EACH: usize = 48;
/// Filesystems for which there is room beyond those that are there at the start.
const SPARE_FILESYSTEMS: usize = 8;

/// The kernel side, attached and disarmed. Everything is gone from the kernel when it is dropped,
/// or when the process dies.
pub struct Tracer {
    /// Owns the programs that aya has loaded, and their links.
    _ebpf: Ebpf,
    attached: Vec<Attached>,
    /// The maps, open for reading and writing.
    pub maps: Maps,
    /// How each probe of the wanted sets came out.
    pub outcomes: Vec<ProbeOutcome>,
    /// What processes map, if that is recorded; whoever reads stacks takes it.
    pub records: Option<Records>,
    state: State,
    /// What programs have cost that were there before.
    spent: BTreeMap<&'static str, Usage>,
}

impl Tracer {
    /// Loads the object and attaches every wanted probe. Nothing is counted until
    /// [`Tracer::arm`].
    ///
    /// # Errors
    ///
    /// If the object cannot be loaded at all; a probe that cannot be attached is an outcome.
    pub fn load(kernel: &RunningKernel, options: &Options) -> Result<Self> {
        if OBJECT.is_empty() {
            bail!(
                "this cil-trace was built without its eBPF object, so it can read recordings but \
                 not make them; build it with `cargo xtask build`"
            );
        }
        let btf = &kernel.loader_btf;
        let globals: Vec<(&str, u32)> = kernel.offsets.globals().collect();
        let mut loader = EbpfLoader::new();
        loader.btf(Some(btf));
        for (name, value) in &globals {
            loader.override_global(name, value, false);
        }
        let preemptible = u32::from(preemptible(kernel));
        loader.override_global("PREEMPTIBLE", &preemptible, true);
        let slots = slots(options);
        let rooms = options.rooms();
        for (map, entries) in [
            ("HISTS", rooms.histograms),
            ("STACKS", rooms.stacks),
            ("THREAD_STACKS", rooms.thread_stacks),
            ("DEPARTED", rooms.departed),
            ("CALLS", slots),
            ("LOCK_HISTS", slots * HISTS_EACH),
        ] {
            loader.map_max_entries(map, entries);
        }
        let mut ebpf = loader.load(OBJECT).map_err(explain_load)?;
        let mut attacher = Attacher::new(&mut ebpf, OBJECT, kernel, options.sampling_hz);
        attacher.load_ahead(open_ways(&options.sets, kernel));
        let outcomes = outcomes(&options.sets, kernel, |sites| attacher.way(sites));
        let (attached, records) = attacher.finish();
        if options.diagnostics {
            forward_diagnostics(&mut ebpf);
        }
        let programs: Vec<_> = attached
            .iter()
            .map(|attached| attached.program.name)
            .collect();
        let state = state(kernel, options, &outcomes, &programs);
        let mut maps = Maps::take(&mut ebpf, &rooms)?;
        maps.set_ranges(&kernel.symbols.ranges(Group::ALL)?)?;
        Ok(Self {
            _ebpf: ebpf,
            attached,
            maps,
            outcomes,
            records,
            state,
            spent: BTreeMap::new(),
        })
    }

    /// Opens the window: from `now` on, CLOCK_MONOTONIC nanoseconds, everything counts.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn arm(&mut self, now: u64) -> Result<()> {
        self.state.armed = 1;
        self.state.since = now;
        self.maps.set_state(&self.state)
    }

    /// Closes the window: from now on nothing counts.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn disarm(&mut self) -> Result<()> {
        self.state.armed = 0;
        self.maps.set_state(&self.state)
    }

    /// Begins another reading of the longest waits; the number of the one that is over.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn turn(&mut self) -> Result<u32> {
        let over = self.state.epoch;
        // Not 0, which is a place never used.
        self.state.epoch = over.checked_add(1).unwrap_or(1);
        self.maps.set_state(&self.state)?;
        Ok(over)
    }

    /// Of inodes, 1 in so many has its holds measured.
    #[must_use]
    pub fn sampled_1_in(&self) -> u32 {
        self.state.sampling + 1
    }

    /// Takes the place of an earlier tracer, of which nothing counts any more: its costs go on, and
    /// so does the workload.
    ///
    /// # Errors
    ///
    /// If the workload's map cannot be read or written.
    pub fn succeed(&mut self, earlier: &Self) -> Result<()> {
        self.spent = earlier.usage();
        // Whoever is forked meanwhile is found by the second look, or by the programs.
        for _ in 0..2 {
            for pid in earlier.maps.workload()? {
                self.maps.add_to_workload(pid)?;
            }
        }
        Ok(())
    }

    /// Whether a probe's numbers exist.
    #[must_use]
    pub fn measures(&self, probe: Probe) -> bool {
        self.state.measures(probe)
    }

    fn usage(&self) -> BTreeMap<&'static str, Usage> {
        let mut all = self.spent.clone();
        for attached in &self.attached {
            let sum = all.entry(attached.program.name).or_default();
            let usage = attached.usage();
            sum.run_ns += usage.run_ns;
            sum.runs += usage.runs;
        }
        all
    }

    /// Nanoseconds and runs of every program that is or was attached, as far as the kernel keeps
    /// them.
    #[must_use]
    pub fn costs(&self) -> Vec<ProgramCost> {
        let each = self.usage().into_iter();
        each.map(|(program, usage)| ProgramCost {
            program: program.to_owned(),
            run_ns: usage.run_ns,
            runs: usage.runs,
        })
        .collect()
    }

    /// What the kernel says was lost so far, each with the first probe that the program serves.
    #[must_use]
    pub fn losses_by_kernel(&self) -> BTreeMap<(Probe, LossCause), u64> {
        let links = if self.attached.iter().any(Attached::is_kprobe) {
            bpf::kprobe_links()
        } else {
            Vec::new()
        };
        let mut losses = BTreeMap::new();
        for attached in &self.attached {
            let Some(probe) = served(attached.program) else {
                continue;
            };
            let usage = attached.usage();
            let links = links.iter().filter(|link| link.program == usage.id);
            let missed = links.map(|link| link.missed).sum();
            for (cause, count) in [
                (LossCause::Preempted, usage.left_out),
                (LossCause::Missed, missed),
            ] {
                *losses.entry((probe, cause)).or_insert(0) += count;
            }
        }
        losses
    }
}

/// Whether a program on a tracepoint may be preempted, so that another task's runs meanwhile on the
/// same CPU: since 7.0.
fn preemptible(kernel: &RunningKernel) -> bool {
    version(kernel.release()).is_none_or(|version| version >= (7, 0))
}

/// The first probe that a program serves.
fn served(program: &Program) -> Option<Probe> {
    let serves = |row: &&Row| {
        let programs = row.ways.iter().flat_map(|way| way.programs);
        programs.into_iter().any(|one| one.name == program.name)
    };
    PROBES.iter().find(serves).map(|row| row.probe)
}

/// Numbers that devices may have, the one that belongs to none included.
fn slots(options: &Options) -> u32 {
    let filesystems = options.filesystems + SPARE_FILESYSTEMS;
    u32::try_from(filesystems).unwrap_or(MOST).min(MOST - 1) + 1
}

/// The kinds of lock, each with the probe of its waits and a program of the way by functions.
const WAITS: [(Kind, Probe, &str); 5] = [
    (
        Kind::Spin,
        Probe::SpinWaits,
        "fentry_native_queued_spin_lock_slowpath",
    ),
    (
        Kind::Rwlock,
        Probe::RwlockWaits,
        "fentry_queued_read_lock_slowpath",
    ),
    (
        Kind::Rwsem,
        Probe::RwsemWaits,
        "fentry_rwsem_down_write_slowpath",
    ),
    (
        Kind::Mutex,
        Probe::MutexWaits,
        "fentry___mutex_lock_slowpath",
    ),
    (Kind::Semaphore, Probe::SemaphoreWaits, "fentry___down"),
];

/// The state map's value before the window opens.
fn state(
    kernel: &RunningKernel,
    options: &Options,
    outcomes: &[ProbeOutcome],
    programs: &[&str],
) -> State {
    let measured = |probe: Probe| {
        let mut outcomes = outcomes.iter();
        outcomes.any(|row| row.probe == probe.name() && row.outcome.measured())
    };
    // The kinds of lock whose waits are wanted, by way.
    let waits = |by_function: bool| {
        let kinds = WAITS.iter().filter(|(_, probe, function)| {
            measured(*probe) && programs.contains(function) == by_function
        });
        kinds.fold(0, |bits, (kind, ..)| bits | 1 << *kind as u32)
    };
    let by_program = |name: &str, bit: u32| if programs.contains(&name) { bit } else { 0 };
    let address = |name: &str| kernel.symbols.address(name).unwrap_or(0);
    let by_return = |probe: Probe, bit: u32| {
        let attached = outcomes
            .iter()
            .any(|row| row.probe == probe.name() && row.outcome == Outcome::Attached);
        if attached { bit } else { 0 }
    };
    State {
        armed: 0,
        filtered: u32::from(options.filtered),
        own_pid: std::process::id(),
        reserved: 0,
        slots: slots(options),
        epoch: 1,
        other_locks: u32::from(options.sets.contains(&Set::Locks)),
        by_event: waits(false),
        by_function: waits(true),
        rwsem_by_function: u32::from(programs.contains(&"fentry_rwsem_down_read_slowpath")),
        probes: outcomes
            .iter()
            .filter(|row| row.outcome.measured())
            .filter_map(|row| Probe::from_name(&row.probe))
            .fold(0, |probes, probe| probes | State::bit(probe)),
        ends: by_return(Probe::ForceEnd, State::FORCE_END)
            | by_return(Probe::FsyncEnd, State::FSYNC_END)
            | by_return(Probe::IlockReturn, State::ILOCK_RETURN)
            | by_program("kretprobe_xfs_ilock", State::ILOCK_ASKED)
            | by_program("fexit_xlog_cil_commit", State::CTX_COMMIT)
            | by_program("kretprobe_xlog_cil_commit", State::CTX_COMMIT)
            | by_program("fexit_xlog_cil_ctx_switch", State::CTX_PUSH)
            | by_program("kretprobe_xlog_cil_ctx_switch", State::CTX_PUSH),
        sampling: options.sampling - 1,
        since: 0,
        push_work: address("xlog_cil_push_work"),
        loop_rootcg_work: address("loop_rootcg_workfn"),
        loop_work: address("loop_workfn"),
    }
}

/// Sends what programs log to the `log` facade, from a task of the running runtime.
fn forward_diagnostics(ebpf: &mut Ebpf) {
    match aya_log::EbpfLogger::init(ebpf) {
        Ok(mut logger) => {
            tokio::spawn(async move {
                let mut every = tokio::time::interval(std::time::Duration::from_millis(100));
                loop {
                    every.tick().await;
                    logger.flush();
                }
            });
        }
        Err(error) => log::warn!("the programs' diagnostics cannot be read: {error}"),
    }
}

fn explain_load(error: aya::EbpfError) -> anyhow::Error {
    anyhow::Error::new(error).context(
        "cannot load the eBPF object; `cil-trace doctor` names what this machine lacks \
         (root or CAP_BPF and CAP_PERFMON, and a kernel from 5.10 on)",
    )
}
