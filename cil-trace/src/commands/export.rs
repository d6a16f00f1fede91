//! `export`: a recording for other tools.

use super::output;
use super::report::{announce, open};
use crate::options::ExportOptions;
use anyhow::{Context as _, Result, bail};
use cil_trace_core::export::{self, Format};
use cil_trace_core::profile::Profile;
use cil_trace_core::recording::Recording;
use std::io::{IsTerminal as _, Write as _, stdout};

/// Writes an export.
///
/// # Errors
/// The recording cannot be read or has no such stacks, or the export cannot be written.
pub fn run(options: &ExportOptions) -> Result<()> {
    let bytes = match options.stacks {
        Some((kind, weight)) => {
            let model = open(&options.input)?;
            let profile = Profile::of(&model, kind, weight)?;
            match options.format {
                Format::Folded => export::folded(&profile).into_bytes(),
                Format::Speedscope => export::speedscope(&profile)?.into_bytes(),
                Format::Csv => export::stacks_csv(&profile)?.into_bytes(),
                Format::Json => export::stacks_json(&profile)?.into_bytes(),
                Format::Pprof => export::pprof(&model, kind, weight)?,
                Format::Parquet | Format::Perfetto => {
                    bail!("{} has no stacks", options.format.name())
                }
            }
        }
        None => whole(options)?,
    };
    if options.output.is_none() && is_binary(options.format) && stdout().is_terminal() {
        bail!(
            "{} is not for terminals; give a file with -o",
            options.format.name()
        );
    }
    match &options.output {
        Some(path) => output::write(path, &bytes, "-o"),
        None => stdout()
            .write_all(&bytes)
            .context("cannot write the export"),
    }
}

/// What is not about stacks of one kind.
fn whole(options: &ExportOptions) -> Result<Vec<u8>> {
    let recording = Recording::open(&options.input)?;
    let model = recording.model()?;
    announce(&options.input, &recording, &model);
    let mut ticks = Vec::new();
    recording.for_each_tick(|tick| ticks.push(tick.clone()))?;
    Ok(match options.format {
        Format::Json => export::everything_json(&model, &ticks)?.into_bytes(),
        Format::Csv => export::ticks_csv(&model, &ticks)?.into_bytes(),
        Format::Perfetto => export::perfetto(&model, &ticks),
        Format::Folded | Format::Pprof | Format::Speedscope | Format::Parquet => {
            bail!("{} needs --kind", options.format.name())
        }
    })
}

const fn is_binary(format: Format) -> bool {
    matches!(format, Format::Pprof | Format::Perfetto)
}
