//! The impure side of cil-trace: the command line, the traced command, the kernel side's maps, and
//! what runs them.
//!
//! What a number means and how it is shown is decided in `cil-trace-core`, never here.

pub mod cli;
pub mod collect;
mod commands;
pub mod error;
pub mod messages;
pub mod options;
pub mod record;
pub mod signals;
pub mod symbols;
pub mod system;
pub mod top;
pub mod trace;
pub mod workload;

use options::Invocation;
use std::ffi::OsString;
use std::io::{Write, stderr};

/// Runs one command line, program name first, and returns the exit status.
///
/// Messages go to standard error; a reader that closed standard output early is no failure.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    // Warnings by default; RUST_LOG=debug shows what the verifier says and the programs' own words.
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .target(env_logger::Target::Pipe(Box::new(messages::Output)))
        .format(|out, record| match record.level() {
            log::Level::Warn | log::Level::Error => writeln!(out, "cil-trace: {}", record.args()),
            level => writeln!(out, "cil-trace {level}: {}", record.args()),
        })
        .init();
    let invocation = match cli::parse(args) {
        Ok(invocation) => invocation,
        Err(message) => {
            // --help and --version come this way too. Nobody is left to tell if this fails.
            let _ = message.print();
            return u8::try_from(message.exit_code()).unwrap_or(error::USAGE);
        }
    };
    let own_failure = match invocation {
        Invocation::Record(_) => error::RECORD,
        _ => error::RUNNING,
    };
    commands::run(invocation).unwrap_or_else(|failure| {
        let status = error::status(&failure, own_failure);
        if status != 0 {
            // Not eprintln!, which panics when standard error is closed.
            let _ = writeln!(stderr(), "cil-trace: {failure:#}");
        }
        status
    })
}
