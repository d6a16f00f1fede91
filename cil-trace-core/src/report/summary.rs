//! The most telling facts on one screen, and the next command to type.
//!
//! A fact is a row of [`RULES`]; what is normal is no finding. A push that writes no iclog, for
//! one, is how a healthy kernel works.

mod flush;
mod lock;
mod log;
mod run;

use super::schema::Report;
use super::table::{Builder, Table};
use super::units;
use super::wrap::wrap;

/// The section's name.
pub const NAME: &str = "summary";

/// Most lines of the summary, the proposed command included.
pub const LINES: usize = 24;

/// Most characters of a line.
pub const WIDTH: usize = 80;

/// Lines of text, each with the margin that its continuation gets.
#[derive(Debug, Default)]
struct Fact(Vec<(String, usize)>);

impl Fact {
    fn line(text: impl Into<String>) -> Self {
        Self::default().and(text, 2)
    }

    fn and(mut self, text: impl Into<String>, hang: usize) -> Self {
        self.0.push((text.into(), hang));
        self
    }

    fn wrapped(&self) -> impl Iterator<Item = String> + '_ {
        self.0
            .iter()
            .flat_map(|(text, hang)| wrap(&units::printable(text), WIDTH, *hang))
    }
}

/// Joins the facts that one rule found about several devices.
impl FromIterator<Fact> for Fact {
    fn from_iter<T: IntoIterator<Item = Self>>(facts: T) -> Self {
        Self(facts.into_iter().flat_map(|fact| fact.0).collect())
    }
}

impl Fact {
    /// `None` if there is nothing in it.
    fn found(self) -> Option<Self> {
        (!self.0.is_empty()).then_some(self)
    }
}

struct Rule {
    name: &'static str,
    /// Where the screen is too small, the lowest go first.
    weight: u8,
    fact: fn(&Report) -> Option<Fact>,
}

/// What the summary says, in this order.
const RULES: &[Rule] = &[
    rule("run", 100, run::heading),
    rule("interrupted", 100, run::interrupted),
    rule("results", 85, run::results),
    rule("idle", 50, run::idle),
    rule("flushes", 90, flush::causes),
    rule("issued", 66, flush::issued),
    rule("fan-out", 55, flush::fan_out),
    rule("latency", 65, flush::latency),
    rule("fdatasync", 70, flush::fdatasync),
    rule("forces", 80, log::forces),
    rule("forcer", 75, run::forcer),
    rule("pushes", 64, log::pushes),
    rule("iclogs", 62, log::iclogs),
    rule("waits", 72, log::waits),
    rule("locks", 61, lock::contended),
    rule("trylocks", 71, lock::trylocks),
    rule("blocked", 76, lock::blocked),
    rule("probes", 35, run::probes),
    rule("overhead", 30, run::overhead),
    rule("loss", 100, run::loss),
];

const fn rule(name: &'static str, weight: u8, fact: fn(&Report) -> Option<Fact>) -> Rule {
    Rule { name, weight, fact }
}

/// The facts as `(rule, lines)`, as many as leave room for the proposed command.
fn facts(report: &Report) -> Vec<(&'static str, Vec<String>)> {
    let mut facts: Vec<_> = RULES
        .iter()
        .filter_map(|rule| Some((rule, (rule.fact)(report)?.wrapped().collect::<Vec<_>>())))
        .collect();
    let lines = |facts: &[(&Rule, Vec<String>)]| facts.iter().map(|f| f.1.len()).sum::<usize>();
    while lines(&facts) >= LINES {
        let lightest = (0..facts.len()).min_by_key(|index| facts[*index].0.weight);
        match lightest {
            Some(index) if facts[index].0.weight < 90 => drop(facts.remove(index)),
            _ => break,
        }
    }
    // What is left over are long rows of the facts that are never dropped: cut the longest.
    while lines(&facts) >= LINES {
        match facts.iter_mut().max_by_key(|fact| fact.1.len()) {
            Some(longest) => drop(longest.1.pop()),
            None => break,
        }
    }
    facts
        .into_iter()
        .map(|(rule, lines)| (rule.name, lines))
        .collect()
}

/// The facts, one line of text each, without the proposed command.
#[must_use]
pub fn lines(report: &Report) -> Vec<String> {
    facts(report).into_iter().flat_map(|fact| fact.1).collect()
}

/// The screen that `record` ends with; `file` as in [`next`].
#[must_use]
pub fn text(report: &Report, file: Option<&str>) -> String {
    let mut lines = lines(report);
    lines.push(next(report, file));
    lines.join("\n") + "\n"
}

/// The section; the proposed command is not in it, because a report does not know its file.
pub(super) fn table(report: &Report) -> Table {
    let facts = facts(report);
    let rows: Vec<_> = facts
        .iter()
        .flat_map(|(name, lines)| lines.iter().map(move |line| (*name, line.trim_end())))
        .collect();
    let mut table = Builder::new(NAME, "Summary", &rows)
        .key("fact", |row| row.0)
        .text("text", |row| Some(row.1))
        .build();
    table.prose = Some(rows.iter().map(|row| format!("{}\n", row.1)).collect());
    table
}

/// When a command is the next to type, and the command with `@` for the recording.
type Proposal = (fn(&Report) -> bool, &'static str);

const PROPOSALS: &[Proposal] = &[
    (|report| report.loss.total > 0, "report@ loss"),
    (
        |report| report.flushes.iter().any(|row| row.pointless > Some(0)),
        "report@ pushes",
    ),
    (
        |report| log::worst_wait(report).is_some(),
        "report@ waits grants",
    ),
    (|report| lock::blocked(report).is_some(), "report@ blockers"),
    (
        |report| report.flushes.iter().any(|row| row.requested > 0),
        "flamegraph@ --kind flush -o flush.svg",
    ),
    (|report| report.commits.count > Some(0), "report@ commits"),
    (|_| true, "report@ probes"),
];

/// `next: cil-trace ...`; `file` is the recording unless it is the one that commands take without
/// being told.
#[must_use]
pub fn next(report: &Report, file: Option<&str>) -> String {
    let command = PROPOSALS
        .iter()
        .find(|(applies, _)| applies(report))
        .map_or("report@", |(_, command)| command);
    let file = file.map(|file| format!(" {}", shell_word(file)));
    format!(
        "next: cil-trace {}",
        command.replace('@', &file.unwrap_or_default())
    )
}

/// A word that a shell takes as it is.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", units::printable(word).replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::schema::{Commits, FlushRow, Loss};

    #[test]
    fn the_next_command_follows_the_finding_and_names_the_file() {
        let mut report = Report::default();
        assert_eq!(next(&report, None), "next: cil-trace report probes");
        report.commits = Commits {
            count: Some(1),
            ..Commits::default()
        };
        assert_eq!(next(&report, None), "next: cil-trace report commits");
        report.flushes.push(FlushRow {
            requested: 1,
            ..FlushRow::default()
        });
        assert_eq!(
            next(&report, Some("my run.data")),
            "next: cil-trace flamegraph 'my run.data' --kind flush -o flush.svg"
        );
        report.flushes[0].pointless = Some(1);
        assert_eq!(next(&report, Some("x")), "next: cil-trace report x pushes");
        report.loss = Loss {
            total: 1,
            ..Loss::default()
        };
        assert_eq!(next(&report, None), "next: cil-trace report loss");
    }

    #[test]
    fn rules_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
