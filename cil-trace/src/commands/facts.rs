//! `facts`: what decides about the probes on this kernel, as tests of their resolution read it.

use crate::trace::RunningKernel;
use anyhow::{Context as _, Result};
use std::io::{Write as _, stdout};

/// Prints it, in JSON.
///
/// # Errors
///
/// Symbols or types of this kernel cannot be read.
pub fn run() -> Result<()> {
    let facts = RunningKernel::read(None)?.facts()?;
    let text = serde_json::to_string_pretty(&facts)?;
    writeln!(stdout(), "{text}").context("standard output")
}
