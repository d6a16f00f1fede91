//! Two sides of runs as one flamegraph: what is wider than before, what is narrower, what is gone.
//!
//! Widths are those of the side that is shown, for one run; the other side is scaled to the same
//! time or the same work. A frame's colour and label say how it differs as a whole, with all that
//! stands on it.

use super::subsystem::rgb;
use super::tree::{self, Entry, Node};
use super::{Drawing, FlameError, Flamegraph, Script, Unit, floor, nothing, text, title};
use crate::compare::statistics::{ALPHA, Estimate, mean};
use crate::profile::Profile;
use crate::profile::frames::{Frames, Numbered};
use inferno::flamegraph::color::Color;
use std::collections::BTreeSet;

/// Stands below what only the base has.
const GONE: &str = "[gone: only in the base]";

/// What runs of different length are brought to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Per {
    /// The same time.
    Second,
    /// The same work, by a metric of the workload that counts work done in a second.
    Work(String),
}

impl Per {
    /// The first metric of work done in a second that all runs have, else time.
    #[must_use]
    pub fn common(runs: &[&Profile<'_>]) -> Self {
        let metrics = |run: &&Profile<'_>| -> BTreeSet<String> {
            let footer = run.model().footer();
            let workload = footer.and_then(|footer| footer.workload.as_ref());
            let metrics = workload.into_iter().flat_map(|workload| &workload.metrics);
            metrics
                .filter(|(name, value)| counts_work(name) && **value > 0.0)
                .map(|(name, _)| name.clone())
                .collect()
        };
        let common = runs
            .iter()
            .map(metrics)
            .reduce(|common, of_run| &common & &of_run);
        let first = common.and_then(|common| common.into_iter().next());
        first.map_or(Self::Second, Self::Work)
    }

    /// Seconds or work of a run; `None` if it has no such metric.
    fn of(&self, run: &Profile<'_>) -> Option<f64> {
        let seconds = run.window_ns as f64 / 1e9;
        let rate = match self {
            Self::Second => 1.0,
            Self::Work(metric) => {
                let workload = run.model().footer()?.workload.as_ref()?;
                *workload.metrics.get(metric)?
            }
        };
        let amount = rate * seconds;
        (amount > 0.0 && amount.is_finite()).then_some(amount)
    }

    fn name(&self) -> &str {
        match self {
            Self::Second => "second",
            Self::Work(metric) => metric,
        }
    }
}

/// Whether a metric, under LKP's name, counts work done in a second.
fn counts_work(name: &str) -> bool {
    const ENDS: [&str; 4] = ["throughput_MB/s", "_iops", "files_per_sec", "ops_per_sec"];
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Why there is no such graph.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A run without the metric, or of no length.
    #[error(
        "a run has no {0} to divide by; `cil-trace report FILE workload` lists what a recording \
         has, and --per second divides by time"
    )]
    NoAmount(String),
    /// As for one side.
    #[error(transparent)]
    Flame(#[from] FlameError),
}

