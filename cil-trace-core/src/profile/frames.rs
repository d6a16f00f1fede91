//! Stacks of one or more recordings as sequences of numbers that mean the same in all of them.
//!
//! A picture compares millions of frames, and each name is read once.

use super::Profile;
use crate::device::Dev;
use crate::model::stacks::{Hasher, Name, StackEntry};
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

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
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

/// A profile's stacks as numbers.
pub(crate) struct Numbered {
    /// Of all stacks, behind each other, outermost first.
    frames: Vec<FrameId>,
    /// Where each ends that weighs something, and what it weighs.
    stacks: Vec<(usize, u64)>,
}

impl Numbered {
    pub(crate) fn new(profile: &Profile<'_>, frames: &mut Frames) -> Self {
        let names = profile.names();
        let user: Vec<_> = names
            .texts()
            .map(|name| frames.id(Layer::User, name))
            .collect();
        let kernel: Vec<_> = names
            .texts()
            .map(|name| frames.id(Layer::Kernel, without_module(name)))
            .collect();
        let mut groups: HashMap<Below, Box<[FrameId]>, Hasher> = HashMap::default();
        let mut numbered = Self {
            frames: Vec::new(),
            stacks: Vec::with_capacity(profile.entries.len()),
        };
        for entry in &profile.entries {
            let weight = profile.weight_of(entry);
            if weight == 0 {
                continue;
            }
            let below = groups.entry(below(entry)).or_insert_with(|| {
                let texts = profile.groups(entry);
                texts
                    .iter()
                    .map(|text| frames.id(Layer::Group, text))
                    .collect()
            });
            numbered.frames.extend_from_slice(below);
            // Leaf first there.
            for (part, ids) in [(entry.user, &user), (entry.kernel, &kernel)] {
                let part = part.iter().rev();
                numbered
                    .frames
                    .extend(part.filter_map(|name| ids.get(name.place())));
            }
            numbered.stacks.push((numbered.frames.len(), weight));
        }
        numbered
    }

    /// The stacks that weigh something, outermost frame first.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&[FrameId], u64)> {
        let mut start = 0;
        self.stacks.iter().map(move |&(end, weight)| {
            let path = self.frames.get(start..end).unwrap_or_default();
            start = end;
            (path, weight)
        })
    }
}

/// What decides which frames stand below a stack: device, label, and thread.
type Below = (Dev, Name, Option<(Name, bool)>);

fn below(entry: &StackEntry<'_>) -> Below {
    let who = entry.who.map(|who| (who.comm, who.workload));
    (entry.dev, entry.label, who)
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
