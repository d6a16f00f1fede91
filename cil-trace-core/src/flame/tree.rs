//! The frames that are wide enough to be seen, as a tree.
//!
//! What is too narrow is left out before anything else is done with it: a million stacks make a few
//! thousand frames of a picture.

use crate::profile::frames::{FrameId, Frames, Path};

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
pub(super) struct Entry<'a> {
    pub(super) path: Path<'a>,
    /// Which of the runs it is of.
    pub(super) run: usize,
    pub(super) weight: u64,
}

/// The children of the root; frames that weigh less than its floor in every run are left out.
pub(super) fn grow(entries: &mut [Entry<'_>], frames: &Frames, floors: &[u64]) -> Vec<Node> {
    children(entries, 0, frames, floors)
}

fn children(entries: &mut [Entry<'_>], depth: usize, frames: &Frames, floors: &[u64]) -> Vec<Node> {
    let mut nodes = Vec::new();
    if depth == DEEPEST {
        return nodes;
    }
    let at = |entry: &Entry<'_>| entry.path.at(depth);
    let first = entries.first().and_then(at);
    // Most stacks share their outer frames, and then there is nothing to order.
    if !entries.iter().all(|entry| at(entry) == first) {
        entries.sort_unstable_by_key(at);
    }
    for same in entries.chunk_by_mut(|a, b| at(a) == at(b)) {
        let totals = totals(same, floors.len());
        if let Some(frame) = same.first().and_then(at)
            && totals
                .iter()
                .zip(floors)
                .any(|(total, floor)| total >= floor)
        {
            nodes.push(Node {
                frame,
                totals,
                children: children(same, depth + 1, frames, floors),
            });
        }
    }
    nodes.sort_by_key(|node| frames.get(node.frame));
    nodes
}

fn totals(entries: &[Entry<'_>], runs: usize) -> Vec<u64> {
    let mut totals = vec![0u64; runs];
    for entry in entries {
        if let Some(total) = totals.get_mut(entry.run) {
            *total = total.saturating_add(entry.weight);
        }
    }
    totals
}
