//! Type information of the running kernel (BTF): member offsets, enumerators, tracepoint arguments.
//!
//! It answers by name only, and never from a table of known kernels: what the kernel does not have
//! is absent.

mod facts;

use anyhow::{Context as _, Result, anyhow};
use btf_rs::utils::collection::{BtfCollection, NamedBtf};
use btf_rs::{Backend, Struct, Type, Typedef};
use cil_trace_common::offset::{ABSENT, OFFSETS, Source};
use std::collections::HashMap;
use std::path::Path;

const DIRECTORY: &str = "/sys/kernel/btf";
/// Modules whose types are wanted; where they are built in, vmlinux has them.
const MODULES: [&str; 2] = ["xfs", "loop"];

/// The kernel's types, and those of its modules that matter here.
pub struct KernelBtf {
    all: BtfCollection,
    notes: Vec<String>,
}

/// The value of every row of [`OFFSETS`] on one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offsets {
    /// A global's name and its value; `None` if this kernel has no such thing.
    pub values: Vec<(&'static str, Option<u32>)>,
}

impl Offsets {
    /// The value that the global is set to: [`ABSENT`] where the kernel has none.
    pub fn globals(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.values
            .iter()
            .map(|&(global, value)| (global, value.unwrap_or(ABSENT)))
    }

    /// Takes what is still unknown from elsewhere.
    pub fn complete(&mut self, value: impl Fn(&str) -> Option<u32>) {
        for (global, known) in &mut self.values {
            *known = known.or_else(|| value(global));
        }
    }

    /// Whether XFS's structures are known, by a member that every XFS has.
    #[must_use]
    pub fn describe_xfs(&self) -> bool {
        self.get("LOG_MOUNT").is_some()
    }

    /// The value of one global.
    #[must_use]
    pub fn get(&self, global: &str) -> Option<u32> {
        let (_, value) = self.values.iter().find(|(name, _)| *name == global)?;
        *value
    }
}

impl KernelBtf {
    /// Opens the running kernel's BTF and its modules'.
    ///
    /// # Errors
    /// If the kernel has none or it cannot be parsed; the text says what is needed. A module's that
    /// cannot be parsed is left out and noted.
    pub fn open() -> Result<Self> {
        Self::open_without(None)
    }

    /// The same as if `module` were not loaded.
    ///
    /// # Errors
    /// Likewise.
    pub fn open_without(module: Option<&str>) -> Result<Self> {
        Self::open_in(Path::new(DIRECTORY), module)
    }

    fn open_in(directory: &Path, without: Option<&str>) -> Result<Self> {
        let vmlinux = directory.join("vmlinux");
        if !vmlinux.exists() {
            return Err(anyhow!(
                "{} does not exist: the kernel was built without BTF. Boot one with \
                 CONFIG_DEBUG_INFO_BTF=y (every Debian, Fedora, RHEL and Ubuntu kernel since 5.10 \
                 or so has it)",
                vmlinux.display()
            ));
        }
        // Mapping takes 2 ms where parsing takes 100, but mmap of this file came only with 6.16.
        let mut all = BtfCollection::from_file_with_backend(&vmlinux, Backend::Mmap)
            .or_else(|_| BtfCollection::from_file_with_backend(&vmlinux, Backend::Cache))
            .with_context(|| {
                format!(
                    "cannot parse {}: reading it needs no privilege, so this kernel's BTF is newer \
                     than this cil-trace or damaged",
                    vmlinux.display()
                )
            })?;
        let mut notes = Vec::new();
        for module in MODULES {
            let path = directory.join(module);
            if without == Some(module) || !path.exists() {
                continue;
            }
            if let Err(error) = all.add_split_btf_from_file(&path) {
                notes.push(format!(
                    "{}: {error}; the module's types are unknown (it may have been built for \
                     another kernel)",
                    path.display()
                ));
            }
        }
        Ok(Self { all, notes })
    }

    /// What could not be parsed, as sentences for the user.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Looks up every row of [`OFFSETS`].
    #[must_use]
    pub fn offsets(&self) -> Offsets {
        let mut structs = HashMap::new();
        let values = OFFSETS
            .iter()
            .map(|row| (row.global, self.value(row.source, &mut structs)))
            .collect();
        Offsets { values }
    }

