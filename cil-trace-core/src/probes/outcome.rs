//! What becomes of each probe: the first of its open ways that attaches.

use super::{OpenWay, Otherwise, PROBES, Row, Set, Site, resolve};
use crate::probes::Kernel;
use crate::session::{Outcome, ProbeOutcome};

/// Why a program is not attached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// This kernel does not let programs of its kind in.
    Refused(String),
    /// Something went wrong.
    Failed(String),
}

/// The open ways of each wanted probe, in order of preference.
pub fn open_ways(sets: &[Set], kernel: &dyn Kernel) -> impl Iterator<Item = Vec<OpenWay>> {
    let wanted = PROBES.iter().filter(|row| row.is_in(sets));
    wanted.map(|row| resolve(row, kernel).open)
}

/// The outcome of every probe, wanted or not, in the table's order.
///
/// `attach` takes all programs of a way into the kernel, or none. What a kernel can be expected to
/// do is told by one that always succeeds.
pub fn outcomes(
    sets: &[Set],
    kernel: &dyn Kernel,
    mut attach: impl FnMut(&[Site]) -> Result<(), Obstacle>,
) -> Vec<ProbeOutcome> {
    PROBES
        .iter()
        .map(|row| {
            if row.is_in(sets) {
                outcome(row, kernel, &mut attach)
            } else {
                not_asked_for(row)
            }
        })
        .collect()
}

fn outcome(
    row: &Row,
    kernel: &dyn Kernel,
    mut attach: impl FnMut(&[Site]) -> Result<(), Obstacle>,
) -> ProbeOutcome {
    let resolution = resolve(row, kernel);
    let mut reasons = Vec::new();
    let mut failed = false;
    for way in resolution.open {
        match attach(&way.sites) {
            Ok(()) => return taken(row, &way, &[way.instead_of.as_slice(), &reasons].concat()),
            Err(Obstacle::Refused(reason)) => reasons.push(reason),
            Err(Obstacle::Failed(reason)) => {
                failed = true;
                reasons.push(reason);
            }
        }
    }
    let reason = [resolution.obstacles, reasons].concat().join("; ");
    let (outcome, how, reason) = match (row.otherwise, resolution.unknown) {
        (Otherwise::Approximated(by), unknown) => {
            (Outcome::Approximated, by, unknown.unwrap_or(reason))
        }
        (Otherwise::Skipped(_), _) if failed => (Outcome::Failed, "", reason),
        (Otherwise::Skipped(_), Some(unknown)) => (Outcome::Skipped, "", unknown),
        (Otherwise::Skipped(why), None) => (Outcome::Skipped, "", format!("{why}: {reason}")),
    };
    ProbeOutcome {
        probe: row.probe.name().to_owned(),
        outcome,
        how: how.to_owned(),
        reason,
    }
}

fn taken(row: &Row, way: &OpenWay, reasons: &[String]) -> ProbeOutcome {
    let (outcome, how) = match way.way.approximation {
        None => (Outcome::Attached, way.describe()),
        Some(text) => (Outcome::Approximated, format!("{}: {text}", way.describe())),
    };
    ProbeOutcome {
        probe: row.probe.name().to_owned(),
        outcome,
        how,
        reason: reasons.join("; "),
    }
}

fn not_asked_for(row: &Row) -> ProbeOutcome {
    let sets: Vec<_> = row.sets.iter().map(|set| set.name()).collect();
    ProbeOutcome {
        probe: row.probe.name().to_owned(),
        outcome: Outcome::Skipped,
        how: String::new(),
        reason: format!("not in --probes (it belongs to {})", sets.join(", ")),
    }
}
