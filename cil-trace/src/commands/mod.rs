//! The commands, one file each, and the choice between them.

mod about;
mod compare;
mod doctor;
mod export;
mod facts;
mod flamegraph;
mod output;
mod probes;
mod report;

use crate::options::Invocation;
use crate::{record, top};
use anyhow::Result;

/// Runs one command line. The exit status is what the command has to say, an error what it could
/// not do.
///
/// # Errors
/// Those of the command.
pub fn run(invocation: Invocation) -> Result<u8> {
    match invocation {
        Invocation::Record(options) => return record::run(&options),
        Invocation::Top(options) => top::run(&options)?,
        Invocation::Report(options) => report::run(&options)?,
        Invocation::Export(options) => export::run(&options)?,
        Invocation::Compare(options) => return compare::run(&options),
        Invocation::Flamegraph(options) => flamegraph::run(&options)?,
        Invocation::Doctor(options) => doctor::run(&options)?,
        Invocation::Probes(options) => probes::run(&options)?,
        Invocation::Facts => facts::run()?,
        Invocation::Completions(shell) => about::completions(shell)?,
        Invocation::Man(directory) => about::man(&directory)?,
    }
    Ok(0)
}
