//! mmtests' table and our own, and what is said beneath every table.

use crate::sample::{side, table};
use cil_trace_core::compare::style::Style;
use cil_trace_core::compare::{Comparison, Options};
use glob::Pattern;

/// dbench with a client of one and of two: milliseconds a loop, and a rate.
const GOOD: &str = r#"{"dbench.loop.1": [64.2, 64.3, 64.29, 64.4, 64.26], "dbench.loop.2": [84.7, 84.71, 84.8, 84.6, 84.74],
    "dbench.ops_per_sec": [1.5, 1.52, 1.48, 1.5, 1.5], "dbench.errors": [0, 0, 0, 0, 0]}"#;
const BAD: &str = r#"{"dbench.loop.1": [73.1, 73.2, 73.11, 73.0, 73.14], "dbench.loop.2": [84.7, 84.72, 84.81, 84.6, 84.74],
    "dbench.ops_per_sec": [1.6, 1.62, 1.58, 1.6, 1.6], "dbench.errors": [0, 0, 0, 0, 2]}"#;

#[test]
fn mmtests() {
    let options = Options {
        lower_is_better: vec![Pattern::new("dbench.loop.*").unwrap()],
        ..Options::default()
    };
    let sides = [("good", GOOD), ("bad", BAD)].map(|(label, json)| side(label, &[("", json)]));
    let comparison = Comparison::of(sides.into(), options).unwrap();
    let text = table(Style::Mmtests, &comparison);
    // `Amean     1        64.29 (   0.00%)       73.11 * -13.70%*`, as posted in March 2022.
    assert_eq!(
        text,
        "\
dbench
                                        good                    bad
Min       errors           0.0000 (   0.00%)      0.0000 (   0.00%)
Min       ops_per_sec      1.4800 (   0.00%)      1.5800 (   6.76%)
Amean     errors           0.0000 (   0.00%)      0.4000 (    new%)
Amean     ops_per_sec      1.5000 (   0.00%)      1.6000 *   6.67%*
Stddev    errors           0.0000 (   0.00%)      0.8944 (    new%)
Stddev    ops_per_sec      0.0141 (   0.00%)      0.0141 (   0.00%)
CoeffVar  errors                - (      -%)    223.6068 (    new%)
CoeffVar  ops_per_sec      0.9428 (   0.00%)      0.8839 (   6.25%)
Max       errors           0.0000 (   0.00%)      2.0000 (    new%)
Max       ops_per_sec      1.5200 (   0.00%)      1.6200 (   6.58%)

dbench.loop
                               good                    bad
Min       1        64.20 (   0.00%)       73.00 ( -13.71%)
Min       2        84.60 (   0.00%)       84.60 (   0.00%)
Amean     1        64.29 (   0.00%)       73.11 * -13.72%*
Amean     2        84.71 (   0.00%)       84.71 (  -0.00%)
Stddev    1         0.07 (   0.00%)        0.07 (  -0.00%)
Stddev    2         0.07 (   0.00%)        0.08 (  -4.43%)
CoeffVar  1         0.11 (   0.00%)        0.10 (  12.06%)
CoeffVar  2         0.09 (   0.00%)        0.09 (  -4.43%)
Max       1        64.40 (   0.00%)       73.20 ( -13.66%)
Max       2        84.80 (   0.00%)       84.81 (  -0.01%)
"
    );
}

/// Eight runs a side.
fn eight(center: f64, spread: f64) -> String {
    let values: Vec<f64> = (0..8)
        .map(|i| center + spread * (f64::from(i) - 3.5))
        .collect();
    format!("{values:?}")
}

fn ci(base: &str, side: &str, options: Options) -> String {
    let sides =
        [("base", base), ("side", side)].map(|(label, json)| self::side(label, &[("", json)]));
    table(Style::Ci, &Comparison::of(sides.into(), options).unwrap())
}

#[test]
fn ratios_with_intervals_and_verdicts() {
    let matrix = |faster: f64, same: f64, noisy: f64| {
        format!(
            r#"{{"t.faster": {}, "t.same": {}, "t.noisy": {}, "t.errors": [0, 0, 1, 0, 0, 0, 0, 2], "t.few": [1, 2, 3]}}"#,
            eight(faster, 1.0),
            eight(same, 0.1),
            eight(noisy, 20.0)
        )
    };
    let text = ci(
        &matrix(100.0, 50.0, 200.0),
        &matrix(120.0, 50.1, 210.0),
        Options::default(),
    );
    insta::assert_snapshot!("ci", text);
}

#[test]
fn tests_that_disagree_are_both_printed() {
    // One outlier hides from the means what the ranks show.
    let text = ci(
        r#"{"t.x": [100, 101, 102, 103, 104, 105, 106, 107]}"#,
        r#"{"t.x": [108, 109, 110, 111, 112, 113, 114, 10]}"#,
        Options::default(),
    );
    insta::assert_snapshot!("disagreement", text);
}

#[test]
fn no_number_touches_the_one_before_it() {
    let json =
        r#"{"t.bytes": [-2e9, -2e9], "t.astronomic": [1e300, 1e300], "t.small": [0.5, 0.5]}"#;
    let sides = ["a", "b"].map(|label| side(label, &[("", json)]));
    let comparison = Comparison::of(sides.into(), Options::default()).unwrap();
    let text = table(Style::Mmtests, &comparison);
    let lines: Vec<&str> = text.lines().skip(1).take(4).collect();
    assert_eq!(
        lines,
        [
            "                                             a                         b",
            "Min       astronomic         1e+300 (   0.00%)         1e+300 (   0.00%)",
            "Min       bytes      -2000000000.00 (   0.00%) -2000000000.00 (   0.00%)",
            "Min       small              0.5000 (   0.00%)         0.5000 (   0.00%)",
        ]
    );
}

#[test]
fn names_cannot_move_the_cursor() {
    let json = "{\"t.\\u001b[31m\\nx\": [1, 2]}";
    let sides = ["a\u{1b}[2J", "b\nc"].map(|label| side(label, &[("", json)]));
    let comparison = Comparison::of(sides.into(), Options::default()).unwrap();
    for style in Style::ALL {
        let text = style.render(&comparison);
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{text:?}");
        assert!(text.contains("?[31m?x"), "{text}");
    }
}
