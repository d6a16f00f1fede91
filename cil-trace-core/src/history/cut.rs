//! A stretch of a session as a session of its own, to be written as a recording.

use super::{History, Kept};
use crate::model::stacks::StackTable;
use crate::session::{Footer, Header};
use crate::tick::{ProcessRow, Stack, Tick};
use std::collections::{BTreeMap, BTreeSet};

/// What a recording consists of.
#[derive(Clone, PartialEq, Debug)]
pub struct Cut {
    /// Of the session, with the window's start where the stretch begins.
    pub header: Header,
    /// Numbered from 0.
    pub ticks: Vec<Tick>,
    /// The window's end; what is known only of the whole session is not in it.
    pub footer: Footer,
}

impl History {
    /// The ticks that are kept up to and with the tick `index`; `None` if that is not kept.
    ///
    /// `started_at` stays that of the whole session, of which the window is a part.
    #[must_use]
    pub fn cut(&self, index: u64) -> Option<Cut> {
        let stretch = self.kept.range(..=self.place(index)?);
        let first = &stretch.clone().next()?.tick;
        let end_ns = stretch.clone().next_back()?.tick.end_ns;
        let header = Header {
            window_start_ns: first.start_ns,
            devices: self.before.devices().cloned().collect(),
            ..self.before.header().clone()
        };
        let mut processes: BTreeMap<u32, ProcessRow> = BTreeMap::new();
        let mut given = BTreeSet::new();
        let ticks = (0..)
            .zip(stretch)
            .map(|(index, kept)| Tick {
                index,
                processes: so_far(&mut processes, kept),
                stacks: stacks(&mut given, self.total.stacks(), &kept.tick),
                ..kept.tick.clone()
            })
            .collect();
        Some(Cut {
            header,
            ticks,
            footer: Footer {
                window_end_ns: end_ns,
                ..Footer::default()
            },
        })
    }
}

/// What the processes of a tick have done since the stretch began.
fn so_far(sums: &mut BTreeMap<u32, ProcessRow>, kept: &Kept) -> Vec<ProcessRow> {
    let rows = kept.processes.iter();
    rows.map(|row| {
        let sum = sums.entry(row.pid);
        sum.and_modify(|sum| sum.add(row))
            .or_insert_with(|| row.clone())
            .clone()
    })
    .collect()
}

/// The stacks that a tick is the first of the stretch to need, or was the first to know.
fn stacks(given: &mut BTreeSet<u32>, known: &StackTable, tick: &Tick) -> Vec<Stack> {
    let of_series = tick.counters.iter().map(|(series, _)| series);
    let of_series = of_series.chain(tick.histograms.iter().map(|(series, _)| series));
    let needed = of_series.filter_map(|series| series.stack);
    let of_rows = tick
        .stack_rows
        .iter()
        .flat_map(|row| [row.kernel, row.user]);
    let new = tick.stacks.iter().map(|stack| stack.id);
    needed
        .chain(of_rows.flatten())
        .chain(new)
        .filter(|id| given.insert(*id))
        .filter_map(|id| {
            let frames = known.frames(id)?.into_iter().map(str::to_owned).collect();
            Some(Stack { id, frames })
        })
        .collect()
}
