//! What the kernel side has summed up about locks, as parts of a tick.

use super::maps::Maps;
use super::names;
use super::stacks::Numbers;
use crate::system::kallsyms::Kallsyms;
use anyhow::{Context as _, Result};
use aya::maps::{MapData, PerCpuArray};
use cil_trace_common::hist::Hist;
use cil_trace_common::key::Key;
use cil_trace_common::lock::{
    Caller, Calls, FLAGS, HISTS_EACH, Lock, LockStack as Place, Next, Other, Span, Thread as Named,
    bits,
};
use cil_trace_common::loss::LossCause;
use cil_trace_common::metric::Metric;
use cil_trace_common::probe::Probe;
use cil_trace_common::stack::{LOST, StackKind};
use cil_trace_core::decode::text;
use cil_trace_core::device::Dev;
use cil_trace_core::histogram::Histogram;
use cil_trace_core::series::Series;
use cil_trace_core::tick::{
    Blocked, LockCaller, Loss, NextLock, Stack, StackRow, StackSums, Thread, Tick,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Reads what has changed since it was read before.
#[derive(Default)]
pub struct LockReader {
    devs: HashMap<u32, Dev>,
    calls: HashMap<u32, Calls>,
    hists: HashMap<u32, Hist>,
    others: HashMap<(u64, u64), Hist>,
    callers: HashMap<(u64, u64), u64>,
    stacks: HashMap<usize, Known>,
    /// Ids of stacks, by their frames.
    ids: HashMap<Vec<String>, u32>,
}

/// A place for a stack, as it was read.
struct Known {
    place: Place,
    /// `None` for a stack that was damaged.
    id: Option<u32>,
}

impl LockReader {
    /// The maps are another tracer's, and empty.
    pub fn begin_anew(&mut self) {
        *self = Self {
            ids: std::mem::take(&mut self.ids),
            ..Self::default()
        };
    }

    /// Adds what has changed to `tick`. `epoch` is the number of the reading that is over.
    ///
    /// # Errors
    ///
    /// If a map cannot be read.
    pub fn read(
        &mut self,
        maps: &Maps,
        symbols: &Kallsyms,
        epoch: u32,
        numbers: &mut Numbers,
        tick: &mut Tick,
    ) -> Result<()> {
        for claim in maps.claims.iter() {
            let (number, dev) = claim.context("cannot read the numbers of devices")?;
            self.devs.insert(number, Dev(dev));
        }
        self.calls(maps, tick)?;
        self.histograms(maps, tick)?;
        self.others(maps, symbols, numbers, tick)?;
        self.callers(maps, symbols, tick)?;
        self.stacks(maps, symbols, numbers, tick);
        self.blocked(maps, symbols, epoch, tick)?;
        tick.counters.sort_by_key(|(series, _)| *series);
        tick.histograms.sort_by_key(|(series, _)| *series);
        Ok(())
    }

    fn dev(&self, slot: u32) -> Dev {
        self.devs.get(&slot).copied().unwrap_or(Dev::NONE)
    }

    fn calls(&mut self, maps: &Maps, tick: &mut Tick) -> Result<()> {
        for (&slot, &dev) in &self.devs {
            let now = sum_calls(
                maps.calls
                    .get(&slot, 0)
                    .context("cannot read the calls")?
                    .iter(),
            );
            let before = self.calls.insert(slot, now).unwrap_or(Calls::NONE);
            let by_flags = [
                (Metric::IlockAcquired, now.locked, before.locked),
                (Metric::IlockTried, now.tried, before.tried),
                (Metric::IlockTryFailed, now.failed, before.failed),
            ];
            for (metric, now, before) in by_flags {
                let mut counts = [0u64; Lock::OF_ILOCK as usize];
                for (flags, (now, before)) in (0..FLAGS as u32).zip(now.iter().zip(&before)) {
                    for bit in bits(flags) {
                        counts[bit as usize] += now.wrapping_sub(*before);
                    }
                }
                add(tick, metric, dev, counts);
            }
            let after_try =
                std::array::from_fn(|bit| now.after_try[bit].wrapping_sub(before.after_try[bit]));
            add(tick, Metric::IlockAfterTry, dev, after_try);
        }
        Ok(())
    }

    fn histograms(&mut self, maps: &Maps, tick: &mut Tick) -> Result<()> {
        for index in 0..maps.lock_hists.len() {
            let now = merged(&maps.lock_hists, index)?;
            if now.count == self.hists.get(&index).map_or(0, |before| before.count) {
                continue;
            }
            let before = self.hists.insert(index, now).unwrap_or(Hist::EMPTY);
            let (slot, place) = (index / HISTS_EACH, index % HISTS_EACH);
            let (metric, lock) = match place.checked_sub(Lock::NAMED) {
                Some(lock) => (Metric::LockHold, lock),
                None => (Metric::LockWait, place),
            };
            let series = Series {
                label: lock as u16,
                ..Series::of(metric, self.dev(slot))
            };
            tick.histograms
                .push((series, Histogram::between(&before, &now)));
        }
        Ok(())
    }

    /// Locks without a name of their own stand under the function that waits.
    fn others(
        &mut self,
        maps: &Maps,
        symbols: &Kallsyms,
        numbers: &mut Numbers,
        tick: &mut Tick,
    ) -> Result<()> {
        let mut sums: BTreeMap<(u64, u64), Hist> = BTreeMap::new();
        for index in 0..maps.others.len() {
            let values = maps
                .others
                .get(&index, 0)
                .context("cannot read the other locks")?;
            for Other {
                caller,
                lock,
                waits,
            } in values.iter().filter(|other| other.waits.count > 0)
            {
                sums.entry((*caller, *lock))
                    .or_insert(Hist::EMPTY)
                    .merge(waits);
            }
        }
        let mut changed: BTreeMap<Series, Histogram> = BTreeMap::new();
        for ((caller, lock), now) in sums {
            let before = self
                .others
                .insert((caller, lock), now)
                .unwrap_or(Hist::EMPTY);
            if now.count == before.count {
                continue;
            }
            let key = Key {
                metric: Metric::LockWait as u16,
                label: lock as u16,
                ..Key::default()
            };
            if let Some(series) = Series::decode(&key) {
                let stack = (caller != 0)
                    .then(|| self.id(vec![names::caller(symbols, caller)], numbers, tick));
                changed
                    .entry(Series { stack, ..series })
                    .or_default()
                    .merge(&Histogram::between(&before, &now));
            }
        }
        tick.histograms.extend(changed);
        Ok(())
    }

    fn callers(&mut self, maps: &Maps, symbols: &Kallsyms, tick: &mut Tick) -> Result<()> {
        let mut sums: HashMap<(u64, u64), u64> = HashMap::new();
        for index in 0..maps.callers.len() {
            let values = maps
                .callers
                .get(&index, 0)
                .context("cannot read the callers")?;
            for caller in values.iter().filter(|caller| caller.address != 0) {
                *sums.entry((caller.address, caller.key)).or_default() += caller.count;
            }
        }
        let mut changed: BTreeMap<(Lock, Dev, String), u64> = BTreeMap::new();
        for ((address, key), now) in sums {
            let before = self.callers.insert((address, key), now).unwrap_or(0);
            let caller = Caller {
                address,
                key,
                count: now,
            };
            for bit in bits(caller.flags()).filter(|_| now != before) {
                if let Some(lock) = Lock::from_u16(bit as u16) {
                    let function = names::caller(symbols, address);
                    *changed
                        .entry((lock, self.dev(caller.slot()), function))
                        .or_default() += now - before;
                }
            }
        }
        tick.lock_callers = changed
            .into_iter()
            .map(|((lock, dev, function), count)| LockCaller {
                lock,
                dev,
                function,
                count,
            })
            .collect();
        Ok(())
    }

    fn stacks(&mut self, maps: &Maps, symbols: &Kallsyms, numbers: &mut Numbers, tick: &mut Tick) {
        for (index, place) in maps.lock_stacks.iter().enumerate() {
            if place.hash == 0 {
                continue;
            }
            let before = match self.stacks.get(&index) {
                Some(known) => known.place,
                None => Place {
                    count: 0,
                    ns: 0,
                    ..place
                },
            };
            let id = match self.stacks.get(&index) {
                Some(known) => known.id,
                None => self.new_stack(&place, symbols, numbers, tick),
            };
            self.stacks.insert(index, Known { place, id });
            let count = place.count.wrapping_sub(before.count);
            if count != 0
                && let Some((kind, lock)) = what(place.what)
            {
                // Of the inodes sampled, each stands for so many.
                let of_sampled = kind == StackKind::Hold && (lock as u32) < Lock::OF_ILOCK;
                let weight = if of_sampled {
                    u64::from(tick.sampled_1_in.max(1))
                } else {
                    1
                };
                tick.stack_rows.push(StackRow {
                    kind,
                    label: lock.name().to_owned(),
                    dev: self.dev(place.slot),
                    who: None,
                    kernel: Some(id.unwrap_or(LOST)),
                    user: None,
                    sums: StackSums {
                        count: count.saturating_mul(weight),
                        time_ns: place.ns.wrapping_sub(before.ns).saturating_mul(weight),
                        bytes: 0,
                    },
                });
            }
        }
    }

    /// The id of a stack that is read for the first time; `None`, and a loss, if two CPUs have mixed
    /// theirs.
    fn new_stack(
        &mut self,
        place: &Place,
        symbols: &Kallsyms,
        numbers: &mut Numbers,
        tick: &mut Tick,
    ) -> Option<u32> {
        if place.hash != Place::hash_of(&place.frames, place.what, place.slot) {
            tick.losses.push(Loss {
                probe: Probe::SpinWaits,
                cause: LossCause::StackLost,
                count: 1,
            });
            return None;
        }
        let frames = place.frames.iter().take_while(|&&address| address != 0);
        Some(self.id(names::lock_stack(symbols, frames), numbers, tick))
    }

    /// The id of a stack.
    fn id(&mut self, frames: Vec<String>, numbers: &mut Numbers, tick: &mut Tick) -> u32 {
        *self.ids.entry(frames).or_insert_with_key(|frames| {
            let id = numbers.give();
            tick.stacks.push(Stack {
                id,
                frames: frames.clone(),
            });
            id
        })
    }

    fn blocked(&self, maps: &Maps, symbols: &Kallsyms, epoch: u32, tick: &mut Tick) -> Result<()> {
        let half = maps.blocked.len() / 2;
        let bank = epoch % 2 * half;
        for index in bank..bank + half {
            let values = maps
                .blocked
                .get(&index, 0)
                .context("cannot read the longest waits")?;
            for blocked in values.iter().filter(|blocked| blocked.epoch == epoch) {
                let stack = |place_plus_1: u32| {
                    let place = (place_plus_1 as usize).checked_sub(1)?;
                    self.stacks.get(&place)?.id
                };
                let Some(lock) = u16::try_from(blocked.lock).ok().and_then(Lock::from_u16) else {
                    continue;
                };
                tick.blocked.push(Blocked {
                    lock,
                    dev: self.dev(blocked.slot),
                    start_ns: blocked.start,
                    wait_ns: blocked.ns,
                    waiter: Thread {
                        pid: blocked.waiter.pid,
                        tid: blocked.waiter.tid,
                        comm: text(&blocked.waiter.comm),
                    },
                    waiter_stack: stack(blocked.stack),
                    holder: thread(&blocked.holder),
                    holder_is_reader: blocked.holder.reader != 0,
                    holder_stack: stack(blocked.holder_stack),
                    holder_slept_ns: blocked.holder_slept_ns,
                    next: self.next(&blocked.next, symbols),
                });
            }
        }
        keep_longest(&mut tick.blocked);
        Ok(())
    }

    fn next(&self, next: &Next, symbols: &Kallsyms) -> Option<NextLock> {
        let lock = Lock::from_u16(u16::try_from(next.lock.checked_sub(1)?).ok()?)?;
        Some(NextLock {
            lock,
            dev: self.dev(next.slot),
            function: if next.caller == 0 {
                String::new()
            } else {
                names::caller(symbols, next.caller)
            },
            wait_ns: next.ns,
            holder: thread(&next.holder),
        })
    }
}

/// The longest waits of each lock come first, and so many are kept.
const KEPT: usize = 5;

fn keep_longest(blocked: &mut Vec<Blocked>) {
    blocked.sort_by_key(|blocked| (blocked.lock, Reverse(blocked.wait_ns)));
    let mut kept: HashMap<Lock, usize> = HashMap::new();
    blocked.retain(|blocked| {
        let kept = kept.entry(blocked.lock).or_default();
        *kept += 1;
        *kept <= KEPT
    });
}

fn add(tick: &mut Tick, metric: Metric, dev: Dev, counts: [u64; Lock::OF_ILOCK as usize]) {
    for (label, count) in (0..).zip(counts).filter(|(_, count)| *count > 0) {
        let series = Series {
            label,
            ..Series::of(metric, dev)
        };
        tick.counters.push((series, count));
    }
}

/// The sums of all CPUs, wrapping.
fn sum_calls<'a>(values: impl Iterator<Item = &'a Calls>) -> Calls {
    fn add(into: &mut [u64], from: &[u64]) {
        for (into, from) in into.iter_mut().zip(from) {
            *into = into.wrapping_add(*from);
        }
    }
    values.fold(Calls::NONE, |mut sum, calls| {
        add(&mut sum.locked, &calls.locked);
        add(&mut sum.tried, &calls.tried);
        add(&mut sum.failed, &calls.failed);
        add(&mut sum.after_try, &calls.after_try);
        sum
    })
}

fn merged(hists: &PerCpuArray<MapData, Hist>, index: u32) -> Result<Hist> {
    let values = hists
        .get(&index, 0)
        .context("cannot read the histograms of locks")?;
    let mut merged = Hist::EMPTY;
    values.iter().for_each(|hist| merged.merge(hist));
    Ok(merged)
}

/// What a stack's sums are of; `None` for a holder's, which has none.
fn what(what: u32) -> Option<(StackKind, Lock)> {
    let kind = match Span::from_u16(u16::try_from(what >> 8).ok()?)? {
        Span::Wait => StackKind::Lock,
        Span::Hold => StackKind::Hold,
        Span::Holder => return None,
    };
    Some((kind, Lock::from_u16((what & 0xff) as u16)?))
}

/// `None` for no thread.
fn thread(named: &Named) -> Option<Thread> {
    (named.tid != 0).then(|| Thread {
        pid: named.pid,
        tid: named.tid,
        comm: text(&named.comm),
    })
}
