//! Where live ticks come from: the kernel side, loaded, read every interval, and kept up to date
//! with what is mounted.
//!
//! What becomes of a tick is decided by whoever takes it.

mod cost;
mod followed;
mod generation;
mod header;
mod reach;
mod run_times;

use crate::options::Tracing;
use crate::symbols::UserSymbols;
use crate::system::environment::{Check, EnvironmentFacts, Status, XFS_IS_THERE};
use crate::system::{heap, now};
use crate::trace::{Reader, StackReader};
use crate::workload;
use anyhow::{Context as _, Result, bail};
use cil_trace_common::loss::LossCause;
use cil_trace_common::probe::Probe;
use cil_trace_core::probes::history::History;
use cil_trace_core::session::{Footer, Header, Overhead};
use cil_trace_core::tick::{Loss, Tick};
use cost::Meter;
use followed::Followed;
use generation::Generation;
use reach::{Presence, Reach};
use run_times::RunTimes;
use std::time::{Duration, Instant};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the ring buffer is emptied; it holds some ten times what comes in between.
const DRAIN: Duration = Duration::from_millis(100);

/// How long to wait before trying again what failed.
const RETRY: Duration = Duration::from_secs(1);

/// The kernel side, attached, with its window closed. Everything is gone from the kernel when it
/// is dropped.
pub struct Collector {
    generation: Generation,
    presence: Presence,
    followed: Followed,
    tracing: Tracing,
    header: Header,
    run_times: RunTimes,
}

impl Collector {
    /// Loads and attaches what is asked for. Needs tokio's I/O driver.
    ///
    /// # Errors
    ///
    /// If this machine cannot be traced, or nothing is there to be followed; the text names the
    /// remedy.
    pub fn load(tracing: &Tracing) -> Result<Self> {
        let followed = Followed::new(&tracing.filters, tracing.wait_for_xfs)?;
        permitted(tracing.wait_for_xfs)?;
        let mut presence = Presence::new();
        let mounted = followed.is_xfs_mounted();
        let reach = presence.wanted(None, mounted, followed.is_on_loop());
        let generation = Generation::load(tracing, &followed, reach)?;
        Ok(Self {
            header: header::header(tracing, &followed, &generation)?,
            generation,
            presence,
            followed,
            tracing: tracing.clone(),
            run_times: RunTimes::default(),
        })
    }

