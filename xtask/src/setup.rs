//! Installing what is missing, and nothing else.

use crate::packages;
use crate::toolchain::Toolchain;
use anyhow::Result;

/// Everything that building, testing and the demo need.
///
/// # Errors
/// See [`toolchain`] and [`packages::install`].
pub fn all() -> Result<Toolchain> {
    packages::install(packages::RUN)?;
    toolchain()
}

/// What building needs.
///
/// # Errors
/// No toolchain can be had here, or installing it failed.
pub fn toolchain() -> Result<Toolchain> {
    let toolchain = Toolchain::detect()?;
    if packages::is_debian() {
        packages::install(&[packages::BUILD, toolchain.packages()].concat())?;
    }
    toolchain.install_linker()?;
    Ok(toolchain)
}
