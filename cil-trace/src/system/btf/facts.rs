//! What BTF describes, listed: the part of [`KernelFacts`](cil_trace_core::probes::facts::KernelFacts)
//! that is types.

use super::{KernelBtf, MODULES, arguments, composite, is_function};
use btf_rs::utils::collection::NamedBtf;
use btf_rs::{Enum, Struct, Type};
use cil_trace_core::probes::Home;
use cil_trace_core::probes::facts::{
    Arguments, Inventory, Member, Types, is_relevant_event, is_relevant_function, relevant_enums,
    relevant_structs,
};
use std::collections::BTreeMap;

impl KernelBtf {
    /// The relevant functions, by who describes them.
    #[must_use]
    pub fn relevant_functions(&self) -> Inventory {
        let mut found = Inventory::new();
        self.each_type(|btf, each| {
            if is_function(each)
                && let Some(name) = name_of(btf, each)
                && is_relevant_function(&name)
            {
                found.entry(home(btf)).or_default().insert(name);
            }
        });
        found
    }

    /// The relevant structures, enumerations and tracepoints.
    #[must_use]
    pub fn relevant_types(&self) -> Types {
        let mut types = Types::default();
        for name in relevant_structs() {
            if let Some((btf, found)) = self.structure(name) {
                types
                    .structs
                    .insert(name.to_owned(), members(btf, &found, 0));
            }
        }
        for name in relevant_enums() {
            let values = self
                .named(name)
                .into_iter()
                .find_map(|(btf, found)| match found {
                    Type::Enum(found) => Some(enumerators(btf, &found)),
                    _ => None,
                });
            if let Some(values) = values {
                types.enums.insert(name.to_owned(), values);
            }
        }
        self.each_type(|btf, each| {
            if let Type::Typedef(found) = each
                && let Some(name) = name_of(btf, each)
                && let Some(event) = name.strip_prefix("btf_trace_")
                && is_relevant_event(event)
                && let Some(arguments) = arguments(btf, found)
            {
                let events = types.events.entry(home(btf)).or_default();
                events.insert(event.to_owned(), Arguments(arguments));
            }
        });
        types
    }

    fn each_type(&self, mut see: impl FnMut(&NamedBtf, &Type)) {
        // The collection gives out vmlinux's only along with what is found in it.
        let found = self.all.resolve_ids_by_name("task_struct");
        let vmlinux = found
            .unwrap_or_default()
            .into_iter()
            .map(|(btf, _)| btf)
            .take(1);
        let modules = MODULES
            .iter()
            .filter_map(|name| self.all.get_named_btf(name));
        for btf in vmlinux.chain(modules) {
            let section = btf.split().unwrap_or_else(|| btf.base());
            let (first, last) = section.type_id_range();
            for id in first..=last {
                if let Ok(each) = section.resolve_type_by_id(id) {
                    see(btf, &each);
                }
            }
        }
    }
}

fn home(btf: &NamedBtf) -> Home {
    Home::from(btf.name.as_str())
}

fn name_of(btf: &NamedBtf, each: &Type) -> Option<String> {
    btf.resolve_name(each.as_btf_type()?).ok()
}

/// Those of anonymous structures and unions count as the structure's own, as in C. Bit-fields that
/// start within a byte are left out.
fn members(btf: &NamedBtf, of: &Struct, base: u32) -> BTreeMap<String, Member> {
    let mut all = BTreeMap::new();
    for member in &of.members {
        let bits = base + member.bit_offset();
        let inner = btf
            .resolve_chained_type(member)
            .ok()
            .and_then(|kind| composite(btf, kind));
        let name = btf.resolve_name(member).unwrap_or_default();
        match inner {
            Some(inner) if name.is_empty() => all.extend(members(btf, &inner, bits)),
            inner if bits.is_multiple_of(8) => {
                let of = inner.and_then(|inner| btf.resolve_name(&inner).ok());
                let of = of.filter(|name| !name.is_empty());
                let offset = bits / 8;
                all.insert(name, Member { offset, of });
            }
            _ => {}
        }
    }
    all
}

fn enumerators(btf: &NamedBtf, of: &Enum) -> BTreeMap<String, u32> {
    of.members
        .iter()
        .filter_map(|member| Some((btf.resolve_name(member).ok()?, member.val())))
        .collect()
}
