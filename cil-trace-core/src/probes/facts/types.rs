//! Structures, enumerations and tracepoints' arguments, as BTF describes them.

use crate::probes::Home;
use cil_trace_common::offset::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What BTF says, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Types {
    /// Members of structures; those of anonymous ones inside count as the structure's own.
    pub structs: BTreeMap<String, BTreeMap<String, Member>>,
    /// Values of enumerators.
    pub enums: BTreeMap<String, BTreeMap<String, u32>>,
    /// Arguments of tracepoints.
    pub events: BTreeMap<Home, BTreeMap<String, Arguments>>,
}

/// Where a member is, and the structure that it is; written as `64` or `64 bvec_iter`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Member {
    /// In bytes from the structure's start.
    pub offset: u32,
    /// The name of the structure that it is, if it is one that has a name.
    pub of: Option<String>,
}

/// The name of the structure that each argument points to, or nothing; written as `bio -`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Arguments(pub Vec<String>);

/// Stands for an argument that points to no structure.
const NO_STRUCTURE: &str = "-";

impl From<Arguments> for String {
    fn from(arguments: Arguments) -> Self {
        let words: Vec<_> = arguments
            .0
            .iter()
            .map(|name| if name.is_empty() { NO_STRUCTURE } else { name })
            .collect();
        words.join(" ")
    }
}

impl From<String> for Arguments {
    fn from(text: String) -> Self {
        let words = text.split_whitespace();
        Self(
            words
                .map(|word| if word == NO_STRUCTURE { "" } else { word }.to_owned())
                .collect(),
        )
    }
}

impl From<Member> for String {
    fn from(member: Member) -> Self {
        match member.of {
            Some(of) => format!("{} {of}", member.offset),
            None => member.offset.to_string(),
        }
    }
}

impl TryFrom<String> for Member {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (offset, of) = match text.split_once(' ') {
            Some((offset, of)) => (offset, Some(of.to_owned())),
            None => (text.as_str(), None),
        };
        Ok(Self {
            offset: offset.parse()?,
            of,
        })
    }
}

impl Types {
    /// What a global is set to; `None` if the kernel has no such thing.
    #[must_use]
    pub fn value(&self, source: Source) -> Option<u32> {
        match source {
            Source::Member { of, any_of } => any_of.iter().find_map(|path| self.member(of, path)),
            Source::Enumerator { of, name } => self.enums.get(of)?.get(name).copied(),
            Source::Argument { event, to } => {
                let index = self.arguments(event)?.iter().position(|name| name == to)?;
                u32::try_from(index).ok()
            }
            Source::ArgumentCount { event } => u32::try_from(self.arguments(event)?.len()).ok(),
        }
    }

    /// Byte offset of a dotted path of members.
    fn member(&self, of: &str, path: &str) -> Option<u32> {
        let mut structure = Some(of);
        let mut offset = 0;
        for name in path.split('.') {
            let member = self.structs.get(structure?)?.get(name)?;
            offset += member.offset;
            structure = member.of.as_deref();
        }
        Some(offset)
    }

    fn arguments(&self, event: &str) -> Option<&[String]> {
        let found = self.events.values().find_map(|events| events.get(event))?;
        Some(&found.0)
    }

    pub(super) fn home_of_event(&self, event: &str) -> Option<Home> {
        let (home, _) = self
            .events
            .iter()
            .find(|(_, events)| events.contains_key(event))?;
        Some(home.clone())
    }
}
