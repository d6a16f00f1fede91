//! The few differences that account for a change, in words.
//!
//! A table of what the log does, from the cause to the effect; each quantity is tested like a
//! metric, put in relation to the work that it was done for, and taken apart by cause.

mod quantity;
mod words;

use super::change::{Test, Verdict};
use super::names::{self, Better};
use super::samples::Samples;
use super::statistics::{benjamini_hochberg, mean};
use crate::report::table::Unit;
use quantity::{LOCKS, QUANTITIES, Quantity, stars};
use std::collections::BTreeMap;
use words::{arrow, change, number};

/// Most lines on one side; the first of the table are the nearest to the cause.
const MOST: usize = 8;

/// From which share on a part is the whole of a difference.
const ALL: f64 = 0.95;

/// A contention has moved if others have grown by so large a share of what one has lost.
const MOVED: f64 = 0.5;

/// The differences between two sides of a test case, the workload's own results first. `primary` is
/// the metric that the comparison was made for.
#[must_use]
pub fn explain(base: &Samples, side: &Samples, primary: Option<&str>) -> Vec<String> {
    let rounds = &base.rounds(side);
    let pair = Pair { base, side, rounds };
    let mut lines: Vec<String> = pair.results(primary);
    let measured: BTreeMap<&str, Both> = QUANTITIES
        .iter()
        .filter_map(|quantity| Some((quantity.name, pair.sum(quantity.total)?)))
        .collect();
    let mut candidates: Vec<Candidate<'_>> = QUANTITIES
        .iter()
        .filter_map(|quantity| pair.candidate(quantity, &measured))
        .collect();
    correct(&mut candidates);
    let locks = pair.moved(LOCKS);
    for candidate in candidates.iter().filter(|candidate| candidate.is_real()) {
        if candidate.quantity.name == LOCKS && locks.is_some() {
            continue;
        }
        let work_changed = candidates.iter().any(|work| {
            candidate.quantity.per == Some(work.quantity.name) && is_real(&work.test, work.means)
        });
        lines.push(pair.line(candidate, work_changed));
    }
    lines.extend(locks);
    lines.truncate(MOST + 2);
    if lines.is_empty() {
        lines.push("nothing that was measured differs beyond chance".to_owned());
    }
    lines
}

/// One value per run on each side.
struct Both {
    base: Vec<f64>,
    side: Vec<f64>,
}

impl Both {
    /// Run by run in relation to another quantity.
    fn per(&self, other: &Self) -> Self {
        let ratio = |own: &[f64], other: &[f64]| {
            own.iter()
                .zip(other)
                .map(|(own, other)| own / other)
                .collect()
        };
        Self {
            base: ratio(&self.base, &other.base),
            side: ratio(&self.side, &other.side),
        }
    }

    fn means(&self) -> (f64, f64) {
        let of = |values: &[f64]| mean(&finite(values));
        (of(&self.base), of(&self.side))
    }
}

fn finite(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect()
}

/// A quantity that may have changed, as a total or for each of what it was done for.
struct Candidate<'a> {
    quantity: &'a Quantity,
    means: (f64, f64),
    test: Test,
    /// The same in relation to the work.
    relative: Option<((f64, f64), Test)>,
}

impl Candidate<'_> {
    fn is_real(&self) -> bool {
        is_real(&self.test, self.means) || self.per_work().is_some()
    }

    /// The means in relation to the work, if those differ.
    fn per_work(&self) -> Option<(f64, f64)> {
        let (means, test) = self.relative.as_ref()?;
        is_real(test, *means).then_some(*means)
    }
}

/// With too few runs for a verdict, what stands out all the same; the notes say how few they are.
fn is_real(test: &Test, (base, side): (f64, f64)) -> bool {
    match test.verdict {
        Verdict::Changed => true,
        Verdict::TooFew => (side - base).abs() > 0.1 * base.abs(),
        Verdict::NoChange | Verdict::Inconclusive => false,
    }
}

