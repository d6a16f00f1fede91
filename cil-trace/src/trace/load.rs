//! Brings the eBPF object into the kernel: offsets, maps, and the programs of the probe table.

use super::attach::{self, Obstacle};
use super::kernel::RunningKernel;
use super::maps::Maps;
use anyhow::{Result, bail};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use cil_trace_common::function::Group;
use cil_trace_common::probe::Probe;
use cil_trace_common::scope::State;
use cil_trace_core::probes::{Otherwise, PROBES, Program, Row, Set, open_ways, unknown_layout};
use cil_trace_core::session::{Outcome, ProbeOutcome};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

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
}

/// Histograms that one busy filesystem and its disk have at most: a row of the metrics table for
/// each of the causes that occur together.
const HISTOGRAMS_EACH: usize = 48;
/// Filesystems for which there is room beyond those that are there at the start.
const SPARE_FILESYSTEMS: usize = 8;

/// The kernel side, attached and disarmed. Everything is gone from the kernel when it is dropped,
/// or when the process dies.
pub struct Tracer {
    /// Owns the programs and their links.
    ebpf: Ebpf,
    /// The maps, open for reading and writing.
    pub maps: Maps,
    /// How each probe of the wanted sets came out.
    pub outcomes: Vec<ProbeOutcome>,
    /// Names of the programs that are attached.
    pub programs: Vec<&'static str>,
    state: State,
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
        // Each takes 1.3 KiB on every possible CPU, so not more than can be needed.
        let histograms = (options.filesystems + SPARE_FILESYSTEMS) * HISTOGRAMS_EACH;
        loader.map_max_entries("HISTS", u32::try_from(histograms).unwrap_or(u32::MAX));
        let mut ebpf = loader.load(OBJECT).map_err(explain_load)?;
        if options.diagnostics {
            forward_diagnostics(&mut ebpf);
        }
        let mut attacher = Attacher {
            ebpf: &mut ebpf,
            btf,
            attached: BTreeSet::new(),
        };
        let outcomes: Vec<_> = PROBES
            .iter()
            .map(|row| {
                if row.sets.iter().any(|set| options.sets.contains(set)) {
                    attacher.row(row, kernel)
                } else {
                    not_asked_for(row)
                }
            })
            .collect();
        let programs: Vec<_> = attacher.attached.into_iter().collect();
        let mut state = state(kernel, options, &outcomes);
        let mut maps = Maps::take(&mut ebpf)?;
        state.ranges = maps.set_ranges(&kernel.symbols.ranges(Group::ALL)?)?;
        Ok(Self {
            ebpf,
            maps,
            outcomes,
            programs,
            state,
        })
    }

    /// Opens the window: from now on everything counts.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn arm(&mut self) -> Result<()> {
        self.state.armed = 1;
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

    /// Nanoseconds and runs of every attached program, as far as the kernel keeps them.
    #[must_use]
    pub fn costs(&self) -> Vec<cil_trace_core::session::ProgramCost> {
        self.programs
            .iter()
            .filter_map(|name| {
                let info = self.ebpf.program(name)?.info().ok()?;
                Some(cil_trace_core::session::ProgramCost {
                    program: (*name).to_owned(),
                    run_ns: u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX),
                    runs: info.run_count(),
                })
            })
            .collect()
    }

    /// Runs that the kernel has left out so far, each with the first probe that its program serves.
    /// Kernels before 5.12 do not count them.
    pub fn runs_left_out(&self) -> impl Iterator<Item = (Probe, u64)> + '_ {
        self.programs.iter().filter_map(|name| {
            let fd = self.ebpf.program(name)?.fd().ok()?.as_fd().as_raw_fd();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            let runs = info
                .lines()
                .find_map(|line| line.strip_prefix("recursion_misses:"))?
                .trim()
                .parse()
                .ok()?;
            let row = PROBES.iter().find(|row| {
                let programs = row.ways.iter().flat_map(|way| way.programs);
                programs.into_iter().any(|program| program.name == *name)
            })?;
            Some((row.probe, runs))
        })
    }
}

