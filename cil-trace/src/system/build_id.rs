//! Build ids of the running kernel and its modules, by which debug information and data of theirs are
//! known.

use std::fs;
use std::path::Path;

/// Type of an ELF note with a build id (`NT_GNU_BUILD_ID`, elf.h).
const BUILD_ID: u32 = 3;

/// The build id of the code that holds a module's functions, in hexadecimal digits: the module's, or
/// the kernel's where it is built in.
#[must_use]
pub fn of_module(name: &str) -> Option<String> {
    let module = Path::new("/sys/module").join(name);
    let notes = if module.join("initstate").exists() {
        module.join("notes/.note.gnu.build-id")
    } else {
        "/sys/kernel/notes".into()
    };
    in_notes(&fs::read(notes).ok()?)
}

/// The first build id in a section of notes: each has the sizes of its name and its contents and a
/// type, then both, padded to four bytes.
fn in_notes(mut notes: &[u8]) -> Option<String> {
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let number = |at: usize| -> Option<u32> {
            Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?))
        };
        let size = |at| {
            usize::try_from(number(at)?)
                .ok()?
                .checked_next_multiple_of(4)
        };
        let (name, rest) = rest.split_at_checked(size(0)?)?;
        let (contents, rest) = rest.split_at_checked(size(4)?)?;
        if name == b"GNU\0" && number(8)? == BUILD_ID {
            let length = usize::try_from(number(4)?).ok()?;
            let id = contents.get(..length)?;
            return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::in_notes;

    fn note(kind: u32, name: &[u8], contents: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [name.len() as u32, contents.len() as u32, kind] {
            note.extend(number.to_ne_bytes());
        }
        for part in [name, contents] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = note(0x100, b"Linux\0", &[1, 2, 3, 4]);
        notes.extend(note(1, b"Xen\0", &[]));
        notes.extend(note(3, b"GNU\0", &[0xc0, 0x1d, 0xbe]));
        assert_eq!(in_notes(&notes).as_deref(), Some("c01dbe"));
    }

    #[test]
    fn other_bytes_have_none() {
        assert_eq!(in_notes(&[]), None);
        assert_eq!(in_notes(&[0xff; 64]), None);
        assert_eq!(in_notes(&note(3, b"GNU\0", &[7; 20])[..30]), None);
    }
}
