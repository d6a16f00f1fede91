//! Debug information (DWARF) of a kernel or of a module: its types' members, and where its functions
//! have been inlined.
//!
//! Reads what it is given and knows no paths. Nothing here is about XFS.

mod image;
mod inlined;
mod types;

pub use image::place;
pub use inlined::Instance;
pub use types::Described;

use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId, Unit};
use image::Function;
use object::{Object as _, ReadRef};
use thiserror::Error;

/// What is wrong with a file of debug information.
#[derive(Debug, Error)]
pub enum DebugInfoError {
    /// It is no object file, or a damaged one.
    #[error("no object file that can be read: {0}")]
    Object(#[from] object::Error),
    /// Its debug information is damaged, or of a kind that is not known.
    #[error("its debug information cannot be read: {0}")]
    Dwarf(#[from] gimli::Error),
    /// It has been stripped.
    #[error("it holds no debug information")]
    Stripped,
}

/// How sections are read.
pub type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
/// The sections of debug information.
pub type Dwarf<'a> = gimli::Dwarf<Reader<'a>>;

/// The debug information of one file.
pub struct DebugInfo {
    sections: DwarfSections<Vec<u8>>,
    endian: RunTimeEndian,
    functions: Vec<Function>,
    build_id: Option<String>,
}

impl DebugInfo {
    /// Takes what is needed out of an object file: vmlinux, or a module.
    ///
    /// # Errors
    /// It is no object file, or it has no debug information.
    pub fn parse<'a, R: ReadRef<'a>>(data: R) -> Result<Self, DebugInfoError> {
        let file = object::File::parse(data)?;
        if file.section_by_name(SectionId::DebugInfo.name()).is_none() {
            return Err(DebugInfoError::Stripped);
        }
        let sections = DwarfSections::load(|id| image::section(&file, id.name()))?;
        Ok(Self {
            sections,
            endian: if file.is_little_endian() {
                RunTimeEndian::Little
            } else {
                RunTimeEndian::Big
            },
            functions: image::functions(&file),
            build_id: build_id(&file)?,
        })
    }

    /// The build id in hexadecimal digits, as /sys and debuginfod have it.
    #[must_use]
    pub fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// All of it, with addresses as [`place`] tells sections apart.
    #[must_use]
    pub fn dwarf(&self) -> Dwarf<'_> {
        self.sections
            .borrow(|section| EndianSlice::new(section, self.endian))
    }
}

/// The build id of an object file in hexadecimal digits.
///
/// # Errors
/// The file is damaged.
pub fn build_id<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
) -> Result<Option<String>, DebugInfoError> {
    let id = file.build_id()?;
    Ok(id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// The compilation units whose file name has one of `parts` in it, of all that there are.
fn units<'a>(dwarf: &Dwarf<'a>, parts: &[&str]) -> Result<Vec<Unit<Reader<'a>>>, DebugInfoError> {
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let name = unit.name.map(|name| name.to_string_lossy());
        if name.is_some_and(|name| parts.iter().any(|part| name.contains(part))) {
            units.push(unit);
        }
    }
    Ok(units)
}
