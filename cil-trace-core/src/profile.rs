//! The stacks of one kind, weighed: what flamegraphs and exports are made of.
//!
//! Decides what stands below a stack, what is missing from it and what one unit is; how it is drawn
//! or written is decided elsewhere.

pub mod frames;
mod kind;
pub mod reason;

pub use kind::{KINDS, Weight, Words, words};

use crate::device::Dev;
use crate::model::Model;
use crate::model::stacks::{Name, StackEntry, StackTable};
use cil_trace_common::cause::Cause;
use cil_trace_common::metric::Shape;
use cil_trace_common::stack::StackKind;

/// Stacks of one kind, each with what it weighs.
#[derive(Debug)]
pub struct Profile<'a> {
    /// What they are of.
    pub words: &'static Words,
    /// What they are weighed by.
    pub weight: Weight,
    /// All of them, those that weigh nothing too.
    pub entries: Vec<StackEntry<'a>>,
    /// What is known to have happened and stands in no entry, in the unit of the weight.
    pub missing: u64,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Samples a second, of kinds that are sampled.
    pub hz: Option<u32>,
    model: &'a Model,
    /// Whether something is known to have happened, and no stack of it was kept.
    stackless: bool,
    /// The device stands below no stack.
    omits_device: bool,
    /// Whether entries say which of them are the workload's.
    split: bool,
}

/// Why there is no profile.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProfileError {
    /// The kind cannot be weighed like that.
    #[error("stacks of kind {kind} have no bytes; weigh them by count or time")]
    NoBytes {
        /// The kind's name.
        kind: &'static str,
    },
    /// It was counted, and this was not measured.
    #[error("{unit} were counted by stack, but not {what} of them: {why}")]
    NotRecorded {
        /// Plural of what was counted.
        unit: &'static str,
        /// What is missing.
        what: &'static str,
        /// Why.
        why: String,
    },
}

impl<'a> Profile<'a> {
    /// The stacks of a kind.
    ///
    /// # Errors
    /// [`ProfileError`]; that there is none is no error.
    pub fn of(model: &'a Model, kind: StackKind, weight: Weight) -> Result<Self, ProfileError> {
        let words = words(kind);
        if !words.has(weight) {
            let kind = kind.name();
            return Err(ProfileError::NoBytes { kind });
        }
        let foreign = Cause::ForeignFs.name();
        let entries: Vec<_> = model
            .stacks()
            .of(kind)
            .filter(|entry| kind != StackKind::Flush || model.stacks().text(entry.label) != foreign)
            .collect();
        let (start, end) = model.window();
        let mut profile = Self {
            words,
            weight,
            split: entries
                .iter()
                .any(|entry| entry.who.is_some_and(|who| who.workload)),
            entries,
            missing: 0,
            stackless: false,
            omits_device: false,
            window_ns: end.saturating_sub(start),
            hz: (kind == StackKind::Cpu)
                .then_some(model.header().scope.sampling_hz)
                .flatten(),
            model,
        };
        let known = known_total(model, words, weight).unwrap_or(0);
        if profile.entries.is_empty() {
            profile.stackless = known > 0;
        } else {
            profile.missing = known.saturating_sub(profile.total());
        }
        if weight != Weight::Count
            && profile.total() == 0
            && profile.entries.iter().any(|entry| entry.sums.count > 0)
            && let Some(why) = profile.why_unmeasured()
        {
            return Err(ProfileError::NotRecorded {
                unit: words.unit,
                what: match weight {
                    Weight::Bytes => "the bytes",
                    Weight::Count | Weight::Time => "the time",
                },
                why,
            });
        }
        Ok(profile)
    }

    /// The same for a comparison, where another machine's only device may have another name.
    #[must_use]
    pub fn without_only_device(mut self) -> Self {
        let first = self.entries.first().map(|entry| entry.dev);
        self.omits_device = self.entries.iter().all(|entry| Some(entry.dev) == first);
        self
    }

    /// What an entry weighs.
    #[must_use]
    pub fn weight_of(&self, entry: &StackEntry<'_>) -> u64 {
        match self.weight {
            Weight::Count => entry.sums.count,
            Weight::Time => entry.sums.time_ns,
            Weight::Bytes => entry.sums.bytes,
        }
    }

    /// What all entries weigh.
    #[must_use]
    pub fn total(&self) -> u64 {
        let weights = self.entries.iter().map(|entry| self.weight_of(entry));
        weights.fold(0, u64::saturating_add)
    }

