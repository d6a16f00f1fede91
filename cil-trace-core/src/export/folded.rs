//! Folded stacks: a line for each, frames from the root on joined by `;`, a space and the weight.

use crate::flame::folded_name;
use crate::model::stacks::Name;
use crate::profile::Profile;
use crate::profile::frames::{Frames, Numbered};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The stacks of a profile. Equal ones are added up, and what has no stack has a line of its own,
/// so that the sum is that of the report.
#[must_use]
pub fn folded(profile: &Profile<'_>) -> String {
    let mut frames = Frames::default();
    let numbered = Numbered::new(profile, &mut frames);
    let names: Vec<_> = frames.iter().map(|(_, name)| folded_name(name)).collect();
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (path, weight) in numbered.paths() {
        let path: Vec<_> = path.iter().map(|&id| names[id as usize].as_str()).collect();
        let sum = sums.entry(path.join(";")).or_default();
        *sum = sum.saturating_add(weight);
    }
    if profile.missing > 0 {
        let lost = profile.names().text(Name::STACK_LOST);
        let sum = sums.entry(lost.to_owned()).or_default();
        *sum = sum.saturating_add(profile.missing);
    }
    let mut text = String::new();
    for (path, weight) in sums {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path} {weight}");
    }
    text
}
