//! `compare`: recordings and matrices held against each other.

mod read;

use crate::error::Usage;
use crate::options::CompareOptions;
use anyhow::{Context as _, Result};
use cil_trace_core::compare::style::explanation;
use cil_trace_core::compare::{CompareError, Comparison, Options};
use cil_trace_core::report::format::{Format, csv, markdown};
use std::io::{Write as _, stdout};

/// What went wrong, as a status: halves of one side were found to differ.
const DIFFERS: u8 = 1;

/// Prints a comparison. The status is 1 if halves of one side differ in more than chance gives.
///
/// # Errors
/// A side cannot be read, has nothing in common with the base, or lacks a metric that was asked for.
pub fn run(options: &CompareOptions) -> Result<u8> {
    let mut sides = read::sides(&options.sides)?;
    if options.compare.halves {
        sides = sides.iter().flat_map(|side| side.halves()).collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let compare = Options {
        threads,
        ..options.compare.clone()
    };
    let comparison = Comparison::of(sides, compare).map_err(|error| match error {
        // The metric was named on the command line.
        CompareError::NoPrimary { .. } | CompareError::NoMatch(_) => {
            Usage(error.to_string()).into()
        }
        error => anyhow::Error::from(error),
    })?;
    let text = match options.format {
        Format::Text if options.compare.explain => explanation(&comparison),
        Format::Text => options.style.render(&comparison),
        Format::Json => comparison.json(),
        Format::Csv => csv::table(&comparison.table())?,
        Format::Markdown => markdown::table(&comparison.table()),
    };
    stdout()
        .write_all(text.as_bytes())
        .context("cannot write the comparison")?;
    let differs = options.compare.halves && !comparison.holds();
    Ok(if differs { DIFFERS } else { 0 })
}
