//! The commands, one file each, and the choice between them.

mod about;

use crate::options::Invocation;
use anyhow::{Result, bail};

/// Runs one command line. The exit status is what the command has to say, an error what it could
/// not do.
///
/// # Errors
/// Those of the command.
pub fn run(invocation: Invocation) -> Result<u8> {
    match invocation {
        Invocation::Completions(shell) => about::completions(shell)?,
        Invocation::Man(directory) => about::man(&directory)?,
        Invocation::Record(_)
        | Invocation::Report(_)
        | Invocation::Flamegraph(_)
        | Invocation::Doctor(_)
        | Invocation::Probes(_) => bail!("not built yet"),
    }
    Ok(0)
}
