//! The sums by stack of all ticks, each name held once.
//!
//! A profile has a million frames and a few thousand names. It knows what was summed up, not what a
//! picture makes of it.

use crate::device::Dev;
use crate::tick::{Stack, StackRow, StackSums};
use cil_trace_common::stack::{LOST, StackKind};
use indexmap::IndexMap;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Range;
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

/// Each of a million stacks looks up a dozen names.
pub(crate) type Hasher = foldhash::fast::RandomState;

/// Sums by stack, in the order in which they first came.
#[derive(Clone, Debug)]
pub struct StackTable {
    known: Arc<Known>,
    sums: IndexMap<Id, StackSums, Hasher>,
}

/// Names and frames, which the tables of one session share.
#[derive(Clone, Debug, Default)]
struct Known {
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, Name, Hasher>,
    /// Of all stacks, behind each other.
    frames: Vec<Name>,
    /// Which of these are a stack's.
    of_stack: HashMap<u32, Range<u32>, Hasher>,
}

impl Known {
    fn name(&mut self, text: &str) -> Name {
        if let Some(&name) = self.by_name.get(text) {
            return name;
        }
        let text: Arc<str> = text.into();
        let name = Name(place(self.names.len()));
        self.names.push(Arc::clone(&text));
        self.by_name.insert(text, name);
        name
    }

    fn frames(&self, id: u32) -> Option<&[Name]> {
        let Range { start, end } = self.of_stack.get(&id)?;
        self.frames.get(*start as usize..*end as usize)
    }
}

fn place(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What tells the sums apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Id {
    kind: StackKind,
    dev: Dev,
    label: Name,
    kernel: Option<u32>,
    user: Option<u32>,
    who: Option<Thread>,
}

/// The same without the numbers of names.
type Texts<'a> = (
    StackKind,
    Dev,
    &'a str,
    (Option<u32>, Option<u32>),
    Option<(u32, &'a str, bool)>,
);

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

/// Of the same stacks with the same sums, in whatever order they were learnt.
impl PartialEq for StackTable {
    fn eq(&self, other: &Self) -> bool {
        self.frames_by_text() == other.frames_by_text()
            && self.sums_by_text() == other.sums_by_text()
    }
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = Self {
            known: Arc::default(),
            sums: IndexMap::default(),
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
            sums: IndexMap::default(),
        }
    }

    /// Takes in the frames of a stack.
    pub(super) fn learn(&mut self, stack: &Stack) {
        // What is known already must not part this table from those that it shares with.
        let known = self.frames(stack.id);
        if known.is_none_or(|known| known.iter().ne(&stack.frames)) {
            let taken = self.learn_frames(stack.id, |name| {
                stack.frames.iter().for_each(|frame| name(frame));
                Ok::<_, Infallible>(())
            });
            match taken {
                Ok(()) => {}
            }
        }
    }

    /// The same for frames that nobody owns: `give` hands each of them over, leaf first.
    ///
    /// # Errors
    /// Those of `give`; then nothing is known of the stack that was not before.
    pub(crate) fn learn_frames<E>(
        &mut self,
        id: u32,
        give: impl FnOnce(&mut dyn FnMut(&str)) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = Arc::make_mut(&mut self.known);
        let start = known.frames.len();
        let given = give(&mut |frame| {
            let name = known.name(frame);
            known.frames.push(name);
        });
        if given.is_err() {
            known.frames.truncate(start);
        } else {
            let frames = place(start)..place(known.frames.len());
            known.of_stack.insert(id, frames);
        }
        given
    }

    /// Adds what happened in a tick.
    pub(super) fn add(&mut self, row: &StackRow) {
        let who = row.who.as_ref();
        self.add_sums(
            row.kind,
            row.dev,
            &row.label,
            who.map(|who| (who.pid, who.comm.as_str(), who.workload)),
            [row.kernel, row.user],
            row.sums,
        );
    }

    /// The same for texts that nobody owns: process id, command name and whether it is the
    /// workload's, the kernel's and the program's part of the stack. Saturating, because a damaged
    /// recording may hold anything.
    pub(crate) fn add_sums(
        &mut self,
        kind: StackKind,
        dev: Dev,
        label: &str,
        who: Option<(u32, &str, bool)>,
        [kernel, user]: [Option<u32>; 2],
        added: StackSums,
    ) {
        let who = who.map(|(pid, comm, workload)| Thread {
            pid,
            comm: self.name(comm),
            workload,
        });
        let id = Id {
            kind,
            dev,
            label: self.name(label),
            kernel,
            user,
            who,
        };
        self.add_to(id, added);
    }

    fn add_to(&mut self, id: Id, added: StackSums) {
        let sums = self.sums.entry(id).or_default();
        sums.count = sums.count.saturating_add(added.count);
        sums.time_ns = sums.time_ns.saturating_add(added.time_ns);
        sums.bytes = sums.bytes.saturating_add(added.bytes);
    }

    /// Takes in what another table of the same session has learnt later, and its sums.
    pub(crate) fn absorb(&mut self, later: &Self) {
        let names: Vec<_> = later.texts().map(|text| self.name(text)).collect();
        let named = |name: Name| names.get(name.place()).copied().unwrap_or(Name::EMPTY);
        let known = Arc::make_mut(&mut self.known);
        let before = place(known.frames.len());
        let frames = later.known.frames.iter();
        known.frames.extend(frames.map(|&name| named(name)));
        let stacks = later.known.of_stack.iter();
        known.of_stack.extend(stacks.map(|(&id, frames)| {
            let [start, end] = [frames.start, frames.end].map(|at| before.saturating_add(at));
            (id, start..end)
        }));
        self.sums.reserve(later.sums.len());
        for (&id, &sums) in &later.sums {
            let id = Id {
                label: named(id.label),
                who: id.who.map(|who| Thread {
                    comm: named(who.comm),
                    ..who
                }),
                ..id
            };
            self.add_to(id, sums);
        }
    }

    fn name(&mut self, text: &str) -> Name {
        match self.known.by_name.get(text) {
            Some(&name) => name,
            None => Arc::make_mut(&mut self.known).name(text),
        }
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
            Some(id) => self.known.frames(id).unwrap_or(&[Name::STACK_MISSING]),
        }
    }

    /// The frames of a stack, leaf first.
    #[must_use]
    pub fn frames(&self, id: u32) -> Option<Vec<&str>> {
        let frames = self.known.frames(id)?;
        Some(frames.iter().map(|&name| self.text(name)).collect())
    }

    /// Every name's text, by [`Name::place`].
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.known.names.iter().map(|text| &**text)
    }

    /// The sums without the numbers of names.
    fn sums_by_text(&self) -> BTreeMap<Texts<'_>, StackSums> {
        let sums = self.sums.iter().map(|(id, sums)| {
            let who = id
                .who
                .map(|who| (who.pid, self.text(who.comm), who.workload));
            let stacks = (id.kernel, id.user);
            let texts = (id.kind, id.dev, self.text(id.label), stacks, who);
            (texts, *sums)
        });
        sums.collect()
    }

    fn frames_by_text(&self) -> BTreeMap<u32, Option<Vec<&str>>> {
        let ids = self.known.of_stack.keys();
        ids.map(|&id| (id, self.frames(id))).collect()
    }

    /// A name's text.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.known.names.get(name.place()).map_or("", |text| text)
    }
}
