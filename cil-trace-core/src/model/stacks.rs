//! The sums by stack of all ticks, each name held once.
//!
//! A profile has a million frames and a few thousand names. It knows what was summed up, not what a
//! picture makes of it.

use crate::device::Dev;
use crate::tick::{Stack, StackRow, StackSums, Who};
use cil_trace_common::stack::{LOST, StackKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A name, by its place in a [`StackTable`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(u32);

impl Name {
    /// No name.
    pub const EMPTY: Self = Self(0);
    /// Stands for a stack that the kernel could not give or keep.
    pub const STACK_LOST: Self = Self(1);
    /// Stands for a stack whose frames are not in the recording.
    const STACK_MISSING: Self = Self(2);
    /// The texts of these.
    const KNOWN: [&'static str; 3] = ["", "[stack lost]", "[stack not in the recording]"];

    /// Its place: names are numbered from 0 on.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

/// Sums by stack.
#[derive(Clone, PartialEq, Debug)]
pub struct StackTable {
    known: Arc<Known>,
    sums: BTreeMap<Id, StackSums>,
}

/// Names and frames, which the tables of one session share.
#[derive(Clone, PartialEq, Debug, Default)]
struct Known {
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, Name>,
    frames: HashMap<u32, Box<[Name]>>,
}

/// What tells the sums apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Id {
    kind: StackKind,
    dev: Dev,
    label: Name,
    kernel: Option<u32>,
    user: Option<u32>,
    who: Option<Thread>,
}

/// Whose stack it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Command name.
    pub comm: Name,
    /// Whether it belongs to the workload.
    pub workload: bool,
}

/// One stack and its sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackEntry<'a> {
    /// The device, or [`Dev::NONE`].
    pub dev: Dev,
    /// What tells entries of one kind apart; empty if there is nothing.
    pub label: Name,
    /// Whose stack it is, where that matters.
    pub who: Option<Thread>,
    /// Kernel functions, leaf first; empty without a kernel part.
    pub kernel: &'a [Name],
    /// Functions of the program, leaf first; empty without a user part.
    pub user: &'a [Name],
    /// What was summed up.
    pub sums: StackSums,
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = Self {
            known: Arc::default(),
            sums: BTreeMap::new(),
        };
        for name in Name::KNOWN {
            table.name(name);
        }
        table
    }
}

impl StackTable {
    /// A table without sums that knows the same stacks.
    pub(super) fn beside(&self) -> Self {
        Self {
            known: Arc::clone(&self.known),
            sums: BTreeMap::new(),
        }
    }

    /// Takes in the frames of a stack.
    pub(super) fn learn(&mut self, stack: &Stack) {
        // What is known already must not part this table from those that it shares with.
        let known = self.frames(stack.id);
        if known.is_some_and(|known| known.iter().eq(&stack.frames)) {
            return;
        }
        let frames = stack.frames.iter().map(|frame| self.name(frame)).collect();
        let known = Arc::make_mut(&mut self.known);
        known.frames.insert(stack.id, frames);
    }

    /// Adds what happened in a tick. Saturating, because a damaged recording may hold anything.
    pub(super) fn add(&mut self, row: &StackRow) {
        let thread = |who: &Who| Thread {
            pid: who.pid,
            comm: self.name(&who.comm),
            workload: who.workload,
        };
        let who = row.who.as_ref().map(thread);
        let id = Id {
            kind: row.kind,
            dev: row.dev,
            label: self.name(&row.label),
            kernel: row.kernel,
            user: row.user,
            who,
        };
        let sums = self.sums.entry(id).or_default();
        sums.count = sums.count.saturating_add(row.sums.count);
        sums.time_ns = sums.time_ns.saturating_add(row.sums.time_ns);
        sums.bytes = sums.bytes.saturating_add(row.sums.bytes);
    }

    fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.known.by_name.get(text) {
            return name;
        }
        let text: Arc<str> = text.into();
        let known = Arc::make_mut(&mut self.known);
        let name = Name(u32::try_from(known.names.len()).unwrap_or(u32::MAX));
        known.names.push(Arc::clone(&text));
        known.by_name.insert(text, name);
        name
    }

    /// Every stack of a kind with its sums.
    pub fn of(&self, kind: StackKind) -> impl Iterator<Item = StackEntry<'_>> {
        let of_kind = self.sums.iter().filter(move |(id, _)| id.kind == kind);
        of_kind.map(|(id, &sums)| StackEntry {
            dev: id.dev,
            label: id.label,
            who: id.who,
            kernel: self.part(id.kernel),
            user: self.part(id.user),
            sums,
        })
    }

    fn part(&self, id: Option<u32>) -> &[Name] {
        match id {
            None => &[],
            Some(LOST) => &[Name::STACK_LOST],
            Some(id) => match self.known.frames.get(&id) {
                Some(frames) => frames,
                None => &[Name::STACK_MISSING],
            },
        }
    }

    /// The frames of a stack, leaf first.
    #[must_use]
    pub fn frames(&self, id: u32) -> Option<Vec<&str>> {
        let frames = self.known.frames.get(&id)?;
        Some(frames.iter().map(|&name| self.text(name)).collect())
    }

    /// Every name's text, by [`Name::place`].
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.known.names.iter().map(|text| &**text)
    }

    /// A name's text.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.known.names.get(name.place()).map_or("", |text| text)
    }
}
