//! Sections on the run: the workload, its processes, the ticks, and how good the numbers are.

use super::facts;
use crate::report::schema::{LossRow, Report};
use crate::report::table::{Builder, Cell, Table, Unit};
use crate::report::units::{percent, share};
use crate::session::{Outcome, ProgramCost};
use crate::tick::ProcessRow;
use std::cmp::Reverse;

pub(super) fn workload(report: &Report) -> Table {
    let Some(workload) = &report.workload else {
        let mut table = facts("workload", "Workload", &[]);
        table
            .notes
            .push("there was no command, or its end was not seen".to_owned());
        return table;
    };
    let end = |status: Option<i32>| status.map(|status| Cell::Count(status.into()));
    let mut rows: Vec<_> = [
        ("exit status", end(workload.exit_status)),
        ("signal", end(workload.signal)),
        ("wall time", Some(Cell::Ns(workload.wall_ns))),
        ("user time", Some(Cell::Ns(workload.user_ns))),
        ("system time", Some(Cell::Ns(workload.sys_ns))),
    ]
    .into_iter()
    .filter_map(|(name, cell)| Some((name, cell?)))
    .collect();
    rows.extend(
        workload
            .metrics
            .iter()
            .map(|(name, value)| (name.as_str(), Cell::Ratio(*value))),
    );
    facts("workload", "Workload", &rows)
}

pub(super) fn window(report: &Report) -> Table {
    let window = report.window;
    facts(
        "window",
        "The window, CLOCK_MONOTONIC",
        &[
            ("start", Cell::Ns(window.start_ns)),
            ("end", Cell::Ns(window.end_ns)),
            ("duration", Cell::Ns(report.duration_ns)),
        ],
    )
}

pub(super) fn processes(report: &Report) -> Table {
    let mut rows = report.processes.clone();
    rows.sort_by_key(|row| {
        Reverse((
            row.forces
                .saturating_add(row.flushes_requested.unwrap_or(0)),
            row.log_wait_ns,
        ))
    });
    Builder::new(
        "processes",
        "Who forced the log and who waited for it",
        &rows,
    )
    .column("pid", Unit::Text, |row| match row.pid {
        ProcessRow::MERGED.. => Cell::Missing,
        pid => Cell::Text(pid.to_string()),
    })
    .text("comm", |row| Some(&row.comm))
    .text("workload", |row| {
        Some(if row.workload { "yes" } else { "no" })
    })
    .count("forces", |row| row.forces)
    .count("flushes_requested", |row| row.flushes_requested)
    .number("log_wait", Unit::Ns, |row| row.log_wait_ns)
    .number("lock_wait", Unit::Ns, |row| row.lock_wait_ns)
    .build()
}

pub(super) fn ticks(report: &Report) -> Table {
    let rows = report.ticks.as_deref().unwrap_or_default();
    let builder = Builder::new("ticks", "Increments per tick", rows)
        .number("elapsed", Unit::Ns, |row| {
            row.t_ns.saturating_sub(report.window.start_ns)
        })
        .count("commits", |row| row.commits)
        .count("pushes", |row| row.pushes)
        .count("forces", |row| row.forces)
        .count("flushes_requested", |row| row.flushes_requested)
        .count("flushes_issued", |row| row.flushes_issued)
        .number("lock_wait", Unit::Ns, |row| row.lock_wait_ns);
    if report.ticks.is_none() {
        return builder.note("ask for them with --per-tick").build();
    }
    builder.build()
}

pub(super) fn overhead(report: &Report) -> Table {
    let title = "What tracing cost";
    let Some(overhead) = &report.overhead else {
        return Builder::<ProgramCost>::new("overhead", title, &[])
            .key("program", |row| &row.program)
            .number("run_time", Unit::Ns, |row| row.run_ns)
            .note("not known: the recording has no end")
            .build();
    };
    let total = ProgramCost {
        program: "all".to_owned(),
        run_ns: overhead.bpf_run_ns,
        runs: overhead.bpf_runs,
    };
    let mut programs = overhead.per_program.clone();
    programs.sort_by_key(|program| Reverse(program.run_ns));
    let rows: Vec<_> = std::iter::once(total).chain(programs).collect();
    let cpu = |row: &ProgramCost| {
        // Each program's part of the whole, whose share of the CPUs is known.
        let part = share(row.run_ns, overhead.bpf_run_ns)?;
        Some(overhead.share_of_cpu_pct * part / 100.0)
    };
    let builder = Builder::new("overhead", title, &rows)
        .key("program", |row| &row.program)
        .count("runs", |row| row.runs)
        .number("run_time", Unit::Ns, |row| row.run_ns)
        .column("per_run", Unit::Ns, |row| {
            row.run_ns
                .checked_div(row.runs)
                .map_or(Cell::Blank, Cell::Ns)
        })
        .percent("share_of_cpu", cpu);
    let measured = overhead.measured_ns.map(|measured| {
        let part = share(measured, report.duration_ns).map_or_else(String::new, percent);
        format!("measured in {part} of the time, and scaled to all of it")
    });
    let sampled = (overhead.sampled_1_in > 1).then(|| {
        let n = overhead.sampled_1_in;
        format!("to save time, holds and callers of inodes' locks are those of 1 in {n} inodes")
    });
    let mut table = builder.build();
    table.notes.extend(measured.into_iter().chain(sampled));
    table
}

pub(super) fn events(report: &Report) -> Table {
    let events = report.events;
    Builder::new("events", "Sample of single objects", &[events])
        .count("seen", |row| row.seen)
        .count("kept", |row| row.kept)
        .percent("share", |row| share(row.kept, row.seen))
        .note("what was not kept is in every count and histogram")
        .build()
}

pub(super) fn loss(report: &Report) -> Table {
    let loss = &report.loss;
    let total = |cause: &str, count| LossRow {
        probe: "all".to_owned(),
        cause: cause.to_owned(),
        count,
    };
    let rows: Vec<_> = loss
        .by_probe
        .iter()
        .cloned()
        .chain([
            total("lost", loss.total),
            total("unpaired", loss.unpaired),
            total("stacks lost", loss.stacks_lost),
        ])
        .collect();
    Builder::new("loss", "Loss: what is missing from the numbers", &rows)
        .key("probe", |row| &row.probe)
        .key("cause", |row| &row.cause)
        .count("count", |row| row.count)
        .build()
}

pub(super) fn probes(report: &Report) -> Table {
    Builder::new("probes", "How each number was got", &report.probes)
        .key("probe", |row| &row.probe)
        .text("outcome", |row| {
            Some(match row.outcome {
                Outcome::Attached => "attached",
                Outcome::Approximated => "approximated",
                Outcome::Skipped => "skipped",
                Outcome::Failed => "failed",
            })
        })
        .text("how", |row| {
            Some(row.how.as_str()).filter(|text| !text.is_empty())
        })
        .text("reason", |row| {
            Some(row.reason.as_str()).filter(|text| !text.is_empty())
        })
        .build()
}