    /// What of the total has no stack: [`Profile::missing`], and entries whose stack was lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let is_lost = |entry: &&StackEntry<'_>| {
            matches!(
                (entry.kernel, entry.user),
                ([Name::STACK_LOST], []) | ([], [Name::STACK_LOST])
            )
        };
        let lost = self.entries.iter().filter(is_lost);
        lost.map(|entry| self.weight_of(entry))
            .fold(self.missing, u64::saturating_add)
    }

    /// Share of frames without a name, by weight, percent. A lost stack is one such frame.
    #[must_use]
    pub fn unresolved_pct(&self) -> f64 {
        let nameless: Vec<_> = self.names().texts().map(is_nameless).collect();
        let missing = self.missing as f64;
        let (mut all, mut without) = (missing, missing);
        for entry in &self.entries {
            let weight = self.weight_of(entry) as f64;
            for frames in [entry.kernel, entry.user] {
                let nameless = frames.iter().filter(|name| nameless[name.place()]);
                without += nameless.count() as f64 * weight;
                all += frames.len() as f64 * weight;
            }
        }
        if all > 0.0 {
            without * 100.0 / all
        } else {
            0.0
        }
    }

    /// Names of what stands below an entry's stack, outermost first.
    #[must_use]
    pub fn groups(&self, entry: &StackEntry<'_>) -> Vec<String> {
        let mut groups = Vec::new();
        if self.split
            && let Some(who) = entry.who
        {
            let whose = if who.workload { "workload" } else { "others" };
            groups.push(whose.to_owned());
        }
        if entry.dev != Dev::NONE && !self.omits_device {
            groups.push(self.device(entry));
        }
        if entry.label != Name::EMPTY {
            groups.push(self.names().text(entry.label).to_owned());
        }
        if let Some(who) = entry.who {
            groups.push(thread_group(self.names().text(who.comm)).to_owned());
        }
        groups
    }

    /// Bare name of an entry's device.
    #[must_use]
    pub fn device(&self, entry: &StackEntry<'_>) -> String {
        self.model.name(entry.dev)
    }

    /// The texts of names.
    #[must_use]
    pub fn names(&self) -> &'a StackTable {
        self.model.stacks()
    }

    /// What it was made of.
    #[must_use]
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// Why events that were counted weigh nothing, if it is not that they are nothing.
    fn why_unmeasured(&self) -> Option<String> {
        if self.missing > 0 {
            return Some("an earlier cil-trace recorded".to_owned());
        }
        let [_, time] = self.words.probes?;
        let mut rows = self.model.header().probes.iter();
        let row = rows.find(|row| row.probe == time.name() && !row.outcome.measured())?;
        Some(row.reason.clone())
    }

    /// Why there may be nothing: the probe is not attached, or nothing happened.
    #[must_use]
    pub fn why_empty(&self) -> String {
        let probe = self.words.probes.map(|[count, time]| match self.weight {
            Weight::Time => time.name(),
            Weight::Count | Weight::Bytes => count.name(),
        });
        let mut rows = self.model.header().probes.iter();
        match rows.find(|row| Some(row.probe.as_str()) == probe) {
            Some(row) if !row.outcome.measured() => {
                format!("{} was {}: {}", row.probe, row.outcome.name(), row.reason)
            }
            Some(_) if self.stackless => format!(
                "the cil-trace that recorded kept no stacks of {}",
                self.words.unit
            ),
            Some(_) => format!("there were no {} in the window", self.words.unit),
            None => "the cil-trace that recorded did not measure it".to_owned(),
        }
    }
}

/// What else is known of the sum of all stacks' weights.
fn known_total(model: &Model, words: &Words, weight: Weight) -> Option<u64> {
    let metric = words.totals[weight as usize]?;
    match metric.shape() {
        Shape::Counter => Some(model.sum(metric, |series| model.is_uppermost(series))),
        Shape::Histogram => Some(
            model
                .histogram(metric, |series| model.is_uppermost(series))
                .sum,
        ),
    }
}

/// Whether a function's name is not known: its address or its file stands there.
fn is_nameless(frame: &str) -> bool {
    frame.is_empty() || frame.starts_with("0x") || frame.starts_with('[')
}

/// Worker threads of the kernel carry numbers that say nothing of their work.
fn thread_group(comm: &str) -> &str {
    if comm.starts_with("kworker/") {
        "kworker"
    } else {
        comm
    }
}
