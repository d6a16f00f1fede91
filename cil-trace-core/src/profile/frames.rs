//! Stacks of one or more recordings as sequences of numbers that mean the same in all of them.
//!
//! A picture compares millions of frames, and each name is read once.

use super::Profile;
use crate::device::Dev;
use crate::model::stacks::{Name, StackEntry};
use std::collections::HashMap;

/// What a frame is part of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Layer {
    /// It is no function: a device, a cause, a thread.
    Group,
    /// A function of a program.
    User,
    /// A function of the kernel.
    Kernel,
}

/// A frame, by its place in [`Frames`].
pub type FrameId = u32;

/// Every frame that occurs, once.
#[derive(Debug, Default)]
pub struct Frames {
    all: Vec<(Layer, String)>,
    ids: HashMap<(Layer, String), FrameId>,
}

impl Frames {
    /// The number of a frame.
    pub fn id(&mut self, layer: Layer, name: &str) -> FrameId {
        let key = (layer, name.to_owned());
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = FrameId::try_from(self.all.len()).unwrap_or(FrameId::MAX);
        self.all.push(key.clone());
        self.ids.insert(key, id);
        id
    }

    /// What a number stands for.
    #[must_use]
    pub fn get(&self, id: FrameId) -> (Layer, &str) {
        self.all
            .get(id as usize)
            .map_or((Layer::Group, ""), |(layer, name)| (*layer, name))
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Layer, &str)> {
        self.all.iter().map(|(layer, name)| (*layer, name.as_str()))
    }
}

/// The name by which a kernel function goes in pictures: without the module that it is in, which
/// differs between machines that have it built in and others.
#[must_use]
pub fn without_module(function: &str) -> &str {
    match function.rsplit_once(" [") {
        Some((name, module)) if module.ends_with(']') => name,
        _ => function,
    }
}

/// A profile's frames as numbers.
pub(crate) struct Numbered<'a> {
    user: Vec<FrameId>,
    kernel: Vec<FrameId>,
    groups: HashMap<Below, Box<[FrameId]>>,
    profile: &'a Profile<'a>,
}

impl<'a> Numbered<'a> {
    pub(crate) fn new(profile: &'a Profile<'a>, frames: &mut Frames) -> Self {
        let names = profile.names();
        let user = names
            .texts()
            .map(|name| frames.id(Layer::User, name))
            .collect();
        let kernel = names
            .texts()
            .map(|name| frames.id(Layer::Kernel, without_module(name)))
            .collect();
        let mut groups = HashMap::new();
        for entry in &profile.entries {
            groups.entry(below(entry)).or_insert_with(|| {
                let texts = profile.groups(entry);
                texts
                    .iter()
                    .map(|text| frames.id(Layer::Group, text))
                    .collect()
            });
        }
        Self {
            user,
            kernel,
            groups,
            profile,
        }
    }

    /// The entries that weigh something.
    pub(crate) fn paths(&'a self) -> impl Iterator<Item = (Path<'a>, u64)> {
        self.profile.entries.iter().filter_map(|entry| {
            let weight = self.profile.weight_of(entry);
            let path = Path {
                groups: self.groups.get(&below(entry)).map_or(&[], |ids| ids),
                user: entry.user,
                kernel: entry.kernel,
                numbered: self,
            };
            (weight > 0).then_some((path, weight))
        })
    }
}

/// What decides which frames stand below a stack: device, label, and thread.
type Below = (Dev, Name, Option<(Name, bool)>);

fn below(entry: &StackEntry<'_>) -> Below {
    let who = entry.who.map(|who| (who.comm, who.workload));
    (entry.dev, entry.label, who)
}

/// A stack, outermost frame first.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    groups: &'a [FrameId],
    user: &'a [Name],
    kernel: &'a [Name],
    numbered: &'a Numbered<'a>,
}

impl Path<'_> {
    pub(crate) fn at(&self, depth: usize) -> Option<FrameId> {
        let Self {
            groups,
            user,
            kernel,
            numbered,
        } = self;
        if let Some(&group) = groups.get(depth) {
            return Some(group);
        }
        let depth = depth - groups.len();
        let (part, ids, depth) = if depth < user.len() {
            (user, &numbered.user, depth)
        } else {
            (kernel, &numbered.kernel, depth - user.len())
        };
        // Leaf first there.
        let place = part.len().checked_sub(depth + 1)?;
        ids.get(part.get(place)?.place()).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = FrameId> {
        (0..).map_while(|depth| self.at(depth))
    }
}

#[cfg(test)]
mod tests {
    use super::without_module;

    #[test]
    fn a_module_is_no_part_of_the_name() {
        for (given, name) in [
            ("xfs_log_force [xfs]", "xfs_log_force"),
            ("xfs_log_force", "xfs_log_force"),
            ("[stack lost]", "[stack lost]"),
            ("operator[] (int)", "operator[] (int)"),
        ] {
            assert_eq!(without_module(given), name);
        }
    }
}
