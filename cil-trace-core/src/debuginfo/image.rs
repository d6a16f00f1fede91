//! Sections and symbols of an object file, as if it had been linked.
//!
//! A module is not linked: all of its sections begin at 0, and what points into them is a
//! relocation. Here each section gets a place of its own, so that an address tells both.

use object::{
    Object, ObjectKind, ObjectSection, ObjectSymbol, ReadRef, RelocationKind, RelocationTarget,
    SectionIndex, SymbolKind,
};

/// A function's code.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Function {
    /// First address.
    pub start: u64,
    /// First address past the code.
    pub end: u64,
    /// Its symbol.
    pub name: String,
}

/// Where a section of an object that is not linked begins; none is larger than the distance.
#[must_use]
pub fn place<'a, R: ReadRef<'a>>(file: &object::File<'a, R>, section: Option<SectionIndex>) -> u64 {
    match section {
        Some(SectionIndex(index)) if file.kind() == ObjectKind::Relocatable => {
            (index as u64).wrapping_shl(40)
        }
        _ => 0,
    }
}

/// The section `name` with its relocations done; empty if there is none.
pub fn section<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
) -> Result<Vec<u8>, object::Error> {
    let Some(section) = file.section_by_name(name) else {
        return Ok(Vec::new());
    };
    let mut data = section.uncompressed_data()?.into_owned();
    if file.kind() != ObjectKind::Relocatable {
        return Ok(data);
    }
    for (offset, relocation) in section.relocations() {
        if relocation.kind() != RelocationKind::Absolute {
            continue;
        }
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            continue;
        };
        let symbol = file.symbol_by_index(symbol)?;
        let bytes = usize::from(relocation.size() / 8);
        let Some(target) = usize::try_from(offset)
            .ok()
            .and_then(|offset| data.get_mut(offset..offset.checked_add(bytes)?))
        else {
            continue;
        };
        let mut value = symbol.address().wrapping_add_signed(relocation.addend());
        // Offsets into other sections of debug information are four bytes, addresses of code eight.
        if bytes == 8 {
            value = value.wrapping_add(place(file, symbol.section_index()));
        }
        match (bytes, file.is_little_endian()) {
            (8, true) => target.copy_from_slice(&value.to_le_bytes()),
            (8, false) => target.copy_from_slice(&value.to_be_bytes()),
            (4, true) => target.copy_from_slice(&(value as u32).to_le_bytes()),
            (4, false) => target.copy_from_slice(&(value as u32).to_be_bytes()),
            _ => {}
        }
    }
    Ok(data)
}

/// Every function, by address.
pub fn functions<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Vec<Function> {
    let mut functions: Vec<_> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| {
            let place = place(file, symbol.section_index());
            let start = symbol.address().wrapping_add(place);
            Some(Function {
                start,
                end: start.wrapping_add(symbol.size()),
                name: symbol.name().ok()?.to_owned(),
            })
        })
        .collect();
    functions.sort_unstable();
    functions
}
