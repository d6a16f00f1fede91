//! `record`: runs a workload in a window in which everything is counted, and writes the recording.
//!
//! Owns the order of things and the loop of ticks. How the command is run, the kernel side read and
//! the file written is decided elsewhere.

mod followed;
mod session;

use crate::options::{RecordOptions, Target};
use crate::system::environment::{Check, EnvironmentFacts, Status};
use crate::trace::{Options as TraceOptions, Reader, RunningKernel, Tracer};
use crate::workload::{self, Blocked, Ended, Outputs, Prepared, Subject, Watch, chown_back};
use anyhow::{Context as _, Result, bail};
use cil_trace_core::model::Model;
use cil_trace_core::recording::{RecordingError, Writer};
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::summary;
use cil_trace_core::session::{Footer, Overhead};
use followed::Followed;
use session::{Clock, header, workload_of};
use std::io::{Write as _, stderr};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often the ring buffer is emptied; it holds some ten times what comes in between.
const DRAIN: Duration = Duration::from_millis(100);

/// Records, and returns the exit status: the workload's own, or 125 if it succeeded and the
/// recording did not.
///
/// # Errors
///
/// What kept the recording from being made.
pub fn run(options: &RecordOptions) -> Result<u8> {
    let blocked = Blocked::block()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(record(options, blocked))
}

async fn record(options: &RecordOptions, blocked: Blocked) -> Result<u8> {
    let gate = Gate::close(options, &blocked)?;
    let mut followed = Followed::new(options)?;
    permitted()?;
    let kernel = RunningKernel::read()?;
    let mut tracer = Tracer::load(
        &kernel,
        &TraceOptions {
            sets: options.probes.clone(),
            filtered: !options.filters.is_empty(),
            diagnostics: log::log_enabled!(log::Level::Debug),
            filesystems: followed.filesystems(),
        },
    )?;
    followed.announce(&mut tracer.maps)?;
    if let Some(root) = gate.target(options) {
        for pid in workload::descendants(vec![root.cast_signed()]).context("cannot read /proc")? {
            tracer.maps.add_to_workload(pid.cast_unsigned())?;
        }
    }
    let mut header = header(options, &followed, &tracer)?;
    let mut writer = Writer::create(&options.output, &header)?;
    // The kernel keeps the programs' run times as long as this is open; see bpf_enable_stats(2).
    let _run_times = aya::sys::enable_stats(aya::sys::Stats::RunTime)
        .inspect_err(|error| log::warn!("the programs' cost is not measured: {error}"));
    header.window_start_ns = Clock::now();
    followed.read_statistics(header.window_start_ns);
    tracer.arm()?;
    writer.header(&header)?;
    let subject = gate.open(options)?;

    let mut model = Model::new(header.clone());
    let mut reader = Reader::new(header.window_start_ns);
    let mut watch = Watch::new(subject.subject, blocked, options.duration)?;
    let mut ticks = timer(options.interval);
    let mut drains = timer(DRAIN);
    let ended = loop {
        tokio::select! {
            ended = watch.ended() => break ended?,
            _ = ticks.tick() => {
                followed.look_around(&mut tracer.maps)?;
                let now = Clock::now();
                followed.read_statistics(now);
                let mut tick = reader.tick(&mut tracer, &kernel.symbols, now)?;
                tick.devices = followed.news(&tick);
                model.apply(&tick);
                writer.tick(&tick)?;
            }
            _ = drains.tick() => reader.drain(&mut tracer.maps),
            changed = followed.changed() => {
                changed?;
                followed.refresh(&mut tracer.maps)?;
            }
        }
    };
    tracer.disarm()?;
    let window_end_ns = Clock::now();
    followed.read_statistics(window_end_ns);
    let mut tick = reader.tick(&mut tracer, &kernel.symbols, window_end_ns)?;
    tick.devices = followed.news(&tick);
    model.apply(&tick);
    writer.tick(&tick)?;
    let footer = Footer {
        window_end_ns,
        interrupted: ended == Ended::Aborted,
        workload: workload_of(options, &ended, subject.outputs).await?,
        overhead: Some(overhead(
            &tracer,
            window_end_ns - header.window_start_ns,
            header.machine.cpus,
        )),
        xfs_stats: followed.statistics(),
    };
    // Everything leaves the kernel before the file is closed, which may take a while.
    drop(tracer);
    finish(writer, &footer)?;
    chown_back(&options.output)?;
    model.finish(footer);
    let report = Report::of(&model, false);
    if !options.quiet {
        let file = options.output.display().to_string();
        // Nobody is left to tell if this fails.
        let _ = stderr().write_all(summary::text(&report, Some(&file)).as_bytes());
    }
    Ok(status(options, &ended, &report))
}

