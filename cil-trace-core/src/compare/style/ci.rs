//! Our own table: how much, how surely, and what follows.

use super::super::change::{FEWEST_RUNS, Scale, Test, Verdict};
use super::super::statistics::MOST_RUNS;
use super::super::{Comparison, Of, Row};
use super::cut;
use super::number::{general, probability};
use crate::report::units;
use std::fmt::Write;

const HEADER: &str = "    ratio   95 % interval                 p       q   n      verdict";
/// Where the metric stands.
const METRIC: usize = 104;

pub(super) fn table(comparison: &Comparison) -> String {
    let sides = comparison.sides.len();
    let width = comparison
        .sides
        .iter()
        .map(|side| side.label.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = format!("{HEADER:METRIC$}metric\n");
    for row in comparison.shown() {
        for (index, change) in row.changes.iter().enumerate() {
            let mut line = match &change.test {
                Some(test) => self::line(test),
                None => format!("{:>9}   {:58}not in all sides", "-", ""),
            };
            let length = line.chars().count();
            line.push_str(&" ".repeat(METRIC.saturating_sub(length).max(2)));
            if sides > 2 {
                let label = cut(&comparison.sides[index + 1].label, width);
                let _ = write!(line, "{label:width$}  ");
            }
            line.push_str(&units::printable(&name(row, comparison)));
            text.push_str(&line);
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

fn name(row: &Row, comparison: &Comparison) -> String {
    match row.of {
        Of::Cases => format!("GEO-MEAN {}", row.metric),
        Of::Case(case) => match comparison.cases[case].as_str() {
            "" => row.metric.clone(),
            case => format!("{} {case}", row.metric),
        },
    }
}

fn line(test: &Test) -> String {
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| effect(test, value));
    let (low, high) = test.interval().unzip();
    let interval = format!("{} .. {}", number(low), number(high));
    let (base, side) = test.runs();
    let runs = format!("{base}+{side}");
    let disagreement = test.disagreement().map_or_else(String::new, |ranks| {
        format!("; ranks alone p {}", probability(ranks))
    });
    format!(
        "{:>9}   {interval:<23} {:>7} {:>7}   {runs:<6} {}{disagreement}",
        effect(test, test.effect()),
        probability(test.p.p),
        probability(test.q),
        verdict(test),
    )
}

/// A ratio, or with a sign the difference where there is none.
fn effect(test: &Test, value: f64) -> String {
    match test.scale {
        _ if !value.is_finite() => "-".to_owned(),
        Scale::Log if value < 1000.0 => format!("{value:.4}"),
        Scale::Linear if value.abs() < 1e6 => format!("{value:+.2}"),
        _ => general(value, 3),
    }
}

fn verdict(test: &Test) -> String {
    let verdict = test.verdict;
    match verdict {
        Verdict::Changed | Verdict::NoChange => verdict.name().to_owned(),
        Verdict::Inconclusive => match test.detectable_pct() {
            // Runs that are all alike vary by nothing, and are blind to nothing.
            Some(percent) if percent > 0.0 => {
                format!("inconclusive, blind below {}", units::percent(percent))
            }
            _ => verdict.name().to_owned(),
        },
        Verdict::TooFew => {
            let needed = match test.runs_needed() {
                Some(needed) => needed.max(FEWEST_RUNS).to_string(),
                None if test.estimate.is_some() => format!("more than {MOST_RUNS}"),
                None => FEWEST_RUNS.to_string(),
            };
            format!("too few runs, {needed} would do")
        }
    }
}
