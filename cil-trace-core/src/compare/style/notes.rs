//! What must be known to read the table: what differs besides, what was lost, how it was tested.

use super::super::change::Verdict;
use super::super::statistics::ALPHA;
use super::super::{Circumstances, Comparison, Of, Row};
use crate::report::units;

/// Most options of a kernel's configuration that are listed.
const MOST_OPTIONS: usize = 20;

/// One line each; the first are the most telling.
#[must_use]
pub fn lines(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(
        comparison
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    lines.push(runs(comparison));
    lines.extend(halves(comparison));
    lines.extend(primary(comparison));
    lines.extend(verdicts(comparison));
    lines.extend(few(comparison));
    lines.extend(disagreements(comparison));
    lines.extend(health(comparison));
    lines.extend(differences(comparison));
    lines
}

fn runs(comparison: &Comparison) -> String {
    let side = |side: &Circumstances| match side.runs {
        (fewest, most) if fewest == most => format!("{} {most}", side.label),
        (fewest, most) => format!("{} {fewest} to {most}", side.label),
    };
    let sides: Vec<_> = comparison.sides.iter().map(side).collect();
    let rows = comparison.rows.iter().filter(|row| row.of != Of::Cases);
    let tests = rows.flat_map(|row| &row.changes);
    let mut how = Vec::new();
    for test in tests.filter_map(|change| change.test.as_ref()) {
        let words = match (test.paired, test.p.exact) {
            (true, true) => "exact test of the signs of the differences within rounds",
            (true, false) => "paired t test, as there are many runs",
            (false, true) => "exact permutation test",
            (false, false) => "permutation test by the t distribution, as there are many runs",
        };
        if !how.contains(&words) {
            how.push(words);
        }
    }
    let how = match how.as_slice() {
        [] => String::new(),
        how => format!("; {} at {ALPHA}", how.join(", ")),
    };
    format!("runs: {}{how}", sides.join(", "))
}

/// What a comparison of halves says of the method, or of the runs.
fn halves(comparison: &Comparison) -> Option<String> {
    let (changed, tests) = comparison.share_changed();
    let conclusion = if tests == 0 {
        "which says nothing: it takes eight runs, four a half"
    } else if comparison.holds() {
        "no more than 5 %, as it must be"
    } else {
        "more than 5 %: the runs drift or depend on each other; look for warming up, another \
         workload, or a disk that fills"
    };
    comparison.options.halves.then(|| {
        format!("A/A: of {tests} tests between halves of the same runs {changed} found a change, {conclusion}")
    })
}

/// What came of the metric that the comparison was made for.
fn primary(comparison: &Comparison) -> Vec<String> {
    let Some(primary) = &comparison.options.primary else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.metric == *primary) {
        let of = match row.of {
            Of::Cases => " over all cases".to_owned(),
            Of::Case(case) if comparison.cases.len() > 1 => {
                format!(" in {}", units::printable(&comparison.cases[case]))
            }
            Of::Case(_) => String::new(),
        };
        for (side, change) in comparison.sides.iter().skip(1).zip(&row.changes) {
            if let Some(test) = &change.test {
                lines.push(format!(
                    "{}: the primary metric, {}{of}: {}, p = {}",
                    side.label,
                    units::printable(primary),
                    test.verdict.name(),
                    super::number::probability(test.p.p)
                ));
            }
        }
    }
    lines
}

/// What came of each side.
fn verdicts(comparison: &Comparison) -> Vec<String> {
    let sides = comparison.sides.iter().enumerate().skip(1);
    sides
        .filter_map(|(index, side)| {
            let count = |verdict| comparison.count(index - 1, verdict);
            let [changed, same, unclear] =
                [Verdict::Changed, Verdict::NoChange, Verdict::Inconclusive].map(count);
            let all = changed + same + unclear;
            (all > 0).then(|| {
                format!(
                    "{}: of {} {changed} changed, {same} did not (within 3 %), {unclear} inconclusive",
                    side.label,
                    units::counted(all, "metric")
                )
            })
        })
        .collect()
}