    /// Counts a process and its descendants, those of now and of later, as the workload.
    ///
    /// # Errors
    ///
    /// If /proc cannot be read, or the kernel refuses the update.
    pub fn add_workload(&mut self, root: u32) -> Result<()> {
        for pid in workload::descendants(vec![root.cast_signed()]).context("cannot read /proc")? {
            self.generation
                .tracer
                .maps
                .add_to_workload(pid.cast_unsigned())?;
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
        let records = self.generation.tracer.records.take();
        let stacks = StackReader::new(self.tracing.sampling_hz, records.map(UserSymbols::start));
        let start_ns = now();
        self.followed.read_statistics(start_ns);
        self.run_times.turn(start_ns);
        self.generation.tracer.arm(start_ns)?;
        // Symbols, types and the object have been parsed.
        heap::give_back();
        Ok(Window {
            start_ns,
            reader: Reader::new(start_ns, stacks),
            history: History::new(start_ns, &self.generation.tracer.outcomes),
            meter: Meter::new(
                &self.generation.tracer,
                start_ns,
                self.run_times.measured_ns(start_ns),
            ),
            ticks: timer(self.tracing.interval),
            drains: timer(DRAIN),
            due: false,
            not_before: None,
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
    history: History,
    meter: Meter,
    ticks: Interval,
    drains: Interval,
    /// A tick's time has come, and it has not been read.
    due: bool,
    /// When to try again what failed: to reach into modules that have come or gone.
    not_before: Option<Instant>,
}

impl Window {
    /// Ticks in another distance from now on.
    pub fn set_interval(&mut self, interval: Duration) {
        self.ticks = timer(interval);
    }

    /// The next tick, when its time has come. Cancel safe: what is not taken now is in a later one.
    ///
    /// # Errors
    ///
    /// If a map or the mounts cannot be read. It may be called again.
    pub async fn tick(&mut self) -> Result<Tick> {
        loop {
            if let Some(reach) = self.changed_reach() {
                match self.succeed(reach) {
                    Ok(tick) => return Ok(tick),
                    Err(error) => {
                        log::warn!("{error:#}; what was attached stays");
                        self.not_before = Some(Instant::now() + RETRY);
                    }
                }
            }
            if std::mem::take(&mut self.due) {
                return self.read(now(), false);
            }
            let Collector {
                generation: Generation { tracer, .. },
                followed,
                run_times,
                ..
            } = &mut self.collector;
            tokio::select! {
                _ = self.ticks.tick() => {
                    // Before what may fail: the counts do not depend on it.
                    self.due = true;
                    followed.look_around(&mut tracer.maps)?;
                }
                _ = self.drains.tick() => {
                    self.reader.drain(&mut tracer.maps);
                    run_times.turn(now());
                }
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
        self.collector.generation.tracer.disarm()?;
        let window_end_ns = now();
        self.collector.run_times.stop(window_end_ns);
        let tick = self.read(window_end_ns, true)?;
        let footer = Footer {
            window_end_ns,
            overhead: Some(self.overhead(window_end_ns - self.start_ns)),
            xfs_stats: self.collector.followed.statistics(),
            ..Footer::default()
        };
        Ok((tick, footer))
    }

    /// What the kernel side should reach into, if that is not what it does.
    fn changed_reach(&mut self) -> Option<Reach> {
        let Collector {
            generation,
            presence,
            followed,
            ..
        } = &mut self.collector;
        let current = generation.reach;
        let mounted = followed.is_xfs_mounted();
        let wanted = presence.wanted(Some(current), mounted, followed.is_on_loop());
        let may = self.not_before.is_none_or(|at| at <= Instant::now());
        (may && wanted != current).then_some(wanted)
    }

    /// Replaces the kernel side by one that reaches into other modules: the last tick of the old.
    ///
    /// What is under way at that moment is counted, and has no end.
    fn succeed(&mut self, reach: Reach) -> Result<Tick> {
        let Collector {
            generation,
            followed,
            tracing,
            ..
        } = &mut self.collector;
        let mut next = Generation::load(tracing, followed, reach)?;
        next.tracer.succeed(&generation.tracer)?;
        // What processes map is followed already.
        next.tracer.records = None;
        let missed = if reach.xfs && !generation.reach.xfs {
            followed.since_mounted()
        } else {
            (0, 0)
        };
        generation.tracer.disarm()?;
        let now = now();
        next.tracer.arm(now)?;
        let tick = self.read(now, false);
        self.due = false;
        self.reader.begin_anew();
        self.collector.generation = next;
        let outcomes = &self.collector.generation.tracer.outcomes;
        let probes = self.history.change(now, outcomes);
        let losses = [(Probe::Forces, missed.0), (Probe::Iclogs, missed.1)];
        let losses = losses.into_iter().filter(|(_, count)| *count != 0);
        let mut tick = tick?;
        tick.probes = probes;
        tick.losses.extend(losses.map(|(probe, count)| Loss {
            probe,
            cause: LossCause::NotAttached,
            count,
        }));
        Ok(tick)
    }

    fn read(&mut self, now: u64, last: bool) -> Result<Tick> {
        let Collector {
            generation: Generation { kernel, tracer, .. },
            followed,
            run_times,
            ..
        } = &mut self.collector;
        followed.read_statistics(now);
        let mut tick = self.reader.tick(tracer, &kernel.symbols, now, last)?;
        tick.devices = followed.news(&tick);
        tick.cost = self.meter.since(tracer, now, run_times.measured_ns(now));
        Ok(tick)
    }

    /// What was measured in a part of the window, scaled to all of it.
    fn overhead(&self, window_ns: u64) -> Overhead {
        let end_ns = self.start_ns + window_ns;
        let measured_ns = self.collector.run_times.measured_ns(end_ns);
        let scale = if measured_ns.unwrap_or(0) == 0 {
            0.0
        } else {
            window_ns as f64 / measured_ns.unwrap_or(1) as f64
        };
        let scaled = |number: u64| (number as f64 * scale).round() as u64;
        let mut per_program = self.collector.generation.tracer.costs();
        for program in &mut per_program {
            program.run_ns = scaled(program.run_ns);
            program.runs = scaled(program.runs);
        }
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
            sampled_1_in: self.collector.generation.tracer.sampled_1_in(),
            measured_ns,
        }
    }
}

/// The first beat comes after one interval.
fn timer(every: Duration) -> Interval {
    let mut timer = interval(every);
    timer.reset();
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    timer
}

/// Refuses, with every remedy at once, what `doctor` calls missing; not that no XFS is there if one
/// is waited for.
fn permitted(wait_for_xfs: bool) -> Result<()> {
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
        .filter(|check| !(wait_for_xfs && XFS_IS_THERE.contains(&check.name)))
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
