//! Types: where a struct's members are, what an enumerator's value is, what an event's arguments
//! point to.

use super::{DebugInfo, DebugInfoError, Dwarf, Reader, units};
use cil_trace_common::offset::{Offset, Source};
use gimli::constants::{
    DW_AT_bit_size, DW_AT_const_value, DW_AT_data_bit_offset, DW_AT_data_member_location,
    DW_AT_decl_file, DW_AT_declaration, DW_AT_name, DW_AT_type, DW_TAG_const_type,
    DW_TAG_enumeration_type, DW_TAG_enumerator, DW_TAG_formal_parameter, DW_TAG_member,
    DW_TAG_pointer_type, DW_TAG_structure_type, DW_TAG_subroutine_type, DW_TAG_typedef,
    DW_TAG_union_type, DW_TAG_volatile_type,
};
use gimli::{AttributeValue, DebuggingInformationEntry, DwTag, Unit, UnitOffset};
use std::collections::HashMap;

/// What debug information says of one row of the table of offsets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    /// The value; `None` if the type has no such member.
    pub value: Option<u32>,
    /// The source file that declares the type.
    pub declared_in: String,
}

/// How many types without names of their own are seen through; in damaged files they go in circles.
const DEPTH: usize = 16;

type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

impl DebugInfo {
    /// What the compilation units, whose file name has one of `parts` in it, say of `rows`; `None`
    /// where none of them describes the type.
    ///
    /// # Errors
    /// The debug information is damaged.
    pub fn offsets(
        &self,
        rows: &[Offset],
        parts: &[&str],
    ) -> Result<Vec<Option<Described>>, DebugInfoError> {
        let dwarf = self.dwarf();
        let units = units(&dwarf, parts)?;
        let types = Types::find(&dwarf, &units, rows)?;
        rows.iter().map(|row| types.describe(row.source)).collect()
    }
}

/// A type's kind and name.
type Name = (DwTag, String);

/// The type that a row is about.
fn subject(source: Source) -> Name {
    match source {
        Source::Member { of, .. } => (DW_TAG_structure_type, of.to_owned()),
        Source::Enumerator { of, .. } => (DW_TAG_enumeration_type, of.to_owned()),
        // The kernel describes them as `typedef void (*btf_trace_EVENT)(void *__data, ...)`.
        Source::Argument { event, .. } | Source::ArgumentCount { event } => {
            (DW_TAG_typedef, format!("btf_trace_{event}"))
        }
    }
}

struct Types<'d, 'a> {
    dwarf: &'d Dwarf<'a>,
    units: &'d [Unit<Reader<'a>>],
    found: HashMap<Name, (usize, UnitOffset)>,
}

impl<'d, 'a> Types<'d, 'a> {
    /// Looks for the first complete definition of each type that `rows` are about.
    fn find(
        dwarf: &'d Dwarf<'a>,
        units: &'d [Unit<Reader<'a>>],
        rows: &[Offset],
    ) -> Result<Self, DebugInfoError> {
        let mut wanted: HashMap<Name, Option<(usize, UnitOffset)>> =
            rows.iter().map(|row| (subject(row.source), None)).collect();
        for (index, unit) in units.iter().enumerate() {
            let mut entries = unit.entries();
            // The unit itself, then what stands directly in it.
            entries.next_dfs()?;
            entries.next_dfs()?;
            while let Some(entry) = entries.current() {
                let tag = entry.tag();
                if [
                    DW_TAG_structure_type,
                    DW_TAG_enumeration_type,
                    DW_TAG_typedef,
                ]
                .contains(&tag)
                    && !entry.has_attr(DW_AT_declaration)
                    && let Some(name) = name(dwarf, unit, entry)
                    && let Some(found) = wanted.get_mut(&(tag, name))
                {
                    found.get_or_insert((index, entry.offset()));
                }
                entries.next_sibling()?;
            }
        }
        let found = wanted
            .into_iter()
            .filter_map(|(name, found)| Some((name, found?)))
            .collect();
        Ok(Self {
            dwarf,
            units,
            found,
        })
    }

    fn describe(&self, source: Source) -> Result<Option<Described>, DebugInfoError> {
        let Some(&(index, at)) = self.found.get(&subject(source)) else {
            return Ok(None);
        };
        let Some(unit) = self.units.get(index) else {
            return Ok(None);
        };
        let here = Scope {
            dwarf: self.dwarf,
            unit,
        };
        let value = match source {
            Source::Member { any_of, .. } => {
                let mut value = None;
                for path in any_of {
                    if value.is_none() {
                        value = here.member_offset(at, path)?;
                    }
                }
                value
            }
            Source::Enumerator { name, .. } => here.enumerator(at, name)?,
            Source::Argument { to, .. } => {
                let arguments = here.arguments(at)?;
                let index = arguments.iter().position(|name| name == to);
                index.and_then(|index| u32::try_from(index).ok())
            }
            Source::ArgumentCount { .. } => u32::try_from(here.arguments(at)?.len()).ok(),
        };
        Ok(Some(Described {
            value,
            declared_in: here.declared_in(at)?,
        }))
    }
}

/// One compilation unit.
struct Scope<'d, 'a> {
    dwarf: &'d Dwarf<'a>,
    unit: &'d Unit<Reader<'a>>,
}