/// That so few runs cannot single out one metric among so many, where none was.
fn few(comparison: &Comparison) -> Option<String> {
    let tests = *comparison.tests.iter().max()?;
    if comparison.share_changed().0 > 0 {
        return None;
    }
    let rows = comparison.rows.iter().filter(|row| row.of != Of::Cases);
    let changes = rows.flat_map(|row| &row.changes);
    let least = changes
        .filter_map(|change| change.test.as_ref())
        .filter(|test| test.has_runs())
        .map(|test| test.least_p())
        .fold(f64::INFINITY, f64::min);
    let together = (least * tests as f64 / ALPHA).ceil();
    let would_do =
        (4..100).find(|n| super::super::statistics::least_p(*n, *n) * tests as f64 <= ALPHA)?;
    (least.is_finite() && together > 1.0).then(|| {
        format!(
            "with so few runs p is at least {}: of {} {together} must change for any to be \
             called changed; name one with --primary, choose with --metric, or make {would_do} runs a \
             side",
            super::number::probability(least),
            units::counted(tests, "metric")
        )
    })
}

/// Where the two exact tests do not decide alike.
fn disagreements(comparison: &Comparison) -> Option<String> {
    let disagree = |row: &&Row| {
        let mut tests = row.changes.iter().filter_map(|change| change.test.as_ref());
        tests.any(|test| test.has_runs() && test.disagreement().is_some())
    };
    let rows = comparison.shown().filter(disagree);
    let names: Vec<&str> = rows.map(|row| row.metric.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "ranks alone (Mann and Whitney) decide otherwise of {}; see --style ci",
            units::listed(&names)
        )
    })
}

/// Losses, and what tracing cost; flagged where the sides differ.
fn health(comparison: &Comparison) -> Vec<String> {
    let sides = &comparison.sides;
    let mut lines = Vec::new();
    for side in sides {
        if let Some(loss) = &side.loss {
            lines.push(format!(
                "warning: {} lost events: {loss}; its counts are low",
                side.label
            ));
        }
    }
    if !sides.iter().any(|side| side.overhead_pct.is_some()) {
        return lines;
    }
    if sides.iter().all(|side| side.loss.is_none()) {
        lines.push("loss: none".to_owned());
    }
    let cost = |side: &Circumstances| {
        let range = side.overhead_pct.map(|(low, high)| {
            let (low, high) = (units::percent(low), units::percent(high));
            if low == high {
                low
            } else {
                format!("{low} to {high}")
            }
        });
        format!(
            "{} {}",
            side.label,
            range.unwrap_or_else(|| "unknown".to_owned())
        )
    };
    let costs: Vec<_> = sides.iter().map(cost).collect();
    lines.push(format!(
        "tracing took of the CPUs' time: {}",
        costs.join(", ")
    ));
    let mut ranges = sides.iter().filter_map(|side| side.overhead_pct);
    // Ranges that do not even meet.
    if let Some((low, high)) = ranges.next()
        && ranges.any(|(other_low, other_high)| other_low > 1.5 * high || other_high * 1.5 < low)
    {
        lines.push("warning: tracing itself cost one side more than the other".to_owned());
    }
    lines
}

fn differences(comparison: &Comparison) -> Vec<String> {
    if comparison.differences.is_empty() {
        return Vec::new();
    }
    let is_option = |name: &str| name.starts_with("CONFIG_");
    let mut options = 0;
    let mut lines = vec!["not the same:".to_owned()];
    let width = comparison
        .differences
        .iter()
        .map(|d| d.name.chars().count())
        .max()
        .unwrap_or(0);
    for difference in &comparison.differences {
        if is_option(&difference.name) {
            options += 1;
            if options > MOST_OPTIONS {
                continue;
            }
        }
        let sides = comparison.sides.iter().zip(&difference.values);
        let values = sides.map(|(side, values)| {
            let values = if values.is_empty() {
                "unknown".to_owned()
            } else {
                values.join(", ")
            };
            format!("{}: {values}", side.label)
        });
        let values: Vec<_> = values.collect();
        lines.push(format!(
            "  {:width$}  {}",
            difference.name,
            values.join(" | ")
        ));
    }
    if options > MOST_OPTIONS {
        lines.push(format!(
            "  and {} more options of the kernel",
            options - MOST_OPTIONS
        ));
    }
    lines
}
