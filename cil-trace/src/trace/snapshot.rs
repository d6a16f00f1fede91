//! Turns what the maps hold into ticks: the increments since the reading before.

use super::load::Tracer;
use super::locks::LockReader;
use super::maps::Maps;
use super::names;
use super::processes::ProcessReader;
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result};
use aya::maps::PerCpuValues;
use cil_trace_common::cause::Cause;
use cil_trace_common::hist::Hist;
use cil_trace_common::key::Key;
use cil_trace_common::loss::{LossCause, slot};
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::StackKind;
use cil_trace_core::decode;
use cil_trace_core::device::Dev;
use cil_trace_core::histogram::Histogram;
use cil_trace_core::sample::Sampler;
use cil_trace_core::series::Series;
use cil_trace_core::tick::{Loss, Stack, StackRow, StackSums, Tick};
use std::collections::{HashMap, HashSet};

/// Reads ticks, one after another.
pub struct Reader {
    before: Before,
    processes: ProcessReader,
    locks: LockReader,
    stacks: HashSet<u32>,
    sampler: Sampler,
    next: u64,
    start_ns: u64,
}

/// What a tracer's maps held at the last reading.
#[derive(Default)]
struct Before {
    counters: HashMap<Key, u64>,
    hists: HashMap<Key, Hist>,
    losses: HashMap<u32, u64>,
    by_kernel: HashMap<(Probe, LossCause), u64>,
    flush_stacks: HashMap<Key, u64>,
}

impl Reader {
    /// Begins at the window's start.
    #[must_use]
    pub fn new(start_ns: u64) -> Self {
        Self {
            before: Before::default(),
            processes: ProcessReader::default(),
            locks: LockReader::default(),
            stacks: HashSet::new(),
            // What the uniform sample draws must not follow a pattern of the workload, no more.
            sampler: Sampler::new(start_ns),
            next: 0,
            start_ns,
        }
    }

    /// The next tick is of another tracer, whose maps are empty.
    pub fn begin_anew(&mut self) {
        self.before = Before::default();
        self.processes.begin_anew();
        self.locks.begin_anew();
    }

    /// Takes what is in the ring buffer. Called more often than [`Reader::tick`], so that the
    /// buffer does not fill.
    pub fn drain(&mut self, maps: &mut Maps) {
        while let Some(record) = maps.events.next() {
            match decode::event(&record) {
                Ok(event) => self.sampler.add(event),
                // Programs and decoder are of one build, so this is a mistake in it; no count suffers.
                Err(error) => log::warn!("{error}; it is left out of the sample"),
            }
        }
    }

