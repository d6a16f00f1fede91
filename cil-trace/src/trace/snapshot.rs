//! Turns what the maps hold into ticks: the increments since the reading before.

use super::load::Tracer;
use super::locks::LockReader;
use super::maps::Maps;
use super::processes::ProcessReader;
use super::stacks::{Numbers, StackReader};
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result};
use aya::maps::PerCpuValues;
use cil_trace_common::cause::Cause;
use cil_trace_common::hist::Hist;
use cil_trace_common::key::Key;
use cil_trace_common::loss::{LossCause, slot};
use cil_trace_common::probe::Probe;
use cil_trace_core::decode;
use cil_trace_core::device::Dev;
use cil_trace_core::histogram::Histogram;
use cil_trace_core::sample::Sampler;
use cil_trace_core::series::Series;
use cil_trace_core::tick::{InFlight, Loss, Tick};
use std::collections::{BTreeMap, HashMap};

/// Entries looked at in one walk through the flushes under way; the map holds half as many.
const LONGEST_WALK: usize = 16_384;

/// Reads ticks, one after another.
pub struct Reader {
    before: Before,
    processes: ProcessReader,
    locks: LockReader,
    stacks: StackReader,
    numbers: Numbers,
    lost_mappings: u64,
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
}

impl Reader {
    /// Begins at the window's start.
    #[must_use]
    pub fn new(start_ns: u64, stacks: StackReader) -> Self {
        Self {
            before: Before::default(),
            processes: ProcessReader::default(),
            locks: LockReader::default(),
            stacks,
            numbers: Numbers::default(),
            lost_mappings: 0,
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
        self.stacks.begin_anew();
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

    /// Reads one tick, which ends at `end_ns`; if it is the last, with all that is still to come.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn tick(
        &mut self,
        tracer: &mut Tracer,
        symbols: &Kallsyms,
        end_ns: u64,
        last: bool,
    ) -> Result<Tick> {
        let by_kernel = self.losses_by_kernel(tracer);
        let ends_seen = tracer.measures(Probe::FlushEnd);
        let (epoch, sampled_1_in) = (tracer.turn()?, tracer.sampled_1_in());
        let maps = &mut tracer.maps;
        self.drain(maps);
        let (events, events_seen) = self.sampler.take();
        let (stack_rows, stacks) = self.stacks.read(maps, symbols, &mut self.numbers, last)?;
        let mut tick = Tick {
            index: self.next,
            start_ns: self.start_ns,
            end_ns,
            counters: self.counters(maps)?,
            histograms: self.histograms(maps)?,
            events,
            events_seen,
            processes: self.processes.read(maps)?,
            losses: [self.losses(maps)?, by_kernel, self.lost_mappings()].concat(),
            stack_rows,
            stacks,
            sampled_1_in,
            in_flight: if ends_seen {
                Some(in_flight(maps)?)
            } else {
                None
            },
            ..Tick::default()
        };
        self.locks
            .read(maps, symbols, epoch, &mut self.numbers, &mut tick)?;
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

    /// Mappings of which nothing is known, as their records did not fit.
    fn lost_mappings(&mut self) -> Vec<Loss> {
        let now = self.stacks.lost_mappings();
        let count = now - std::mem::replace(&mut self.lost_mappings, now);
        let loss = Loss {
            probe: Probe::UserCode,
            cause: LossCause::RingBufferFull,
            count,
        };
        if count == 0 { Vec::new() } else { vec![loss] }
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
}

/// The flushes under way by device. They come and go meanwhile, so that this is no instant: one that
/// is neither old nor new may be missed, never one that is stuck.
fn in_flight(maps: &Maps) -> Result<Vec<InFlight>> {
    let mut found = HashMap::new();
    // Where a key has gone the walk begins again, so it is bounded, and the same may come twice.
    for entry in maps.bios.iter().take(LONGEST_WALK) {
        let (address, bio) = entry.context("cannot read the flushes under way")?;
        found.insert(address, bio);
    }
    let mut by_device: BTreeMap<Dev, InFlight> = BTreeMap::new();
    for bio in found.values() {
        let dev = Dev(bio.dev);
        let row = by_device.entry(dev).or_insert(InFlight {
            dev,
            flushes: 0,
            oldest_ns: u64::MAX,
            cause: 0,
        });
        row.flushes += 1;
        if bio.at < row.oldest_ns {
            row.oldest_ns = bio.at;
            row.cause = u16::try_from(bio.cause).unwrap_or(Cause::Other as u16);
        }
    }
    Ok(by_device.into_values().collect())
}

fn sum(values: &PerCpuValues<u64>) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}
