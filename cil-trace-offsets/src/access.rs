//! Where code uses a structure's members, told from the debug information: at which addresses a
//! register holds a pointer to a structure, and what instructions there add to that register.

use crate::code::Code;
use anyhow::Result;
use cil_trace_core::debuginfo::{DebugInfo, Dwarf, Reader};
use gimli::constants::{
    DW_AT_abstract_origin, DW_AT_location, DW_AT_name, DW_AT_type, DW_TAG_const_type,
    DW_TAG_formal_parameter, DW_TAG_pointer_type, DW_TAG_restrict_type, DW_TAG_structure_type,
    DW_TAG_typedef, DW_TAG_variable, DW_TAG_volatile_type,
};
use gimli::{AttributeValue, DebuggingInformationEntry, Operation, Unit};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

/// An offset into a structure.
pub type Use = (String, i64);

/// While a register holds a pointer to a structure.
struct Pointer {
    from: u64,
    to: u64,
    register: Register,
    structure: String,
}

/// What each of `functions` uses.
pub fn uses<'f>(
    info: &DebugInfo,
    functions: &'f BTreeMap<String, Code>,
) -> Result<BTreeMap<&'f str, BTreeSet<Use>>> {
    let mut pointers = pointers(&info.dwarf())?;
    pointers.sort_unstable_by_key(|pointer| pointer.from);
    // No function is longer, and so no range that begins earlier reaches into one.
    let longest = functions.values().map(|code| code.bytes.len()).max();
    let longest = u64::try_from(longest.unwrap_or(0))?;
    let uses = functions.iter().map(|(name, code)| {
        let end = code.address + u64::try_from(code.bytes.len()).unwrap_or(u64::MAX);
        let from = pointers.partition_point(|pointer| pointer.from + longest < code.address);
        let to = pointers.partition_point(|pointer| pointer.from < end);
        (
            name.as_str(),
            uses_of(code, pointers.get(from..to).unwrap_or_default()),
        )
    });
    Ok(uses.collect())
}

fn uses_of(code: &Code, pointers: &[Pointer]) -> BTreeSet<Use> {
    let mut uses = BTreeSet::new();
    let mut decoder = Decoder::with_ip(64, &code.bytes, code.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let Some((register, offset)) = sum(&instruction) else {
            continue;
        };
        let at = instruction.ip();
        let holds = pointers.iter().filter(|pointer| {
            (pointer.from..pointer.to).contains(&at) && pointer.register == register
        });
        uses.extend(holds.map(|pointer| (pointer.structure.clone(), offset)));
    }
    uses
}

/// The register, and what is added to it: in an address, or by an addition.
fn sum(instruction: &Instruction) -> Option<(Register, i64)> {
    let operands = 0..instruction.op_count();
    if operands
        .into_iter()
        .any(|operand| instruction.op_kind(operand) == OpKind::Memory)
    {
        let plain = instruction.memory_index() == Register::None;
        return plain.then(|| {
            (
                instruction.memory_base(),
                instruction.memory_displacement64().cast_signed(),
            )
        });
    }
    let adds = instruction.mnemonic() == iced_x86::Mnemonic::Add;
    (adds && instruction.op_count() == 2 && instruction.op0_kind() == OpKind::Register)
        .then(|| Some((instruction.op0_register(), immediate(instruction)?)))?
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    match instruction.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
            Some(instruction.immediate(1).cast_signed())
        }
        _ => None,
    }
}

fn pointers(dwarf: &Dwarf<'_>) -> Result<Vec<Pointer>> {
    let mut pointers = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let variable = [DW_TAG_formal_parameter, DW_TAG_variable].contains(&entry.tag());
            if let Some(location) = entry.attr_value(DW_AT_location)
                && variable
                && let Some(mut ranges) = dwarf.attr_locations(&unit, location)?
                && let Some(structure) = pointee(dwarf, &unit, entry)?
            {
                while let Some(location) = ranges.next()? {
                    if let Some(register) = register(&unit, location.data)? {
                        pointers.push(Pointer {
                            from: location.range.begin,
                            to: location.range.end,
                            register,
                            structure: structure.clone(),
                        });
                    }
                }
            }
        }
    }
    Ok(pointers)
}

/// The register that a location is, if it is one.
fn register(
    unit: &Unit<Reader<'_>>,
    location: gimli::Expression<Reader<'_>>,
) -> Result<Option<Register>> {
    /// In DWARF's order (System V ABI for AMD64, figure 3.36).
    const REGISTERS: [Register; 16] = [
        Register::RAX,
        Register::RDX,
        Register::RCX,
        Register::RBX,
        Register::RSI,
        Register::RDI,
        Register::RBP,
        Register::RSP,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    let mut operations = location.operations(unit.encoding());
    let (first, second) = (operations.next()?, operations.next()?);
    Ok(match (first, second) {
        (Some(Operation::Register { register }), None) => {
            REGISTERS.get(usize::from(register.0)).copied()
        }
        _ => None,
    })
}

/// The structure that a variable points to.
fn pointee<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<Reader<'a>>,
    entry: &DebuggingInformationEntry<Reader<'a>>,
) -> Result<Option<String>> {
    let reference = |entry: &DebuggingInformationEntry<Reader<'a>>, at| match entry.attr_value(at) {
        Some(AttributeValue::UnitRef(offset)) => Some(unit.entry(offset)).transpose(),
        _ => Ok(None),
    };
    let mut entry = entry.clone();
    while let Some(origin) = reference(&entry, DW_AT_abstract_origin)? {
        entry = origin;
    }
    let mut pointers = 0;
    while let Some(found) = reference(&entry, DW_AT_type)? {
        let tag = found.tag();
        if tag == DW_TAG_structure_type && pointers == 1 {
            let name = found.attr_value(DW_AT_name);
            return Ok(match name {
                Some(name) => Some(
                    dwarf
                        .attr_string(unit, name)?
                        .to_string_lossy()
                        .into_owned(),
                ),
                None => None,
            });
        }
        let transparent = [
            DW_TAG_typedef,
            DW_TAG_const_type,
            DW_TAG_volatile_type,
            DW_TAG_restrict_type,
        ];
        if tag == DW_TAG_pointer_type {
            pointers += 1;
        } else if !transparent.contains(&tag) {
            return Ok(None);
        }
        entry = found;
    }
    Ok(None)
}
