//! From the model to a report: which number stands under which name.
//!
//! Nothing is rounded, coloured or put into words here but the names of causes. A number whose
//! probe did not attach is `None`; where the probe did attach, nothing seen means 0.

mod cause;
mod flush;
mod lock;
mod log;
mod view;
mod wait;

use super::schema::{Events, Hist, Loss, LossRow, ProcessRow, Report, TickRow, Window, Workload};
use crate::histogram::Histogram;
use crate::model::{LossSums, Model};
use crate::session::{self, SCHEMA};
use cil_trace_common::probe::Probe;
use std::cmp::Reverse;
use view::View;

impl Report {
    /// The report of what the model knows so far; with one row per tick if asked for.
    #[must_use]
    pub fn of(model: &Model, per_tick: bool) -> Self {
        let header = model.header();
        let footer = model.footer();
        let (start_ns, end_ns) = model.window();
        Self {
            schema: SCHEMA,
            tool: header.tool.clone(),
            kernel: header.machine.kernel.clone(),
            command: header.command.clone(),
            scope: header.scope.clone(),
            started_at: header.started_at.clone(),
            duration_ns: end_ns.saturating_sub(start_ns),
            interrupted: footer.is_none_or(|footer| footer.interrupted),
            window: Window { start_ns, end_ns },
            workload: footer
                .and_then(|footer| footer.workload.as_ref())
                .map(Workload::from),
            devices: flush::devices(model),
            flushes: flush::flushes(model),
            fsyncs: wait::fsyncs(model),
            forces: wait::forces(model),
            pushes: log::pushes(View::all(model)),
            iclogs: log::iclogs(View::all(model)),
            commits: log::commits(View::all(model)),
            grants: log::grants(View::all(model)),
            waits: wait::waits(model),
            log_space: log::log_space(model),
            ail: log::ail(model),
            ilock: lock::ilock(model),
            locks: lock::locks(model),
            blockers: lock::blockers(model),
            absent_locks: header.absent_locks.clone(),
            processes: processes(model),
            ticks: per_tick.then(|| ticks(model)),
            overhead: footer.and_then(|footer| footer.overhead.clone()),
            events: Events {
                seen: model
                    .events_seen()
                    .map(|(_, seen)| seen)
                    .fold(0, u64::saturating_add),
                kept: model.events_kept(),
            },
            loss: loss(model),
            probes: header.probes.clone(),
        }
    }
}

impl From<&session::Workload> for Workload {
    fn from(workload: &session::Workload) -> Self {
        Self {
            exit_status: workload.exit_status,
            signal: workload.signal,
            wall_ns: workload.wall_ns,
            user_ns: workload.user_ns,
            sys_ns: workload.sys_ns,
            metrics: workload.metrics.clone(),
        }
    }
}

impl From<&Histogram> for Hist {
    fn from(histogram: &Histogram) -> Self {
        let extreme = |value| (histogram.count > 0).then_some(value);
        Self {
            count: histogram.count,
            sum: histogram.sum,
            min: extreme(histogram.min),
            max: extreme(histogram.max),
            p50: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            p999: histogram.quantile(0.999),
            buckets: histogram.edges().collect(),
        }
    }
}

/// Those that waited longest come first, then those that forced most.
fn processes(model: &Model) -> Vec<ProcessRow> {
    let flushes = model.measured(Probe::FlushRequests);
    let locks = model.measured(Probe::RwsemWaits);
    let row = |process: &crate::tick::ProcessRow| ProcessRow {
        pid: process.pid,
        comm: process.comm.clone(),
        workload: process.workload,
        forces: process.forces,
        flushes_requested: flushes.then_some(process.flushes_requested),
        lock_wait_ns: locks.then_some(process.lock_wait_ns),
        log_wait_ns: process.log_wait_ns,
    };
    let mut rows: Vec<_> = model.processes().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.log_wait_ns), Reverse(row.forces), row.pid));
    rows
}

fn ticks(model: &Model) -> Vec<TickRow> {
    let [commits, pushes, forces, requested, issued, locks] = [
        Probe::Commits,
        Probe::Pushes,
        Probe::Forces,
        Probe::FlushRequests,
        Probe::FlushIssues,
        Probe::RwsemWaits,
    ]
    .map(|probe| model.measured(probe));
    let row = |tick: &crate::model::TickSums| TickRow {
        t_ns: tick.end_ns,
        commits: commits.then_some(tick.commits),
        pushes: pushes.then_some(tick.pushes),
        forces: forces.then_some(tick.forces),
        flushes_requested: requested.then_some(tick.flushes_requested),
        flushes_issued: issued.then_some(tick.flushes_issued),
        lock_wait_ns: locks.then_some(tick.lock_wait_ns),
    };
    model.ticks().iter().map(row).collect()
}

fn loss(model: &Model) -> Loss {
    let LossSums {
        lost,
        unpaired,
        stacks_lost,
    } = model.loss_sums();
    let rows = model.losses().filter(|(_, _, count)| *count > 0);
    Loss {
        by_probe: rows
            .map(|(probe, cause, count)| LossRow {
                probe: probe.name().to_owned(),
                cause: cause.name().to_owned(),
                count,
            })
            .collect(),
        total: lost,
        unpaired,
        stacks_lost,
    }
}
