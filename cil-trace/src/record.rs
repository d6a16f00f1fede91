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
use cil_trace_core::session::{Footer, Header, Overhead};
use cil_trace_core::tick::Tick;
use followed::Followed;
use session::{Clock, header, workload_of};
use std::io::{Write as _, stderr};
use std::path::Path;
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
    let mut file = Saved::create(options, &header)?;
    // The kernel keeps the programs' run times as long as this is open; see bpf_enable_stats(2).
    let _run_times = aya::sys::enable_stats(aya::sys::Stats::RunTime)
        .inspect_err(|error| log::warn!("the programs' cost is not measured: {error}"));
    header.window_start_ns = Clock::now();
    followed.read_statistics(header.window_start_ns);
    let opened = tracer
        .arm()
        .and_then(|()| file.header(&header))
        .and_then(|()| gate.open(options));
    let subject = match opened {
        Ok(subject) => subject,
        Err(error) => {
            file.discard();
            return Err(error);
        }
    };

    let mut model = Model::new(header.clone());
    let mut reader = Reader::new(header.window_start_ns);
    let mut watch = Watch::new(subject.subject, blocked, options.duration)?;
    let mut ticks = timer(options.interval);
    let mut drains = timer(DRAIN);
    let ended = loop {
        tokio::select! {
            ended = watch.ended() => break ended?,
            _ = ticks.tick() => {
                file.note(followed.look_around(&mut tracer.maps));
                let now = Clock::now();
                followed.read_statistics(now);
                if let Some(mut tick) = file.note(reader.tick(&mut tracer, &kernel.symbols, now)) {
                    tick.devices = followed.news(&tick);
                    model.apply(&tick);
                    file.tick(&tick);
                }
            }
            _ = drains.tick() => reader.drain(&mut tracer.maps),
            changed = followed.changed() => {
                file.note(changed.and_then(|()| followed.refresh(&mut tracer.maps)));
            }
        }
    };
    tracer.disarm()?;
    let window_end_ns = Clock::now();
    followed.read_statistics(window_end_ns);
    let mut tick = reader.tick(&mut tracer, &kernel.symbols, window_end_ns)?;
    tick.devices = followed.news(&tick);
    model.apply(&tick);
    file.tick(&tick);
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
    let failure = file.finish(&footer);
    model.finish(footer);
    let report = Report::of(&model, false);
    if !options.quiet {
        let file = options.output.display().to_string();
        // Nobody is left to tell if this fails.
        let _ = stderr().write_all(summary::text(&report, Some(&file)).as_bytes());
    }
    match (ended.exit_code(), failure) {
        // The workload's own failure is the more telling status; both are said.
        (code @ 1.., Some(failure)) => {
            log::error!("{failure:#}");
            Ok(code)
        }
        (0, Some(failure)) => Err(failure),
        (0, None) if options.strict => Ok(strict(options, &report)),
        (code, None) => Ok(code),
    }
}

/// What `--strict` makes of a workload that succeeded.
fn strict(options: &RecordOptions, report: &Report) -> u8 {
    let lost = report.loss.total + report.loss.unpaired + report.loss.stacks_lost;
    if lost == 0 {
        return 0;
    }
    log::error!(
        "--strict: {lost} losses; `cil-trace report {} loss` lists them",
        options.output.display()
    );
    crate::error::RECORD
}

/// The recording's file. That it cannot be written does not end the recording: the workload goes on
/// as it would have, and the summary is made from what was seen.
struct Saved<'a> {
    path: &'a Path,
    writer: Option<Writer>,
    failure: Option<anyhow::Error>,
}

impl<'a> Saved<'a> {
    fn create(options: &'a RecordOptions, header: &Header) -> Result<Self> {
        let path = &options.output;
        Ok(Self {
            path,
            writer: Some(Writer::create(path, header)?),
            failure: None,
        })
    }

    fn header(&mut self, header: &Header) -> Result<()> {
        match &mut self.writer {
            Some(writer) => Ok(writer.header(header)?),
            None => Ok(()),
        }
    }

    /// Nothing was recorded.
    fn discard(self) {
        if let Some(writer) = self.writer {
            writer.discard();
        }
    }

    fn tick(&mut self, tick: &Tick) {
        let written = self
            .writer
            .as_mut()
            .map_or(Ok(()), |writer| writer.tick(tick));
        if self.note(written.map_err(Into::into)).is_none() {
            // What is in the file stays readable, as a recording without an end.
            self.writer = None;
        }
    }

    /// The value, or the error kept for the end, of which the first is the telling one.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error| {
                if self.failure.is_none() {
                    log::error!("{error:#}; the workload goes on");
                    self.failure = Some(error);
                }
            })
            .ok()
    }

    /// Completes the file; what went wrong since the window opened.
    fn finish(mut self, footer: &Footer) -> Option<anyhow::Error> {
        if let Some(writer) = self.writer.take() {
            match writer.finish(footer) {
                // All of it is in the file; a reader keeps it open.
                Err(error @ RecordingError::StillOpen { .. }) => log::warn!("{error}"),
                finished => {
                    self.note(finished.map_err(Into::into));
                }
            }
        }
        self.note(chown_back(self.path));
        self.failure
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
