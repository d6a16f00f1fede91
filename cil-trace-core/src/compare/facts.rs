//! The circumstances of two sides held against each other: what differs, what was lost, what
//! tracing cost.

use super::run::Run;
use crate::report::units;
use serde::Serialize;
use std::collections::BTreeMap;

/// The digest of a kernel's whole configuration.
pub(super) const CONFIG: &str = "kernel config";

/// How the options of the configuration begin; one that is not there is not set.
const OPTION: &str = "CONFIG_";

/// A circumstance that is not the same everywhere.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What.
    pub name: String,
    /// Its value on each side; several if the runs of a side disagree; none if it is not known.
    pub values: Vec<Vec<String>>,
}

/// The circumstances that differ between the sides or within one, in the order of the first run.
/// Each side is the runs of all its test cases; a side without circumstances, as in a matrix, agrees
/// with all.
#[must_use]
pub fn differences(sides: &[Vec<&Run>]) -> Vec<Difference> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in sides.iter().flatten().flat_map(|run| &run.facts) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of_run: Vec<Vec<BTreeMap<&str, &str>>> = sides
        .iter()
        .map(|runs| {
            let runs = runs.iter().filter(|run| !run.facts.is_empty());
            runs.map(|run| {
                run.facts
                    .iter()
                    .map(|(n, v)| (n.as_str(), v.as_str()))
                    .collect()
            })
            .collect()
        })
        .collect();
    let mut differences: Vec<Difference> = names
        .into_iter()
        .filter_map(|name| difference(name, &of_run))
        .collect();
    // The digest says nothing more than options that are named.
    if differences.iter().any(|d| d.name.starts_with(OPTION)) {
        differences.retain(|d| d.name != CONFIG);
    }
    differences
}

fn difference(name: &str, sides: &[Vec<BTreeMap<&str, &str>>]) -> Option<Difference> {
    let values: Vec<Vec<String>> = sides
        .iter()
        .map(|runs| {
            let mut values = Vec::new();
            for value in runs.iter().filter_map(|facts| value(facts, name)) {
                if !values.iter().any(|known| known == value) {
                    values.push(value.to_owned());
                }
            }
            values
        })
        .collect();
    let mut known = values.iter().filter(|values| !values.is_empty());
    let first = known.next()?;
    let differs = first.len() > 1 || known.any(|values| values != first);
    differs.then(|| Difference {
        name: name.to_owned(),
        values,
    })
}

fn value<'a>(facts: &BTreeMap<&str, &'a str>, name: &str) -> Option<&'a str> {
    let unset = name.starts_with(OPTION) && facts.contains_key(CONFIG);
    facts.get(name).copied().or(unset.then_some("n"))
}

/// What was lost on a side, in words; `None` if nothing was.
#[must_use]
pub fn loss(runs: &[&Run]) -> Option<String> {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (probe, cause, count) in runs.iter().flat_map(|run| &run.losses) {
        let sum = sums.entry((probe, cause)).or_default();
        *sum = sum.saturating_add(*count);
    }
    let with = runs.iter().filter(|run| !run.losses.is_empty()).count();
    let parts: Vec<_> = sums
        .into_iter()
        .map(|((probe, cause), count)| format!("{} {probe} ({cause})", units::short_count(count)))
        .collect();
    (with > 0).then(|| format!("{} in {with} of {} runs", parts.join(", "), runs.len()))
}

/// The least and the largest share of the CPUs' time that tracing took in a run, percent.
#[must_use]
pub fn overhead(runs: &[&Run]) -> Option<(f64, f64)> {
    let shares = runs.iter().filter_map(|run| run.overhead_pct);
    shares.fold(None, |range, share| {
        let (low, high) = range.unwrap_or((share, share));
        Some((share.min(low), share.max(high)))
    })
}
