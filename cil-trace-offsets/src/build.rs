//! One build of XFS: what identifies it, and what its debug information says.

use anyhow::{Context as _, Result, ensure};
use cil_trace_common::offset::OFFSETS;
use cil_trace_core::debuginfo::{DebugInfo, DebugInfoError, Described, build_id};
use cil_trace_core::offsets::Value;
use std::fs;
use std::path::Path;

/// A package's xfs.ko.
pub struct Build {
    /// `PACKAGE_VERSION`
    pub directory: String,
    /// Its build id.
    pub id: String,
    /// The file.
    pub module: Vec<u8>,
    /// A value for each row of [`OFFSETS`]; `None` if there is no debug information.
    pub offsets: Option<Vec<Value>>,
}

impl Build {
    /// Reads the one in a directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let name = directory.file_name().context("no directory's name")?;
        let module = fs::read(directory.join("xfs.ko")).context("xfs.ko")?;
        let offsets = match DebugInfo::parse(&*module) {
            Ok(info) => Some(offsets(&info)?),
            Err(DebugInfoError::Stripped) => None,
            Err(error) => return Err(error.into()),
        };
        let id = build_id(&object::File::parse(&*module)?)?.context("xfs.ko has no build id")?;
        Ok(Self {
            directory: name.to_string_lossy().into_owned(),
            id,
            module,
            offsets,
        })
    }

    /// Its package and version.
    pub fn name(&self) -> String {
        self.directory.replacen('_', " ", 1)
    }
}

fn offsets(info: &DebugInfo) -> Result<Vec<Value>> {
    let described = info.offsets(OFFSETS, &[""])?;
    let values = described.into_iter().map(|described| match described {
        Some(described) if !is_kernels_own(&described) => {
            described.value.map_or(Value::Absent, Value::Is)
        }
        _ => Value::Elsewhere,
    });
    let values: Vec<_> = values.collect();
    ensure!(
        values.iter().any(|value| matches!(value, Value::Is(_))),
        "its debug information describes none of XFS's structures"
    );
    Ok(values)
}

/// Whether vmlinux has the type too, and so its BTF: then it is declared in a header for all.
fn is_kernels_own(described: &Described) -> bool {
    described.declared_in.starts_with("include/") || described.declared_in.contains("/include/")
}
