//! Offsets of members in modules without BTF, by the module's build.
//!
//! The values are data, made by `cargo xtask offsets` from debug information; a kernel is known by
//! XFS's build id, never by its version.

use cil_trace_common::offset::Offset;
use std::fmt;

/// One file for each layout that builds have in common.
const FILES: &[&str] = &[include_str!("../offsets/debian-5.10")];

/// What a file says of one row of the table of offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// This, in the module.
    Is(u32),
    /// The module's structure has no such member.
    Absent,
    /// The modules do not declare it; the kernel's own BTF is asked.
    Elsewhere,
}

impl Value {
    /// From the word in a file.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "absent" => Some(Self::Absent),
            "elsewhere" => Some(Self::Elsewhere),
            number => number.parse().ok().map(Self::Is),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => f.pad(&value.to_string()),
            Self::Absent => f.pad("absent"),
            Self::Elsewhere => f.pad("elsewhere"),
        }
    }
}

/// The layout that some builds have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout(&'static str);

impl Layout {
    /// That of the build of XFS whose id this is, if it is known.
    #[must_use]
    pub fn of_build(id: &str) -> Option<Self> {
        let layouts = FILES.iter().copied().map(Self);
        layouts
            .into_iter()
            .find(|layout| layout.builds().any(|build| build == id))
    }

    /// The build ids of XFS that have it.
    pub fn builds(self) -> impl Iterator<Item = &'static str> {
        self.lines().filter_map(|mut words| match words.next() {
            Some("build") => words.next(),
            _ => None,
        })
    }

    /// The offset that a global is set to, if the module has such a member.
    #[must_use]
    pub fn get(self, global: &str) -> Option<u32> {
        match self.value(global)? {
            Value::Is(value) => Some(value),
            Value::Absent | Value::Elsewhere => None,
        }
    }

    /// What the file says of a row of the table of offsets, by the name of its global.
    #[must_use]
    pub fn value(self, global: &str) -> Option<Value> {
        let mut line = self.lines().find_map(|mut words| {
            let found = words.next() == Some(global);
            found.then_some(words)
        })?;
        Value::from_word(line.next()?)
    }

    /// The words of each line that is no comment.
    fn lines(self) -> impl Iterator<Item = impl Iterator<Item = &'static str>> {
        self.0
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::split_whitespace)
    }
}

/// What stands between a line and the function that uses the member.
pub const USED_BY: &str = ", used by ";

/// The line of a file that says what a row's value is: the global, the value, and what it is of.
#[must_use]
pub fn line(row: &Offset, value: Value) -> String {
    format!("{:<24} {value:<10} {}", row.global, row.source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cil_trace_common::offset::OFFSETS;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_of_the_table_is_there_or_marked_absent() {
        for file in FILES {
            for row in OFFSETS {
                let value = Layout(file).value(row.global);
                let expected = value.map(|value| line(row, value));
                let found = expected.is_some_and(|expected| {
                    file.lines()
                        .any(|found| found.split(USED_BY).next() == Some(&expected))
                });
                assert!(
                    found,
                    "{} ({}): make the data again: cargo xtask offsets",
                    row.global, row.source
                );
            }
        }
    }

    #[test]
    fn no_file_has_what_the_table_has_not() {
        for file in FILES {
            for words in Layout(file).lines() {
                let first = words.into_iter().next();
                let known = |name| OFFSETS.iter().any(|row| row.global == name);
                assert!(
                    first.is_none_or(|name| name == "build" || known(name)),
                    "{first:?}"
                );
            }
        }
    }

    #[test]
    fn a_build_has_one_layout() {
        let builds: Vec<_> = FILES
            .iter()
            .flat_map(|file| Layout(file).builds())
            .collect();
        let unique: BTreeSet<_> = builds.iter().collect();
        assert_eq!(builds.len(), unique.len());
        for build in builds {
            assert!(Layout::of_build(build).is_some());
        }
        assert_eq!(Layout::of_build("00"), None);
    }
}
