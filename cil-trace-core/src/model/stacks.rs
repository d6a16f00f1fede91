//! The sums by stack of all ticks, each name held once.
//!
//! A profile has a million frames and a few thousand names. It knows what was summed up, not what a
//! picture makes of it.

use crate::device::Dev;
use crate::tick::{Stack, StackRow, StackSums, Who};
use cil_trace_common::stack::{LOST, StackKind};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Stands for a stack that the kernel could not give or keep.
pub const STACK_LOST: &str = "[stack lost]";
/// Stands for a stack whose frames are not in the recording.
const STACK_MISSING: &str = "[stack not in the recording]";

/// A name, by its place in [`StackTable`].
type Name = u32;

/// Sums by stack.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StackTable {
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, Name>,
    frames: HashMap<u32, Box<[Name]>>,
    sums: BTreeMap<Id, StackSums>,
}

/// What tells the sums apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Id {
    kind: StackKind,
    dev: Dev,
    label: Name,
    kernel: Option<u32>,
    user: Option<u32>,
    /// Process id, command name, and whether it belongs to the workload.
    who: Option<(u32, Name, bool)>,
}

/// One stack and its sums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackEntry<'a> {
    /// The device, or [`Dev::NONE`].
    pub dev: Dev,
    /// What tells entries of one kind apart; empty if there is nothing.
    pub label: &'a str,
    /// Whose stack it is.
    pub who: Option<Thread<'a>>,
    /// Kernel functions, leaf first; empty without a kernel part.
    pub kernel: Vec<&'a str>,
    /// Functions of the program, leaf first; empty without a user part.
    pub user: Vec<&'a str>,
    /// What was summed up.
    pub sums: StackSums,
}

/// See [`Who`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread<'a> {
    /// Process id.
    pub pid: u32,
    /// Command name.
    pub comm: &'a str,
    /// Whether it belongs to the workload.
    pub workload: bool,
}

impl StackTable {
    /// Takes in the frames of a stack.
    pub(super) fn learn(&mut self, stack: &Stack) {
        let frames = stack.frames.iter().map(|frame| self.name(frame)).collect();
        self.frames.insert(stack.id, frames);
    }

    /// Adds what happened in a tick.
    pub(super) fn add(&mut self, row: &StackRow) {
        let id = Id {
            kind: row.kind,
            dev: row.dev,
            label: self.name(&row.label),
            kernel: row.kernel,
            user: row.user,
            who: row.who.as_ref().map(
                |Who {
                     pid,
                     comm,
                     workload,
                 }| (*pid, self.name(comm), *workload),
            ),
        };
        let sums = self.sums.entry(id).or_default();
        sums.count = sums.count.saturating_add(row.sums.count);
        sums.time_ns = sums.time_ns.saturating_add(row.sums.time_ns);
        sums.bytes = sums.bytes.saturating_add(row.sums.bytes);
    }

    fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let text: Arc<str> = text.into();
        let name = Name::try_from(self.names.len()).unwrap_or(Name::MAX);
        self.names.push(Arc::clone(&text));
        self.by_name.insert(text, name);
        name
    }

    /// The frames of a stack, leaf first.
    #[must_use]
    pub fn frames(&self, id: u32) -> Option<Vec<&str>> {
        let frames = self.frames.get(&id)?;
        Some(frames.iter().map(|&name| self.text(name)).collect())
    }

    /// Every stack of a kind with its sums, in an order that depends on nothing else.
    pub fn of(&self, kind: StackKind) -> impl Iterator<Item = StackEntry<'_>> {
        let of_kind = self.sums.iter().filter(move |(id, _)| id.kind == kind);
        of_kind.map(|(id, &sums)| StackEntry {
            dev: id.dev,
            label: self.text(id.label),
            who: id.who.map(|(pid, comm, workload)| Thread {
                pid,
                comm: self.text(comm),
                workload,
            }),
            kernel: self.part(id.kernel),
            user: self.part(id.user),
            sums,
        })
    }

    fn part(&self, id: Option<u32>) -> Vec<&str> {
        match id {
            None => Vec::new(),
            Some(LOST) => vec![STACK_LOST],
            Some(id) => self.frames(id).unwrap_or_else(|| vec![STACK_MISSING]),
        }
    }

    fn text(&self, name: Name) -> &str {
        usize::try_from(name)
            .ok()
            .and_then(|place| self.names.get(place))
            .map_or("", |text| text)
    }
}