impl<'a> Scope<'_, 'a> {
    /// The entries directly below that at `at`.
    fn children(&self, at: UnitOffset) -> Result<Vec<Entry<'a>>, DebugInfoError> {
        let mut tree = self.unit.entries_tree(Some(at))?;
        let mut children = tree.root()?.children();
        let mut entries = Vec::new();
        while let Some(child) = children.next()? {
            entries.push(child.entry().clone());
        }
        Ok(entries)
    }

    /// The type that an entry has, without typedefs and qualifiers; `None` if it is void.
    fn type_of(&self, entry: &Entry<'a>) -> Result<Option<Entry<'a>>, DebugInfoError> {
        let transparent = [DW_TAG_typedef, DW_TAG_const_type, DW_TAG_volatile_type];
        let mut entry = entry.clone();
        for _ in 0..DEPTH {
            let Some(AttributeValue::UnitRef(at)) = entry.attr_value(DW_AT_type) else {
                return Ok(None);
            };
            entry = self.unit.entry(at)?;
            if !transparent.contains(&entry.tag()) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Byte offset of a dotted path of members.
    fn member_offset(&self, at: UnitOffset, path: &str) -> Result<Option<u32>, DebugInfoError> {
        let mut at = at;
        let mut bytes = 0;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let Some((offset, member)) = self.member(at, name, DEPTH)? else {
                return Ok(None);
            };
            bytes = offset.saturating_add(bytes);
            if names.peek().is_some() {
                match self.type_of(&member)? {
                    Some(inner) => at = inner.offset(),
                    None => return Ok(None),
                }
            }
        }
        Ok(u32::try_from(bytes).ok())
    }

    /// Byte offset and entry of a member, looked for in anonymous structs and unions too.
    fn member(
        &self,
        at: UnitOffset,
        wanted: &str,
        depth: usize,
    ) -> Result<Option<(u64, Entry<'a>)>, DebugInfoError> {
        for child in self.children(at)? {
            if child.tag() != DW_TAG_member {
                continue;
            }
            // A union's members have no offset; a bit-field's is not in bytes.
            let offset = child
                .attr_value(DW_AT_data_member_location)
                .map_or(Some(0), |value| value.udata_value());
            match (name(self.dwarf, self.unit, &child), offset) {
                (Some(name), Some(offset)) if name == wanted => {
                    let bits =
                        child.has_attr(DW_AT_bit_size) || child.has_attr(DW_AT_data_bit_offset);
                    return Ok((!bits).then_some((offset, child)));
                }
                (None, Some(offset)) if depth > 0 => {
                    if let Some(inner) = self.type_of(&child)?
                        && [DW_TAG_structure_type, DW_TAG_union_type].contains(&inner.tag())
                        && let Some((more, member)) =
                            self.member(inner.offset(), wanted, depth - 1)?
                    {
                        return Ok(Some((offset.saturating_add(more), member)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn enumerator(&self, at: UnitOffset, wanted: &str) -> Result<Option<u32>, DebugInfoError> {
        let value = self.children(at)?.iter().find_map(|child| {
            let found = child.tag() == DW_TAG_enumerator
                && name(self.dwarf, self.unit, child).as_deref() == Some(wanted);
            found.then(|| child.attr_value(DW_AT_const_value)?.udata_value())?
        });
        Ok(value.and_then(|value| u32::try_from(value).ok()))
    }

    /// What each argument of the tracepoint's typedef at `at` points to: a struct's name, or
    /// nothing. The first parameter is the probe's own and no argument.
    fn arguments(&self, at: UnitOffset) -> Result<Vec<String>, DebugInfoError> {
        let typedef = self.unit.entry(at)?;
        let function = match self.type_of(&typedef)? {
            Some(pointer) if pointer.tag() == DW_TAG_pointer_type => self.type_of(&pointer)?,
            other => other,
        };
        let Some(function) = function.filter(|found| found.tag() == DW_TAG_subroutine_type) else {
            return Ok(Vec::new());
        };
        let parameters = self.children(function.offset())?;
        parameters
            .iter()
            .filter(|child| child.tag() == DW_TAG_formal_parameter)
            .skip(1)
            .map(|parameter| {
                let pointee = match self.type_of(parameter)? {
                    Some(pointer) if pointer.tag() == DW_TAG_pointer_type => {
                        self.type_of(&pointer)?
                    }
                    _ => None,
                };
                let name = pointee
                    .filter(|found| found.tag() == DW_TAG_structure_type)
                    .and_then(|found| name(self.dwarf, self.unit, &found));
                Ok(name.unwrap_or_default())
            })
            .collect()
    }

    /// The source file of a type, as the compiler was given it.
    fn declared_in(&self, at: UnitOffset) -> Result<String, DebugInfoError> {
        let entry = self.unit.entry(at)?;
        let (Some(AttributeValue::FileIndex(index)), Some(program)) =
            (entry.attr_value(DW_AT_decl_file), &self.unit.line_program)
        else {
            return Ok(String::new());
        };
        let header = program.header();
        let Some(file) = header.file(index) else {
            return Ok(String::new());
        };
        let text = |value| -> Result<String, DebugInfoError> {
            let text = self.dwarf.attr_string(self.unit, value)?;
            Ok(text.to_string_lossy().into_owned())
        };
        let name = text(file.path_name())?;
        match file.directory(header) {
            Some(directory) => Ok(format!("{}/{name}", text(directory)?)),
            None => Ok(name),
        }
    }
}

fn name<'a>(dwarf: &Dwarf<'a>, unit: &Unit<Reader<'a>>, entry: &Entry<'a>) -> Option<String> {
    let name = dwarf
        .attr_string(unit, entry.attr_value(DW_AT_name)?)
        .ok()?;
    Some(name.to_string_lossy().into_owned())
}
