//! That a build without debug information has the layout of one with it.

use crate::access::{Use, uses};
use crate::build::Build;
use crate::code::{Code, functions};
use anyhow::Result;
use cil_trace_common::offset::Source;
use cil_trace_core::debuginfo::DebugInfo;
use std::collections::{BTreeMap, BTreeSet};

/// The functions that builds have in common, and what they use.
pub struct Proof {
    /// Of the first build.
    functions: BTreeMap<String, Code>,
    /// Likewise.
    uses: BTreeMap<String, BTreeSet<Use>>,
    /// Those that every other build has too.
    common: BTreeSet<String>,
}

impl Proof {
    /// Begins with all functions of a build that has debug information.
    pub fn new(build: &Build) -> Result<Self> {
        let functions = functions(&build.module)?;
        let info = DebugInfo::parse(&*build.module)?;
        let uses = uses(&info, &functions)?;
        let uses = uses.into_iter().map(|(name, uses)| (name.to_owned(), uses));
        Ok(Self {
            uses: uses.collect(),
            common: functions.keys().cloned().collect(),
            functions,
        })
    }

    /// Leaves out what `build` does not have in common; how many it has, of how many.
    pub fn hold_against(&mut self, build: &Build) -> Result<String> {
        let others = functions(&build.module)?;
        let same: BTreeSet<_> = self
            .functions
            .iter()
            .filter(|(name, code)| others.get(*name).is_some_and(|other| code.is_as(other)))
            .map(|(name, _)| name.clone())
            .collect();
        self.common.retain(|name| same.contains(name));
        Ok(format!("{}/{}", same.len(), others.len()))
    }

    /// A function that uses a member at `offset`.
    pub fn user_of(&self, source: Source, offset: u32) -> Option<&str> {
        let Source::Member { of, .. } = source else {
            return None;
        };
        let wanted = (of.to_owned(), i64::from(offset));
        let mut users = self.common.iter().filter(|name| {
            let uses = self.uses.get(*name);
            uses.is_some_and(|uses| uses.contains(&wanted))
        });
        users.next().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Result;

    /// Whose source is beside it.
    const OBJECT: &[u8] = include_bytes!("../../cil-trace-core/tests/debuginfo/dwarf4.o");

    fn build(module: &[u8]) -> Build {
        Build {
            directory: "small_1".to_owned(),
            id: "01".to_owned(),
            module: module.to_vec(),
            offsets: None,
        }
    }

    fn member(of: &'static str) -> Source {
        Source::Member { of, any_of: &[] }
    }

    #[test]
    fn a_build_is_as_itself_and_its_members_are_used() -> Result<()> {
        let mut proof = Proof::new(&build(OBJECT))?;
        assert_eq!(proof.hold_against(&build(OBJECT))?, "4/4");
        // `log->block`, `log->cycle` and `log->offset`, by what the source says.
        assert!(proof.user_of(member("log"), 8).is_some());
        assert_eq!(proof.user_of(member("log"), 12), Some("commit"));
        assert_eq!(proof.user_of(member("log"), 20), None);
        assert_eq!(proof.user_of(member("grant_head"), 8), None);
        Ok(())
    }

    #[test]
    fn another_displacement_is_another_function() -> Result<()> {
        let mut proof = Proof::new(&build(OBJECT))?;
        // `movl $7,12(%rdi)`, as in `commit`.
        let stored = [0xc7, 0x47, 0x0c, 0x07, 0, 0, 0];
        let mut other = OBJECT.to_vec();
        let places: Vec<_> = OBJECT
            .windows(stored.len())
            .enumerate()
            .filter(|(_, bytes)| *bytes == stored)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(places.len(), 1, "the object is not what it was");
        other[places[0] + 2] = 0x10;
        assert_eq!(proof.hold_against(&build(&other))?, "3/4");
        assert_eq!(proof.user_of(member("log"), 12), None);
        Ok(())
    }
}
