//! Where live ticks come from: the kernel side, loaded, read every interval, and kept up to date
//! with what is mounted.
//!
//! What becomes of a tick is decided by whoever takes it.

mod followed;
mod header;

use crate::options::Tracing;
use crate::system::environment::{Check, EnvironmentFacts, Status};
use crate::trace::{Options, Reader, RunningKernel, Tracer};
use crate::workload;
use anyhow::{Context as _, Result, bail};
use cil_trace_core::session::{Footer, Header, Overhead};
use cil_trace_core::tick::Tick;
use followed::Followed;
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the ring buffer is emptied; it holds some ten times what comes in between.
const DRAIN: Duration = Duration::from_millis(100);

/// The kernel side, attached, with its window closed. Everything is gone from the kernel when it
/// is dropped.
pub struct Collector {
    kernel: RunningKernel,
    tracer: Tracer,
    followed: Followed,
    header: Header,
    interval: Duration,
    /// The kernel keeps the programs' run times as long as this is open; see bpf_enable_stats(2).
    _run_times: Option<OwnedFd>,
}

impl Collector {
    /// Loads and attaches what is asked for. Needs tokio's I/O driver.
    ///
    /// # Errors
    ///
    /// If this machine cannot be traced, or nothing is there to be followed; the text names the
    /// remedy.
    pub fn load(tracing: &Tracing) -> Result<Self> {
        let followed = Followed::new(&tracing.filters)?;
        permitted()?;
        let kernel = RunningKernel::read()?;
        let mut tracer = Tracer::load(
            &kernel,
            &Options {
                sets: tracing.probes.clone(),
                filtered: !tracing.filters.is_empty(),
                diagnostics: log::log_enabled!(log::Level::Debug),
                filesystems: followed.filesystems(),
            },
        )?;
        followed.announce(&mut tracer.maps)?;
        let run_times = aya::sys::enable_stats(aya::sys::Stats::RunTime)
            .inspect_err(|error| log::warn!("the programs' cost is not measured: {error}"));
        Ok(Self {
            header: header::header(tracing, &followed, &tracer)?,
            kernel,
            tracer,
            followed,
            interval: tracing.interval,
            _run_times: run_times.ok(),
        })
    }

    /// Counts a process and its descendants, those of now and of later, as the workload.
    ///
    /// # Errors
    ///
    /// If /proc cannot be read, or the kernel refuses the update.
    pub fn add_workload(&mut self, root: u32) -> Result<()> {
        for pid in workload::descendants(vec![root.cast_signed()]).context("cannot read /proc")? {
            self.tracer.maps.add_to_workload(pid.cast_unsigned())?;
        }
        Ok(())
    }

    /// What is known so far, without a workload and without the window's start.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Opens the window.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update.
    pub fn open(mut self) -> Result<Window> {
        let start_ns = now();
        self.followed.read_statistics(start_ns);
        self.tracer.arm()?;
        Ok(Window {
            start_ns,
            reader: Reader::new(start_ns),
            ticks: timer(self.interval),
            drains: timer(DRAIN),
            due: false,
            collector: self,
        })
    }
}

/// The window in which everything is counted.
pub struct Window {
    /// Its start, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    collector: Collector,
    reader: Reader,
    ticks: Interval,
    drains: Interval,
    /// A tick's time has come, and it has not been read.
    due: bool,
}

impl Window {
    /// The next tick, when its time has come. Cancel safe: what is not taken now is in a later one.
    ///
    /// # Errors
    ///
    /// If a map or the mounts cannot be read. It may be called again.
    pub async fn tick(&mut self) -> Result<Tick> {
        loop {
            if std::mem::take(&mut self.due) {
                return self.read(now());
            }
            let Collector {
                tracer, followed, ..
            } = &mut self.collector;
            tokio::select! {
                _ = self.ticks.tick() => {
                    // Before what may fail: the counts do not depend on it.
                    self.due = true;
                    followed.look_around(&mut tracer.maps)?;
                }
                _ = self.drains.tick() => self.reader.drain(&mut tracer.maps),
                changed = followed.changed() => {
                    changed?;
                    followed.refresh(&mut tracer.maps)?;
                }
            }
        }
    }

    /// Closes the window, and takes everything out of the kernel: the last tick, and how the
    /// session ended, without a workload.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the update, or a map cannot be read.
    pub fn close(mut self) -> Result<(Tick, Footer)> {
        self.collector.tracer.disarm()?;
        let window_end_ns = now();
        let tick = self.read(window_end_ns)?;
        let footer = Footer {
            window_end_ns,
            overhead: Some(self.overhead(window_end_ns - self.start_ns)),
            xfs_stats: self.collector.followed.statistics(),
            ..Footer::default()
        };
        Ok((tick, footer))
    }

    fn read(&mut self, now: u64) -> Result<Tick> {
        let Collector {
            kernel,
            tracer,
            followed,
            ..
        } = &mut self.collector;
        followed.read_statistics(now);
        let mut tick = self.reader.tick(tracer, &kernel.symbols, now)?;
        tick.devices = followed.news(&tick);
        Ok(tick)
    }

    fn overhead(&self, window_ns: u64) -> Overhead {
        let per_program = self.collector.tracer.costs();
        let bpf_run_ns = per_program.iter().map(|program| program.run_ns).sum();
        let cpus = self.collector.header.machine.cpus.max(1);
        let available = window_ns as f64 * f64::from(cpus);
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
}

/// CLOCK_MONOTONIC, which the kernel side stamps with, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Both are positive: the clock starts with the machine.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The first beat comes after one interval.
fn timer(every: Duration) -> Interval {
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
