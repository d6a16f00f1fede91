//! `record`: runs a workload in a window in which everything is counted, and writes the recording.
//!
//! Owns the order of things. How the command is run, the kernel side read and the file written is
//! decided elsewhere.

mod series;
mod session;

pub use series::shell;

use crate::collect::Collector;
use crate::options::{RecordOptions, Repeat, Target};
use crate::signals::Blocked;
use crate::workload::{self, Ended, Outputs, Prepared, Subject, Watch, chown_back};
use anyhow::{Context as _, Result};
use cil_trace_core::model::Model;
use cil_trace_core::recording::{RecordingError, Writer};
use cil_trace_core::report::schema::Report;
use cil_trace_core::report::summary;
use cil_trace_core::session::{Footer, Header, SeriesPosition};
use cil_trace_core::tick::Tick;
use session::{command, workload_of};
use std::io::{Write as _, stderr};
use std::path::Path;

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
        .block_on(async {
            match &options.repeat {
                Repeat::Series(series) => return series::run(options, series, &blocked).await,
                Repeat::Once {
                    prepare: Some(command),
                } => {
                    if let Some(status) = series::prepare(command, &blocked).await? {
                        return Ok(status);
                    }
                }
                Repeat::Once { prepare: None } => {}
            }
            let recorded = record(options, None, &blocked).await?;
            Ok(recorded.status)
        })
}

/// What came of a recording that was made.
struct Recorded {
    /// The workload's exit status, or that of a failure of our own beside its success.
    status: u8,
    /// The workload did what it should: it ended with status 0, or when its time was over.
    succeeded: bool,
    /// A signal asked for the end.
    stopped: bool,
}

async fn record(
    options: &RecordOptions,
    position: Option<SeriesPosition>,
    blocked: &Blocked,
) -> Result<Recorded> {
    let gate = Gate::close(options, blocked)?;
    let mut collector = Collector::load(&options.tracing)?;
    if let Some(root) = gate.target(options) {
        collector.add_workload(root)?;
    }
    let mut header = collector.header().clone();
    header.command = command(options);
    header.series = position;
    header.scope.pid = match options.target {
        Target::Process(pid) => Some(pid),
        _ => None,
    };
    let mut file = Saved::create(options, &header)?;
    let opened = collector.open().and_then(|window| {
        header.window_start_ns = window.start_ns;
        file.header(&header)?;
        Ok((window, gate.open(options)?))
    });
    let (mut window, subject) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            file.discard();
            return Err(error);
        }
    };

    let mut model = Model::new(header);
    let mut watch = Watch::new(subject.subject, blocked, options.duration)?;
    let ended = loop {
        tokio::select! {
            ended = watch.ended() => break ended?,
            tick = window.tick() => {
                if let Some(tick) = file.note(tick) {
                    model.apply(&tick);
                    file.tick(&tick);
                }
            }
        }
    };
    // Everything leaves the kernel before the file is closed, which may take a while.
    let (tick, mut footer) = window.close()?;
    model.apply(&tick);
    file.tick(&tick);
    footer.interrupted = ended == Ended::Aborted;
    footer.workload = workload_of(options, &ended, subject.outputs).await?;
    let failure = file.finish(&footer);
    model.finish(footer);
    let report = Report::of(&model, false);
    if !options.quiet {
        let file = options.output.display().to_string();
        // Nobody is left to tell if this fails.
        let _ = stderr().write_all(summary::text(&report, Some(&file)).as_bytes());
    }
    let complete = failure.is_none();
    let status = match (ended.exit_code(), failure) {
        // The workload's own failure is the more telling status; both are said.
        (code @ 1.., Some(failure)) => {
            log::error!("{failure:#}");
            code
        }
        (0, Some(failure)) => return Err(failure),
        (0, None) if options.strict => strict(options, &report),
        (code, None) => code,
    };
    Ok(Recorded {
        status,
        succeeded: complete && (status == 0 || watch.expired()),
        stopped: watch.stopped() || ended == Ended::Aborted,
    })
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
