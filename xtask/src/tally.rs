//! What became of a level: the numbers of its closing line.

use std::fmt;

/// How many tests did what.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Why something was skipped.
    pub reasons: Vec<String>,
}

impl Tally {
    /// A level that did not run counts as one skipped test.
    pub fn skipped(reason: String) -> Self {
        Self {
            skipped: 1,
            reasons: vec![reason],
            ..Self::default()
        }
    }

    pub fn failed(reason: String) -> Self {
        Self {
            failed: 1,
            reasons: vec![reason],
            ..Self::default()
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.reasons.extend_from_slice(&other.reasons);
    }

    /// Adds what a line of libtest's output says: a closing line, or an ignored test's.
    pub fn add_line(&mut self, line: &str) {
        if let Some((name, reason)) = ignored(line) {
            self.reasons.push(format!("{name}: {reason}"));
        }
        let Some((_, numbers)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in numbers.split("; ") {
            let Some((number, what)) = part.split_once(' ') else {
                continue;
            };
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// The name and reason of an ignored test.
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = outcome.strip_prefix("ignored")?;
    Some((name, reason.strip_prefix(", ").unwrap_or("ignored")))
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_closing_lines_of_libtest() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test hist::tests::edges ... ok",
            "test record::as_other_user ... ignored, needs sudo",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.02s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            tally.add_line(line);
        }
        assert_eq!(tally.to_string(), "13 passed, 2 failed, 1 skipped");
        assert_eq!(tally.reasons, ["record::as_other_user: needs sudo"]);
    }
}
