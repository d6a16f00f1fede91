//! The model: all ticks summed up, live or replayed.
//!
//! It knows what was counted, not what a report makes of it: no percentages, no text, no order for
//! the eye. Reports read it through the queries below.

pub mod locks;
pub mod stacks;
pub mod xfs_stats;

use crate::device::{Dev, Device};
use crate::histogram::Histogram;
use crate::series::Series;
use crate::session::{Footer, Header, Outcome};
use crate::tick::{Cost, InFlight, ProcessRow, SampledEvent, Tick};
use cil_trace_common::cause::Cause;
use cil_trace_common::event::EventKind;
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use locks::{LockTable, Sampling};
use stacks::StackTable;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Sampled events that a model keeps, the latest; exports that want all stream the recording.
///
/// Some 3 MB, so that `top` and `serve` may run for weeks.
const EVENTS_KEPT: usize = 10_000;

/// Everything that is known of a session so far.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    header: Header,
    footer: Option<Footer>,
    end_ns: u64,
    counters: BTreeMap<Series, u64>,
    histograms: BTreeMap<Series, Histogram>,
    devices: BTreeMap<Dev, Device>,
    processes: BTreeMap<u32, ProcessRow>,
    losses: BTreeMap<(Probe, LossCause), u64>,
    stacks: StackTable,
    locks: LockTable,
    events_seen: BTreeMap<EventKind, u64>,
    events_kept: u64,
    events: VecDeque<SampledEvent>,
    /// `None` in a model that is to grow for weeks.
    ticks: Option<Vec<TickSums>>,
    in_flight: Option<Vec<InFlight>>,
    cost: Option<Cost>,
    rows_skipped: u64,
}

/// The few numbers of a tick that are kept for timelines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TickSums {
    /// Its end, CLOCK_MONOTONIC nanoseconds.
    pub end_ns: u64,
    /// Commits in it.
    pub commits: u64,
    /// Pushes in it.
    pub pushes: u64,
    /// Log forces in it.
    pub forces: u64,
    /// Bios with PREFLUSH or FUA in it.
    pub flushes_requested: u64,
    /// Device-level flush requests in it.
    pub flushes_issued: u64,
    /// Nanoseconds waited for contended locks in it.
    pub lock_wait_ns: u64,
}

/// What is missing from the numbers, by what that means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossSums {
    /// Updates and events.
    pub lost: u64,
    /// Ends without a beginning.
    pub unpaired: u64,
    /// Stacks that the kernel could not give.
    pub stacks_lost: u64,
}

