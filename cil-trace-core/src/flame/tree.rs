//! The frames that are wide enough to be seen, as a tree.
//!
//! What is too narrow is left out before anything else is done with it: a million stacks make a few
//! thousand frames of a picture.

use crate::profile::frames::{FrameId, Frames};

/// Frames that are drawn on top of each other at most, whatever a recording holds.
const DEEPEST: usize = 512;

/// A frame with what stands on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub(super) frame: FrameId,
    /// Of the frame and all that stands on it, in each run.
    pub(super) totals: Vec<u64>,
    /// Ordered by name.
    pub(super) children: Vec<Node>,
}

/// A stack that goes into a tree.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Outermost frame first.
    pub(super) path: &'a [FrameId],
    /// Which of the runs it is of.
    pub(super) run: usize,
    pub(super) weight: u64,
}

/// The children of the root; frames that weigh less than its floor in every run are left out.
pub(super) fn grow(entries: Vec<Entry<'_>>, frames: &Frames, floors: &[u64]) -> Vec<Node> {
    let mut grower = Grower {
        frames,
        floors,
        totals: vec![0; frames.len() * floors.len()],
        place: vec![NONE; frames.len()],
    };
    grower.children(entries, 0)
}

struct Grower<'a> {
    frames: &'a Frames,
    /// What a frame must weigh in each run.
    floors: &'a [u64],
    /// What each frame weighs in each run, among the stacks that are looked at; else zero.
    totals: Vec<u64>,
    /// Which of the nodes that are made each frame is; else [`NONE`].
    place: Vec<usize>,
}

const NONE: usize = usize::MAX;

impl Grower<'_> {
    /// What stands on the first `depth` frames that all of `stacks` share.
    fn children(&mut self, mut stacks: Vec<Entry<'_>>, depth: usize) -> Vec<Node> {
        if depth == DEEPEST {
            return Vec::new();
        }
        let mut nodes = self.wide(&stacks, depth);
        if let [node] = nodes.as_mut_slice() {
            // Nearly all stacks share their outer frames, and then there is nothing to part.
            stacks.retain(|stack| stack.path.get(depth) == Some(&node.frame));
            node.children = self.children(stacks, depth + 1);
            return nodes;
        }
        for (place, node) in nodes.iter().enumerate() {
            self.place[node.frame as usize] = place;
        }
        let mut parts = vec![Vec::new(); nodes.len()];
        for stack in stacks {
            if let Some(&frame) = stack.path.get(depth)
                && let Some(part) = parts.get_mut(self.place[frame as usize])
            {
                part.push(stack);
            }
        }
        for node in &nodes {
            self.place[node.frame as usize] = NONE;
        }
        for (node, part) in nodes.iter_mut().zip(parts) {
            node.children = self.children(part, depth + 1);
        }
        nodes
    }

    /// The frames at a depth that are wide enough, without what stands on them, ordered by name.
    fn wide(&mut self, stacks: &[Entry<'_>], depth: usize) -> Vec<Node> {
        let runs = self.floors.len();
        let mut seen = Vec::new();
        for stack in stacks {
            let Some(&frame) = stack.path.get(depth) else {
                continue;
            };
            let totals = &mut self.totals[frame as usize * runs..][..runs];
            if totals.iter().all(|&total| total == 0) {
                seen.push(frame);
            }
            totals[stack.run] = totals[stack.run].saturating_add(stack.weight);
        }
        let mut nodes = Vec::new();
        for frame in seen {
            let totals = &mut self.totals[frame as usize * runs..][..runs];
            let mut floors = totals.iter().zip(self.floors);
            if floors.any(|(total, floor)| total >= floor) {
                nodes.push(Node {
                    frame,
                    totals: totals.to_vec(),
                    children: Vec::new(),
                });
            }
            totals.fill(0);
        }
        nodes.sort_by_key(|node| self.frames.get(node.frame));
        nodes
    }
}
