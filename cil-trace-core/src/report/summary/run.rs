//! Facts about the run: the command and its results, who forced the log, and how good the numbers
//! are.

use super::Fact;
use crate::report::schema::Report;
use crate::report::units::{duration, float, percent, share, short_count};
use crate::session::Outcome;
use std::collections::BTreeMap;

/// Results that fit on a line.
const RESULTS: usize = 4;

/// Parts of the names of results that people compare first.
const HEADLINES: &[&str] = &["throughput", "iops", "ops", "per_sec", "bw"];

/// Longest command that is shown whole.
const COMMAND: usize = 40;

/// The command, how long it ran and how it ended.
pub(super) fn heading(report: &Report) -> Option<Fact> {
    let mut command = report.command.join(" ");
    if command.is_empty() {
        command = match report.scope.pid {
            Some(pid) => format!("process {pid}"),
            None => "system-wide".to_owned(),
        };
    } else if command.chars().count() > COMMAND {
        command = command.chars().take(COMMAND - 3).collect::<String>() + "...";
    }
    let mut text = format!("{command}: {}", duration(report.duration_ns));
    if let Some(workload) = &report.workload {
        if let Some(signal) = workload.signal {
            text += &format!(", ended by signal {signal}");
        } else if let Some(status) = workload.exit_status {
            text += &format!(", exit status {status}");
        }
    }
    Some(Fact::line(format!("{text}, Linux {}", report.kernel)))
}

/// The numbers do not cover the whole run.
pub(super) fn interrupted(report: &Report) -> Option<Fact> {
    report
        .interrupted
        .then(|| Fact::line("interrupted: the end of the run is not in these numbers"))
}

/// What the benchmark said of itself.
pub(super) fn results(report: &Report) -> Option<Fact> {
    let metrics = &report.workload.as_ref()?.metrics;
    let mut results: Vec<_> = metrics
        .iter()
        .filter(|(name, _)| !name.contains(".time."))
        .collect();
    let place = |name: &str| HEADLINES.iter().position(|part| name.contains(part));
    results.sort_by_key(|(name, _)| place(name).unwrap_or(HEADLINES.len()));
    let text: Vec<_> = results
        .into_iter()
        .take(RESULTS)
        .map(|(name, value)| format!("{name} {}", float(*value)))
        .collect();
    (!text.is_empty()).then(|| Fact::line(text.join(", ")))
}

/// Nothing that this tool looks at has happened.
pub(super) fn idle(report: &Report) -> Option<Fact> {
    let idle = report.flushes.iter().all(|row| row.requested == 0)
        && report.forces.iter().all(|row| row.count == 0)
        && report.commits.count.unwrap_or(0) == 0
        && report.pushes.count.unwrap_or(0) == 0;
    let xfs = report
        .devices
        .iter()
        .any(|row| row.filesystem.as_deref() == Some("xfs"));
    let remedy = if xfs {
        "is the workload on one of the traced mounts? See `report devices`"
    } else {
        "no XFS was mounted in the scope of --mount and --device"
    };
    idle.then(|| Fact::line(format!("the log was idle: {remedy}")))
}

/// The command that forced the log most. A script's many short processes count as one.
pub(super) fn forcer(report: &Report) -> Option<Fact> {
    let total = report
        .processes
        .iter()
        .fold(0_u64, |sum, row| sum.saturating_add(row.forces));
    let mut commands: BTreeMap<(&str, bool), Forcer> = BTreeMap::new();
    for row in &report.processes {
        let command = commands.entry((&row.comm, row.workload)).or_default();
        command.pids.push(row.pid);
        command.forces = command.forces.saturating_add(row.forces);
        command.log_wait_ns = command.log_wait_ns.saturating_add(row.log_wait_ns);
    }
    let ((comm, workload), most) = commands.iter().max_by_key(|(_, most)| most.forces)?;
    let share = share(most.forces, total)?;
    let who = match most.pids.as_slice() {
        [pid] => format!("pid {pid}"),
        pids => format!("{} processes", short_count(pids.len() as u64)),
    };
    let whose = if *workload {
        ""
    } else {
        ", not of the workload"
    };
    Some(Fact::line(format!(
        "top forcer: {comm} ({who}{whose}), {} forces ({}), waited {} for the log",
        short_count(most.forces),
        percent(share),
        duration(most.log_wait_ns)
    )))
}

/// What the processes with one command name did.
#[derive(Default)]
struct Forcer {
    pids: Vec<u32>,
    forces: u64,
    log_wait_ns: u64,
}

/// Probes that do not work although they should.
pub(super) fn probes(report: &Report) -> Option<Fact> {
    let names = |outcome| {
        let rows = report
            .probes
            .iter()
            .filter(move |row| row.outcome == outcome);
        rows.map(|row| row.probe.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let parts: Vec<_> = [
        ("failed", names(Outcome::Failed)),
        ("approximated", names(Outcome::Approximated)),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(word, names)| format!("{word}: {names}"))
    .collect();
    (!parts.is_empty()).then(|| Fact::line(format!("probes {}", parts.join("; "))))
}

/// What tracing cost.
pub(super) fn overhead(report: &Report) -> Option<Fact> {
    let overhead = report.overhead.as_ref()?;
    Some(Fact::line(format!(
        "tracing took {} of the CPUs' time",
        percent(overhead.share_of_cpu_pct)
    )))
}

/// What is missing; said also when nothing is.
pub(super) fn loss(report: &Report) -> Option<Fact> {
    let loss = &report.loss;
    let mut text = match loss.total {
        0 => "loss: none".to_owned(),
        total => {
            let rows = loss.by_probe.iter().filter(|row| row.count > 0).take(3);
            let rows: Vec<_> = rows
                .map(|row| format!("{} {} {}", row.probe, row.cause, short_count(row.count)))
                .collect();
            format!("LOST: {} events ({})", short_count(total), rows.join(", "))
        }
    };
    for (count, what) in [
        (loss.unpaired, "ends without a beginning"),
        (loss.stacks_lost, "stacks lost"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", short_count(count));
        }
    }
    Some(Fact::line(text))
}
