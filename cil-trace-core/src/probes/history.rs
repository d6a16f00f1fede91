//! How probes came out over a recording in which modules came and went.

use crate::session::{Outcome, ProbeOutcome};

/// The outcomes so far.
#[derive(Clone, Debug)]
pub struct History {
    start_ns: u64,
    rows: Vec<Row>,
}

/// One probe.
#[derive(Clone, Debug)]
struct Row {
    /// The best outcome, without what `gaps` say.
    best: ProbeOutcome,
    /// Why it was not measured when that began last.
    lacking: String,
    /// When it was not measured, nanoseconds since the start; the last may have no end.
    gaps: Vec<(u64, Option<u64>)>,
}

impl History {
    /// Begins with the window.
    #[must_use]
    pub fn new(start_ns: u64, outcomes: &[ProbeOutcome]) -> Self {
        let row = |outcome: &ProbeOutcome| Row {
            best: outcome.clone(),
            lacking: outcome.reason.clone(),
            gaps: if outcome.outcome.measured() {
                Vec::new()
            } else {
                vec![(0, None)]
            },
        };
        Self {
            start_ns,
            rows: outcomes.iter().map(row).collect(),
        }
    }

    /// Adds how the same probes came out at `now`; returns what the recording now says of those that
    /// changed.
    pub fn change(&mut self, now: u64, outcomes: &[ProbeOutcome]) -> Vec<ProbeOutcome> {
        let at = now.saturating_sub(self.start_ns);
        let mut changed = Vec::new();
        for new in outcomes {
            let Some(row) = self.rows.iter_mut().find(|row| row.best.probe == new.probe) else {
                continue;
            };
            let before = row.said();
            row.change(at, new);
            let after = row.said();
            if after != before {
                changed.push(after);
            }
        }
        changed
    }
}

impl Row {
    fn change(&mut self, at: u64, new: &ProbeOutcome) {
        let open = self.gaps.last_mut().filter(|(_, end)| end.is_none());
        match (open, new.outcome.measured()) {
            (Some((_, end)), true) => *end = Some(at),
            (None, false) => {
                self.gaps.push((at, None));
                self.lacking.clone_from(&new.reason);
            }
            _ => {}
        }
        if rank(new.outcome) > rank(self.best.outcome) {
            self.best.clone_from(new);
        }
    }

    /// With when it was not measured, and why, unless it never was.
    fn said(&self) -> ProbeOutcome {
        let mut said = self.best.clone();
        if self.gaps.is_empty() || !said.outcome.measured() {
            return said;
        }
        let gaps: Vec<_> = self.gaps.iter().map(|&gap| describe(gap)).collect();
        let gaps = format!("not measured {}: {}", gaps.join(" and "), self.lacking);
        said.reason = match said.reason.as_str() {
            "" => gaps,
            reason => format!("{reason}; {gaps}"),
        };
        said
    }
}

const fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Attached => 2,
        Outcome::Approximated => 1,
        Outcome::Skipped | Outcome::Failed => 0,
    }
}

fn describe((from, to): (u64, Option<u64>)) -> String {
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    match (from, to) {
        (0, Some(to)) => format!("in the first {}", seconds(to)),
        (from, Some(to)) => format!("from {} to {}", seconds(from), seconds(to)),
        (from, None) => format!("from {} on", seconds(from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forces(outcome: Outcome, reason: &str) -> Vec<ProbeOutcome> {
        let how = if outcome.measured() {
            "raw_tracepoint xfs_log_force"
        } else {
            ""
        };
        vec![ProbeOutcome {
            probe: "forces".to_owned(),
            outcome,
            how: how.to_owned(),
            reason: reason.to_owned(),
        }]
    }

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_best_outcome_stays_and_says_when_it_was_not() {
        let absent = forces(Outcome::Skipped, "XFS is not loaded");
        let there = forces(Outcome::Attached, "");
        let mut history = History::new(100 * S, &absent);
        assert_eq!(history.change(101 * S, &absent), []);

        let said = history.change(103 * S, &there);
        assert_eq!(said[0].outcome, Outcome::Attached);
        assert_eq!(said[0].how, "raw_tracepoint xfs_log_force");
        assert_eq!(
            said[0].reason,
            "not measured in the first 3.0 s: XFS is not loaded"
        );
        let said = history.change(110 * S, &absent);
        assert_eq!(said[0].outcome, Outcome::Attached);
        let said_again = history.change(112 * S + S / 2, &there);
        assert_eq!(
            said_again[0].reason,
            "not measured in the first 3.0 s and from 10.0 s to 12.5 s: XFS is not loaded"
        );
        assert!(said[0].reason.contains("from 10.0 s on"), "{said:?}");
    }

    #[test]
    fn a_better_way_replaces_the_worse_one() {
        let mut history = History::new(0, &forces(Outcome::Approximated, "no kprobes"));
        let said = history.change(S, &forces(Outcome::Attached, ""));
        assert_eq!(
            (said[0].outcome, said[0].reason.as_str()),
            (Outcome::Attached, "")
        );
        // What was never there is no gap.
        let mut history = History::new(0, &forces(Outcome::Skipped, "no such tracepoint"));
        assert_eq!(history.change(S, &forces(Outcome::Failed, "")), []);
    }
}
