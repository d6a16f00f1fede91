//! What is known once per recording: at its start and at its end.

mod kernel_config;

pub use kernel_config::KernelConfig;

use crate::device::Device;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the recording's tables and of the report's JSON.
pub const SCHEMA: u32 = 1;

/// Known when the window opens.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// `cil-trace` and its version.
    pub tool: String,
    /// The machine.
    pub machine: Machine,
    /// The workload's command line; empty when there is none.
    pub command: Vec<String>,
    /// What was asked for: filters, probe sets, pid.
    pub scope: Scope,
    /// Where it stands in a series; `None` for a single recording.
    pub series: Option<SeriesPosition>,
    /// Wall-clock time of the start, RFC 3339.
    pub started_at: String,
    /// The window's start, CLOCK_MONOTONIC nanoseconds.
    pub window_start_ns: u64,
    /// Distance of the ticks, nanoseconds.
    pub interval_ns: u64,
    /// How each probe came out.
    pub probes: Vec<ProbeOutcome>,
    /// Devices in scope at the start.
    pub devices: Vec<Device>,
    /// Locks that this kernel does not have, of those that are known by name.
    pub absent_locks: Vec<String>,
}

/// The machine and its kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `uname -m`.
    pub architecture: String,
    /// Host name.
    pub hostname: String,
    /// CPUs online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel's configuration; `None` if nothing tells.
    pub kernel_config: Option<KernelConfig>,
}

/// Where a recording stands in a series of `record --runs`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SeriesPosition {
    /// The same in all recordings of the series, and in no other.
    pub id: String,
    /// `a` for the command, `b` for the one that it runs against.
    pub side: String,
    /// From 1; in a round each side runs once, so that its runs are a pair.
    pub round: u32,
    /// From 1, in the order of time.
    pub position: u32,
}

/// Filters of the recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// Bare device names given by `--device` or `--mount`; empty for every XFS.
    pub devices: Vec<String>,
    /// The process of `-p`.
    pub pid: Option<u32>,
    /// Probe sets in use.
    pub probe_sets: Vec<String>,
    /// Samples a second of each CPU; `None` if none are taken.
    pub sampling_hz: Option<u32>,
}

/// How a probe came out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeOutcome {
    /// The probe's name.
    pub probe: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The way that was taken, such as `raw_tracepoint xfs_log_force`, and of an approximation what
    /// it takes for the quantity; empty when there is none.
    pub how: String,
    /// Why it is not attached, or why not in a better way; empty when there is nothing to say.
    pub reason: String,
}

/// What became of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Measured.
    Attached,
    /// Measured by something close to it.
    Approximated,
    /// Not measured, as this kernel or the command line wants it.
    Skipped,
    /// Not measured, because of an error.
    Failed,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [
        Self::Attached,
        Self::Approximated,
        Self::Skipped,
        Self::Failed,
    ];

    /// The word for it in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Approximated => "approximated",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    /// The outcome with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether there are numbers, exact or close to it.
    #[must_use]
    pub const fn measured(self) -> bool {
        matches!(self, Self::Attached | Self::Approximated)
    }
}

/// Known when the window has closed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Footer {
    /// The window's end, CLOCK_MONOTONIC nanoseconds.
    pub window_end_ns: u64,
    /// True if cil-trace was told to abort, so that the workload's end was not awaited.
    pub interrupted: bool,
    /// The command and its end; `None` without a command.
    pub workload: Option<Workload>,
    /// What tracing cost.
    pub overhead: Option<Overhead>,
    /// /sys/fs/xfs/*/stats/stats at both ends of the window.
    pub xfs_stats: Vec<XfsStats>,
}

/// How the workload ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Its exit status, unless a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Wall-clock time, nanoseconds.
    pub wall_ns: u64,
    /// CPU time in user mode, nanoseconds, with its descendants that were waited for.
    pub user_ns: u64,
    /// CPU time in kernel mode, nanoseconds.
    pub sys_ns: u64,
    /// Results under LKP's names; `<command>.time.*` always.
    pub metrics: BTreeMap<String, f64>,
}

/// What tracing cost.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// Nanoseconds spent in the programs.
    pub bpf_run_ns: u64,
    /// Runs of the programs.
    pub bpf_runs: u64,
    /// The same per program.
    pub per_program: Vec<ProgramCost>,
    /// `bpf_run_ns` as a share of all CPUs' time in the window, percent.
    pub share_of_cpu_pct: f64,
    /// Of inodes, 1 in so many had its locks' holds and callers measured; 1 when all had.
    pub sampled_1_in: u32,
    /// How long the runs were measured: the numbers above are scaled from that to the window. `None`
    /// if that was all the time.
    pub measured_ns: Option<u64>,
}

/// What one program cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramCost {
    /// The program's name.
    pub program: String,
    /// Nanoseconds spent in it.
    pub run_ns: u64,
    /// Its runs.
    pub runs: u64,
}

/// XFS's own statistics of one filesystem, as a witness beside our numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct XfsStats {
    /// Bare device name.
    pub device: String,
    /// The file's text at the window's start; empty if the filesystem was mounted since, when its
    /// counters began at 0. Of one that was mounted again, the last mount counts.
    pub start: String,
    /// The last text that could be read; the filesystem may have been unmounted since.
    pub end: String,
    /// When that was, CLOCK_MONOTONIC nanoseconds.
    pub end_ns: u64,
}
