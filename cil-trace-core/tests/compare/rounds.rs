//! Runs that were made by turns: pairs are tested as such where that can find anything.

use cil_trace_core::compare::change::Verdict;
use cil_trace_core::compare::matrix::Matrix;
use cil_trace_core::compare::run::Run;
use cil_trace_core::compare::samples::Samples;
use cil_trace_core::compare::{Comparison, Options, Side};
use cil_trace_core::session::SeriesPosition;
use std::collections::BTreeMap;

/// A side of so many rounds, whose first metric is ten times larger on the side `b`.
fn side(label: &str, rounds: u32, metrics: usize) -> Side {
    let runs = (1..=rounds).map(|round| {
        let mut run = Run {
            series: Some(SeriesPosition {
                side: label.to_owned(),
                round,
                ..SeriesPosition::default()
            }),
            ..Run::default()
        };
        run.metrics.values = (0..metrics)
            .map(|metric| {
                let scale = if metric == 0 && label == "b" {
                    10.0
                } else {
                    1.0
                };
                // Of the others neither side has more.
                let noise = f64::from((round * 7 + metric as u32) % 5);
                (format!("t.{metric}"), scale * (100.0 + noise))
            })
            .collect();
        run
    });
    Side {
        label: label.to_owned(),
        cases: BTreeMap::from([(
            String::new(),
            Samples::new(runs.collect(), Vec::<(String, Matrix)>::new()),
        )]),
    }
}

#[test]
fn a_further_round_never_takes_a_finding_away() {
    // Of twenty metrics five runs a side cannot single one out: p is at least 2/252.
    for (metrics, fewest) in [(1, 5), (20, 6)] {
        for rounds in fewest..=14 {
            let sides = ["a", "b"].map(|label| side(label, rounds, metrics));
            let comparison = Comparison::of(sides.into(), Options::default()).unwrap();
            assert_eq!(
                comparison.count(0, Verdict::Changed),
                1,
                "{rounds} rounds, {metrics} metrics"
            );
        }
    }
}
