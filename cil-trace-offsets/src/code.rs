//! A module's functions as bytes, without what depends on where they were linked.

use anyhow::Result;
use cil_trace_core::debuginfo::place;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SymbolKind};
use std::collections::{BTreeMap, HashMap};

/// A function's code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// Where it is, among all sections.
    pub address: u64,
    /// Its bytes; 0 where a relocation fills them in.
    pub bytes: Vec<u8>,
    /// Where relocations fill bytes in, of which kind, and what they refer to.
    pub references: Vec<(u64, u32, String)>,
}

impl Code {
    /// Whether it does the same as `other`: same bytes, same references.
    pub fn is_as(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.references == other.references
    }
}

/// Functions by name. Of several with one name, none: they could be taken for each other.
pub fn functions(module: &[u8]) -> Result<BTreeMap<String, Code>> {
    let file = object::File::parse(module)?;
    let mut relocations: HashMap<_, Vec<_>> = HashMap::new();
    for section in file.sections() {
        let mut list = Vec::new();
        for (offset, relocation) in section.relocations() {
            let object::RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = file.symbol_by_index(index)?;
                    match (symbol.kind(), symbol.section_index()) {
                        (SymbolKind::Section, Some(index)) => {
                            file.section_by_index(index)?.name()?.to_owned()
                        }
                        _ => symbol.name()?.to_owned(),
                    }
                }
                _ => String::new(),
            };
            list.push((offset, r_type, usize::from(relocation.size() / 8), target));
        }
        list.sort_unstable();
        relocations.insert(section.index(), list);
    }
    let mut functions: BTreeMap<String, Option<Code>> = BTreeMap::new();
    for symbol in file.symbols() {
        let (SymbolKind::Text, Some(index)) = (symbol.kind(), symbol.section_index()) else {
            continue;
        };
        let section = file.section_by_index(index)?;
        let Some(bytes) = section.data_range(symbol.address(), symbol.size())? else {
            continue;
        };
        let mut code = Code {
            address: symbol.address() + place(&file, Some(index)),
            bytes: bytes.to_vec(),
            references: Vec::new(),
        };
        let list = relocations.get(&index).map_or(&[][..], Vec::as_slice);
        let from = list.partition_point(|(offset, ..)| *offset < symbol.address());
        for (offset, kind, size, target) in list.iter().skip(from) {
            let at = offset - symbol.address();
            if at >= symbol.size() {
                break;
            }
            let place = usize::try_from(at)?;
            let end = (place + size).min(code.bytes.len());
            if let Some(filled_in) = code.bytes.get_mut(place..end) {
                filled_in.fill(0);
            }
            code.references.push((at, *kind, target.clone()));
        }
        functions
            .entry(symbol.name()?.to_owned())
            .and_modify(|code| *code = None)
            .or_insert(Some(code));
    }
    let functions = functions.into_iter();
    Ok(functions
        .filter_map(|(name, code)| Some((name, code?)))
        .collect())
}
