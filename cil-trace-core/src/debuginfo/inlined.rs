//! Where a function's code begins: its own, and every place into which it has been inlined.

use super::image::Function;
use super::{DebugInfo, DebugInfoError, Dwarf, Reader, units};
use gimli::constants::{
    DW_AT_abstract_origin, DW_AT_entry_pc, DW_AT_low_pc, DW_AT_name, DW_TAG_inlined_subroutine,
    DW_TAG_subprogram,
};
use gimli::{AttributeValue, DebuggingInformationEntry, Unit, UnitOffset};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;

/// One beginning of a function's code.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// The symbol of the function that holds it.
    pub symbol: String,
    /// Bytes from there on.
    pub offset: u64,
}

impl fmt::Display for Instance {
    /// As perf and the kernel write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.symbol, self.offset)
    }
}

impl DebugInfo {
    /// Where the code of each of `functions` begins, as compilation units have it whose file name
    /// has one of `parts` in it. Empty for one that they do not define.
    ///
    /// # Errors
    /// The debug information is damaged.
    pub fn instances<'f>(
        &self,
        functions: &[&'f str],
        parts: &[&str],
    ) -> Result<HashMap<&'f str, Vec<Instance>>, DebugInfoError> {
        let dwarf = self.dwarf();
        let mut found: HashMap<&str, Vec<Instance>> =
            functions.iter().map(|name| (*name, Vec::new())).collect();
        for unit in units(&dwarf, parts)? {
            let origins = definitions(&dwarf, &unit, functions)?;
            if origins.is_empty() {
                continue;
            }
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                if ![DW_TAG_subprogram, DW_TAG_inlined_subroutine].contains(&entry.tag()) {
                    continue;
                }
                let origin = match entry.attr_value(DW_AT_abstract_origin) {
                    Some(AttributeValue::UnitRef(origin)) => origin,
                    _ => entry.offset(),
                };
                if let Some(name) = origins.get(&origin)
                    && let Some(address) = entry_address(&dwarf, &unit, entry)?
                    && let Some(instance) = self.holding(address)
                    && let Some(instances) = found.get_mut(name)
                {
                    instances.push(instance);
                }
            }
        }
        for instances in found.values_mut() {
            instances.sort_unstable();
            instances.dedup();
        }
        Ok(found)
    }

    /// The function that holds `address`; of several names for one, the first.
    fn holding(&self, address: u64) -> Option<Instance> {
        let Function { start, name, .. } = self
            .functions
            .iter()
            .find(|function| (function.start..function.end).contains(&address))?;
        Some(Instance {
            symbol: name.clone(),
            offset: address - start,
        })
    }
}

/// The entries of a unit that define one of `functions`. Entries of its instances refer to them,
/// unless there is but one, which then is the definition.
fn definitions<'a, 'f>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<Reader<'a>>,
    functions: &[&'f str],
) -> Result<HashMap<UnitOffset, &'f str>, DebugInfoError> {
    let mut origins = HashMap::new();
    let mut entries = unit.entries();
    entries.next_dfs()?;
    entries.next_dfs()?;
    while let Some(entry) = entries.current() {
        if entry.tag() == DW_TAG_subprogram
            && let Some(name) = entry.attr_value(DW_AT_name)
        {
            let name = dwarf.attr_string(unit, name)?.to_string_lossy();
            if let Some(known) = functions.iter().find(|known| **known == name) {
                origins.insert(entry.offset(), *known);
            }
        }
        entries.next_sibling()?;
    }
    Ok(origins)
}

/// Where the code of an entry begins: the first instruction that is executed, as far as the compiler
/// says, else the lowest; `None` if it has no code of its own.
fn entry_address<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<Reader<'a>>,
    entry: &DebuggingInformationEntry<Reader<'a>>,
) -> Result<Option<u64>, DebugInfoError> {
    let address = |at| match entry.attr_value(at) {
        Some(value) => dwarf.attr_address(unit, value),
        None => Ok(None),
    };
    if let Some(entry) = address(DW_AT_entry_pc)? {
        return Ok(Some(entry));
    }
    let lowest = match address(DW_AT_low_pc)? {
        Some(lowest) => Some(lowest),
        None => dwarf
            .die_ranges(unit, entry)?
            .next()?
            .map(|range| range.begin),
    };
    // DWARF 5 lets the entry be given as a distance from there.
    let distance = entry.attr_value(DW_AT_entry_pc);
    let distance = distance.and_then(|value| value.udata_value()).unwrap_or(0);
    Ok(lowest.map(|lowest| lowest.wrapping_add(distance)))
}
