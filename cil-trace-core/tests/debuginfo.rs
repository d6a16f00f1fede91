//! What debug information says of a small object, whose source and making is in `debuginfo/inlined.c`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cil_trace_common::offset::{Offset, Source};
use cil_trace_core::debuginfo::{DebugInfo, DebugInfoError, Instance, build_id};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use proptest::prelude::*;

/// DWARF 4 as it is, and DWARF 5 compressed.
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("debuginfo/dwarf4.o"),
    include_bytes!("debuginfo/dwarf5-compressed.o"),
];

/// `nopl 0x1234(%rax)`
const MARK: [u8; 7] = [0x0f, 0x1f, 0x80, 0x34, 0x12, 0x00, 0x00];

fn instances(object: &[u8], function: &str) -> Vec<Instance> {
    let info = DebugInfo::parse(object).unwrap();
    let mut found = info.instances(&[function], &["inlined.c"]).unwrap();
    found.remove(function).unwrap()
}

/// The code of `symbol` from `offset` on.
fn code(object: &[u8], Instance { symbol, offset }: &Instance) -> Vec<u8> {
    let file = object::File::parse(object).unwrap();
    let symbol = file.symbol_by_name(symbol).unwrap();
    let section = file
        .section_by_index(symbol.section_index().unwrap())
        .unwrap();
    let start = usize::try_from(symbol.address() + offset).unwrap();
    section.data().unwrap()[start..].to_vec()
}

#[test]
fn a_function_begins_where_its_code_does() {
    for object in OBJECTS {
        let found = instances(object, "insert");
        let symbols: Vec<_> = found.iter().map(|found| found.symbol.as_str()).collect();
        assert_eq!(symbols, ["commit", "insert", "push"]);
        for instance in &found {
            let code = code(object, instance);
            // Of its own, the compiler has put an instruction of two bytes before the mark.
            let at = if instance.symbol == "insert" { 2 } else { 0 };
            assert_eq!(code[at..at + MARK.len()], MARK, "{instance:?}");
        }
        assert_eq!(found[1].offset, 0);
    }
}

#[test]
fn a_function_that_is_inlined_nowhere_has_one_beginning() {
    for object in OBJECTS {
        let force = Instance {
            symbol: "force".to_owned(),
            offset: 0,
        };
        assert_eq!(instances(object, "force"), [force]);
    }
}

#[test]
fn other_units_and_unknown_functions_have_none() {
    for object in OBJECTS {
        let info = DebugInfo::parse(object).unwrap();
        let elsewhere = info.instances(&["insert"], &["fs/xfs/"]).unwrap();
        assert!(elsewhere["insert"].is_empty());
        assert!(instances(object, "unknown").is_empty());
    }
}

#[test]
fn members_enumerators_and_arguments_are_found() {
    let member = |any_of| Source::Member { of: "log", any_of };
    let rows: Vec<_> = [
        (member(&["next"]), Some(0)),
        (member(&["cycle"]), Some(8)),
        // In a struct without a name, in a union without a name.
        (member(&["offset"]), Some(12)),
        (member(&["head.lock"]), Some(24)),
        (member(&["new_name", "head"]), Some(20)),
        (member(&["head.owner"]), None),
        // A bit-field has no place in bytes.
        (member(&["covered"]), None),
        (
            Source::Enumerator {
                of: "flags",
                name: "NEED_FUA",
            },
            Some(17),
        ),
        (
            Source::Argument {
                event: "written",
                to: "log",
            },
            Some(0),
        ),
        (
            Source::Argument {
                event: "written",
                to: "grant_head",
            },
            None,
        ),
        (Source::ArgumentCount { event: "written" }, Some(3)),
    ]
    .into_iter()
    .collect();
    for object in OBJECTS {
        let info = DebugInfo::parse(object).unwrap();
        let table: Vec<_> = rows
            .iter()
            .map(|&(source, _)| Offset { global: "", source })
            .collect();
        let found = info.offsets(&table, &["inlined.c"]).unwrap();
        for ((source, expected), found) in rows.iter().zip(found) {
            let found = found.unwrap();
            assert_eq!(found.value, *expected, "{source}");
            assert!(found.declared_in.ends_with("inlined.c"), "{found:?}");
        }
    }
}

#[test]
fn a_type_that_is_not_there_is_not_described() {
    let row = Offset {
        global: "",
        source: Source::Member {
            of: "cil",
            any_of: &["ctx"],
        },
    };
    for object in OBJECTS {
        let info = DebugInfo::parse(object).unwrap();
        assert_eq!(info.offsets(&[row], &["inlined.c"]).unwrap(), [None]);
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    assert!(matches!(
        DebugInfo::parse(&b"\x7fELF"[..]),
        Err(DebugInfoError::Object(_))
    ));
    for object in OBJECTS {
        // An object that was not linked has no build id.
        let file = object::File::parse(object).unwrap();
        assert_eq!(build_id(&file).unwrap(), None);
        // Without its last quarter, section headers included.
        assert!(DebugInfo::parse(&object[..object.len() * 3 / 4]).is_err());
    }
}

proptest! {
    #[test]
    fn damaged_files_do_no_harm(which in 0..OBJECTS.len(), damage: Vec<(usize, u8)>) {
        let mut object = OBJECTS[which].to_vec();
        for (at, byte) in damage {
            let at = at % object.len();
            object[at] = byte;
        }
        if let Ok(info) = DebugInfo::parse(&*object) {
            let row = Offset {
                global: "",
                source: Source::Member { of: "log", any_of: &["offset", "head.lock"] },
            };
            let _ = info.offsets(&[row], &[""]);
            let _ = info.instances(&["insert"], &[""]);
        }
    }
}
