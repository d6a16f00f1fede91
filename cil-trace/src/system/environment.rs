//! What this machine allows to be measured: one table of checks over facts that were read before.
//!
//! No check touches the machine, so other kernels' answers are tested here too. A check names the
//! present value and the remedy; an error number alone is never the message.

mod checks;
mod facts;
#[cfg(test)]
mod tests;

pub use checks::XFS_IS_THERE;
pub use facts::{Cgroup, EnvironmentFacts, XfsSupport, is_loaded, xfs_support};

use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As wanted.
    Ok,
    /// Something cannot be measured, or only approximated.
    Limited,
    /// Nothing can be recorded without it.
    Missing,
}

/// One line of `doctor`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// Its present value.
    pub value: String,
    /// How it came out.
    pub status: Status,
    /// What follows from it; empty when nothing does.
    pub consequence: String,
    /// What to do about it; `None` when nothing is needed or can be done.
    pub remedy: Option<String>,
}

/// A check's outcome, before it gets its name from the table.
struct Finding {
    value: String,
    status: Status,
    consequence: String,
    remedy: Option<String>,
}

impl Finding {
    fn ok(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            status: Status::Ok,
            consequence: String::new(),
            remedy: None,
        }
    }

    fn limited(value: impl Into<String>, consequence: &str, remedy: &str) -> Self {
        Self {
            status: Status::Limited,
            consequence: consequence.to_owned(),
            remedy: (!remedy.is_empty()).then(|| remedy.to_owned()),
            ..Self::ok(value)
        }
    }

    fn missing(value: impl Into<String>, consequence: &str, remedy: &str) -> Self {
        Self {
            status: Status::Missing,
            ..Self::limited(value, consequence, remedy)
        }
    }

    /// What there is to know although nothing is wrong.
    fn note(self, consequence: &str) -> Self {
        Self {
            consequence: consequence.to_owned(),
            ..self
        }
    }
}

impl EnvironmentFacts {
    /// Goes through the table of checks.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        checks::CHECKS
            .iter()
            .map(|(name, check)| {
                let finding = check(self);
                Check {
                    name,
                    value: finding.value,
                    status: finding.status,
                    consequence: finding.consequence,
                    remedy: finding.remedy,
                }
            })
            .collect()
    }
}
