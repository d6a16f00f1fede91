//! The frames that are wide enough to be seen, as a tree.
//!
//! What is too narrow is left out before anything else is done with it: a million stacks make a few
//! thousand frames of a picture.

use crate::profile::frames::{FrameId, Frames, Path};

/// Weights of up to two sides: what is shown, and what it is compared with.
pub(super) type Weights = [u64; 2];

/// A frame with what stands on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub(super) frame: FrameId,
    /// Of the frame and all that stands on it.
    pub(super) total: Weights,
    /// Ordered by name.
    pub(super) children: Vec<Node>,
}

/// Frames that are drawn on top of each other at most, whatever a recording holds.
const DEEPEST: usize = 512;

/// A stack that goes into a tree.
pub(super) type Entry<'a> = (Path<'a>, Weights);

/// The children of the root; frames that weigh less than `floor` on both sides are left out.
pub(super) fn grow(entries: &mut [Entry<'_>], frames: &Frames, floor: u64) -> Vec<Node> {
    children(entries, 0, frames, floor)
}

fn children(entries: &mut [Entry<'_>], depth: usize, frames: &Frames, floor: u64) -> Vec<Node> {
    let mut nodes = Vec::new();
    if depth == DEEPEST {
        return nodes;
    }
    let at = |entry: &Entry<'_>| entry.0.at(depth);
    let first = entries.first().and_then(at);
    // Most stacks share their outer frames, and then there is nothing to order.
    if !entries.iter().all(|entry| at(entry) == first) {
        entries.sort_unstable_by_key(at);
    }
    for same in entries.chunk_by_mut(|a, b| at(a) == at(b)) {
        let total = total(same);
        if let Some(frame) = same.first().and_then(at)
            && total.iter().any(|&weight| weight >= floor)
        {
            nodes.push(Node {
                frame,
                total,
                children: children(same, depth + 1, frames, floor),
            });
        }
    }
    nodes.sort_by_key(|node| frames.get(node.frame));
    nodes
}

fn total(entries: &[Entry<'_>]) -> Weights {
    let mut total = [0u64; 2];
    for (_, weights) in entries {
        for (total, weight) in total.iter_mut().zip(weights) {
            *total = total.saturating_add(*weight);
        }
    }
    total
}
