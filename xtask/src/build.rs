//! Building the tool.

use crate::command::{cargo, run, target_dir};
use crate::setup;
use crate::toolchain::{Toolchain, VARIABLE};
use anyhow::Result;
use std::path::PathBuf;

/// Installs the missing parts of the toolchain and builds; gives the program's path.
///
/// # Errors
/// Setting up or building failed.
pub fn release() -> Result<PathBuf> {
    with(setup::toolchain()?)
}

/// Builds with a toolchain that is in place.
///
/// # Errors
/// Building failed.
pub fn with(toolchain: Toolchain) -> Result<PathBuf> {
    run(cargo()
        .args(["build", "--release", "--package", "cil-trace"])
        .env(VARIABLE, toolchain.name()))?;
    Ok(target_dir().join("release/cil-trace"))
}
