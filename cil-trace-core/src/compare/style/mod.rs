//! A comparison as text: the table that kernel people post, in their layouts and in ours.
//!
//! A style decides how rows look; what is said beneath them, [`notes`] decides for all.

mod ci;
mod lkp;
mod mmtests;
pub mod notes;
mod number;

use super::{Comparison, Explanation};
use crate::report::units::printable;
use std::str::FromStr;

/// A layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// The kernel test robot's.
    #[default]
    Lkp,
    /// Mel Gorman's.
    Mmtests,
    /// Ratios with intervals, p values and verdicts.
    Ci,
}

impl Style {
    /// Every style, in the order in which help lists them.
    pub const ALL: &'static [Self] = &[Self::Lkp, Self::Mmtests, Self::Ci];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lkp => "lkp",
            Self::Mmtests => "mmtests",
            Self::Ci => "ci",
        }
    }

    /// The table and, after an empty line, what must be known of it.
    #[must_use]
    pub fn render(self, comparison: &Comparison) -> String {
        let table = match self {
            Self::Lkp => lkp::table(comparison),
            Self::Mmtests => mmtests::table(comparison),
            Self::Ci => ci::table(comparison),
        };
        let mut text = table;
        text.push_str(&notes(comparison));
        text
    }
}

/// What accounts for the changes, in words, and what must be known of it.
#[must_use]
pub fn explanation(comparison: &Comparison) -> String {
    let base = comparison
        .sides
        .first()
        .map_or("", |side| side.label.as_str());
    let mut text = String::new();
    for Explanation { side, case, lines } in &comparison.explanations {
        let case = if case.is_empty() {
            String::new()
        } else {
            format!(", {case}")
        };
        let head = printable(&format!("{side} against {base}{case}:"));
        let lines = lines.iter().map(|line| format!("  {}\n", printable(line)));
        text.push_str(&format!("{head}\n{}\n", lines.collect::<String>()));
    }
    text + &notes(comparison)
}

fn notes(comparison: &Comparison) -> String {
    let lines = notes::lines(comparison).into_iter();
    lines.map(|line| printable(&line) + "\n").collect()
}

impl FromStr for Style {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|style| style.name() == name);
        found.ok_or_else(|| format!("no style named `{name}`; styles are lkp, mmtests and ci"))
    }
}

/// The first `width` columns at most of a label, as LKP keeps them.
fn cut(label: &str, width: usize) -> String {
    printable(label).chars().take(width).collect()
}