struct Attacher<'a> {
    ebpf: &'a mut Ebpf,
    btf: &'a Btf,
    attached: BTreeSet<&'static str>,
}

impl Attacher<'_> {
    /// Takes the first way that works.
    fn row(&mut self, row: &Row, kernel: &RunningKernel) -> ProbeOutcome {
        let (ways, mut reasons) = open_ways(row, kernel);
        let mut failed = false;
        for way in ways {
            match self.way(way.programs) {
                Ok(()) => return taken(row, way.programs, way.approximation, &reasons),
                Err(Obstacle::Refused(reason)) => reasons.push(reason),
                Err(Obstacle::Failed(reason)) => {
                    failed = true;
                    reasons.push(reason);
                }
            }
        }
        let probe = row.probe.name().to_owned();
        let reason = reasons.join("; ");
        match row.otherwise {
            Otherwise::Approximated(by) => ProbeOutcome {
                probe,
                outcome: Outcome::Approximated,
                how: by.to_owned(),
                reason,
            },
            Otherwise::Skipped(_) if failed => ProbeOutcome {
                probe,
                outcome: Outcome::Failed,
                how: String::new(),
                reason,
            },
            Otherwise::Skipped(why) => ProbeOutcome {
                probe,
                outcome: Outcome::Skipped,
                how: String::new(),
                reason: match unknown_layout(row, kernel) {
                    Some(unknown) => unknown,
                    None => format!("{why}: {reason}"),
                },
            },
        }
    }

    /// Attaches all programs of a way, or none.
    fn way(&mut self, programs: &'static [Program]) -> Result<(), Obstacle> {
        let mut added = Vec::new();
        for program in programs {
            if self.attached.contains(program.name) {
                continue;
            }
            if let Err(obstacle) = attach::attach(self.ebpf, self.btf, program) {
                for program in added {
                    attach::detach(self.ebpf, program);
                }
                return Err(obstacle);
            }
            added.push(program);
        }
        self.attached
            .extend(added.iter().map(|program| program.name));
        Ok(())
    }
}

fn taken(
    row: &Row,
    programs: &[Program],
    approximation: Option<&str>,
    reasons: &[String],
) -> ProbeOutcome {
    let names: Vec<_> = programs
        .iter()
        .map(|program| format!("{} {}", program.attach.name(), program.target))
        .collect();
    let names = names.join(", ");
    let probe = row.probe.name().to_owned();
    match approximation {
        None => ProbeOutcome {
            probe,
            outcome: Outcome::Attached,
            how: names,
            reason: String::new(),
        },
        Some(approximation) => ProbeOutcome {
            probe,
            outcome: Outcome::Approximated,
            how: format!("{names}: {approximation}"),
            reason: reasons.join("; "),
        },
    }
}

fn not_asked_for(row: &Row) -> ProbeOutcome {
    let sets: Vec<_> = row.sets.iter().map(|set| set.name()).collect();
    ProbeOutcome {
        probe: row.probe.name().to_owned(),
        outcome: Outcome::Skipped,
        how: String::new(),
        reason: format!("not in --probes (it belongs to {})", sets.join(", ")),
    }
}

/// The state map's value before the window opens.
fn state(kernel: &RunningKernel, options: &Options, outcomes: &[ProbeOutcome]) -> State {
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
        ranges: 0,
        probes: outcomes
            .iter()
            .filter(|row| row.outcome.measured())
            .filter_map(|row| Probe::from_name(&row.probe))
            .fold(0, |probes, probe| probes | State::bit(probe)),
        ends: by_return(Probe::ForceEnd, State::FORCE_END)
            | by_return(Probe::FsyncEnd, State::FSYNC_END),
        reserved: 0,
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