/// A reader that keeps the recording open is no reason to fail: all of it is in the file.
fn finish(writer: Writer, footer: &Footer) -> Result<()> {
    match writer.finish(footer) {
        Err(error @ RecordingError::StillOpen { .. }) => {
            log::warn!("{error}");
            Ok(())
        }
        other => other.map_err(Into::into),
    }
}

fn status(options: &RecordOptions, ended: &Ended, report: &Report) -> u8 {
    let lost = report.loss.total + report.loss.unpaired + report.loss.stacks_lost;
    match ended.exit_code() {
        0 if options.strict && lost > 0 => {
            let _ = writeln!(
                stderr(),
                "cil-trace: --strict: {lost} losses; `cil-trace report {} loss` lists them",
                options.output.display()
            );
            crate::error::RECORD
        }
        code => code,
    }
}

/// The command, held back until everything is attached.
struct Gate(Option<(Prepared, Outputs)>);

/// What is waited for, and the outputs to read at its end.
struct Opened {
    subject: Subject,
    outputs: Option<Outputs>,
}

impl Gate {
    /// Looks the command up and forks it, before anything takes time or memory.
    fn close(options: &RecordOptions, blocked: &Blocked) -> Result<Self> {
        let Target::Command(command) = &options.target else {
            return Ok(Self(None));
        };
        if let Some(program) = command.argv.first() {
            workload::resolve(program, std::env::var_os("PATH").as_deref())?;
        }
        let mut outputs = Outputs::start(command, blocked)?;
        let prepared = Prepared::new(command, &mut outputs, blocked)?;
        Ok(Self(Some((prepared, outputs))))
    }

    /// The process whose work, with its descendants', counts as the workload's.
    fn target(&self, options: &RecordOptions) -> Option<u32> {
        match (&self.0, &options.target) {
            (Some((prepared, _)), _) => Some(prepared.pid()),
            (None, Target::Process(pid)) => Some(*pid),
            _ => None,
        }
    }

    /// Lets the command run.
    fn open(self, options: &RecordOptions) -> Result<Opened> {
        Ok(match (self.0, &options.target) {
            (Some((prepared, outputs)), _) => Opened {
                subject: Subject::command(prepared.go()?)?,
                outputs: Some(outputs),
            },
            (None, Target::Process(pid)) => Opened {
                subject: Subject::process(*pid)?,
                outputs: None,
            },
            (None, _) => Opened {
                subject: Subject::everything(),
                outputs: None,
            },
        })
    }
}

/// The first beat comes after one interval.
fn timer(every: Duration) -> tokio::time::Interval {
    let mut timer = interval(every);
    timer.reset();
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}

/// Refuses, with every remedy at once, what `doctor` calls missing.
fn permitted() -> Result<()> {
    let facts = EnvironmentFacts::read();
    if !facts.initial_pid_namespace {
        log::warn!(
            "this is a PID namespace of its own, in which processes have other numbers than in the \
             kernel: the workload cannot be told from others, nor cil-trace's own work left out; \
             run it in the machine's own (docker run --pid=host)"
        );
    }
    let checks = facts.checks();
    let missing: Vec<_> = checks
        .iter()
        .filter(|check| check.status == Status::Missing)
        .map(
            |Check {
                 name,
                 value,
                 remedy,
                 ..
             }| match remedy {
                Some(remedy) => format!("{name}: {value}; {remedy}"),
                None => format!("{name}: {value}"),
            },
        )
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("this machine cannot be traced:\n  {}", missing.join("\n  "))
}

fn overhead(tracer: &Tracer, window_ns: u64, cpus: u32) -> Overhead {
    let per_program = tracer.costs();
    let bpf_run_ns = per_program.iter().map(|program| program.run_ns).sum();
    let available = window_ns as f64 * f64::from(cpus.max(1));
    Overhead {
        bpf_run_ns,
        bpf_runs: per_program.iter().map(|program| program.runs).sum(),
        per_program,
        share_of_cpu_pct: if available > 0.0 {
            bpf_run_ns as f64 / available * 100.0
        } else {
            0.0
        },
        sampled_1_in: 1,
    }
}