impl Model {
    /// A model of a session in which nothing has happened yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            end_ns: header.window_start_ns,
            devices: header
                .devices
                .iter()
                .map(|device| (device.dev, device.clone()))
                .collect(),
            header,
            footer: None,
            counters: BTreeMap::new(),
            histograms: BTreeMap::new(),
            processes: BTreeMap::new(),
            losses: BTreeMap::new(),
            stacks: StackTable::default(),
            locks: LockTable::default(),
            events_seen: BTreeMap::new(),
            events_kept: 0,
            events: VecDeque::new(),
            ticks: Some(Vec::new()),
            in_flight: None,
            cost: Some(Cost::default()),
            rows_skipped: 0,
        }
    }

    /// Without [`Model::ticks`], so that it stays small however many there are.
    #[must_use]
    pub fn without_ticks(self) -> Self {
        Self {
            ticks: None,
            ..self
        }
    }

    /// An empty model of a part of the same session, from `start_ns` on: it knows the same devices
    /// and stacks. It takes [`Model::apply_part`], not [`Model::apply`].
    #[must_use]
    pub fn part(&self, start_ns: u64) -> Self {
        let header = Header {
            window_start_ns: start_ns,
            ..self.header.clone()
        };
        Self {
            devices: self.devices.clone(),
            stacks: self.stacks.beside(),
            ..Self::new(header)
        }
    }

    /// Adds a tick to the model of a part; `processes` are what they did in that tick.
    pub fn apply_part(&mut self, tick: &Tick, processes: &[ProcessRow]) {
        self.apply_all_but_processes(tick);
        for row in processes {
            match self.processes.entry(row.pid) {
                Entry::Vacant(entry) => drop(entry.insert(row.clone())),
                Entry::Occupied(mut entry) => entry.get_mut().add(row),
            }
        }
    }

    /// Adds a tick; they come in order.
    pub fn apply(&mut self, tick: &Tick) {
        self.apply_all_but_processes(tick);
        for row in &tick.processes {
            if row.is_moved() {
                self.processes.remove(&row.pid);
            } else {
                self.processes.insert(row.pid, row.clone());
            }
        }
    }

    fn apply_all_but_processes(&mut self, tick: &Tick) {
        self.end_ns = tick.end_ns;
        self.devices.extend(
            tick.devices
                .iter()
                .map(|device| (device.dev, device.clone())),
        );
        for change in &tick.probes {
            match self
                .header
                .probes
                .iter_mut()
                .find(|row| row.probe == change.probe)
            {
                Some(row) => row.clone_from(change),
                None => self.header.probes.push(change.clone()),
            }
        }
        let sampling = Sampling::of(tick);
        for &(series, count) in &tick.counters {
            let count = count.saturating_mul(sampling.weight(&series));
            add(&mut self.counters, series, count);
        }
        if self.ticks.is_some() {
            let sums = self.sums(tick, None);
            self.ticks.get_or_insert_default().push(sums);
        }
        for (series, histogram) in &tick.histograms {
            let weight = sampling.weight(series);
            let sum = self.histograms.entry(*series).or_default();
            if weight == 1 {
                sum.merge(histogram);
            } else {
                sum.merge(&histogram.times(weight));
            }
        }
        for loss in &tick.losses {
            add(&mut self.losses, (loss.probe, loss.cause), loss.count);
        }
        for &(kind, count) in &tick.events_seen {
            add(&mut self.events_seen, kind, count);
        }
        for stack in &tick.stacks {
            self.stacks.learn(stack);
        }
        for row in &tick.stack_rows {
            self.stacks.add(row);
        }
        self.locks.add(tick);
        self.in_flight.clone_from(&tick.in_flight);
        self.cost = self.cost.zip(tick.cost).map(|(sum, cost)| Cost {
            bpf_run_ns: sum.bpf_run_ns.saturating_add(cost.bpf_run_ns),
            own_ns: sum.own_ns.saturating_add(cost.own_ns),
        });
        self.events_kept += tick.events.len() as u64;
        self.events.extend(tick.events.iter().cloned());
        self.events
            .drain(..self.events.len().saturating_sub(EVENTS_KEPT));
    }

    /// Whether a count is XFS's own and not one that a device beneath repeats: only those may be
    /// added up over devices.
    #[must_use]
    pub fn is_uppermost(&self, series: &Series) -> bool {
        let carries_xfs = |device: &Device| {
            device.filesystem.as_deref() == Some("xfs")
                && (device.dev == series.dev || device.partition_of == Some(series.dev))
        };
        match series.metric {
            Metric::FlushRequested | Metric::FlushLatency => {
                series.via == Dev::NONE && series.cause() != Some(Cause::ForeignFs)
            }
            Metric::FlushIssued => self.devices.values().any(carries_xfs),
            _ => true,
        }
    }

    /// The sums of a tick: of one filesystem's device, or of all that [`Model::is_uppermost`].
    #[must_use]
    pub fn sums(&self, tick: &Tick, of: Option<Dev>) -> TickSums {
        let mut sums = TickSums {
            end_ns: tick.end_ns,
            ..TickSums::default()
        };
        let disk = of.map(|dev| self.whole_disk(dev));
        for (series, count) in &tick.counters {
            let counts = match (series.metric, of) {
                // Of a partition only its disk's are known.
                (Metric::FlushIssued, Some(_)) => disk == Some(series.dev),
                _ => self.is_uppermost(series) && of.is_none_or(|dev| dev == series.dev),
            };
            if counts && let Some(sum) = sums.of(series.metric) {
                *sum = sum.saturating_add(*count);
            }
        }
        for (series, histogram) in &tick.histograms {
            if series.metric == Metric::LockWait && of.is_none_or(|dev| dev == series.dev) {
                sums.lock_wait_ns = sums.lock_wait_ns.saturating_add(histogram.sum);
            }
        }
        sums
    }

    /// The whole disk of a partition; of any other device itself.
    #[must_use]
    pub fn whole_disk(&self, dev: Dev) -> Dev {
        let device = self.devices.get(&dev);
        device.and_then(|device| device.partition_of).unwrap_or(dev)
    }

    /// Adds the end of the session.
    pub fn finish(&mut self, footer: Footer) {
        self.footer = Some(footer);
    }

    /// Adds rows of a recording that could not be understood.
    pub fn skipped(&mut self, rows: u64) {
        self.rows_skipped += rows;
    }

    /// What was known at the start.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it ended; `None` so far.
    #[must_use]
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Start and end of the window, CLOCK_MONOTONIC nanoseconds; without a footer it ends with the
    /// last tick.
    #[must_use]
    pub fn window(&self) -> (u64, u64) {
        let end = self
            .footer
            .as_ref()
            .map_or(self.end_ns, |footer| footer.window_end_ns);
        (self.header.window_start_ns, end)
    }

    /// What became of a probe; `None` if the recording does not know it.
    #[must_use]
    pub fn outcome(&self, probe: Probe) -> Option<Outcome> {
        let mut outcomes = self.header.probes.iter();
        outcomes
            .find(|row| row.probe == probe.name())
            .map(|row| row.outcome)
    }

    /// Whether a probe's numbers exist, so that none means zero.
    #[must_use]
    pub fn measured(&self, probe: Probe) -> bool {
        self.outcome(probe).is_some_and(Outcome::measured)
    }

    /// All counters of a metric.
    pub fn counters(&self, metric: Metric) -> impl Iterator<Item = (&Series, u64)> {
        of(&self.counters, metric).map(|(series, &count)| (series, count))
    }

    /// All histograms of a metric.
    pub fn histograms(&self, metric: Metric) -> impl Iterator<Item = (&Series, &Histogram)> {
        of(&self.histograms, metric)
    }

    /// Sum of the counters of a metric that `filter` lets through.
    #[must_use]
    pub fn sum(&self, metric: Metric, filter: impl Fn(&Series) -> bool) -> u64 {
        self.counters(metric)
            .filter(|(series, _)| filter(series))
            .map(|(_, count)| count)
            .fold(0, u64::saturating_add)
    }

    /// Sum of the counters of a metric on one device.
    #[must_use]
    pub fn counter(&self, metric: Metric, dev: Dev) -> u64 {
        self.sum(metric, |series| series.dev == dev)
    }

    /// The histograms of a metric that `filter` lets through, merged.
    #[must_use]
    pub fn histogram(&self, metric: Metric, filter: impl Fn(&Series) -> bool) -> Histogram {
        let mut merged = Histogram::default();
        for (_, histogram) in self.histograms(metric).filter(|(series, _)| filter(series)) {
            merged.merge(histogram);
        }
        merged
    }

    /// The devices by number, each with the latest that is known of it.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.values()
    }

    /// What is known of a device.
    #[must_use]
    pub fn device(&self, dev: Dev) -> Option<&Device> {
        self.devices.get(&dev)
    }

    /// A device's bare name, or `major:minor` for an unknown one.
    #[must_use]
    pub fn name(&self, dev: Dev) -> String {
        match self.devices.get(&dev) {
            Some(device) if !device.name.is_empty() => device.name.clone(),
            _ => dev.to_string(),
        }
    }

    /// What is known of a process.
    #[must_use]
    pub fn process(&self, pid: u32) -> Option<&ProcessRow> {
        self.processes.get(&pid)
    }

    /// The processes by pid.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessRow> {
        self.processes.values()
    }

    /// What was lost, summed up.
    #[must_use]
    pub fn loss_sums(&self) -> LossSums {
        let mut sums = LossSums::default();
        for (&(_, cause), count) in &self.losses {
            let sum = match cause {
                LossCause::RingBufferFull
                | LossCause::MapFull
                | LossCause::MapBusy
                | LossCause::Preempted
                | LossCause::Missed
                | LossCause::NotAttached => &mut sums.lost,
                LossCause::Unpaired => &mut sums.unpaired,
                LossCause::StackLost => &mut sums.stacks_lost,
            };
            *sum = sum.saturating_add(*count);
        }
        sums
    }

    /// What was lost, by probe and cause.
    pub fn losses(&self) -> impl Iterator<Item = (Probe, LossCause, u64)> {
        self.losses
            .iter()
            .map(|(&(probe, cause), &count)| (probe, cause, count))
    }

    /// The sums by stack, to be read from a recording as a whole: rows and frames of ticks one by
    /// one would be owned only to be given away.
    pub(crate) fn stacks_mut(&mut self) -> &mut StackTable {
        &mut self.stacks
    }

    /// Sums by stack.
    #[must_use]
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Callers of locks, and the longest waits.
    #[must_use]
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// Objects that the kernel side handed over, by kind.
    pub fn events_seen(&self) -> impl Iterator<Item = (EventKind, u64)> {
        self.events_seen.iter().map(|(&kind, &count)| (kind, count))
    }

    /// Objects in the sample, including those that [`Model::events`] no longer holds.
    #[must_use]
    pub fn events_kept(&self) -> u64 {
        self.events_kept
    }

    /// The latest of the sample, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &SampledEvent> {
        self.events.iter()
    }

    /// The sums of each tick, in order.
    #[must_use]
    pub fn ticks(&self) -> &[TickSums] {
        self.ticks.as_deref().unwrap_or_default()
    }

    /// Flushes under way on a device at the end of the last tick, and for how many nanoseconds the
    /// oldest has been; `None` if nobody looked.
    #[must_use]
    pub fn in_flight(&self, dev: Dev) -> Option<(u64, Option<u64>)> {
        let mut rows = self.in_flight.as_ref()?.iter();
        let row = rows.find(|row| row.dev == dev);
        Some(row.map_or((0, None), |row| {
            (row.flushes, Some(self.end_ns.saturating_sub(row.oldest_ns)))
        }))
    }

    /// What tracing cost so far; `None` if that is not known of every tick.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Rows of the recording that this build did not understand.
    #[must_use]
    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped
    }
}

impl TickSums {
    /// The sum that a metric belongs to.
    fn of(&mut self, metric: Metric) -> Option<&mut u64> {
        match metric {
            Metric::Commits => Some(&mut self.commits),
            Metric::Pushes => Some(&mut self.pushes),
            Metric::Forces => Some(&mut self.forces),
            Metric::FlushRequested => Some(&mut self.flushes_requested),
            Metric::FlushIssued => Some(&mut self.flushes_issued),
            _ => None,
        }
    }
}

/// Saturating, because a damaged recording may hold anything.
fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, count: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(count);
}

/// The entries of one metric, which stand together because a series sorts by it first.
fn of<T>(map: &BTreeMap<Series, T>, metric: Metric) -> impl Iterator<Item = (&Series, &T)> {
    map.range(Series::of(metric, Dev::NONE)..)
        .take_while(move |(series, _)| series.metric == metric)
}