    /// Reads one tick, which ends at `end_ns`.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn tick(&mut self, tracer: &mut Tracer, symbols: &Kallsyms, end_ns: u64) -> Result<Tick> {
        let by_kernel = self.losses_by_kernel(tracer);
        let (epoch, sampled_1_in) = (tracer.turn()?, tracer.sampled_1_in());
        let maps = &mut tracer.maps;
        self.drain(maps);
        let (events, events_seen) = self.sampler.take();
        let mut tick = Tick {
            index: self.next,
            start_ns: self.start_ns,
            end_ns,
            counters: self.counters(maps)?,
            histograms: self.histograms(maps)?,
            events,
            events_seen,
            processes: self.processes.read(maps)?,
            losses: [self.losses(maps)?, by_kernel].concat(),
            stack_rows: self.flush_stacks(maps)?,
            stacks: self.stacks(maps, symbols)?,
            sampled_1_in,
            ..Tick::default()
        };
        self.locks.read(maps, symbols, epoch, &mut tick)?;
        self.next += 1;
        self.start_ns = end_ns;
        Ok(tick)
    }

    fn counters(&mut self, maps: &Maps) -> Result<Vec<(Series, u64)>> {
        let mut changed = Vec::new();
        for entry in maps.counters.iter() {
            let (key, values) = entry.context("cannot read the counters")?;
            let now = sum(&values);
            let before = self.before.counters.insert(key, now).unwrap_or(0);
            // A key that this build does not know cannot come from its own object.
            if now != before
                && let Some(series) = Series::decode(&key)
            {
                changed.push((series, now.wrapping_sub(before)));
            }
        }
        changed.sort_by_key(|(series, _)| *series);
        Ok(changed)
    }

    fn histograms(&mut self, maps: &Maps) -> Result<Vec<(Series, Histogram)>> {
        let mut changed = Vec::new();
        for entry in maps.hists.iter() {
            let (key, values) = entry.context("cannot read the histograms")?;
            let mut now = Hist::EMPTY;
            for value in values.iter() {
                now.merge(value);
            }
            let before = self.before.hists.insert(key, now).unwrap_or(Hist::EMPTY);
            if now.count != before.count
                && let Some(series) = Series::decode(&key)
            {
                changed.push((series, Histogram::between(&before, &now)));
            }
        }
        changed.sort_by_key(|(series, _)| *series);
        Ok(changed)
    }

    fn losses(&mut self, maps: &Maps) -> Result<Vec<Loss>> {
        let mut changed = Vec::new();
        for &probe in Probe::ALL {
            for &cause in LossCause::ALL {
                let index = slot(probe as u16, cause);
                let values = maps
                    .losses
                    .get(&index, 0)
                    .context("cannot read the losses")?;
                let now = sum(&values);
                let before = self.before.losses.insert(index, now).unwrap_or(0);
                if now != before {
                    changed.push(Loss {
                        probe,
                        cause,
                        count: now - before,
                    });
                }
            }
        }
        Ok(changed)
    }

    /// Losses that the kernel counts itself, whatever the window and the device.
    fn losses_by_kernel(&mut self, tracer: &Tracer) -> Vec<Loss> {
        let mut changed = Vec::new();
        for ((probe, cause), now) in tracer.losses_by_kernel() {
            let before = self.before.by_kernel.insert((probe, cause), now);
            let count = now.saturating_sub(before.unwrap_or(0));
            if count != 0 {
                changed.push(Loss {
                    probe,
                    cause,
                    count,
                });
            }
        }
        changed
    }

    fn flush_stacks(&mut self, maps: &Maps) -> Result<Vec<StackRow>> {
        let mut changed = Vec::new();
        for entry in maps.flush_stacks.iter() {
            let (key, values) = entry.context("cannot read the flushes by stack")?;
            let now = sum(&values);
            let before = self.before.flush_stacks.insert(key, now).unwrap_or(0);
            if now != before {
                changed.push(StackRow {
                    kind: StackKind::Flush,
                    label: Cause::from_u16(key.label)
                        .unwrap_or(Cause::Other)
                        .name()
                        .to_owned(),
                    dev: Dev(key.dev),
                    who: None,
                    kernel: Some(key.stack.wrapping_sub(1)),
                    user: None,
                    sums: StackSums {
                        count: now.wrapping_sub(before),
                        ..StackSums::default()
                    },
                });
            }
        }
        changed.sort_by(|a, b| (a.dev, &a.label, a.kernel).cmp(&(b.dev, &b.label, b.kernel)));
        Ok(changed)
    }

    /// Stacks that were not there before, with their symbols. Their ids are the kernel side's
    /// less 1, as in [`Series::stack`].
    fn stacks(&mut self, maps: &Maps, symbols: &Kallsyms) -> Result<Vec<Stack>> {
        let mut new = Vec::new();
        for entry in maps.stacks.iter() {
            let (id, stack) = entry.context("cannot read the stacks")?;
            if self.stacks.insert(id) {
                let frames = stack.frames.iter().take_while(|&&address| address != 0);
                let frames = names::without_tracer(symbols, frames);
                new.push(Stack {
                    id: id.wrapping_sub(1),
                    frames,
                });
            }
        }
        new.sort_by_key(|stack| stack.id);
        Ok(new)
    }
}

fn sum(values: &PerCpuValues<u64>) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}
