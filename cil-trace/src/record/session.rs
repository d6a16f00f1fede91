//! What a recording says of the workload: at its start the command, at its end what became of it.

use crate::options::{RecordOptions, Target};
use crate::workload::{Ended, ExitInfo, Outputs};
use anyhow::Result;
use cil_trace_core::results::{self, Usage};
use cil_trace_core::session::Workload;

/// The command line; empty without a command.
pub fn command(options: &RecordOptions) -> Vec<String> {
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