/// Draws how `shown` differs from `base`; both have at least one run, all of one kind and weight.
///
/// # Errors
/// [`DiffError`].
pub fn difference(
    shown: &[Profile<'_>],
    base: &[Profile<'_>],
    per: &Per,
    script: Script,
) -> Result<Flamegraph, DiffError> {
    let runs: Vec<_> = shown.iter().chain(base).collect();
    let Some(&first) = runs.first() else {
        return Ok(empty(
            "Flamegraph",
            "no recording was given".to_owned(),
            0.0,
        ));
    };
    let scales = scales(&runs, shown.len(), per)?;
    let mut frames = Frames::default();
    let numbered: Vec<_> = runs
        .iter()
        .map(|run| Numbered::new(run, &mut frames))
        .collect();
    // The library adds all weights up in a u64.
    let most = u64::MAX
        / 4
        / runs
            .iter()
            .map(|run| run.entries.len() as u64 + 2)
            .sum::<u64>();
    let entries: Vec<_> = numbered
        .iter()
        .enumerate()
        .flat_map(|(run, numbered)| {
            numbered.paths().map(move |(path, weight)| Entry {
                path,
                run,
                weight: weight.min(most),
            })
        })
        .collect();
    let mut totals = vec![0; runs.len()];
    for entry in &entries {
        totals[entry.run] += entry.weight;
    }
    let unresolved_pct = shown
        .iter()
        .map(Profile::unresolved_pct)
        .fold(0.0, f64::max);
    let floors: Vec<_> = totals.iter().map(|&total| floor(total)).collect();
    let mut tree = tree::grow(entries, &frames, &floors);
    let sides = Sides {
        scales: &scales,
        shown: shown.len(),
    };
    if sides.mean_shown(&totals) == 0 && sides.mean_base(&totals) == 0 {
        return Ok(empty(first.words.title, first.why_empty(), unresolved_pct));
    }
    let mut drawing = Drawing::new(&frames);
    let lost = shown.iter().map(|run| run.missing).sum::<u64>() / shown.len().max(1) as u64;
    drawing.lost(lost);
    let mut path = String::new();
    let mut gone = Vec::new();
    sides.split(&mut tree, &mut Vec::new(), &mut gone);
    sides.add(&mut drawing, &mut path, &tree, sides.mean_shown(&totals));
    drawing.palette.insert(GONE, VANISHED);
    let mut gone_total = 0;
    for (below, node) in &gone {
        let mut path = GONE.to_owned();
        for &frame in below {
            let (layer, name) = frames.get(frame);
            let name = text::drawn_name(layer, name);
            path.push(';');
            path.push_str(&name);
        }
        let weight = sides.mean_base(&node.totals);
        gone_total += weight;
        sides.add_gone(&mut drawing, &mut path, node);
    }
    let unit = Unit::of(
        first.words.unit,
        first.weight,
        sides.mean_shown(&totals).saturating_add(gone_total),
    );
    let words = [
        title(
            &format!("{}: difference", first.words.title),
            unresolved_pct,
        ),
        subtitle(&unit, shown, base, per),
    ];
    Ok(Flamegraph {
        svg: drawing.draw(words, &unit, script)?,
        unresolved_pct,
        empty: None,
    })
}

fn empty(title: &str, why: String, unresolved_pct: f64) -> Flamegraph {
    Flamegraph {
        svg: nothing(title, &why),
        unresolved_pct,
        empty: Some(why),
    }
}

fn subtitle(unit: &Unit, shown: &[Profile<'_>], base: &[Profile<'_>], per: &Per) -> String {
    let runs = |side: &[Profile<'_>]| match side.len() {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    };
    let noise = if shown.len() > 1 && base.len() > 1 {
        "grey: within run-to-run noise"
    } else {
        "noise unknown: give several runs of each side"
    };
    let lost = |side: &[Profile<'_>]| {
        let lost = side.iter().map(|run| run.lost() as f64);
        lost.sum::<f64>() / side.len().max(1) as f64 * unit.factor
    };
    format!(
        "width: {} of a run ({}), base ({}) scaled per {}; {:.0} and {:.0} lost. red: more, blue: \
         less, {noise}",
        unit.name,
        runs(shown),
        runs(base),
        per.name(),
        lost(shown),
        lost(base),
    )
}

/// By what the weights of each run are multiplied, so that all are for one run of the shown side.
fn scales(runs: &[&Profile<'_>], shown: usize, per: &Per) -> Result<Vec<f64>, DiffError> {
    let amounts: Option<Vec<_>> = runs.iter().map(|run| per.of(run)).collect();
    let amounts = amounts.ok_or_else(|| DiffError::NoAmount(per.name().to_owned()))?;
    let mean = amounts[..shown].iter().sum::<f64>() / shown.max(1) as f64;
    Ok(amounts.iter().map(|amount| mean / amount).collect())
}

const VANISHED: Color = rgb(0x5a_8f_d8);
const WITHIN_NOISE: Color = rgb(0xc8_c8_c8);

struct Sides<'a> {
    /// Of each run.
    scales: &'a [f64],
    /// So many runs from the first on are of the shown side.
    shown: usize,
}

impl Sides<'_> {
    fn scaled(&self, totals: &[u64]) -> Vec<f64> {
        let scaled = totals.iter().zip(self.scales);
        scaled.map(|(&total, scale)| total as f64 * scale).collect()
    }

    fn mean_shown(&self, totals: &[u64]) -> u64 {
        mean(&self.scaled(totals)[..self.shown]).round() as u64
    }

    fn mean_base(&self, totals: &[u64]) -> u64 {
        mean(&self.scaled(totals)[self.shown..]).round() as u64
    }

    /// Takes out of a tree what the shown side does not have at all, with the frames below it.
    fn split(&self, nodes: &mut Vec<Node>, below: &mut Vec<u32>, gone: &mut Vec<(Vec<u32>, Node)>) {
        for node in std::mem::take(nodes) {
            if node.totals[..self.shown].iter().all(|&total| total == 0) {
                gone.push((below.clone(), node));
            } else {
                nodes.push(node);
            }
        }
        for node in nodes {
            below.push(node.frame);
            self.split(&mut node.children, below, gone);
            below.pop();
        }
    }

    fn add(&self, drawing: &mut Drawing<'_>, path: &mut String, nodes: &[Node], total: u64) {
        let drawn: u64 = nodes.iter().map(|node| self.mean_shown(&node.totals)).sum();
        let own = total.saturating_sub(drawn);
        if own > 0 && !path.is_empty() {
            drawing.lines.push(format!("{path} {own}"));
        }
        for node in nodes {
            let before = path.len();
            if before > 0 {
                path.push(';');
            }
            let (_, name) = drawing.frames.get(node.frame);
            let (label, colour) = self.judge(&node.totals);
            let name = text::folded_name(&format!("{name}{label}"));
            drawing.palette.insert(name.clone(), colour);
            path.push_str(&name);
            self.add(drawing, path, &node.children, self.mean_shown(&node.totals));
            path.truncate(before);
        }
    }

    fn add_gone(&self, drawing: &mut Drawing<'_>, path: &mut String, node: &Node) {
        let before = path.len();
        let (_, name) = drawing.frames.get(node.frame);
        let name = text::folded_name(&format!("{name} (gone)"));
        drawing.palette.insert(name.clone(), VANISHED);
        path.push(';');
        path.push_str(&name);
        let children: u64 = node
            .children
            .iter()
            .map(|child| self.mean_base(&child.totals))
            .sum();
        let own = self.mean_base(&node.totals).saturating_sub(children);
        if own > 0 {
            drawing.lines.push(format!("{path} {own}"));
        }
        for child in &node.children {
            self.add_gone(drawing, path, child);
        }
        path.truncate(before);
    }

    /// What a frame's name is followed by, and its colour.
    fn judge(&self, totals: &[u64]) -> (String, Color) {
        let scaled = self.scaled(totals);
        let (shown, base) = scaled.split_at(self.shown);
        let (now, before) = (mean(shown), mean(base));
        if before == 0.0 {
            return (" (new)".to_owned(), shade(1.0));
        }
        let change = now / before - 1.0;
        let percent = format!("{:+.0} %", change * 100.0);
        if is_noise(shown, base) {
            return (format!(" ({percent}, noise)"), WITHIN_NOISE);
        }
        // Twice as much is as red as it gets, half as much as blue.
        (
            format!(" ({percent})"),
            shade((now / before).log2().clamp(-1.0, 1.0)),
        )
    }
}

/// From blue over white to red.
fn shade(change: f64) -> Color {
    let fade = (255.0 - 155.0 * change.abs()).round() as u8;
    if change >= 0.0 {
        Color {
            r: 255,
            g: fade,
            b: fade,
        }
    } else {
        Color {
            r: fade,
            g: fade,
            b: 255,
        }
    }
}

/// Whether two means differ by no more than their runs do: Welch's t-test. With fewer than two runs
/// of a side nothing is known of noise, and nothing is called it.
fn is_noise(shown: &[f64], base: &[f64]) -> bool {
    Estimate::welch(base, shown).is_some_and(|estimate| estimate.p() > ALPHA)
}