    fn value<'a>(&'a self, source: Source, structs: &mut Structs<'a>) -> Option<u32> {
        match source {
            Source::Member { of, any_of } => {
                // A look-up by name walks all types (1 ms), so it is done once per struct.
                let (btf, found) = structs
                    .entry(of)
                    .or_insert_with(|| self.structure(of))
                    .as_ref()?;
                any_of
                    .iter()
                    .find_map(|path| member_offset(btf, found, path))
            }
            Source::Enumerator { of, name } => self.enumerator(of, name),
            Source::Argument { event, to } => {
                let arguments = self.arguments(event)?;
                let index = arguments.iter().position(|name| name == to)?;
                u32::try_from(index).ok()
            }
            Source::ArgumentCount { event } => u32::try_from(self.arguments(event)?.len()).ok(),
        }
    }

    /// Whose BTF has a function, as fentry requires: `vmlinux` or a module's name.
    #[must_use]
    pub fn home_of_function(&self, name: &str) -> Option<&str> {
        self.home(name, is_function)
    }

    /// Whose BTF describes a tracepoint, as `tp_btf` requires: `vmlinux` or a module's name.
    #[must_use]
    pub fn home_of_event(&self, name: &str) -> Option<&str> {
        self.home(&format!("btf_trace_{name}"), is_typedef)
    }

    /// Number of a function in the BTF of `module`.
    #[must_use]
    pub fn function_id(&self, module: &str, name: &str) -> Option<u32> {
        self.id(module, name, is_function)
    }

    /// Number in the BTF of `module` by which `tp_btf` knows a tracepoint.
    #[must_use]
    pub fn event_id(&self, module: &str, name: &str) -> Option<u32> {
        self.id(module, &format!("btf_trace_{name}"), is_typedef)
    }

    fn home(&self, name: &str, is_wanted: fn(&Type) -> bool) -> Option<&str> {
        self.named(name)
            .into_iter()
            .find_map(|(btf, found)| is_wanted(&found).then_some(btf.name.as_str()))
    }

    /// Modules number on from where vmlinux ends.
    fn id(&self, module: &str, name: &str, is_wanted: fn(&Type) -> bool) -> Option<u32> {
        let section = self.all.get_named_btf(module)?.split()?;
        let ids = section.resolve_ids_by_name(name).ok()?;
        ids.into_iter().find(|&id| {
            section
                .resolve_type_by_id(id)
                .is_ok_and(|found| is_wanted(&found))
        })
    }

    fn named(&self, name: &str) -> Vec<(&NamedBtf, Type)> {
        self.all.resolve_types_by_name(name).unwrap_or_default()
    }

    fn structure(&self, name: &str) -> Option<(&NamedBtf, Struct)> {
        self.named(name)
            .into_iter()
            .find_map(|(btf, found)| match found {
                Type::Struct(found) => Some((btf, found)),
                _ => None,
            })
    }

    fn enumerator(&self, of: &str, name: &str) -> Option<u32> {
        self.named(of)
            .into_iter()
            .find_map(|(btf, found)| match found {
                Type::Enum(found) => found
                    .members
                    .iter()
                    .find(|member| btf.resolve_name(*member).is_ok_and(|text| text == name))
                    .map(|member| member.val()),
                Type::Enum64(found) => found
                    .members
                    .iter()
                    .find(|member| btf.resolve_name(*member).is_ok_and(|text| text == name))
                    .and_then(|member| u32::try_from(member.val()).ok()),
                _ => None,
            })
    }

    /// What each argument of a tracepoint points to: a struct's name, or nothing.
    fn arguments(&self, event: &str) -> Option<Vec<String>> {
        self.named(&format!("btf_trace_{event}"))
            .into_iter()
            .find_map(|(btf, found)| match found {
                Type::Typedef(found) => arguments(btf, &found),
                _ => None,
            })
    }
}

/// The kernel describes a tracepoint as `typedef void (*btf_trace_EVENT)(void *__data, ...)`; the
/// first parameter is the probe's own and no argument.
fn arguments(btf: &NamedBtf, event: &Typedef) -> Option<Vec<String>> {
    let prototype = btf.chained_type_iter(event).find_map(|found| match found {
        Type::FuncProto(prototype) => Some(prototype),
        _ => None,
    })?;
    let arguments = prototype.parameters.iter().skip(1);
    Some(arguments.map(|argument| pointee(btf, argument)).collect())
}

fn is_function(found: &Type) -> bool {
    matches!(found, Type::Func(_))
}

fn is_typedef(found: &Type) -> bool {
    matches!(found, Type::Typedef(_))
}

type Structs<'a> = HashMap<&'static str, Option<(&'a NamedBtf, Struct)>>;

/// Name of the struct that a parameter points to; empty if it points to none.
fn pointee(btf: &NamedBtf, parameter: &btf_rs::Parameter) -> String {
    let mut through_pointer = false;
    for found in btf.chained_type_iter(parameter) {
        match found {
            Type::Ptr(_) if through_pointer => break,
            Type::Ptr(_) => through_pointer = true,
            Type::Struct(found) if through_pointer => {
                return btf.resolve_name(&found).unwrap_or_default();
            }
            _ => {}
        }
    }
    String::new()
}

/// Byte offset of a dotted path of members.
fn member_offset(btf: &NamedBtf, of: &Struct, path: &str) -> Option<u32> {
    let mut structure = of.clone();
    let mut bits = 0;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let (offset, kind) = member(btf, &structure, name)?;
        bits += offset;
        if names.peek().is_some() {
            structure = composite(btf, kind)?;
        }
    }
    // A bit-field that starts within a byte has no byte offset.
    (bits % 8 == 0).then_some(bits / 8)
}

/// Bit offset and type of a member, looked for in anonymous structs and unions too.
fn member(btf: &NamedBtf, of: &Struct, name: &str) -> Option<(u32, Type)> {
    of.members.iter().find_map(|candidate| {
        let text = btf.resolve_name(candidate).ok()?;
        let kind = btf.resolve_chained_type(candidate).ok()?;
        if text == name {
            Some((candidate.bit_offset(), kind))
        } else if text.is_empty() {
            let (inner, kind) = member(btf, &composite(btf, kind)?, name)?;
            Some((candidate.bit_offset() + inner, kind))
        } else {
            None
        }
    })
}

/// The struct or union that a type is, seen through typedefs and qualifiers.
fn composite(btf: &NamedBtf, kind: Type) -> Option<Struct> {
    match kind {
        Type::Struct(found) | Type::Union(found) => Some(found),
        Type::Typedef(_)
        | Type::Const(_)
        | Type::Volatile(_)
        | Type::Restrict(_)
        | Type::TypeTag(_) => composite(btf, btf.resolve_chained_type(kind.as_btf_type()?).ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