fn correct(candidates: &mut [Candidate<'_>]) {
    let mut tests: Vec<&mut Test> = candidates
        .iter_mut()
        .flat_map(|candidate| {
            let relative = candidate.relative.as_mut().map(|(_, test)| test);
            std::iter::once(&mut candidate.test).chain(relative)
        })
        .filter(|test| !test.constant)
        .collect();
    let p: Vec<f64> = tests.iter().map(|test| test.p.p).collect();
    for (test, q) in tests.iter_mut().zip(benjamini_hochberg(&p)) {
        test.judge(q);
    }
}

struct Pair<'a> {
    base: &'a Samples,
    side: &'a Samples,
    rounds: &'a [(usize, usize)],
}

impl Pair<'_> {
    /// The sum over all metrics of a pattern; `None` if neither side has one.
    fn sum(&self, pattern: &str) -> Option<Both> {
        let of = |samples: &Samples| {
            let mut sum: Option<Vec<f64>> = None;
            for metric in samples
                .metrics()
                .filter(|metric| stars(pattern, metric).is_some())
            {
                let column = samples.column(metric).unwrap_or_default();
                let sum = sum.get_or_insert_with(|| vec![f64::NAN; column.len()]);
                for (sum, value) in sum
                    .iter_mut()
                    .zip(column)
                    .filter(|(_, value)| value.is_finite())
                {
                    *sum = if sum.is_finite() {
                        *sum + value
                    } else {
                        *value
                    };
                }
            }
            sum
        };
        Some(Both {
            base: of(self.base)?,
            side: of(self.side)?,
        })
    }

    fn test(&self, values: &Both) -> Option<Test> {
        let pairs: Vec<(f64, f64)> = self
            .rounds
            .iter()
            .filter_map(|(a, b)| Some((*values.base.get(*a)?, *values.side.get(*b)?)))
            .filter(|(a, b)| a.is_finite() && b.is_finite())
            .collect();
        Test::of(&finite(&values.base), &finite(&values.side), &pairs, 1)
    }

    fn candidate<'q>(
        &self,
        quantity: &'q Quantity,
        measured: &BTreeMap<&str, Both>,
    ) -> Option<Candidate<'q>> {
        let total = self.sum(quantity.total)?;
        let work = quantity.per.and_then(|name| measured.get(name));
        let relative = work.map(|work| total.per(work)).and_then(|relative| {
            let test = self.test(&relative)?;
            Some((relative.means(), test))
        });
        Some(Candidate {
            quantity,
            means: total.means(),
            test: self.test(&total)?,
            relative,
        })
    }

    fn line(&self, candidate: &Candidate<'_>, work_changed: bool) -> String {
        let Candidate {
            quantity,
            means,
            relative,
            ..
        } = candidate;
        let total = || {
            let parts = self.parts(quantity, (1.0, 1.0));
            format!("{}{parts}", change(quantity.unit, *means, false))
        };
        let name = quantity.name;
        let Some((per, _)) = relative else {
            return format!("{name} {}", total());
        };
        let one = quantity.per.unwrap_or_default().trim_end_matches('s');
        let Some(changed) = candidate.per_work() else {
            let same = number(quantity.unit, per.1, true);
            return format!("{name} {}; {same} per {one} as before", total());
        };
        let parts = self.parts(quantity, (means.0 / per.0, means.1 / per.1));
        let relative = format!("{}{parts}", change(quantity.unit, changed, true));
        if work_changed && is_real(&candidate.test, *means) {
            format!("{name} {}; per {one} {relative}", total())
        } else {
            format!("{name} per {one} {relative}")
        }
    }

    /// By how much each part differs, each side in relation to its work; the largest first.
    fn shares(&self, quantity: &Quantity, work: (f64, f64)) -> Vec<(String, f64, f64)> {
        let Some(part) = quantity.part else {
            return Vec::new();
        };
        let pattern = quantity.parts.unwrap_or(quantity.total);
        let mut means: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (samples, is_base) in [(self.base, true), (self.side, false)] {
            for metric in samples.metrics() {
                let Some(name) = stars(pattern, metric).and_then(|stars| stars.get(part).copied())
                else {
                    continue;
                };
                let value = mean(&finite(samples.column(metric).unwrap_or_default()));
                if value.is_finite() {
                    let entry = means.entry(name.to_owned()).or_default();
                    if is_base {
                        entry.0 += value / work.0;
                    } else {
                        entry.1 += value / work.1;
                    }
                }
            }
        }
        let mut parts: Vec<_> = means
            .into_iter()
            .map(|(name, (base, side))| (name, base, side))
            .collect();
        parts.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
        parts
    }

    /// Which parts make up the difference.
    fn parts(&self, quantity: &Quantity, work: (f64, f64)) -> String {
        let parts = self.shares(quantity, work);
        let total: f64 = parts.iter().map(|(_, base, side)| side - base).sum();
        let share = |part: &(String, f64, f64)| (part.2 - part.1) / total;
        match parts.as_slice() {
            [] => String::new(),
            [only] | [only, ..] if !quantity.adds_up => format!(" on {}", only.0),
            [only] => format!(", all of it `{}`", only.0),
            [first, ..] if share(first) >= ALL => format!(", all of it `{}`", first.0),
            [first, second, ..] => format!(
                ", {:.0} % of it `{}`, {:.0} % `{}`",
                100.0 * share(first),
                first.0,
                100.0 * share(second),
                second.0
            ),
        }
    }

    /// That a wait for one lock has become a wait for another.
    fn moved(&self, name: &str) -> Option<String> {
        let quantity = QUANTITIES.iter().find(|quantity| quantity.name == name)?;
        let locks = self.shares(quantity, (1.0, 1.0));
        let down = locks.iter().find(|(_, base, side)| side < base)?;
        let up = locks.iter().find(|(_, base, side)| side > base)?;
        let (lost, gained) = (down.1 - down.2, up.2 - up.1);
        let both_real = [down, up].into_iter().all(|(lock, base, side)| {
            let of_lock = self.sum(&quantity.total.replace('*', lock));
            let test = of_lock.and_then(|values| self.test(&values));
            test.is_some_and(|test| is_real(&test, (*base, *side)))
        });
        (both_real && gained >= MOVED * lost).then(|| {
            let total = |of: fn(&(String, f64, f64)) -> f64| locks.iter().map(of).sum::<f64>();
            let part = |(lock, base, side): &(String, f64, f64)| {
                format!("`{lock}` {}", arrow(Unit::Ns, (*base, *side), false))
            };
            format!(
                "{name} moved rather than vanished: {}, {}; all locks {}",
                part(down),
                part(up),
                arrow(
                    Unit::Ns,
                    (total(|lock| lock.1), total(|lock| lock.2)),
                    false
                )
            )
        })
    }

    /// What the workload itself says: the metric that was asked for, else its rates, else its time.
    fn results(&self, primary: Option<&str>) -> Vec<String> {
        let own = |metric: &&str| !metric.starts_with(super::metrics::PREFIX);
        let rate = |metric: &&str| {
            own(metric)
                && !metric.contains(".time.")
                && names::better(metric, &[]) == Better::Higher
        };
        let results: Vec<&str> = match primary {
            Some(primary) => vec![primary],
            None => self
                .base
                .metrics()
                .filter(rate)
                .chain(
                    self.base
                        .metrics()
                        .filter(|metric| metric.ends_with(".time.elapsed_time")),
                )
                .collect(),
        };
        let line = |metric: &str| {
            let values = Both {
                base: self.base.column(metric)?.to_vec(),
                side: self.side.column(metric)?.to_vec(),
            };
            let test = self.test(&values)?;
            let means = values.means();
            // Few results, and each a question of its own: not corrected for one another.
            is_real(&test, means).then(|| format!("{metric} {}", change(Unit::Ratio, means, false)))
        };
        results.into_iter().filter_map(line).take(2).collect()
    }
}
