//! What a recording says once: at its start of machine and probes, at its end of the workload.

use super::followed::Followed;
use crate::options::{RecordOptions, Target};
use crate::trace::Tracer;
use crate::workload::{Ended, ExitInfo, Outputs};
use anyhow::{Context as _, Result};
use cil_trace_core::results::{self, Usage};
use cil_trace_core::session::{Header, Machine, Scope, Workload};
use nix::sys::sysinfo::sysinfo;
use nix::sys::utsname::uname;
use rustix::time::{ClockId, clock_gettime};
use std::thread::available_parallelism;

/// The clock that the kernel side stamps with.
pub struct Clock;

impl Clock {
    /// CLOCK_MONOTONIC, nanoseconds.
    #[must_use]
    pub fn now() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        // Both are positive: the clock starts with the machine.
        now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
    }
}

/// What is known before the window opens.
///
/// # Errors
///
/// If the kernel does not say what it is.
pub fn header(options: &RecordOptions, followed: &Followed, tracer: &Tracer) -> Result<Header> {
    Ok(Header {
        tool: concat!("cil-trace ", env!("CARGO_PKG_VERSION")).to_owned(),
        machine: machine()?,
        command: command(options),
        scope: Scope {
            devices: if options.filters.is_empty() {
                Vec::new()
            } else {
                followed
                    .devices()
                    .into_iter()
                    .map(|device| device.name)
                    .collect()
            },
            pid: match options.target {
                Target::Process(pid) => Some(pid),
                _ => None,
            },
            probe_sets: options
                .probes
                .iter()
                .map(|set| set.name().to_owned())
                .collect(),
        },
        started_at: jiff::Timestamp::now().to_string(),
        window_start_ns: Clock::now(),
        interval_ns: u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX),
        probes: tracer.outcomes.clone(),
        devices: followed.devices(),
    })
}

fn machine() -> Result<Machine> {
    let name = uname().context("uname")?;
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    Ok(Machine {
        kernel: text(name.release()),
        kernel_version: text(name.version()),
        architecture: text(name.machine()),
        hostname: text(name.nodename()),
        cpus: available_parallelism()
            .map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        memory_bytes: sysinfo().context("sysinfo")?.ram_total(),
    })
}

fn command(options: &RecordOptions) -> Vec<String> {
    match &options.target {
        Target::Command(command) => command
            .argv
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// How the command ended and what it achieved; `None` without a command.
///
/// # Errors
///
/// If its captured output cannot be read.
pub async fn workload_of(
    options: &RecordOptions,
    ended: &Ended,
    outputs: Option<Outputs>,
) -> Result<Option<Workload>> {
    let Ended::Exited(exit) = ended else {
        return Ok(None);
    };
    let command = command(options);
    let mut metrics = results::time_metrics(&command, &usage(exit));
    if let Some(outputs) = outputs {
        let collected = outputs.collect().await?;
        let mut problems = collected.warnings;
        let recognised: Vec<_> = collected
            .texts
            .iter()
            .map(|text| results::recognise(text, &command))
            .collect();
        let found = recognised.iter().any(|results| !results.metrics.is_empty());
        for results in recognised {
            // A text without results is no problem when another has them.
            if results.recognised.is_some() || !found {
                problems.extend(results.problems);
            }
            metrics.extend(results.metrics);
        }
        for problem in problems {
            log::warn!("{problem}");
        }
    }
    Ok(Some(Workload {
        exit_status: exit.status,
        signal: exit.signal,
        wall_ns: exit.wall_ns,
        user_ns: exit.user_ns,
        sys_ns: exit.sys_ns,
        metrics,
    }))
}

fn usage(exit: &ExitInfo) -> Usage {
    Usage {
        elapsed_ns: exit.wall_ns,
        user_ns: exit.user_ns,
        sys_ns: exit.sys_ns,
        max_rss_kib: exit.max_rss_bytes / 1024,
        minor_faults: exit.minor_faults,
        major_faults: exit.major_faults,
        voluntary_switches: exit.voluntary_context_switches,
        involuntary_switches: exit.involuntary_context_switches,
        blocks_in: exit.fs_inputs,
        blocks_out: exit.fs_outputs,
    }
}
