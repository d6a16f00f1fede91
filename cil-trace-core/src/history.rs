//! The last ticks of a session one by one, and the sum of those before: what `top` looks at.
//!
//! Any stretch of the ticks that are kept becomes a [`Model`], so that it is reported like a whole
//! session. Nothing here knows who looks at it.

mod cut;
mod rates;
pub mod tables;

pub use cut::Cut;
pub use rates::{Quantiles, Rate};

use crate::device::Dev;
use crate::model::{LossSums, Model, TickSums};
use crate::session::Header;
use crate::tick::{ProcessRow, SampledEvent, Tick};
use cil_trace_common::event::EventKind;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// How many ticks are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// Those that end less than so many nanoseconds before the last.
    pub ns: u64,
    /// But never more than so many.
    pub ticks: usize,
}

/// The stretch of a session that is looked at; each ends with some tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// That tick alone.
    Tick,
    /// Ticks that end less than so many nanoseconds before it, as far as they are kept.
    Last(u64),
    /// All of the session.
    All,
}

/// The ticks of a session, the last of them kept.
#[derive(Clone, Debug)]
pub struct History {
    keep: Keep,
    /// All ticks.
    total: Model,
    /// The ticks that are no longer kept.
    before: Model,
    kept: VecDeque<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    tick: Tick,
    /// What processes did in it, where the tick says what they did so far.
    processes: Vec<ProcessRow>,
    /// By filesystem, and all.
    sums: BTreeMap<Option<Dev>, Sums>,
    losses: LossSums,
}

/// The counts of a tick, and those since the session's start.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    tick: TickSums,
    total: TickSums,
}

impl History {
    /// No tick yet.
    #[must_use]
    pub fn new(header: Header, keep: Keep) -> Self {
        let total = Model::new(header).without_ticks();
        Self {
            keep,
            before: total.clone(),
            total,
            kept: VecDeque::new(),
        }
    }

    /// Keeps more or fewer ticks from now on.
    pub fn keep(&mut self, keep: Keep) {
        self.keep = keep;
        self.forget();
    }

    /// Adds a tick; they come in order.
    pub fn push(&mut self, tick: Tick) {
        let processes = tick
            .processes
            .iter()
            .filter(|row| !row.is_merge())
            .map(|row| match self.total.process(row.pid) {
                Some(before) => row.since(before),
                None => row.clone(),
            })
            .collect();
        self.total.apply(&tick);
        let filesystems = self.filesystems().map(|(dev, _)| Some(dev));
        let sums = std::iter::once(None)
            .chain(filesystems)
            .map(|dev| {
                let of_tick = self.total.sums(&tick, dev);
                let before = self.kept.back().and_then(|kept| kept.sums.get(&dev));
                let mut total = before.map(|sums| sums.total).unwrap_or_default();
                total.add(&of_tick);
                let tick = of_tick;
                (dev, Sums { tick, total })
            })
            .collect();
        self.kept.push_back(Kept {
            tick,
            processes,
            sums,
            losses: self.total.loss_sums(),
        });
        self.forget();
    }

    fn forget(&mut self) {
        let Some(last) = self.kept.back().map(|kept| kept.tick.end_ns) else {
            return;
        };
        while let Some(first) = self.kept.front()
            && self.kept.len() > 1
            && (self.kept.len() > self.keep.ticks
                || last.saturating_sub(first.tick.end_ns) >= self.keep.ns)
        {
            self.before.apply(&first.tick);
            self.kept.pop_front();
        }
    }

    /// All ticks so far.
    #[must_use]
    pub fn total(&self) -> &Model {
        &self.total
    }

    /// The indices of the first and the last tick that is kept.
    #[must_use]
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let index = |kept: &Kept| kept.tick.index;
        Some((self.kept.front().map(index)?, self.kept.back().map(index)?))
    }

    /// The tick with that index, if it is kept.
    #[must_use]
    pub fn tick(&self, index: u64) -> Option<&Tick> {
        Some(&self.kept.get(self.place(index)?)?.tick)
    }

    /// What was lost up to and with that tick.
    #[must_use]
    pub fn losses(&self, index: u64) -> LossSums {
        let kept = self.place(index).and_then(|place| self.kept.get(place));
        kept.map(|kept| kept.losses).unwrap_or_default()
    }

    /// The filesystems, each with the name of its device, in the order of devices.
    pub fn filesystems(&self) -> impl Iterator<Item = (Dev, &str)> {
        let xfs = |device: &&crate::device::Device| device.filesystem.as_deref() == Some("xfs");
        let devices = self.total.devices().filter(xfs);
        devices.map(|device| (device.dev, device.name.as_str()))
    }

    /// What happened in the stretch that ends with the tick `index`; nothing if that is not kept.
    #[must_use]
    pub fn model(&self, span: Span, index: u64) -> Cow<'_, Model> {
        let Some(end) = self.place(index) else {
            return Cow::Owned(self.total.part(0));
        };
        if span == Span::All {
            if end + 1 == self.kept.len() {
                return Cow::Borrowed(&self.total);
            }
            let mut model = self.before.clone();
            for kept in self.kept.range(..=end) {
                model.apply(&kept.tick);
            }
            return Cow::Owned(model);
        }
        let stretch = self.kept.range(self.first(span, end)..=end);
        let start_ns = stretch.clone().next().map_or(0, |kept| kept.tick.start_ns);
        let mut model = self.total.part(start_ns).without_ticks();
        for kept in stretch {
            model.apply_part(&kept.tick, &kept.processes);
        }
        Cow::Owned(model)
    }

    /// The latest objects of a kind that are in the sample, newest first, up to and with the tick
    /// `index`.
    pub fn events(&self, kind: EventKind, index: u64) -> impl Iterator<Item = &SampledEvent> {
        let end = self.place(index).map_or(0, |place| place + 1);
        let kept = self.kept.range(..end).rev();
        let events = kept.flat_map(|kept| kept.tick.events.iter().rev());
        events.filter(move |event| event.kind == kind)
    }

    /// Where the stretch that ends at `end` begins.
    fn first(&self, span: Span, end: usize) -> usize {
        let ns = match span {
            Span::Tick => return end,
            Span::Last(ns) => ns,
            Span::All => return 0,
        };
        let last = self.kept.get(end).map_or(0, |kept| kept.tick.end_ns);
        self.kept
            .partition_point(|kept| last.saturating_sub(kept.tick.end_ns) >= ns)
            .min(end)
    }

    fn place(&self, index: u64) -> Option<usize> {
        let by_index = |kept: &Kept| kept.tick.index.cmp(&index);
        self.kept.binary_search_by(by_index).ok()
    }
}
