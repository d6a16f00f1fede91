//! `completions` and `man`: the command line about itself.

use crate::cli;
use anyhow::{Context as _, Result};
use clap_complete::Shell;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::Path;

/// Prints the completion script of a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(shell: Shell) -> Result<()> {
    // Into memory first: the generator panics when a write fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "cil-trace", &mut script);
    stdout()
        .write_all(&script)
        .context("cannot write the completion script")
}

/// Fills a directory with the man pages, one per command.
///
/// # Errors
/// The directory cannot be written.
pub fn man(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(cli::command(), directory))
        .with_context(|| {
            let shown = directory.display();
            format!("{shown}: cannot write the man pages; give a directory that can be written")
        })
}
