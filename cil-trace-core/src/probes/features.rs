//! What can be measured, told from how each probe came out.

use super::{PROBES, Row};
use crate::session::{Outcome, ProbeOutcome};
use serde::Serialize;
use std::fmt::Write as _;

/// One quantity, and whether it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Feature {
    /// The probe's name.
    pub probe: String,
    /// What it measures.
    pub quantity: &'static str,
    /// Whether it is measured: the outcome in the words of whoever wants the number.
    pub status: &'static str,
    /// What became of the probe.
    pub outcome: Outcome,
    /// As in [`ProbeOutcome`].
    pub how: String,
    /// As in [`ProbeOutcome`].
    pub reason: String,
}

/// One feature for each outcome.
#[must_use]
pub fn features(outcomes: &[ProbeOutcome]) -> Vec<Feature> {
    outcomes.iter().map(feature).collect()
}

fn feature(outcome: &ProbeOutcome) -> Feature {
    let is_row = |row: &&Row| row.probe.name() == outcome.probe;
    Feature {
        probe: outcome.probe.clone(),
        quantity: PROBES.iter().find(is_row).map_or("", |row| row.quantity),
        status: match outcome.outcome {
            Outcome::Attached => "measured",
            Outcome::Approximated => "approximated",
            Outcome::Skipped => "unavailable",
            Outcome::Failed => "FAILED",
        },
        outcome: outcome.outcome,
        how: outcome.how.clone(),
        reason: outcome.reason.clone(),
    }
}

/// The list as text; how and why only where it is not the best way.
#[must_use]
pub fn text(features: &[Feature]) -> String {
    let mut text = String::new();
    for feature in features {
        let Feature {
            probe,
            quantity,
            status,
            how,
            reason,
            ..
        } = feature;
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {status:<13} {probe:<16} {quantity}");
        let best = feature.outcome == Outcome::Attached && reason.is_empty();
        for line in [how, reason] {
            if !best && !line.is_empty() {
                let _ = writeln!(text, "  {:30} {line}", "");
            }
        }
    }
    text
}
