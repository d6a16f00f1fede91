//! How often a comparison is wrong: simulated runs whose truth is known, with a fixed seed.
//!
//! Prints shares and whether each meets its goal; asserts nothing. `cargo xtask bench` runs it.

use cil_trace_core::compare::change::Verdict;
use cil_trace_core::compare::matrix::Matrix;
use cil_trace_core::compare::run::Run;
use cil_trace_core::compare::samples::Samples;
use cil_trace_core::compare::{Comparison, Options, Side};
use cil_trace_core::session::SeriesPosition;
use std::collections::BTreeMap;

const SEED: u64 = 20_220_315;
const TRIALS: usize = 4000;

/// What is simulated.
struct Case {
    what: &'static str,
    runs: usize,
    /// Standard deviation of a run, as a share.
    noise: f64,
    /// How much the second side is higher, as a share.
    effect: f64,
    metrics: usize,
    /// Made by turns, on a machine that gets slower by this share from run to run.
    drift: Option<f64>,
    goal: Goal,
}

enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

use Goal::{AtLeast, AtMost};

const CASES: &[Case] = &[
    Case {
        what: "no effect",
        runs: 5,
        noise: 0.08,
        effect: 0.0,
        metrics: 1,
        drift: None,
        goal: AtMost(5.0),
    },
    Case {
        what: "an effect of 5 %",
        runs: 8,
        noise: 0.02,
        effect: 0.05,
        metrics: 1,
        drift: None,
        goal: AtLeast(95.0),
    },
    Case {
        what: "no effect",
        runs: 8,
        noise: 0.02,
        effect: 0.0,
        metrics: 1,
        drift: None,
        goal: AtMost(5.0),
    },
    Case {
        what: "no effect",
        runs: 10,
        noise: 0.08,
        effect: 0.0,
        metrics: 100,
        drift: None,
        goal: AtMost(5.0),
    },
    Case {
        what: "no effect, by turns",
        runs: 5,
        noise: 0.05,
        effect: 0.0,
        metrics: 1,
        drift: Some(0.02),
        goal: AtMost(5.0),
    },
    Case {
        what: "no effect, by turns",
        runs: 8,
        noise: 0.05,
        effect: 0.0,
        metrics: 1,
        drift: Some(0.02),
        goal: AtMost(5.0),
    },
    Case {
        what: "an effect of 5 %, by turns",
        runs: 8,
        noise: 0.02,
        effect: 0.05,
        metrics: 1,
        drift: Some(0.02),
        goal: AtLeast(90.0),
    },
];

fn main() {
    // `cargo bench` and `cargo test` hand over arguments of a harness that this does without.
    println!("seed {SEED}, log-normal noise; of {TRIALS} comparisons each");
    for case in CASES {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let trials = TRIALS / case.metrics;
        let found: usize = (0..trials).map(|_| changed(case, &mut rng)).sum();
        let share = 100.0 * found as f64 / (trials * case.metrics) as f64;
        let (goal, met) = match case.goal {
            AtMost(goal) => (format!("at most {goal} %"), share <= goal),
            AtLeast(goal) => (format!("at least {goal} %"), share >= goal),
        };
        println!(
            "{}, {} + {} runs with {} % noise, {} metrics: {share:.1} % called changed; goal {goal}: {}",
            case.what,
            case.runs,
            case.runs,
            100.0 * case.noise,
            case.metrics,
            if met { "met" } else { "NOT met" }
        );
    }
}

/// How many metrics of a simulated comparison are called changed.
fn changed(case: &Case, rng: &mut fastrand::Rng) -> usize {
    let sides = ["a", "b"].map(|label| {
        let effect = if label == "b" { 1.0 + case.effect } else { 1.0 };
        let values = (0..case.runs).map(|run| {
            // A B, B A, A B: the place in time of this side's run.
            let place = 2 * run + usize::from((label == "b") == run.is_multiple_of(2));
            let drift = 1.0 + case.drift.unwrap_or(0.0) * place as f64;
            let values = (0..case.metrics).map(|metric| {
                let value = 1000.0 * effect * drift * (case.noise * normal(rng)).exp();
                (format!("t.{metric:03}"), value)
            });
            values.collect::<BTreeMap<String, f64>>()
        });
        Side {
            label: label.to_owned(),
            cases: BTreeMap::from([(String::new(), samples(case, label, values.collect()))]),
        }
    });
    Comparison::of(sides.into(), Options::default())
        .map_or(0, |comparison| comparison.count(0, Verdict::Changed))
}

fn samples(case: &Case, side: &str, runs: Vec<BTreeMap<String, f64>>) -> Samples {
    let recorded = runs.into_iter().zip(1..).map(|(values, round)| {
        let mut run = Run {
            series: case.drift.map(|_| SeriesPosition {
                side: side.to_owned(),
                round,
                ..SeriesPosition::default()
            }),
            ..Run::default()
        };
        run.metrics.values = values;
        run
    });
    Samples::new(recorded.collect(), Vec::<(String, Matrix)>::new())
}

/// Box and Muller's method.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.f64(), std::f64::consts::TAU * rng.f64());
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}
